"""How the budget of places is divided, from public inputs alone: what the nation, the places and attributes by place get, down
to which level an attribute is counted, and what every level gets.

Errors are rows that noise misplaces, as in pairs: a table of C cells errs by ∝ C/√share under ρ, C/share under ε, so that the
least sum over tables that matter alike has shares ∝ C^⅔, C^½.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np

from steps_engine.accounting.measures import PURE
from steps_engine.accounting.mechanisms import noise_of
from steps_engine.accounting.plans import Allowance
from steps_engine.domain.places import Places
from steps_engine.inference.place_tables import Of, sizes_of
from steps_engine.methods.pairs.division import ASSUMED_ROWS, DECLARED, shares_of

DROWNS = 3.0  # noise of so many parts of a mean cell's rows: places differ by about a third, and less cannot be told
TABLES = Fraction(1, 2)  # of the budget, by which it is decided how deep attributes are counted by place
PLACES = 4.0  # rows of places matter so much more than other tables: all of these are built on them
STEPS = 20  # shares of levels are looked for in twentieths
Wanted = Mapping[Of, frozenset[int]]  # levels that analyses name, of places and of attributes by place


@dataclass(frozen=True)
class Parts:
    """Of the budget: the nation, the places, and every attribute or pair that is counted by place, with its finest level."""

    nation: Fraction
    places: Fraction
    tables: dict[Of, tuple[Fraction, int]]


def parts(places: Places, allowance: Allowance, wanted: Wanted) -> Parts:
    """Attributes that do not drown, and pairs of them that analyses ask for."""
    sizes = places.domain.sizes
    chosen = [j for j in places.others if sizes[j] > 1]
    deepest: dict[Of, int] = {(j,): depth(places, allowance, j, max(wanted.get((j,), ()), default=0)) for j in chosen}
    deepest |= {of: max(levels) for of, levels in wanted.items() if len(of) > 1 and set(of) <= set(chosen)}
    power = 1 / 2 if allowance.measure is PURE else 2 / 3
    nation = sum((sizes[a] * sizes[b]) ** power for a, b in combinations(chosen, 2)) + sum(sizes[j] ** power for j in chosen)
    alone = sum((PLACES * places.sizes[level]) ** power for level in range(1, places.finest + 1))
    counted = {of: _cells(places, of, level, wanted, power) for of, level in deepest.items() if level}
    first, second, *others = shares_of([max(nation, 1.0), alone, *counted.values()])
    return Parts(first, second, {of: (share, deepest[of]) for of, share in zip(counted, others, strict=True)})


def _cells(places: Places, of: Of, deepest: int, wanted: Wanted, power: float) -> float:
    """Of a table's levels, those that analyses name counted more often."""
    cells = (places.sizes[level] * math.prod(sizes_of(places, of)) for level in range(1, deepest + 1))
    matter = (DECLARED if level in wanted.get(of, ()) else 1.0 for level in range(1, deepest + 1))
    return math.fsum((size * often) ** power for size, often in zip(cells, matter, strict=True))


def depth(places: Places, allowance: Allowance, attribute: int, least: int) -> int:
    """The finest level at which an attribute's table does not drown: noise is less than a third of a mean cell's rows."""
    size, rows = places.domain.sizes[attribute], places.domain.expected_units or ASSUMED_ROWS
    if size < 2:
        return 0
    for level in range(places.finest, least, -1):
        cost = TABLES * allowance.total / len(allowance.served) / len(places.others) / level
        draw = allowance.count("", cost, layer=level, set_=allowance.served[0])
        if DROWNS * math.sqrt(noise_of(draw).variance) <= rows / places.sizes[level] / size:
            return level
    return least


def level_shares(places: Places, of: Of, deepest: int, wanted: Wanted, measure: str) -> list[Fraction]:
    """Of the levels down to the deepest; they sum to 1."""
    asked = places.geography.shares
    if isinstance(asked, dict):
        given = [asked[level] for level in places.levels[:deepest]]
        return [Fraction(share) / sum(given) for share in given]
    if asked == "equal" or deepest == 1:
        return [Fraction(1, deepest)] * deepest
    named = sorted(level for level in wanted.get(of, ()) if level <= deepest)
    return least_error(places.sizes[: deepest + 1], named, measure)


def least_error(sizes: Sequence[int], named: Sequence[int], measure: str) -> list[Fraction]:
    """Shares for which fewest rows are misplaced after least squares, as if all places of a level had as many below them; each
    level at least a twentieth.

    What is least is the sum over all levels, as a multiple of what it could be, and with it, four times, the error of every
    level that analyses name, as a multiple of what that one could be: the finest level rules the former, and none the latter.
    """
    levels = len(sizes) - 1
    cuts = np.array(list(combinations(range(1, STEPS), levels - 1)), dtype=np.int64).reshape(-1, levels - 1)
    edges = np.concatenate([np.zeros((len(cuts), 1), dtype=np.int64), cuts, np.full((len(cuts), 1), STEPS)], axis=1)
    share = np.diff(edges, axis=1)
    noise = 1.0 / share if measure != PURE.name else 1.0 / share**2
    result = _variances(np.array(sizes, dtype=float), noise)
    misplaced = [size * np.sqrt(variance) for size, variance in zip(sizes[1:], result[1:], strict=True)]
    matters = [(1.0, sum(misplaced)), *((DECLARED, misplaced[level - 1]) for level in named)]
    error = sum(weight * each / each.min() for weight, each in matters)
    best = share[int(np.argmin(np.round(error, 9)))]
    return [Fraction(int(part), STEPS) for part in best]


def _variances(sizes: np.ndarray, noise: np.ndarray) -> list[np.ndarray]:
    """Of a place of each level, root first, where nothing is known of the root; `noise` has a column per level."""
    fan = sizes[1:] / sizes[:-1]
    up = [noise[:, -1]]
    for level in range(noise.shape[1] - 2, -1, -1):
        below = fan[level + 1] * up[0]
        up.insert(0, noise[:, level] * below / (noise[:, level] + below))
    found = [fan[0] * up[0]]
    for level, each in enumerate(up):
        gain = 1 / fan[level]
        found.append(each * (1 - gain) + gain**2 * found[-1])
    return found
