"""Rules as arrays: which combinations of two attributes they forbid, and which rows of codes break one."""

from __future__ import annotations

import numpy as np

from schemas.spec.domain import Domain
from schemas.spec.rules import Comparison, Never


def allowed_pairs(domain: Domain, compared: Comparison) -> np.ndarray:
    """Categories of the first × categories of the second: whether they may meet. What is missing may meet anything."""
    first, second = np.ogrid[: domain.sizes[compared.first], : domain.sizes[compared.second]]
    return _holds(compared, first, second)


def _holds(compared: Comparison, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    missing = (first >= compared.present) | (second >= compared.present)
    holds: np.ndarray = missing | (first == second if compared.relation == "==" else first <= second)
    return holds


def breaking(zero: Never | Comparison, codes: np.ndarray) -> np.ndarray:
    """Which rows of codes break a rule."""
    if isinstance(zero, Comparison):
        return ~_holds(zero, codes[:, zero.first], codes[:, zero.second])
    return np.asarray(np.logical_and.reduce([np.isin(codes[:, j], values) for j, values in zero.codes.items()]))


def keep_comparisons(domain: Domain, codes: np.ndarray, numbers: dict[int, np.ndarray]) -> None:
    """Values that share a bin are put as their rules demand: equal, or the smaller one first.

    Two draws of one bin in their order are a draw of both given that order. Rules do not run in circles, so that putting
    pairs right, one after the other, comes to an end.
    """
    ranged = [each for each in domain.comparisons if each.first in numbers]
    shared = [codes[:, each.first] == codes[:, each.second] for each in ranged]
    moved = bool(ranged)
    while moved:
        moved = any([_put_right(each, same, numbers) for each, same in zip(ranged, shared, strict=True)])


def _put_right(compared: Comparison, shared: np.ndarray, numbers: dict[int, np.ndarray]) -> bool:
    """Whether something had to be moved."""
    a, b = numbers[compared.first], numbers[compared.second]
    wrong = shared & (a != b if compared.relation == "==" else a > b)
    if not wrong.any():
        return False
    numbers[compared.second] = np.where(wrong, a, b)
    if compared.relation == "<=":
        numbers[compared.first] = np.where(wrong, b, a)
    return True
