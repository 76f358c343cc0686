"""Which households cannot have a member of some kind, by the rules: these are structural zeros of a household's row."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from schemas.spec.attributes import Attribute, Integer, Named
from schemas.spec.rules import Rule, codes_of_value, compared

MOST_CELLS = 2**24  # of all attributes that rules of members tie
WHY = "No member of this kind could be in such a household."


def impossible(
    attributes: Sequence[Attribute], rules: Sequence[Rule], own: Sequence[str], kind: str | None
) -> list[dict[str, Any]]:
    """Combinations of a household's categories, and the kind, with which the rules leave no member; kind by its code.

    `attributes` are those of a member's row, `own` the names of the member's.
    """
    places = {attribute.name: place for place, attribute in enumerate(attributes)}
    named = {name for rule in rules for name in names_of(rule, tuple(places))}
    tied = [attribute for attribute in attributes if attribute.name in named | ({kind} if kind else set())]
    if math.prod(attribute.size for attribute in tied) > MOST_CELLS:
        raise ValueError("rules of persons tie too many categories together; give the attributes that they name fewer bins")
    allowed = np.ones([attribute.size for attribute in tied], dtype=bool)
    axis = {attribute.name: place for place, attribute in enumerate(tied)}
    for rule in rules:
        _forbid(allowed, rule, tied, axis)
    kept = [attribute for attribute in tied if attribute.name not in own or attribute.name == kind]
    gone = tuple(axis[attribute.name] for attribute in tied if attribute not in kept)
    left = np.argwhere(~allowed.any(axis=gone))
    return [{each.name: int(code) for each, code in zip(kept, row, strict=True)} for row in left]


def names_of(rule: Rule, names: tuple[str, ...]) -> tuple[str, ...]:
    if rule.never is not None:
        return tuple(rule.never)
    first, _, second = compared(rule.always or "", names)
    return first, second


def _forbid(allowed: np.ndarray, rule: Rule, tied: list[Attribute], axis: dict[str, int]) -> None:
    if rule.never is not None:
        codes = {name: codes_of_value(tied[axis[name]], value) for name, value in rule.never.items()}
        allowed[np.ix_(*(codes.get(each.name, range(each.size)) for each in tied))] = False
        return
    first, sign, second = compared(rule.always or "", tuple(axis))
    a, b = np.ogrid[: tied[axis[first]].size, : tied[axis[second]].size]
    present = tied[axis[first]].present
    wrong = (a < present) & (b < present) & (a > b if sign == "<=" else a != b)
    turned = np.moveaxis(allowed, (axis[first], axis[second]), (0, 1))
    turned[wrong] = False


def as_rules(
    combinations: Sequence[dict[str, Any]],
    attributes: Sequence[Attribute],
    kind: str | None,
    numbers: Sequence[str],
    persons: str,
) -> Iterator[Rule]:
    """As rules of a household's row: with at least one member, or at least one of the kind; the last kind is the rest.

    `numbers` are the columns of all kinds but the last.
    """
    known = {attribute.name: attribute for attribute in attributes}
    most = {name: _highest(known[name]) for name in (persons, *numbers)}
    for combination in combinations:
        household = {name: said(known[name], code) for name, code in combination.items() if name != kind}
        code = combination.get(kind) if kind is not None else None
        if kind is None or code is None or not numbers and code == 0:
            yield Rule(never={persons: tuple(range(2, most[persons] + 1)), **household}, why=WHY)
        elif code < len(numbers):
            yield Rule(never={numbers[code]: tuple(range(1, most[numbers[code]] + 1)), **household}, why=WHY)
        else:
            for others in product(*(range(most[name] + 1) for name in numbers)):
                more = tuple(range(sum(others) + 2, most[persons] + 1))
                if more:
                    yield Rule(never={persons: more, **dict(zip(numbers, others, strict=True)), **household}, why=WHY)


def _highest(attribute: Attribute) -> int:
    assert isinstance(attribute, Integer)
    return attribute.bounds[1]


def said(attribute: Attribute, code: int) -> Any:
    """One category as a rule writes it."""
    if code == attribute.missing_code:
        return None
    if isinstance(attribute, Named):
        return attribute.categories[code]
    if attribute.spikes or attribute.is_open or attribute.kind in ("date", "time"):
        raise ValueError(
            f"{attribute.name} cannot stand in a rule within a household: it has values of their own, an open end or a date"
        )
    edges = [int(edge) if float(edge).is_integer() else float(edge) for edge in attribute.edge_values]
    below = {"below": edges[code + 1]} if code + 1 < attribute.present else {}
    return {"from": edges[code], **below}
