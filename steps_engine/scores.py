"""Scores of exact counts that elections read, each with a bound on what double precision takes from it or adds to it.

Whole numbers are kept whole up to one division, so that no order of summation matters. PRIVACY.md has the bounds as theorems,
under the names of the functions; noise.py allows a candidate's score an error of GRID.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache

import numpy as np

from schemas.errors import SpecError
from steps_engine.noise import GRID

MOST_ROWS = 2**31  # 2n² < 2^63, and a score below n is rounded by at most GRID/8
ERROR = GRID / 8  # of the utilities here; dependence has four times as much
_ROWS_IN_FLOATS = 2**26  # 2n² ≤ 2^53
_STIRLING_FROM = 64
_POINT = 2.0**42  # log-likelihoods are summed as multiples of 2^−42: below 2^63 for 2^53 rows in 10^5 categories


def widened(spread: Fraction, error: Fraction) -> Fraction:
    """The spread of one row to pay for where a score may lie `error` off its true value.

    noise.rate_of adds 6·GRID itself, for every row if one row's spread is at least 1.
    """
    return spread + 4 * max(error - GRID, Fraction(0)) + (6 * GRID if spread < 1 else 0)


def must_be_expected(rows: int | None) -> None:
    """Refuse a plan whose elections would end with an error after the charge."""
    if rows is not None and rows > MOST_ROWS:
        raise SpecError(
            f"expected_rows: {rows:,} is more than the {MOST_ROWS:,} rows up to which scores of elections are exact enough. "
            "Use decomposition: flat or a tree with a given order, or release parts of the population; with weights, "
            "which make total / step rows, a larger step."
        )


def _most(rows: np.ndarray) -> float:
    """CONFIDENTIAL. The most rows of a node. More than MOST_ROWS end the run, with a message that names no number of them."""
    most = float(rows.max(initial=0))
    if not most <= MOST_ROWS:
        raise ValueError(f"there are more rows than the {MOST_ROWS:,} up to which scores of elections are exact enough")
    return most


def dependence(table: np.ndarray) -> np.ndarray:
    """½ Σ |n_zx − n_z·n_x/n| of each table (the last two axes): ½ the L1 error of taking z and x as independent.

    A record more in cell (a, b) changes n_zx − n_z·n_x/n by n/(n+1)·(1[z=a] − n_z/n)(1[x=b] − n_x/n), whose absolute sum
    is 4·n/(n+1)·(1 − n_a/n)(1 − n_b/n) < 4: the score moves by less than 2, up or down. Computed as Σ |n·n_zx − n_z·n_x| / 2n,
    a whole number by a whole number. PRIVACY.md, dependence.

    >>> dependence(np.array([[[2, 0], [0, 2]], [[1, 1], [1, 1]]])).tolist()
    [2.0, 0.0]
    """
    z, x = table.sum(axis=-1, keepdims=True), table.sum(axis=-2, keepdims=True)
    n = np.maximum(x.sum(axis=-1, keepdims=True), 1)
    if _most(n) > _ROWS_IN_FLOATS:
        table, z, x, n = (part.astype(np.int64) for part in (table, z, x, n))
    apart = n * table
    apart -= z * x
    score: np.ndarray = np.abs(apart, out=apart).sum(axis=(-1, -2)) / n[..., 0, 0] / 2
    return score


def mean_of(scores: np.ndarray, number: int) -> np.ndarray:
    """The sum of each row over `number`; the sum is rounded once, however many scores it has."""
    return np.array([math.fsum(row) for row in scores.tolist()]) / number


def unevenness(histogram: np.ndarray, categories: np.ndarray) -> np.ndarray:
    """½ Σ |n_k − n/K|: rows that were misplaced if all K categories were taken for equally full. Sums of whole numbers.

    Adding a record moves it by at most 1 − 1/K, up or down: PRIVACY.md, uneven.
    """
    rows, allowed = histogram.sum(axis=1, keepdims=True), categories[:, None]
    _most(rows)
    score: np.ndarray = np.maximum(allowed * histogram - rows, 0).sum(axis=1) / np.maximum(categories, 1)
    return score


def log_likelihood(histogram: np.ndarray) -> np.ndarray:
    """Multinomial log-likelihood of each row at its own maximum: log n! − Σ log n_k! + Σ n_k log(n_k/n).

    With g(n) = log n! − n log n + n this is g(n) − Σ g(n_k): g grows like ½ log 2πn, so nothing large cancels. In whole
    multiples of 2^−42 the sum is exact, and the error below (K + 1)·2^−42 for K categories and up to 2^53 rows.
    """
    score: np.ndarray = (_units(histogram.sum(axis=1)) - _units(histogram).sum(axis=1)) / _POINT
    return score


def _units(n: np.ndarray) -> np.ndarray:
    units: np.ndarray = np.rint(_g(n) * _POINT).astype(np.int64)
    return units


def _g(n: np.ndarray) -> np.ndarray:
    """log n! − n log n + n: looked up where n is small, Stirling's series beyond (its next term is below 2^−52)."""
    big = np.maximum(n, _STIRLING_FROM)
    stirling = 0.5 * np.log(2 * np.pi * big) + 1 / (12 * big) - 1 / (360 * big**3) + 1 / (1260 * big**5)
    small = _small()[np.minimum(n, _STIRLING_FROM - 1).astype(np.int64)]
    g: np.ndarray = np.where(n < _STIRLING_FROM, small, stirling)
    return g


@cache
def _small() -> np.ndarray:
    """g(0) … g(63) to the last bit: Decimal rounds logarithms correctly."""
    context = Context(prec=40)

    def g(n: int) -> Decimal:
        power = context.multiply(n, context.ln(n)) if n else Decimal(0)
        return context.add(context.subtract(context.ln(math.factorial(n)), power), n)

    return np.array([float(g(n)) for n in range(_STIRLING_FROM)])
