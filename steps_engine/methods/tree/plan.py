"""The plan: layers, shares, scales and cost, decided from public inputs before any record is read.

What a release costs is the sum over the draws on a root-to-leaf path: nodes of one layer are disjoint, so a record (or the
k rows of a person) meets each layer once. The shares of a path sum to ε as exact fractions, whatever L, r, m and neighbours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from schemas.budget import as_fraction, show_nanos
from schemas.errors import SpecError
from schemas.identity import spec_hash
from schemas.plan import Draw, ElectionPlan, LayerPlan, Plan
from schemas.spec.domain import Domain
from schemas.spec.release import Method, Release
from steps_engine import laws, noise
from steps_engine.domain.cells import Space
from steps_engine.methods.tree.election import MOST_CANDIDATES, UTILITIES, Utility, grouping_count

MOST_BYTES = 2**32  # of a table that is held: one that needs more is sampled instead
MOST_KEPT = 10**6  # empty cells that may reach the threshold by their noise alone, expected over all measurements
TOTAL_SHARE = Fraction(1, 50)  # for the number of rows, where no other layer is there to tell it
BYTES_PER_CELL, BYTES_PER_CELL_AND_SET = 120, 40  # measured: benchmarks/tree.py
SECONDS_PER_CELL_AND_SET = 2.5e-7


@dataclass(frozen=True)
class Shape:
    """The layers of a tree as far as they are public: attributes (None: elected), nodes, where branches may end early."""

    attributes: tuple[tuple[str, ...] | None, ...]
    nodes: tuple[int, ...]
    exact: bool
    early: tuple[bool, ...]  # whether a node of this layer may hold a single cell and so end its branch
    most_nodes: tuple[int, ...] | None = None  # where branches may stop: cells can lie in every layer


def make_plan(release: Release, randomness: noise.Randomness | None = None, utilities: dict[str, Utility] = UTILITIES) -> Plan:
    """The plan of a release. `randomness` orders the attributes of `uh`, once: the plan is then sealed."""
    domain, spec = release.domain, release.spec
    space = Space(domain)
    cells = space.count()
    shape = _shape(space, spec.method, randomness)
    sparse = bytes_of(domain.all_cells, spec.method.sets.count) > MOST_BYTES
    _must_fit(release, shape, sparse)
    election = _election(domain, spec.method, utilities)
    epsilon, sets = as_fraction(spec.privacy.epsilon), spec.method.sets.count
    shares = _shares(spec.method.division, shape)
    if sparse and len(shape.nodes) == 1:
        shape, shares = _below_a_total(shape), (TOTAL_SHARE, 1 - TOTAL_SHARE)
    factor = domain.unit.rows_per_person * (2 if spec.privacy.neighbours == "substitute" else 1)
    draws = _election_draws(election, epsilon, factor, utilities)
    left = epsilon - sum((draw.epsilon for draw in draws), Fraction(0))
    served = (None,) if spec.method.sets.budget == "shared" else tuple(range(1, sets + 1))
    each = left / len(served)
    draws += _count_draws(shape, shares, each, served, factor)
    held = sum(shape.nodes)
    if sparse:
        draws[:] = [_sampled(draw, len(shape.nodes), domain.all_cells, len(served)) for draw in draws]
        held = sum(shape.nodes[:-1]) + MOST_KEPT + (domain.expected_rows or 0)
    if (widest := max(draw.scale for draw in draws if draw.kind == "count")) > noise.LARGEST_SCALE:
        raise SpecError(
            f"ε={show_nanos(spec.privacy.epsilon)} over {len(draws)} draws needs noise of scale {float(widest):.3g}, more than "
            "can be drawn. Raise epsilon, or ask for fewer sets or layers."
        )
    return Plan(
        release=spec.name, population=domain.population, decomposition=spec.method.decomposition,
        neighbours=spec.privacy.neighbours, rows_per_person=domain.unit.rows_per_person, unit=domain.unit.who,
        total=spec.privacy.total,
        epsilon=show_nanos(spec.privacy.epsilon), sets=sets, budget=spec.method.sets.budget, cells=cells,
        layers=_layers(shape, shares, each, factor, spec.privacy.total, sparse),
        election=election, draws=tuple(draws),
        memory_bytes=bytes_of(held, sets), seconds=round(2 + held * sets * SECONDS_PER_CELL_AND_SET, 1),
        spec_hash=spec_hash(release),
    )  # fmt: skip


def bytes_of(nodes: int, sets: int) -> int:
    """Memory for a tree whose nodes are all held."""
    return 2**27 + nodes * (BYTES_PER_CELL + sets * BYTES_PER_CELL_AND_SET)


def _must_fit(release: Release, shape: Shape, sparse: bool) -> None:
    """Only cells can be sampled: the layers above them are held, and a cell's number must be one that can be held."""
    widest, cells = max(shape.nodes[:-1] if sparse else shape.nodes, default=0), release.domain.all_cells
    name = f'release "{release.spec.name}"'
    if cells > noise.MOST_CELLS:
        raise SpecError(
            f"{name} needs a table of {cells:.3g} cells; at most {noise.MOST_CELLS:.3g} can be numbered. "
            "Use decomposition: cascade, fewer attributes, fewer bins or coarser categories."
        )
    if sparse and shape.most_nodes is not None:
        raise SpecError(f"{name}: stop: true needs cells that can be listed; {cells:,} are too many. Leave stop out.")
    if bytes_of(widest, release.spec.method.sets.count) > MOST_BYTES:
        raise SpecError(
            f"{name} has a layer of up to {widest:,} nodes above its cells: more than {MOST_BYTES / 2**30:g} GiB. "
            "Give an order with fewer or smaller attributes, or use decomposition: cascade."
        )


def _below_a_total(shape: Shape) -> Shape:
    """Sampled cells do not tell how many rows there are, so a layer of one node, everybody, is measured above them."""
    return Shape(((), *shape.attributes), (1, *shape.nodes), shape.exact, (False, *shape.early))


def _sampled(draw: Draw, last: int, cells: int, measurements: int) -> Draw:
    """The draw of the last layer with the lowest threshold that few enough empty cells reach: α^θ/(1 + α) of them do."""
    if draw.kind != "count" or draw.layer != last:
        return draw
    most, alpha = MOST_KEPT / measurements, math.exp(-1 / draw.scale)
    return draw.model_copy(update={"threshold": max(1, math.ceil(draw.scale * math.log(cells / most / (1 + alpha))))})


def _shape(space: Space, method: Method, randomness: noise.Randomness | None) -> Shape:
    names = space.domain.names
    if method.elect is not None:
        return _elected_shape(space, method.elect.layers, method.elect.what, method.elect.stop)
    groups = list(method.order or ())
    if method.decomposition == "uh":
        if method.layers > len(names):
            raise SpecError(f"layers: {method.layers} are asked; the domain has {len(names)} attributes.")
        order = noise.permutation(len(names), randomness) if randomness is not None else range(len(names))
        groups = [(names[j],) for j in order[: method.layers]]
    rest = tuple(name for name in names if name not in {n for group in groups for n in group})
    groups += [rest] if rest else []
    prefixes = [tuple(space.domain.index(n) for g in groups[: i + 1] for n in g) for i in range(len(groups))]
    ended = (0, *(space.singles(prefix) for prefix in prefixes[:-1]))  # cells whose branch ended above this layer
    nodes = tuple(space.count(prefix) - done for prefix, done in zip(prefixes, ended, strict=True))
    depth = sum(number > 0 for number in nodes)
    early = tuple(after > before for before, after in zip(ended, ended[1:], strict=False))
    return Shape(tuple(groups[:depth]), nodes[:depth], True, (*early[: depth - 1], True))


def _elected_shape(space: Space, layers: int, what: str, stop: bool) -> Shape:
    sizes, cells = sorted((size for size in space.domain.sizes if size > 1), reverse=True), space.count()
    if what == "groups":
        sizes = sorted(space.domain.sizes, reverse=True)
    if cells == 1 or layers > len(sizes) or (what == "groups" and layers < 2):
        bounds = f"{2 if what == 'groups' else 1} to {len(sizes)}"
        raise SpecError(
            f"elect.layers: {layers} are asked; this domain has {cells:,} cells and {len(sizes)} attributes to choose from, "
            f"so that {bounds} layers can be elected. Lower layers, or give an order."
        )
    if what == "groups" and (candidates := grouping_count(len(sizes), layers)) > MOST_CANDIDATES:
        raise SpecError(
            f"electing {layers} groups of {len(sizes)} attributes has {candidates:,} candidates; at most {MOST_CANDIDATES:,}. "
            "Ask for fewer groups, or elect attributes."
        )
    depth = layers + (what == "attributes" and layers < len(sizes))
    most = [min(cells, math.prod(sizes[: i + 1])) for i in range(depth - 1)] if what == "attributes" else [cells] * (depth - 1)
    return Shape((None,) * depth, (*most, cells), False, (True,) * depth, most_nodes=(cells,) * depth if stop else None)


def _election(domain: Domain, method: Method, utilities: dict[str, Utility]) -> ElectionPlan | None:
    elect = method.elect
    if elect is None:
        return None
    if elect.utility not in utilities:
        raise SpecError(f"elect.utility: there is no {elect.utility!r}; known are {', '.join(utilities)}.")
    if elect.stop and not utilities[elect.utility].in_rows:
        raise SpecError(f"stop: true needs scores that can be weighed against noise; {elect.utility} has none, say uneven.")
    if utilities[elect.utility].needs_expected_rows and domain.expected_rows is None:
        raise SpecError(f"utility: {elect.utility} needs expected_rows in the dataset: its penalty must not come from records.")
    p = len(domain.names)
    return ElectionPlan(
        utility=elect.utility, what=elect.what, mechanism=elect.mechanism, layers=elect.layers, share=elect.share,
        candidates=p + elect.stop if elect.what == "attributes" else grouping_count(p, elect.layers), stop=elect.stop,
    )  # fmt: skip


def _election_draws(election: ElectionPlan | None, epsilon: Fraction, factor: int, utilities: dict[str, Utility]) -> list[Draw]:
    """The tree is elected once for all sets: one election per layer that is split, r·ε in all."""
    if election is None:
        return []
    rounds = election.layers if election.what == "attributes" else 1
    spread = utilities[election.utility].spread * factor * (2 if election.what == "groups" else 1)
    each = election.share * epsilon / rounds
    return [
        Draw(
            name=f"election {layer}", kind="election", mechanism=election.mechanism, layer=layer, set=None, nodes="inner",
            sensitivity=spread, epsilon=each, scale=spread / each,
        )
        for layer in range(rounds)
    ]  # fmt: skip


def _shares(asked: str | tuple[Fraction, ...], shape: Shape) -> tuple[Fraction, ...]:
    """The part of a set's ε that each layer gets; they sum to 1 exactly."""
    depth = len(shape.nodes)
    if asked == "equal":
        return (Fraction(1, depth),) * depth
    if asked == "cube_root":  # Σ nodes_l/ε_l² is least for ε_l ∝ nodes_l^(1/3)
        weights = tuple(Fraction(round(nodes ** (1 / 3) * 1000)) for nodes in shape.nodes)
    elif len(asked) != depth:
        raise SpecError(f"shares: {len(asked)} are given; this tree has {depth} layers, the last cross-tabulation included.")
    else:
        weights = asked
    return tuple(weight / sum(weights) for weight in weights)


def _count_draws(
    shape: Shape, shares: tuple[Fraction, ...], each: Fraction, served: tuple[int | None, ...], factor: int
) -> list[Draw]:
    """One draw per layer and measurement; a branch that ends early spends the rest of its path in its last draw."""
    draws = []
    for set_ in served:
        name = "all sets" if set_ is None else f"set {set_}"
        for layer in range(1, len(shares) + 1):
            last = layer == len(shares)
            kinds = {"inner": shares[layer - 1]} if not last else {}
            if shape.early[layer - 1]:
                kinds["leaves"] = sum(shares[layer - 1 :], Fraction(0))
            for nodes, share in kinds.items():
                epsilon = share * each
                draws.append(
                    Draw(
                        name=f"{name}, layer {layer}, {nodes}",
                        kind="count",
                        mechanism="two_sided_geometric",
                        layer=layer,
                        set=set_,
                        nodes=nodes,
                        sensitivity=factor,
                        epsilon=epsilon,
                        scale=factor / epsilon,
                    )  # fmt: skip
                )
    return draws


def _layers(
    shape: Shape, shares: tuple[Fraction, ...], each: Fraction, factor: int, total: str, sparse: bool
) -> tuple[LayerPlan, ...]:
    scales = [factor / (share * each) for share in shares]
    if sparse:  # a cell that is kept has its noise, and the layers above learn nothing from it
        errors = [*expected_errors(shape.nodes[:-1], scales[:-1], total), math.sqrt(laws.variance(scales[-1]))]
    else:
        errors = expected_errors(shape.nodes, scales, total)
    return tuple(
        LayerPlan(
            layer=i + 1, attributes=shape.attributes[i], nodes=(shape.most_nodes or shape.nodes)[i],
            nodes_are="exact" if shape.exact else "at most", share=shares[i], expected_error=float(f"{errors[i]:.6g}"),
        )
        for i in range(len(shares))
    )  # fmt: skip


def expected_errors(nodes: tuple[int, ...], scales: list[Fraction], total: str) -> list[float]:
    """Standard error of a node per layer after least squares, for the layer's mean fan-out (consistency.py's passes)."""
    variance = [laws.variance(scale) for scale in scales]
    fanout = [n / above for n, above in zip(nodes, (1, *nodes[:-1]), strict=True)]
    up = [variance[-1]]
    for v, b in zip(reversed(variance[:-1]), reversed(fanout[1:]), strict=True):
        up.insert(0, v * b * up[0] / (v + b * up[0]) if v + up[0] else 0.0)
    spread = fanout[0] * up[0] if total == "estimated" else 0.0
    errors = []
    for u, b in zip(up, fanout, strict=True):
        gain = 1 / b
        spread = u - gain * u + gain**2 * spread
        errors.append(math.sqrt(max(spread, 0.0)))
    return errors
