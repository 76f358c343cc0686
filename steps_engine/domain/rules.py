"""Rules as arrays: which combinations of two attributes they forbid, and which rows of codes break one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from schemas.spec.domain import Domain
from schemas.spec.rules import Comparison, Conditional, Never

Codes = Callable[[int], np.ndarray]  # of an attribute, by its place


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


def orders_of(domain: Domain, conditionals: Sequence[Conditional]) -> list[Conditional]:
    """The comparisons of all rows of a domain, and these of some of them."""
    return [*(Conditional(each, {}) for each in domain.comparisons), *conditionals]


def concerned(order: Conditional, codes: Codes) -> np.ndarray:
    """Which rows a comparison is of: those that meet its condition, with nothing missing; `codes` by attribute."""
    there = [codes(j) < order.compared.present for j in order.compared.places]
    return np.asarray(np.logical_and.reduce([*there, *(np.isin(codes(j), those) for j, those in order.when.items())]))


def sharing(order: Conditional, codes: Codes) -> np.ndarray:
    """Which of them have both sides in one bin, where values decide."""
    return np.asarray(concerned(order, codes) & (codes(order.compared.first) == codes(order.compared.second)))


def keep_comparisons(domain: Domain, codes: np.ndarray, numbers: dict[int, np.ndarray]) -> None:
    """Values that share a bin are put as their rules demand."""
    ranged = [each for each in orders_of(domain, domain.conditionals) if each.compared.first in numbers]
    put_in_order([each.compared for each in ranged], [sharing(each, lambda j: codes[:, j]) for each in ranged], numbers)


def put_in_order(compared: Sequence[Comparison], shared: Sequence[np.ndarray], numbers: dict[int, np.ndarray]) -> None:
    """Values of these rows are put equal, or the smaller one first.

    Two draws of one bin in their order are a draw of both given that order. Where rules do not run in circles, putting pairs
    right, one after the other, comes to an end: each time fewer stand wrong, of at most all pairs of values in a row. Rules of
    some rows may run in circles, which say that all values are equal: then the larger one is taken, until they are.
    """
    moved, times = bool(compared), 0
    while moved:
        changing = times <= len(numbers) ** 2
        moved = any([_put_right(each, same, numbers, changing) for each, same in zip(compared, shared, strict=True)])
        times += 1


def _put_right(compared: Comparison, shared: np.ndarray, numbers: dict[int, np.ndarray], changing: bool) -> bool:
    """Whether something had to be moved; values change places, or the larger one is taken for both."""
    a, b = numbers[compared.first], numbers[compared.second]
    wrong = shared & (a != b if compared.relation == "==" else a > b)
    if not wrong.any():
        return False
    larger = a if changing else np.maximum(a, b)
    numbers[compared.first] = np.where(wrong, b if changing and compared.relation == "<=" else larger, a)
    numbers[compared.second] = np.where(wrong, larger, b)
    return True
