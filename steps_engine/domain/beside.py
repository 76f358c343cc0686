"""Members' values beside those of their household: where both share a bin, comparisons hold value by value.

The household's row is there first and stays. Who stands wrong beside it is drawn again from the part of the bin that is left:
whoever stood right is a draw of that part already. So members are draws of their bins given their household, and the order.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from schemas.spec.attributes import Named, Ranged
from schemas.spec.domain import Domain
from schemas.spec.rules import Comparison, Conditional
from steps_engine.domain.encoding import column_of
from steps_engine.domain.records import numbers_in
from steps_engine.domain.rules import orders_of, put_in_order, sharing
from steps_engine.domain.values import values_between
from steps_engine.noise import Randomness, uniform

Numbers = dict[int, np.ndarray]  # by column of a member's row


def in_order(
    domain: Domain,
    rows: pa.Table,
    codes: np.ndarray,
    home: np.ndarray,
    drawn: np.ndarray,
    own: pa.Table,
    randomness: Randomness,
) -> pa.Table:
    """Members' own records, their values put as the rules demand; `codes` are of household rows, `drawn` of the members."""
    orders, first = _orders(domain), len(domain.sizes)
    if not orders:
        return own

    def code(j: int) -> np.ndarray:
        return np.asarray(codes[home, j] if j < first else drawn[:, j - first])

    compared, shared = [each.compared for each in orders], [sharing(each, code) for each in orders]
    numbers = _numbers(domain, compared, rows, home, own)
    theirs = [j for j in numbers if j >= first]
    low, high = _bounds(compared, shared, numbers, theirs)
    for j in theirs:
        wrong = np.flatnonzero((numbers[j] < low[j]) | (numbers[j] > high[j]))
        ends = low[j][wrong], high[j][wrong]
        numbers[j][wrong] = values_between(code(j)[wrong], _ranged(domain, j), *ends, uniform(len(wrong), randomness))
    among = [place for place, each in enumerate(compared) if min(each.places) >= first]
    put_in_order([compared[place] for place in among], [shared[place] for place in among], numbers)
    for j in theirs:
        field = own.schema.field(j - first)
        own = own.set_column(j - first, field, column_of(code(j), domain.counted.attributes[j], numbers[j]).cast(field.type))
    return own


def _orders(domain: Domain) -> list[Conditional]:
    """Comparisons of numbers in which members take part, those of every member too; none where these are all there are."""
    if not domain.member_conditionals:
        return []
    every = orders_of(domain.counted, domain.member_conditionals)
    with_members = [each for each in every if max(each.compared.places) >= len(domain.sizes)]
    return [each for each in with_members if not isinstance(domain.counted.attributes[each.compared.first], Named)]


def _numbers(domain: Domain, compared: list[Comparison], rows: pa.Table, home: np.ndarray, own: pa.Table) -> Numbers:
    """What is compared, as far as it is numbers: of members, and of their households."""
    found = {}
    for j in sorted({j for each in compared for j in each.places}):
        attribute, is_own = _ranged(domain, j), j >= len(domain.sizes)
        numbers = numbers_in((own if is_own else rows)[attribute.name], attribute).astype(float)
        found[j] = numbers if is_own else numbers[home]
    return found


def _bounds(
    compared: list[Comparison], shared: list[np.ndarray], numbers: Numbers, theirs: list[int]
) -> tuple[Numbers, Numbers]:
    """Between which values of their households those of members lie, by all rules together.

    A bound of one value bounds whatever is compared with it: after as many rounds as there are values, all have heard of it.
    Values that keep these bounds keep them when two that stand wrong change places.
    """
    low = {j: np.full(len(held), -np.inf) if j in theirs else held for j, held in numbers.items()}
    high = {j: np.full(len(held), np.inf) if j in theirs else held for j, held in numbers.items()}
    for _ in theirs:
        for each, same in zip(compared, shared, strict=True):
            for a, b in (each.places, each.places[::-1]) if each.relation == "==" else (each.places,):
                if a in theirs:
                    high[a] = np.where(same, np.minimum(high[a], high[b]), high[a])
                if b in theirs:
                    low[b] = np.where(same, np.maximum(low[b], low[a]), low[b])
    return low, high


def _ranged(domain: Domain, j: int) -> Ranged:
    attribute = domain.counted.attributes[j]
    assert not isinstance(attribute, Named)  # labels are compared by their codes
    return attribute
