"""The plan of pairs: how much of the budget goes to margins, how many pairs are measured, and what each costs, before data.

Tables read the same records, so their costs add up; in one table every row changes the contrast by the same length.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from scipy import special

from schemas.errors import SpecError
from schemas.plan import Draw, ElectionPlan, LayerPlan, Plan
from schemas.spec.domain import Domain
from schemas.spec.release import Release
from steps_engine.accounting.measures import PURE
from steps_engine.accounting.mechanisms import COUNTS, CountNoise, contrast_noise
from steps_engine.accounting.plans import Allowance, Outline
from steps_engine.domain.counting import LARGEST_SET
from steps_engine.inference.contrasts import residual_variance, squared_length
from steps_engine.methods.pairs.spec import PairsSpec
from steps_engine.methods.pairs.structure import ROWS

TOTAL_SHARE = Fraction(1, 50)  # of the margins' budget, for the number of rows
VOTES = {"pure": Fraction(3, 10), "zcdp": Fraction(1, 10)}  # of the pairs' budget, where they are elected
SPREAD = Fraction(1)  # of a pair's score
SIGMAS_PER_GROUP = 10.0  # a group of categories stands alone with so many standard errors of a pair's cell
FEWEST_GROUPS = 6  # but never needs more than this part of the rows
SMALL = 3  # attributes of so few categories are not grouped
STRONGEST, DECAY = 0.25, 5.0  # the part of the rows that the strongest pair moves, and how fast the others fall off
ASSUMED_ROWS = 10**5
LEAST_ERROR = 1e-6  # of noise that is practically 0
PARTS = [Fraction(k, 10) for k in range(1, 10)]
MEAN_SIZE = 0.4  # ½·E|z| of a standard normal: what noise of standard deviation 1 in a cell adds to a distance
BYTES_PER_VALUE, SECONDS_PER_ROW_AND_PAIR = 24, 2.5e-7


@dataclass(frozen=True)
class Division:
    """What of the budget goes to margins, how many pairs are measured, whether they are elected, and the predicted error."""

    margins: Fraction
    pairs: int
    elected: bool
    error: float


def outline(release: Release, allowance: Allowance) -> Outline:
    """The draws of pairs: number of rows, margins, elections where few pairs are measured, pairs."""
    domain, method = release.domain, pairs_spec(release)
    divided = division(release, allowance)
    each = allowance.total / len(allowance.served)
    counted = release.spec.privacy.total == "estimated" or max(domain.sizes) == 1  # something must be there to count
    draws = _margin_draws(domain, method, divided.margins * each if divided.pairs else each, counted, allowance)
    left = (1 - divided.margins) * allowance.total
    if divided.elected:
        draws += [
            allowance.election(f"election {i + 1}", votes_of(allowance) * left / divided.pairs, SPREAD, layer=i)
            for i in range(divided.pairs)
        ]
        left *= 1 - votes_of(allowance)
    draws += _pair_draws(domain, method, divided, left / len(allowance.served), allowance)
    rows = min(domain.expected_rows or ASSUMED_ROWS, LARGEST_SET)
    return Outline(
        layers=_layers(domain, draws, allowance),
        draws=tuple(draws),
        memory_bytes=2**28 + rows * len(domain.sizes) * BYTES_PER_VALUE,
        seconds=round(3 + rows * divided.pairs * method.sets.count * SECONDS_PER_ROW_AND_PAIR, 1),
        election=_election(divided, allowance, len(candidates(domain))),
    )


def pairs_spec(release: Release) -> PairsSpec:
    assert isinstance(release.spec.method, PairsSpec)
    return release.spec.method


def candidates(domain: Domain) -> list[tuple[int, int]]:
    """Pairs of attributes that have a choice."""
    return [pair for pair in combinations(range(len(domain.sizes)), 2) if min(domain.sizes[j] for j in pair) > 1]


def division(release: Release, allowance: Allowance) -> Division:
    """The division and the number of pairs with the least predicted two-way distance, from public inputs alone.

    Dependence is taken to fall off from pair to pair; a measured pair keeps d·x/(d + x) of its dependence d wrong, x being
    its noise; what is not measured, or lost in the election, stays wrong altogether.
    """
    asked, possible = pairs_spec(release).pairs, len(candidates(release.domain))
    if not possible:
        return Division(Fraction(1), 0, False, 0.0)
    numbers = {possible, *(round(x) for x in np.geomspace(max(1, len(release.domain.sizes) // 2), possible, 12))}
    if asked is not None:
        numbers = {possible if asked == "all" else min(asked, possible)}
    tried = [
        Division(part, number, number < possible, predicted_error(release.domain, allowance, part, number))
        for part in PARTS
        for number in sorted(numbers)
    ]
    return min(tried, key=lambda each: each.error)


def predicted_error(domain: Domain, allowance: Allowance, part: Fraction, pairs: int) -> float:
    """The mean two-way distance, as a part of the rows."""
    rows, sizes = domain.expected_rows or ASSUMED_ROWS, np.array([size for size in domain.sizes if size > 1])
    each = float(allowance.total) / len(allowance.served)
    a, b = np.triu_indices(len(sizes), 1)
    margins = [margin_error(allowance, int(size), part * Fraction(each) / len(sizes)) / rows for size in sizes]
    margin = np.array([error / (1 + 2 * error) for error in margins])
    elected = pairs < len(a)
    left = float(1 - part) * each * (1 - float(votes_of(allowance)) if elected else 1.0)
    unit = _unit_error(allowance, left / pairs)
    groups = np.minimum(sizes, np.maximum(4, rows / (SIGMAS_PER_GROUP * unit)))
    noise = (
        MEAN_SIZE
        * unit
        * ((groups[a] - 1) * (groups[b] - 1) * _gain(groups[a], allowance) * _gain(groups[b], allowance)).mean()
        / rows
    )
    lost = np.minimum((1 / groups - 1 / sizes)[a] + (1 / groups - 1 / sizes)[b], 1).mean()
    strength = STRONGEST * np.exp(-DECAY * (np.arange(len(a)) + 0.5) / len(a))
    chosen = np.ones(len(a))
    if elected:
        vote = allowance.election("", votes_of(allowance) * (1 - part) * allowance.total / pairs, SPREAD, layer=0)
        chosen = chances(strength, float(vote.scale) / rows, pairs)
    wrong = chosen * (strength * noise + lost * strength**2) / (strength + noise) + (1 - chosen) * strength
    return float(1.2 * np.hypot(margin[a], margin[b]).mean() + wrong.mean())


def chances(strength: np.ndarray, scale: float, pairs: int) -> np.ndarray:
    """With which chance each of these is among so many winners of elections one after the other, about.

    Elections by the exponential mechanism take the largest of scores plus Gumbel noise: those above a bar, found by halving.
    """
    low, high = -50 * scale - 1, float(strength.max()) + 50 * scale + 1
    for _ in range(60):
        bar = (low + high) / 2
        chance = special.expit((strength - bar) / scale)
        low, high = (bar, high) if chance.sum() > pairs else (low, bar)
    found: np.ndarray = chance
    return found


def votes_of(allowance: Allowance) -> Fraction:
    """The part of the pairs' budget that elects them."""
    return VOTES[allowance.measure.name]


def margin_error(allowance: Allowance, size: int, cost: Fraction) -> float:
    """Rows that the noise of a margin misplaces."""
    return (
        MEAN_SIZE
        * math.sqrt(size * (size - 1))
        * _unit_error(allowance, float(cost))
        * float(_gain(np.array(float(size)), allowance))
    )


def _gain(sizes: np.ndarray, allowance: Allowance) -> np.ndarray:
    """The noise of a residual over that of a histogram, along one axis: √(1 − 1/K) under ρ, and for two categories."""
    gain: np.ndarray = np.sqrt(1 - 1 / np.maximum(sizes, 1.0))
    return gain if allowance.measure is not PURE else np.where(sizes == 2, gain, 1.0)


def _unit_error(allowance: Allowance, cost: float) -> float:
    """Standard deviation of the noise that a cost buys on what one row changes by 1."""
    draw = allowance.interaction("", Fraction(cost), of=(), tree="", set_=None)
    return max(math.sqrt(contrast_noise(draw, ()).variance), LEAST_ERROR)


def pair_error(plan: Plan) -> float:
    """Standard deviation of a pair's noise, at the mean of what the pairs of one measurement cost."""
    scales = [draw.scale for draw in plan.draws if draw.of == "elected" or (draw.of and len(draw.of) == 2)]
    if not scales:
        return 0.0
    mechanism = next(draw.mechanism for draw in plan.draws if draw.of is not None)
    mean = Fraction(len(scales)) / sum((1 / scale for scale in scales), Fraction(0))
    return math.sqrt(CountNoise(COUNTS[mechanism], mean).variance)


def _shares(weights: Sequence[float]) -> list[Fraction]:
    """Whole millionths of the largest, at least one; they sum to 1 exactly."""
    units = [max(1, round(10**6 * weight / max(weights))) for weight in weights]
    return [Fraction(unit, sum(units)) for unit in units]


def _importance(domain: Domain, method: PairsSpec) -> list[float]:
    """1 unless the author says otherwise."""
    for name in method.importance:
        if name not in domain.names:
            raise SpecError(f"importance names {name!r}; the domain has {', '.join(domain.names)}.")
    return [float(method.importance.get(name, 1)) for name in domain.names]


def _weight(allowance: Allowance, sizes: Sequence[int], importance: float) -> float:
    """Least Σ importance·error: the error of d dimensions is d/ε, or d·√(Δ²/ρ), where Δ² = Π (1 − 1/K)."""
    dimensions = importance * math.prod(size - 1 for size in sizes)
    if allowance.measure is PURE:
        return math.sqrt(dimensions)
    weight: float = dimensions ** (2 / 3) * math.prod(1 - 1 / size for size in sizes) ** (1 / 3)
    return weight


def _margin_draws(domain: Domain, method: PairsSpec, cost: Fraction, counted: bool, allowance: Allowance) -> list[Draw]:
    """The number of rows, where it is not known, and every one-way table."""
    importance, draws = _importance(domain, method), list[Draw]()
    named = [j for j, size in enumerate(domain.sizes) if size > 1]
    shares = _shares([_weight(allowance, (domain.sizes[j],), importance[j]) for j in named]) if named else []
    for set_ in allowance.served:
        said = "all sets" if set_ is None else f"set {set_}"
        left = cost
        if counted:
            rows = TOTAL_SHARE * cost if named else cost
            draws.append(allowance.interaction(f"{said}: number of rows", rows, of=(), tree=ROWS, set_=set_, layer=0))
            left -= rows
        for j, share in zip(named, shares, strict=True):
            name = domain.names[j]
            draws.append(allowance.interaction(f"{said}: {name}", share * left, of=(name,), tree=name, set_=set_, layer=0))
    return draws


def _pair_draws(domain: Domain, method: PairsSpec, divided: Division, cost: Fraction, allowance: Allowance) -> list[Draw]:
    """Every pair by what it is expected to cost in error; elected ones alike."""
    if not divided.pairs:
        return []
    importance, rows = _importance(domain, method), domain.expected_rows or ASSUMED_ROWS
    groups = np.maximum(4, rows / (SIGMAS_PER_GROUP * _unit_error(allowance, float(cost) / divided.pairs)))
    sizes = [min(size, int(groups)) for size in domain.sizes]
    draws = []
    possible = candidates(domain)
    shares = _shares([_weight(allowance, (sizes[a], sizes[b]), importance[a] * importance[b]) for a, b in possible])
    for set_ in allowance.served:
        said = "all sets" if set_ is None else f"set {set_}"
        if divided.elected:
            for i in range(1, divided.pairs + 1):
                name = f"{said}: elected pair {i}"
                draws.append(allowance.interaction(name, cost / divided.pairs, of="elected", tree=f"pair {i}", set_=set_))
            continue
        for (a, b), share in zip(possible, shares, strict=True):
            of = (domain.names[a], domain.names[b])
            draws.append(allowance.interaction(f"{said}: {pair_name(of)}", share * cost, of=of, tree=pair_name(of), set_=set_))
    return draws


def pair_name(of: tuple[str, ...]) -> str:
    return " × ".join(of)


def _layers(domain: Domain, draws: list[Draw], allowance: Allowance) -> tuple[LayerPlan, ...]:
    """One line per table of a measurement: its cells, its part of the budget, one cell's error."""
    rows, first = [], [draw for draw in draws if draw.of is not None and draw.set == allowance.served[0]]
    for number, draw in enumerate(first, start=1):
        of = draw.of if isinstance(draw.of, tuple) else None
        sizes = tuple(domain.sizes[domain.index(name)] for name in of) if of is not None else _widest(domain)
        centred = allowance.measure is not PURE
        variance = COUNTS[draw.mechanism].variance(draw.scale * squared_length(sizes, centred)) * residual_variance(
            sizes, centred
        )
        rows.append(
            LayerPlan(
                layer=number,
                attributes=of,
                nodes=math.prod(sizes),
                nodes_are="at most" if len(sizes) > 1 else "exact",
                share=draw.cost * len(allowance.served) / allowance.total,
                expected_error=float(f"{math.sqrt(variance):.6g}"),
            )  # fmt: skip
        )
    return tuple(rows)


def _widest(domain: Domain) -> tuple[int, ...]:
    return tuple(sorted(domain.sizes, reverse=True)[:2])


def _election(divided: Division, allowance: Allowance, candidates: int) -> ElectionPlan | None:
    if not divided.elected:
        return None
    return ElectionPlan(
        utility="misfit", what="pairs", mechanism=allowance.electing, layers=divided.pairs,
        share=votes_of(allowance) * (1 - divided.margins), candidates=candidates,
    )  # fmt: skip
