"""The plan of a cascade: one tree per attribute over its predecessors, their bounds and their exact cost, before data.

Trees read the same records, so their costs add up. In one tree the nodes of a layer are disjoint, as are its leaves: a
record meets one election per layer and one histogram, and a branch that stops early spends what is left in its histogram.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from schemas.plan import Draw, ElectionPlan, LayerPlan, Plan
from schemas.spec.domain import Domain
from schemas.spec.method import MethodSpec
from schemas.spec.release import Release
from steps_engine.accounting.composition import cost_of
from steps_engine.accounting.measures import PURE, ZCDP
from steps_engine.accounting.mechanisms import noise_of
from steps_engine.accounting.plans import Allowance, Outline
from steps_engine.domain.counting import no_codes
from steps_engine.domain.nodes import Split
from steps_engine.methods.cascade.spec import ELECTED, CascadeSpec
from steps_engine.scores import MOST_ROWS, must_be_expected

LAYERS = 2  # elections on a path
LARGEST_GROUP = 3  # predecessors that one split takes together
MOST_CANDIDATES = 500  # splits that compete at a node
MOST_CELLS = 2**24  # of the table that an election counts for one split
SPREAD = Fraction(4)  # of the dependence score: adding one record moves it by less than 2, up or down
FIRST = Fraction(3, 5)  # of what a tree's elections cost: the one at its root decides whether there is a tree at all
BY_NOISE = Fraction(1, 400)  # about the chance that nothing but noise and chance splits a root; docs/lab/cascade.md
FLUCTUATION = (1 - 2 / math.pi) / 4  # of the score of independent people, a row: that of two halves in two, the largest
SLOPES = np.geomspace(1, 30, 100)  # at which a threshold is looked for, over the fluctuation
LARGEST_PENALTY = Fraction(1, 20)  # of all rows: noise that no dependence could be worth
LARGEST_BLOCK = 2**20  # rows that are walked and made to agree at once: this bounds the memory
ASSUMED_ROWS = 10**5  # for the estimates below where expected_rows is not public
SECONDS_PER_SCORE, SECONDS_PER_VALUE = 1.5e-9, 1.5e-7  # CPU, measured: benchmarks/wide.py
BYTES_PER_VALUE, BYTES_PER_BLOCK_VALUE, BYTES_PER_ROW = 8, 5, 40


@dataclass(frozen=True)
class Parts:
    """What of a budget does not go into histograms."""

    elections: Fraction  # of a tree's
    order: Fraction  # of all, where the order is elected
    total: Fraction  # of all, for the first draw of n̂ where expected_rows is not public


# A/x + B/(1−x) is least at odds x/(1−x) = √(A/B), A/√x + B/√(1−x) at odds ∛(A/B)²: with noise ∝ 1/√ρ, and elections cheaper
# beside counts, less of ρ than of ε is best spent on what is no histogram (docs/lab/currencies.md).
PARTS = {
    PURE.name: Parts(elections=Fraction(7, 20), order=Fraction(1, 10), total=Fraction(1, 50)),
    ZCDP.name: Parts(elections=Fraction(1, 4), order=Fraction(1, 20), total=Fraction(1, 200)),
}


@dataclass(frozen=True)
class TreeDraws:
    """What one attribute's tree may draw: its elections by layer, its histograms by measurement and elections held."""

    elections: tuple[Draw, ...]
    counts: tuple[tuple[Draw, ...], ...]


def outline(release: Release, allowance: Allowance) -> Outline:
    """Order, shares, draws and cost of a cascade: bounds, not structure, which is elected."""
    domain, method = release.domain, cascade_spec(release)
    order = attribute_order(domain, method)
    any_order = method.order == ELECTED and len(order) > 1
    depths = [LAYERS if any_order else min(position, LAYERS) for position in range(len(order))]
    draws = _total_draw(domain, release.spec.privacy.total, allowance)
    if method.order == ELECTED:
        draws += _order_draws(len(order), allowance)
    shares = _shares(domain, order, allowance)
    left = allowance.total - cost_of(draws)
    for j, depth, share in zip(order, depths, shares, strict=True):
        draws += _tree_draws(domain.names[j], depth, share * left, allowance)
    return Outline(
        layers=_layers(domain, order, depths, shares, draws),
        draws=tuple(draws),
        memory_bytes=_memory(domain),
        seconds=_seconds(domain, order, depths, method.sets.count),
        election=_election(domain, order, allowance),
    )


def cascade_spec(release: Release) -> CascadeSpec:
    assert isinstance(release.spec.method, CascadeSpec)
    return release.spec.method


def parts_of(allowance: Allowance) -> Parts:
    return PARTS[allowance.measure.name]


def _seconds(domain: Domain, order: tuple[int, ...], depths: list[int], sets: int) -> float:
    """Every election reads each row once per competing split, shared passes included; every set walks each row's values."""
    rows = domain.expected_units or ASSUMED_ROWS
    scores = sum(depth * len(_groups(order[:position])) for position, depth in enumerate(depths))
    return round(2 + rows * (scores * SECONDS_PER_SCORE + sets * len(order) * SECONDS_PER_VALUE), 1)


def _memory(domain: Domain) -> int:
    """Codes of the cells or of a set, a set's records, and the block of rows that is walked."""
    rows, attributes = domain.expected_units or ASSUMED_ROWS, len(domain.sizes)
    code = no_codes(0, domain.sizes).itemsize
    values = rows * (attributes * (code + BYTES_PER_VALUE) + BYTES_PER_ROW)
    return 2**27 + values + min(rows, LARGEST_BLOCK) * attributes * (code + BYTES_PER_BLOCK_VALUE)


def attribute_order(domain: Domain, method: MethodSpec) -> tuple[int, ...]:
    """The given order, then the rest, few categories first: a split on small predecessors leaves few cells to sanitize.

    An attribute with a single category has nothing to sanitize, unless there is no other to count rows with. Where the order
    is elected, this is the order of the listing alone.
    """
    given = [domain.index(name) for group in method.named_groups() for name in group]
    rest = sorted((j for j in range(len(domain.sizes)) if j not in given), key=lambda j: domain.sizes[j])
    return tuple(j for j in given + rest if domain.sizes[j] > 1) or (0,)


def _shares(domain: Domain, order: tuple[int, ...], allowance: Allowance) -> tuple[Fraction, ...]:
    """The expected L1 error Σ cells_j·E|noise_j| is least for ε_j ∝ √cells_j or ρ_j ∝ ∛cells_j²: categories in thousandths."""
    sizes = [domain.sizes[j] for j in order]
    pure = allowance.measure is PURE
    weights = [Fraction(math.isqrt(10**6 * size) if pure else round(1000 * size ** (2 / 3))) for size in sizes]
    whole = sum(weights)
    return tuple(weight / whole for weight in weights)


def _total_draw(domain: Domain, total: str, allowance: Allowance) -> list[Draw]:
    """n̂ for growing the trees: free where it is public, else the first draw with its own share."""
    if domain.expected_units is not None or total != "estimated":
        return []
    return [allowance.count("total", parts_of(allowance).total * allowance.total, layer=0, set_=None)]


def _order_draws(attributes: int, allowance: Allowance) -> list[Draw]:
    """One election for every place but the last. They belong to no tree: all trees stand in the order they make."""
    each = parts_of(allowance).order * allowance.total / max(attributes - 1, 1)
    places = range(attributes - 1)
    return [allowance.election(f"order: election {place}", each, SPREAD, layer=place) for place in places]


def order_draws(plan: Plan) -> tuple[Draw, ...]:
    """The elections of a plan that elects its order."""
    return tuple(draw for draw in plan.draws if draw.kind == "election" and draw.tree is None)


def _tree_draws(name: str, layers: int, cost: Fraction, allowance: Allowance) -> list[Draw]:
    """Elections serve all sets; the histogram of a leaf gets what its path's elections have left."""
    costs = _election_costs(layers, parts_of(allowance).elections * cost)
    draws = [allowance.election(f"{name}: election {at}", each, SPREAD, layer=at, tree=name) for at, each in enumerate(costs)]
    for set_ in allowance.served:
        for held in range(min(1, layers), layers + 1):
            left = (cost - sum(costs[:held])) / len(allowance.served)
            draws.append(allowance.count(_leaves(name, set_, held), left, layer=held, set_=set_, tree=name))
    return draws


def _election_costs(layers: int, cost: Fraction) -> tuple[Fraction, ...]:
    """What the election of each layer costs: the first one most, the others the same."""
    if layers < 2:
        return (cost,) * layers
    return (FIRST * cost, *((1 - FIRST) * cost / (layers - 1),) * (layers - 1))


def _leaves(name: str, set_: int | None, held: int) -> str:
    return f"{name}: {'all sets' if set_ is None else f'set {set_}'}, leaves after {held} elections"


def _layers(
    domain: Domain, order: tuple[int, ...], depths: list[int], shares: tuple[Fraction, ...], draws: list[Draw]
) -> tuple[LayerPlan, ...]:
    """One row per tree, in order: the attribute, its share, at most how many cells it sanitizes, one cell's error."""
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
                expected_error=float(f"{math.sqrt(noise_of(last).variance):.6g}"),
            )  # fmt: skip
        )
    return tuple(rows)


def _election(domain: Domain, order: tuple[int, ...], allowance: Allowance) -> ElectionPlan | None:
    if len(order) == 1:
        return None
    must_be_expected(domain.expected_units)
    return ElectionPlan(
        utility="dependence", what="groups", mechanism=allowance.electing, layers=LAYERS, share=parts_of(allowance).elections,
        candidates=max(len(_groups(order[:position])) for position in range(len(order))) + 1, by_noise=BY_NOISE,
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


def chances(sizes: tuple[int, ...], splits: tuple[Split, ...], attribute: int, rows: int) -> np.ndarray:
    """What each split scores by chance, √(n(G − 1)(K − 1)/2π), where n independent people fall evenly into G groups and K
    categories: a cell is off by √(n(G − 1)(K − 1))/GK, times √(2/π) on average. Uneven ones score less.
    """
    groups = np.array([math.prod(sizes[j] for j in split) for split in splits])
    by_chance: np.ndarray = np.sqrt(rows * (groups - 1) * (sizes[attribute] - 1) / (2 * math.pi))
    return by_chance


def prices(sizes: tuple[int, ...], splits: tuple[Split, ...], attribute: int, scale: float) -> np.ndarray:
    """The penalty of every split; `()`, to stop, has none."""
    return np.array([penalty(sizes, split, attribute, scale) for split in splits])


def threshold(penalties: np.ndarray, draw: Draw, chance: Fraction, rows: int = 0) -> float:
    """What every split must be worth beyond its penalty and its mean by chance, so that nothing but noise and chance splits
    with at most this probability.

    Where nothing depends on anything, an election takes a candidate that is `loss` worse than stop with a chance of at most
    min(1, exp(−loss/scale)) ≤ exp(−λ·loss), for every λ ≤ 1/scale. What independent people score differs from its mean by
    about a normal X of variance at most FLUCTUATION·rows, and E exp(λX) = exp(λ²·variance/2). So the threshold at which the sum
    over the splits is `chance`, for the λ at which it is least; it grows with the logarithm of their number.

    >>> draw = Draw(name="", kind="election", mechanism="exponential", layer=0, set=None, nodes="inner", sensitivity=4,
    ...             epsilon=1, scale=4)
    >>> [round(threshold(np.zeros(1 + splits), draw, Fraction(1, 50)), 1) for splits in (1, 60)]
    [15.6, 32.0]
    >>> [round(threshold(np.zeros(61), draw, Fraction(1, 50), rows), 1) for rows in (100, 10_000, 1_000_000)]
    [33.2, 120.6, 1206.2]
    """
    if len(penalties) < 2:
        return 0.0
    variance, least = FLUCTUATION * rows, float(penalties[1:].min())
    slopes = np.minimum(1 / float(draw.scale), SLOPES / math.sqrt(variance) if variance else math.inf)
    others = np.log(np.exp(np.outer(slopes, least - penalties[1:])).sum(axis=1)) - math.log(float(chance))  # the cheapest is 1
    needed = others / slopes - least + slopes * variance / 2
    return min(max(float(needed.min()), 0.0), float(MOST_ROWS))


def penalty(sizes: tuple[int, ...], split: Split, attribute: int, scale: float) -> float:
    """½ Σ E|noise| of the cells that a split adds: its price in the unit of the score, ½ Σ |error|."""
    return (math.prod(sizes[j] for j in split) - 1) * sizes[attribute] * scale / 2
