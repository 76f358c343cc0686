"""The plan of a tree: layers, shares and draws, decided from public inputs before any record is read.

What a release costs is the sum over the draws on a root-to-leaf path: nodes of one layer are disjoint, so a record (or the
k rows of a person) meets each layer once. The shares of a path sum to ε as exact fractions, whatever L, r, m and neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from schemas.counted import many
from schemas.errors import SpecError
from schemas.plan import Draw, ElectionPlan, LayerPlan
from schemas.spec.domain import Domain
from schemas.spec.release import Release
from schemas.spec.weights import LARGEST_SET
from steps_engine import noise
from steps_engine.accounting.composition import cost_of
from steps_engine.accounting.mechanisms import CountNoise, noise_of
from steps_engine.accounting.plans import Allowance, Outline
from steps_engine.domain.cells import Space
from steps_engine.inference import exchanging
from steps_engine.methods.tree.election import MOST_CANDIDATES, UTILITIES, Utility, grouping_count
from steps_engine.methods.tree.likely import are_exchanged
from steps_engine.methods.tree.spec import Division, LayeredSpec, TreeSpec, UhSpec
from steps_engine.scores import must_be_expected

MOST_BYTES = 2**32  # of a table that is held: one that needs more is sampled instead
MOST_KEPT = 10**6  # empty cells that may reach the threshold by their noise alone, expected over all measurements
TOTAL_SHARE = Fraction(1, 50)  # for the number of rows, where no other layer is there to tell it
BYTES_PER_CELL, BYTES_PER_CELL_AND_SET = 120, 40  # measured: benchmarks/tree.py
SECONDS_PER_CELL_AND_SET = 2.5e-7
BYTES_PER_LIKELY_CELL, SECONDS_PER_LIKELY_CELL_AND_SET = 80, 3.5e-6  # more, where cells hold what is likely
BYTES_PER_VALUE, SECONDS_PER_VALUE = 8, 5e-8  # of a set's records


@dataclass(frozen=True)
class Shape:
    """The layers of a tree as far as they are public: attributes (None: elected), nodes, where branches may end early."""

    attributes: tuple[tuple[str, ...] | None, ...]
    nodes: tuple[int, ...]
    exact: bool
    early: tuple[bool, ...]  # whether a node of this layer may hold a single cell and so end its branch
    most_nodes: tuple[int, ...] | None = None  # where branches may stop: cells can lie in every layer


def outline(
    release: Release, allowance: Allowance, randomness: noise.Randomness | None, utilities: Mapping[str, Utility] = UTILITIES
) -> Outline:
    """The layers of a tree and their draws. `randomness` orders the attributes of `uh`, once: the plan is then sealed."""
    domain, method, total = release.domain, layered(release), release.spec.privacy.total
    space = Space(domain)
    shape, sets = _shape(space, method, randomness), method.sets.count
    likely = are_likely(len(shape.nodes), method.sets.budget)
    sparse = bytes_of(domain.all_cells, sets, likely) > MOST_BYTES
    _must_fit(release, shape, sparse)
    election = _election(domain, method, utilities)
    shares = _shares(method.division(allowance.measure.name), shape)
    if sparse and len(shape.nodes) == 1:
        shape, shares = _below_a_total(shape), (TOTAL_SHARE, 1 - TOTAL_SHARE)
    draws = _election_draws(election, allowance, utilities)
    each = (allowance.total - cost_of(draws)) / len(allowance.served)
    draws += _count_draws(shape, shares, each, allowance)
    rows = min(domain.expected_units or 0, LARGEST_SET)
    held, values = sum(shape.nodes), rows * len(domain.names)
    if sparse:
        draws = [_sampled(draw, len(shape.nodes), domain.all_cells, len(allowance.served)) for draw in draws]
        held, likely = sum(shape.nodes[:-1]) + MOST_KEPT + (domain.expected_units or 0), False
    seconds = held * SECONDS_PER_CELL_AND_SET + values * SECONDS_PER_VALUE
    if likely:
        seconds += held * SECONDS_PER_LIKELY_CELL_AND_SET
        seconds += exchanging.seconds(rows, domain.sizes) if are_exchanged(held, rows, domain.sizes) else 0.0
    return Outline(
        layers=_layers(shape, shares, [_noise(allowance, share * each) for share in shares], total, sparse),
        draws=tuple(draws),
        memory_bytes=bytes_of(held, sets, likely) + values * BYTES_PER_VALUE,
        seconds=round(2 + sets * seconds, 1),
        election=election,
    )


def layered(release: Release) -> LayeredSpec:
    """The options of a tree, a flat table or a universal histogram."""
    assert isinstance(release.spec.method, LayeredSpec)
    return release.spec.method


def bytes_of(nodes: int, sets: int, likely: bool = False) -> int:
    """Memory for a tree whose nodes are all held."""
    return 2**27 + nodes * (BYTES_PER_CELL + likely * BYTES_PER_LIKELY_CELL + sets * BYTES_PER_CELL_AND_SET)


def are_likely(layers: int, budget: str) -> bool:
    """Whether sets have the cells of one layer from what these are likely to hold, each by its own measurement."""
    return budget == "split" and layers == 1


def _must_fit(release: Release, shape: Shape, sparse: bool) -> None:
    """Only cells can be sampled: the layers above them are held, and a cell's number must be one that can be held."""
    widest, cells = max(shape.nodes[:-1] if sparse else shape.nodes, default=0), release.domain.all_cells
    name = f'release "{release.spec.name}"'
    if cells > noise.MOST_CELLS:
        raise SpecError(
            f"{name} needs a table of {many(cells)} cells; at most {noise.MOST_CELLS:.3g} can be numbered. "
            "Use decomposition: cascade, fewer attributes, fewer bins or coarser categories."
        )
    if sparse and shape.most_nodes is not None:
        raise SpecError(f"{name}: stop: true needs cells that can be listed; {many(cells)} are too many. Leave stop out.")
    if bytes_of(widest, release.spec.method.sets.count) > MOST_BYTES:
        raise SpecError(
            f"{name} has a layer of up to {many(widest)} nodes above its cells: more than {MOST_BYTES / 2**30:g} GiB. "
            "Give an order with fewer or smaller attributes, or use decomposition: cascade."
        )


def _below_a_total(shape: Shape) -> Shape:
    """Sampled cells do not tell how many rows there are, so a layer of one node, everybody, is counted above them."""
    return Shape(((), *shape.attributes), (1, *shape.nodes), shape.exact, (False, *shape.early))


def _sampled(draw: Draw, last: int, cells: int, measurements: int) -> Draw:
    """The draw of the last layer with the lowest threshold that few enough empty cells reach."""
    if draw.kind != "count" or draw.layer != last:
        return draw
    return draw.model_copy(update={"threshold": noise_of(draw).threshold(MOST_KEPT / measurements / cells)})


def _shape(space: Space, method: LayeredSpec, randomness: noise.Randomness | None) -> Shape:
    if isinstance(method, TreeSpec) and method.elect is not None:
        return _elected_shape(space, method.elect.layers, method.elect.what, method.elect.stop)
    names, groups = space.domain.names, list(_groups_above_cells(space, method, randomness))
    rest = tuple(name for name in names if name not in {n for group in groups for n in group})
    groups += [rest] if rest else []
    prefixes = [tuple(space.domain.index(n) for g in groups[: i + 1] for n in g) for i in range(len(groups))]
    ended = (0, *(space.singles(prefix) for prefix in prefixes[:-1]))  # cells whose branch ended above this layer
    nodes = tuple(space.count(prefix) - done for prefix, done in zip(prefixes, ended, strict=True))
    depth = sum(number > 0 for number in nodes)
    early = tuple(after > before for before, after in zip(ended, ended[1:], strict=False))
    return Shape(tuple(groups[:depth]), nodes[:depth], True, (*early[: depth - 1], True))


def _groups_above_cells(space: Space, method: LayeredSpec, randomness: noise.Randomness | None) -> tuple[tuple[str, ...], ...]:
    """The attributes of each layer above the full cross-tabulation: given, random, or none."""
    if isinstance(method, UhSpec):
        names = space.domain.names
        if method.layers > len(names):
            raise SpecError(f"layers: {method.layers} are asked; the domain has {len(names)} attributes.")
        order = noise.permutation(len(names), randomness).tolist() if randomness is not None else range(len(names))
        return tuple((names[j],) for j in order[: method.layers])
    return method.named_groups()


def _elected_shape(space: Space, layers: int, what: str, stop: bool) -> Shape:
    sizes, cells = sorted((size for size in space.domain.sizes if size > 1), reverse=True), space.count()
    if what == "groups":
        sizes = sorted(space.domain.sizes, reverse=True)
    if cells == 1 or layers > len(sizes) or (what == "groups" and layers < 2):
        least = 2 if what == "groups" else 1
        bounds = f"{least} to {len(sizes)}" if len(sizes) >= least and cells > 1 else "no"
        raise SpecError(
            f"elect.layers: {layers} are asked; this domain has {many(cells)} cells and {len(sizes)} attributes to choose "
            f"from, so that {bounds} layers can be elected. Lower layers, or give an order."
        )
    if what == "groups" and (candidates := grouping_count(len(sizes), layers)) > MOST_CANDIDATES:
        raise SpecError(
            f"electing {layers} groups of {len(sizes)} attributes has {candidates:,} candidates; at most {MOST_CANDIDATES:,}. "
            "Ask for fewer groups, or elect attributes."
        )
    depth = layers + (what == "attributes" and layers < len(sizes))
    most = [min(cells, math.prod(sizes[: i + 1])) for i in range(depth - 1)] if what == "attributes" else [cells] * (depth - 1)
    return Shape((None,) * depth, (*most, cells), False, (True,) * depth, most_nodes=(cells,) * depth if stop else None)


def _election(domain: Domain, method: LayeredSpec, utilities: Mapping[str, Utility]) -> ElectionPlan | None:
    elect = method.elect if isinstance(method, TreeSpec) else None
    if elect is None:
        return None
    if elect.utility not in utilities:
        raise SpecError(f"elect.utility: there is no {elect.utility!r}; known are {', '.join(utilities)}.")
    if elect.stop and not utilities[elect.utility].in_rows:
        raise SpecError(f"stop: true needs scores that can be weighed against noise; {elect.utility} has none, say uneven.")
    if utilities[elect.utility].needs_expected_rows and domain.expected_units is None:
        raise SpecError(f"utility: {elect.utility} needs expected_rows in the dataset: its penalty must not come from records.")
    if utilities[elect.utility].in_rows:
        must_be_expected(domain.expected_units)
    p = len(domain.names)
    return ElectionPlan(
        utility=elect.utility, what=elect.what, mechanism=elect.mechanism, layers=elect.layers, share=elect.share,
        candidates=p + elect.stop if elect.what == "attributes" else grouping_count(p, elect.layers), stop=elect.stop,
    )  # fmt: skip


def _election_draws(election: ElectionPlan | None, allowance: Allowance, utilities: Mapping[str, Utility]) -> list[Draw]:
    """The tree is elected once for all sets: one election per layer that is split, r·ε in all."""
    if election is None:
        return []
    rounds = election.layers if election.what == "attributes" else 1
    utility = utilities[election.utility]
    spread = utility.spread * (2 if election.what == "groups" else 1)
    error = utility.candidate_error(election.what, election.stop)
    each = election.share * allowance.total / rounds
    return [
        allowance.election(f"election {layer}", each, spread, layer=layer, mechanism=election.mechanism, error=error)
        for layer in range(rounds)
    ]


def _shares(asked: Division, shape: Shape) -> tuple[Fraction, ...]:
    """The part of a set's budget that each layer gets; they sum to 1 exactly."""
    depth = len(shape.nodes)
    if asked == "equal":
        return (Fraction(1, depth),) * depth
    if asked == "cube_root" or asked == "square_root":
        power = 1 / 3 if asked == "cube_root" else 1 / 2
        weights = tuple(Fraction(round(nodes**power * 1000)) for nodes in shape.nodes)
    elif len(asked) != depth:
        raise SpecError(f"shares: {len(asked)} are given; this tree has {depth} layers, the last cross-tabulation included.")
    else:
        weights = asked
    return tuple(weight / sum(weights) for weight in weights)


def _count_draws(shape: Shape, shares: tuple[Fraction, ...], each: Fraction, allowance: Allowance) -> list[Draw]:
    """One draw per layer and measurement; a branch that ends early spends the rest of its path in its last draw."""
    draws = []
    for set_ in allowance.served:
        name = "all sets" if set_ is None else f"set {set_}"
        for layer, share in enumerate(shares, start=1):
            if layer < len(shares):
                inner = f"{name}, layer {layer}, inner"
                draws.append(allowance.count(inner, share * each, layer=layer, set_=set_, nodes="inner"))
            if shape.early[layer - 1]:
                rest = sum(shares[layer - 1 :], Fraction(0)) * each
                draws.append(allowance.count(f"{name}, layer {layer}, leaves", rest, layer=layer, set_=set_))
    return draws


def _noise(allowance: Allowance, cost: Fraction) -> CountNoise:
    """The noise that a cost buys, if it can be drawn: a share may be written as small as one likes."""
    noise = noise_of(allowance.count("", cost, layer=1, set_=None))
    if noise.scale > noise.mechanism.largest_scale:
        raised = "epsilon" if allowance.measure.name == "pure" else "rho"
        raise SpecError(
            f"one of the layers pays so little that its noise is more than can be drawn. Raise {raised}, ask for fewer sets or "
            "layers, or give it a larger share."
        )
    return noise


def _layers(
    shape: Shape, shares: tuple[Fraction, ...], noises: Sequence[CountNoise], total: str, sparse: bool
) -> tuple[LayerPlan, ...]:
    if sparse:  # a cell that is kept has its noise, and the layers above learn nothing from it
        errors = [*expected_errors(shape.nodes[:-1], noises[:-1], total), math.sqrt(noises[-1].variance)]
    else:
        errors = expected_errors(shape.nodes, noises, total)
    return tuple(
        LayerPlan(
            layer=i + 1, attributes=shape.attributes[i], nodes=(shape.most_nodes or shape.nodes)[i],
            nodes_are="exact" if shape.exact else "at most", share=shares[i], expected_error=float(f"{errors[i]:.6g}"),
        )
        for i in range(len(shares))
    )  # fmt: skip


def expected_errors(nodes: tuple[int, ...], noises: Sequence[CountNoise], total: str) -> list[float]:
    """Standard error of a node per layer after least squares, for the layer's mean fan-out (least_squares.py's passes)."""
    own = [noise.variance for noise in noises]
    fanout = [n / above for n, above in zip(nodes, (1, *nodes[:-1]), strict=True)]
    up = [own[-1]]
    for v, b in zip(reversed(own[:-1]), reversed(fanout[1:]), strict=True):
        up.insert(0, v * b * up[0] / (v + b * up[0]) if v + up[0] else 0.0)
    variance = fanout[0] * up[0] if total == "estimated" else 0.0
    errors = []
    for u, b in zip(up, fanout, strict=True):
        gain = 1 / b
        variance = u - gain * u + gain**2 * variance
        errors.append(math.sqrt(max(variance, 0.0)))
    return errors
