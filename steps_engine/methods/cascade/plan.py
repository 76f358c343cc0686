"""The plan of a cascade: one tree per attribute over its predecessors, their bounds and their exact cost, before data.

Trees read the same records, so their costs add up. In one tree the nodes of a layer are disjoint, as are its leaves: a
record meets one election per layer and one histogram, and a branch that stops early spends what is left in its histogram.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

from schemas.budget import as_fraction, show_nanos
from schemas.identity import spec_hash
from schemas.plan import Draw, ElectionPlan, LayerPlan, Plan
from schemas.spec.domain import Domain
from schemas.spec.release import ELECTED, Method, Release
from steps_engine import laws
from steps_engine.domain.cells import Space
from steps_engine.domain.counting import no_codes
from steps_engine.domain.nodes import Split

LAYERS = 2  # elections on a path
LARGEST_GROUP = 3  # predecessors that one split takes together
MOST_CANDIDATES = 500  # splits that compete at a node
MOST_CELLS = 2**24  # of the table that an election counts for one split
ELECTION_SHARE = Fraction(3, 10)
TOTAL_SHARE = Fraction(1, 50)  # for the first draw of n̂ where expected_rows is not public
ORDER_SHARE = Fraction(1, 10)  # of what is left, where the order is elected
SPREAD = 4  # of the dependence score: adding one record moves it by less than 2, up or down
LARGEST_PENALTY = Fraction(1, 20)  # of all rows: noise that no dependence could be worth
LARGEST_BLOCK = 2**20  # rows that are walked and made to agree at once: this bounds the memory
ASSUMED_ROWS = 10**5  # for the estimates below where expected_rows is not public
SECONDS_PER_SCORE, SECONDS_PER_VALUE = 1.5e-9, 1.5e-7  # CPU, measured: benchmarks/wide.py
BYTES_PER_VALUE, BYTES_PER_BLOCK_VALUE, BYTES_PER_ROW = 8, 5, 40


@dataclass(frozen=True)
class TreeDraws:
    """What one attribute's tree may draw: its elections by layer, its histograms by measurement and elections held."""

    elections: tuple[Draw, ...]
    counts: tuple[tuple[Draw, ...], ...]


def make_cascade_plan(release: Release) -> Plan:
    """Order, shares, scales and cost of a cascade: bounds, not structure, which is elected."""
    domain, spec = release.domain, release.spec
    epsilon, sets = as_fraction(spec.privacy.epsilon), spec.method.sets
    measurements = sets.count if sets.budget == "split" else 1
    factor = domain.unit.rows_per_person * (2 if spec.privacy.neighbours == "substitute" else 1)
    order = attribute_order(domain, spec.method)
    depths = [LAYERS if spec.method.order == ELECTED else min(position, LAYERS) for position in range(len(order))]
    draws = _total_draw(domain, spec.privacy.total, epsilon, factor)
    if spec.method.order == ELECTED:
        draws += _order_draws(len(order), ORDER_SHARE * epsilon, factor)
    shares = _shares(domain, order)
    left = epsilon - sum((draw.epsilon for draw in draws), Fraction(0))
    for j, depth, share in zip(order, depths, shares, strict=True):
        draws += _tree_draws(domain.names[j], depth, share * left, measurements, factor, sets.budget)
    return Plan(
        release=spec.name, population=domain.population, decomposition="cascade", neighbours=spec.privacy.neighbours,
        rows_per_person=domain.unit.rows_per_person, unit=domain.unit.who,
        total=spec.privacy.total, epsilon=show_nanos(spec.privacy.epsilon),
        sets=sets.count, budget=sets.budget, cells=Space(domain).count(),
        layers=_layers(domain, order, depths, shares, draws), election=_election(domain, order), draws=tuple(draws),
        memory_bytes=_memory(domain), seconds=_seconds(domain, order, depths, sets.count), spec_hash=spec_hash(release),
    )  # fmt: skip


def _seconds(domain: Domain, order: tuple[int, ...], depths: list[int], sets: int) -> float:
    """Every election reads each row once per competing split, shared passes included; every set walks each row's values."""
    rows = domain.expected_rows or ASSUMED_ROWS
    scores = sum(depth * len(_groups(order[:position])) for position, depth in enumerate(depths))
    return round(2 + rows * (scores * SECONDS_PER_SCORE + sets * len(order) * SECONDS_PER_VALUE), 1)


def _memory(domain: Domain) -> int:
    """Codes of the cells or of a set, a set's records, and the block of rows that is walked."""
    rows, attributes = domain.expected_rows or ASSUMED_ROWS, len(domain.sizes)
    code = no_codes(0, domain.sizes).itemsize
    values = rows * (attributes * (code + BYTES_PER_VALUE) + BYTES_PER_ROW)
    return 2**27 + values + min(rows, LARGEST_BLOCK) * attributes * (code + BYTES_PER_BLOCK_VALUE)


def attribute_order(domain: Domain, method: Method) -> tuple[int, ...]:
    """The given order, then the rest, few categories first: a split on small predecessors leaves few cells to measure.

    An attribute with a single category has nothing to measure, unless there is no other to count rows with. Where the order
    is elected, this is the order of the listing alone.
    """
    order = () if method.order in (None, ELECTED) else method.order
    given = [domain.index(name) for group in order for name in group]
    rest = sorted((j for j in range(len(domain.sizes)) if j not in given), key=lambda j: domain.sizes[j])
    return tuple(j for j in given + rest if domain.sizes[j] > 1) or (0,)


def _shares(domain: Domain, order: tuple[int, ...]) -> tuple[Fraction, ...]:
    """Σ cells_j/ε_j, the expected L1 error, is least for ε_j ∝ √cells_j: √categories, in thousandths."""
    weights = [Fraction(math.isqrt(10**6 * domain.sizes[j])) for j in order]
    return tuple(weight / sum(weights) for weight in weights)


def _total_draw(domain: Domain, total: str, epsilon: Fraction, factor: int) -> list[Draw]:
    """n̂ for growing the trees: free where it is public, else the first draw with its own share."""
    if domain.expected_rows is not None or total != "estimated":
        return []
    return [_count("total", 0, None, TOTAL_SHARE * epsilon, factor)]


def _order_draws(attributes: int, epsilon: Fraction, factor: int) -> list[Draw]:
    """One election for every place but the last. They belong to no tree: all trees stand in the order they make."""
    each = epsilon / max(attributes - 1, 1)
    return [_election_draw(f"order: election {place}", place, None, each, factor) for place in range(attributes - 1)]


def order_draws(plan: Plan) -> tuple[Draw, ...]:
    """The elections of a plan that elects its order."""
    return tuple(draw for draw in plan.draws if draw.kind == "election" and draw.tree is None)


def _election_draw(name: str, layer: int, tree: str | None, epsilon: Fraction, factor: int) -> Draw:
    return Draw(
        name=name, kind="election", mechanism="permute_and_flip", layer=layer, set=None, tree=tree, nodes="inner",
        sensitivity=SPREAD * factor, epsilon=epsilon, scale=SPREAD * factor / epsilon,
    )  # fmt: skip


def _tree_draws(name: str, layers: int, epsilon: Fraction, measurements: int, factor: int, budget: str) -> list[Draw]:
    """Elections serve all sets; the histogram of a leaf gets what its path's elections have left."""
    each = ELECTION_SHARE * epsilon / layers if layers else Fraction(0)
    elections = [_election_draw(f"{name}: election {layer}", layer, name, each, factor) for layer in range(layers)]
    counts = []
    for measurement in range(1, measurements + 1):
        set_ = measurement if budget == "split" else None
        for held in range(min(1, layers), layers + 1):
            left = (epsilon - held * each) / measurements
            counts.append(_count(_leaves(name, set_, held), held, set_, left, factor, name))
    return elections + counts


def _leaves(name: str, set_: int | None, held: int) -> str:
    return f"{name}: {'all sets' if set_ is None else f'set {set_}'}, leaves after {held} elections"


def _count(name: str, layer: int, set_: int | None, epsilon: Fraction, factor: int, tree: str | None = None) -> Draw:
    return Draw(
        name=name, kind="count", mechanism="two_sided_geometric", layer=layer, set=set_, tree=tree, nodes="leaves",
        sensitivity=factor, epsilon=epsilon, scale=factor / epsilon,
    )  # fmt: skip


def _layers(
    domain: Domain, order: tuple[int, ...], depths: list[int], shares: tuple[Fraction, ...], draws: list[Draw]
) -> tuple[LayerPlan, ...]:
    """One row per tree, in order: the attribute, its share, at most how many cells it measures, one cell's error."""
    elected, rows = any(draw.kind == "election" and draw.tree is None for draw in draws), []
    for position, (j, depth) in enumerate(zip(order, depths, strict=True)):
        others = [i for i in (order if elected else order[:position]) if i != j]
        known = sorted((domain.sizes[i] for i in others), reverse=True)
        last = next(draw for draw in reversed(draws) if draw.tree == domain.names[j])
        rows.append(
            LayerPlan(
                layer=position + 1,
                attributes=(domain.names[j],),
                nodes_are="at most",
                share=shares[position],
                nodes=math.prod(known[: depth * LARGEST_GROUP]) * domain.sizes[j],
                expected_error=float(f"{math.sqrt(laws.variance(last.scale)):.6g}"),
            )  # fmt: skip
        )
    return tuple(rows)


def _election(domain: Domain, order: tuple[int, ...]) -> ElectionPlan | None:
    if len(order) == 1:
        return None
    return ElectionPlan(
        utility="dependence", what="groups", mechanism="permute_and_flip", layers=LAYERS, share=ELECTION_SHARE,
        candidates=max(len(_groups(order[:position])) for position in range(len(order))) + 1,
    )  # fmt: skip


def tree_draws(plan: Plan, name: str) -> TreeDraws:
    """The draws of one attribute's tree."""
    mine = [draw for draw in plan.draws if draw.tree == name]
    elections = tuple(draw for draw in mine if draw.kind == "election")
    counts = [tuple(d for d in mine if d.kind == "count" and d.set == set_) for set_ in plan.served]
    return TreeDraws(elections, tuple(counts))


def _groups(predecessors: tuple[int, ...]) -> list[Split]:
    """Groups of predecessors up to the largest size at which few enough compete."""
    groups: list[Split] = []
    for size in range(1, LARGEST_GROUP + 1):
        if size > 1 and len(groups) + math.comb(len(predecessors), size) > MOST_CANDIDATES:
            break
        groups += itertools.combinations(predecessors, size)
    return groups


def candidate_splits(
    sizes: tuple[int, ...], predecessors: tuple[int, ...], attribute: int, scale: float, rows: int
) -> tuple[Split, ...]:
    """The splits that compete, `()` (stop) first: public, as `rows` is expected_rows or was paid for."""
    affordable = (z for z in _groups(predecessors) if penalty(sizes, z, attribute, scale) < LARGEST_PENALTY * rows)
    return ((), *affordable)


def penalty(sizes: tuple[int, ...], split: Split, attribute: int, scale: float) -> float:
    """½ Σ E|noise| of the cells that a split adds: its price in the unit of the score, ½ Σ |error|."""
    return (math.prod(sizes[j] for j in split) - 1) * sizes[attribute] * scale / 2
