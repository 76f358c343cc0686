"""Comparisons of persons that bins leave open, since both sides may share one: they hold value by value in synthetic rows.

Those of every member's own attributes are rules of rows, as in a dataset of one table. Here are the others: of some persons
only, or of a person beside its household. `<` is settled by bins: values of a lower one are lower.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from schemas.spec.attributes import Attribute, Named
from schemas.spec.flattened import PERSONS, REFERENCE, attribute_of, compared_in, for_member, is_conditional, own_rules
from schemas.spec.linked import Tables
from schemas.spec.rules import Conditional, Relation, Rule, codes_of_value, compared, comparison

OTHERS = {PERSONS: {"from": 2}}  # of a household's row: somebody lives there beside the reference person


class Inhabited:
    """What of a domain holds between the people of a household, where tables are linked."""

    if TYPE_CHECKING:  # a domain has these
        tables: Tables | None
        attributes: Any
        counted: Any
        codes: Any
        index: Any

    @cached_property
    def conditionals(self) -> tuple[Conditional, ...]:
        """Comparisons of a household's row that its categories alone do not keep."""
        return self._conditionals(of_households(self.tables)) if self.tables is not None else ()

    @cached_property
    def member_conditionals(self) -> tuple[Conditional, ...]:
        """The same of a member's row, by the columns of `counted`."""
        members: Inhabited = self.counted
        return members._conditionals(of_members(self.tables)) if self.tables is not None else ()

    def _conditionals(self, said: tuple[Open, ...]) -> tuple[Conditional, ...]:
        found = []
        for each in said:
            first, second = self.index(each.first), self.index(each.second)
            found.append(Conditional(comparison(self.attributes, first, each.relation, second), self.codes(each.when)))
        return tuple(found)


@dataclass(frozen=True)
class Open:
    """A comparison by the names of columns, and of which rows it is, as a rule writes that."""

    first: str
    relation: Relation
    second: str
    when: dict[str, Any]


def of_members(tables: Tables) -> tuple[Open, ...]:
    """Those of a member's row."""
    found = []
    for each in _open(tables):
        theirs = for_member(Rule(never=each.when), tables.person) if each.when else None
        if theirs is not None or not each.when:  # none: it is of reference persons alone
            found.append(each if theirs is None else replace(each, when=dict(theirs.never or {})))
    return tuple(found)


def of_households(tables: Tables) -> tuple[Open, ...]:
    """Those of a household's row: what holds for its reference person, and what members leave its columns to be."""
    of_reference = (_of_reference(each, tables) for each in _open(tables))
    return (*(each for each in of_reference if each is not None), *_implied(tables))


def _open(tables: Tables) -> Iterator[Open]:
    for rule in tables.person.rules:
        if rule.always is not None and is_conditional(rule, tables):
            first, sign, second = compared_in(rule, tables)
            if sign != "<" and not _is_settled(attribute_of(first, tables)):
                yield Open(first, "<=" if sign == "<=" else "==", second, rule.when)


def _is_settled(attribute: Attribute) -> bool:
    """Whether every category is one value; what is compared has the same bins."""
    return isinstance(attribute, Named) or attribute.is_whole and bool((np.diff(attribute.edge_values) == 1).all())


def _of_reference(each: Open, tables: Tables) -> Open | None:
    """None where it is of other members, or of somebody beside the reference person."""
    person = tables.person
    names = (each.first, each.second, *each.when)
    if any(name.startswith(REFERENCE) and name not in person.names for name in names):
        return None
    attribute = person.attribute(person.reference_name)
    if person.reference_name in each.when:
        codes = codes_of_value(attribute, each.when[person.reference_name])
        if attribute.labels.index(person.reference_label) not in codes:
            return None
    called = {name: REFERENCE + name if name in person.names else name for name in names}
    when = {called[name]: value for name, value in each.when.items() if name != person.reference_name}
    return Open(called[each.first], each.relation, called[each.second], when)


def _implied(tables: Tables) -> Iterator[Open]:
    """`a <= x` and `x <= b`, x being of a member, leave no value for x unless a <= b: so it is put where somebody else lives.

    A comparison of two columns of the household, because of a member, is one of its row.
    """
    own, beside = set(tables.person.names), dict[str, set[str]]()
    for first, relation, second in _steps(tables):
        beside.setdefault(first, set()).add(second)
        if relation == "==":
            beside.setdefault(second, set()).add(first)
    for first in [name for name in beside if name not in own]:
        met, open_ = set[str](), [first]
        for name in open_:
            further = sorted(beside.get(name, set()) - met) if name == first or name in own else []
            met.update(further)
            open_ += further
        yield from (Open(first, "<=", second, OTHERS) for second in sorted(met - own - {first}))


def _steps(tables: Tables) -> Iterator[tuple[str, Relation, str]]:
    """All comparisons of a member's row that members take part in."""
    yield from ((each.first, each.relation, each.second) for each in of_members(tables))
    yield from (compared(rule.always or "", tables.person.names) for rule in own_rules(tables))
