"""Linked tables as two flat ones, in which everything is measured: household rows, and rows of their other members.

A household's row has its attributes, its composition (`n_person`, `n_child`, …) and its reference person's attributes
(`reference_age`). A member's row has all of these beside the member's own attributes. So exactly one reference person is there
by construction, and a rule within a household is a rule of a row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from schemas.nearest import meant
from schemas.spec.attributes import Attribute, Integer, Named, Numeric, Ordinal
from schemas.spec.completing import as_rules, impossible
from schemas.spec.derived import Derived
from schemas.spec.linked import PersonRule, PersonTable, Tables
from schemas.spec.linked_names import must_be_free, must_count_kinds, must_lie_in_one_place, must_name_no_place, places_in
from schemas.spec.rules import Rule, codes_of_value, compared, comparison
from schemas.spec.weights import Weight
from schemas.spec.yaml import problem_at

PERSONS, REFERENCE = "n_person", "reference_"
MOST_RULES = 1000
STANDS_IN_TABLES = {
    "attributes": "with tables, attributes and rules stand in tables, and the household is the unit; leave this out",
    "weight": "with tables, the weight is one of households: write it in tables.household",
}


def number_of(kind: str) -> str:
    """What the number of other members of a kind is called."""
    return f"n_{kind.strip('()')}"


def household_attributes(tables: Tables) -> tuple[Attribute, ...]:
    """Of a household's row: its own, its composition, its reference person's."""
    person = tables.person
    own = (attribute.as_published() for attribute in tables.household.attributes)
    numbers = [_number(PERSONS, 1, person.at_most)]
    numbers += [_number(number_of(kind), 0, person.most_of(kind)) for kind in person.listed_kinds[:-1]]
    others = (each for each in person.attributes if each.name != person.reference_name)
    reference = (each.as_published().model_copy(update={"name": REFERENCE + each.name}) for each in others)
    return (*own, *numbers, *reference)


def household_derived(tables: Tables) -> tuple[Derived, ...]:
    """Of a household's row: what follows from its own attributes, and from its reference person's."""
    person = tables.person
    theirs = (each for each in person.derived if each.from_ != person.reference_name)
    renamed = (each.model_copy(update={"name": REFERENCE + each.name, "from_": REFERENCE + each.from_}) for each in theirs)
    return (*tables.household.derived, *renamed)


def household_weight(tables: Tables) -> Weight | None:
    """Of a household's row, and of every person in it."""
    return tables.household.weight


def own_attributes(person: PersonTable) -> tuple[Attribute, ...]:
    """Of another member: without the category of the reference person."""
    return tuple(_of_members(each.as_published(), person) for each in person.attributes)


def _of_members(attribute: Attribute, person: PersonTable) -> Attribute:
    if attribute.name != person.reference_name or not isinstance(attribute, Named):
        return attribute
    kept = tuple(label for label in attribute.categories if label != person.reference_label)
    texts = {label: text for label, text in attribute.label_texts.items() if label != person.reference_label}
    left = 1 - attribute.expected_shares[attribute.code_of[person.reference_label]]
    expected = {label: share / left for label, share in attribute.expected.items() if label != person.reference_label}
    return attribute.model_copy(update={"categories": kept, "label_texts": texts, "expected": expected})


def _number(name: str, least: int, most: int) -> Integer:
    return Integer.model_validate({"name": name, "kind": "integer", "bounds": (least, most)})


def household_rules(tables: Tables) -> tuple[Rule, ...]:
    """Of a household's row: its own, what numbers of members add up to, and what holds for persons, of its reference person."""
    person = tables.person
    of_reference = (_for_reference(each, tables) for rule in person.rules for each in _expanded(rule, tables))
    numbers = [number_of(kind) for kind in person.listed_kinds[:-1]]
    household = household_attributes(tables)
    left = impossible((*household, *own_attributes(person)), _of_members_alone(tables), person.names, person.kinds)
    lacking = as_rules(left, household, person.kinds, numbers, PERSONS)
    return (*tables.household.rules, *_adding_up(person), *(rule for rule in of_reference if rule is not None), *lacking)


FOLLOWS: Mapping[str, Callable[[Tables], Any]] = {
    "attributes": household_attributes,
    "rules": household_rules,
    "derived": household_derived,
    "weight": household_weight,
}


def member_rules(tables: Tables) -> tuple[Rule, ...]:
    """Of a member's row: those of its household's, and of persons."""
    return (*household_rules(tables), *_of_members_alone(tables))


def _of_members_alone(tables: Tables) -> tuple[Rule, ...]:
    found = (for_member(each, tables.person) for rule in tables.person.rules for each in _expanded(rule, tables))
    return tuple(rule for rule in found if rule is not None)


def own_rules(tables: Tables) -> tuple[Rule, ...]:
    """Comparisons among a member's own attributes: values that share a bin are put in their order."""
    kept = (rule for rule in tables.person.rules if rule.always and not is_conditional(rule, tables))
    return tuple(Rule(always=rule.always, why=rule.why) for rule in kept)


def _adding_up(person: PersonTable) -> Iterator[Rule]:
    """Numbers of members by kind leave some for the rest: none below nought, and no more than there may be."""
    listed = person.listed_kinds
    if len(listed) < 2:
        return
    for numbers in product(*(range(person.most_of(kind) + 1) for kind in listed[:-1])):
        members, rest = sum(numbers), person.most_of(listed[-1])
        allowed = range(members + 1, min(members + rest, person.members) + 2)
        never = tuple(each for each in range(1, person.at_most + 1) if each not in allowed)
        if never:
            named = dict(zip(map(number_of, listed[:-1]), numbers, strict=True))
            yield Rule(never={PERSONS: never, **named}, why="Members of each kind add up to all of them.")


def is_conditional(rule: PersonRule, tables: Tables) -> bool:
    """Whether a comparison is of some members only, or of a member with others of its household."""
    names = set(tables.person.names)
    first, _, second = compared_in(rule, tables)
    return (
        bool(rule.when) or not {first, second} <= names or "<=" not in (rule.always or "") and "==" not in (rule.always or "")
    )


def compared_in(rule: PersonRule, tables: Tables) -> tuple[str, str, str]:
    """Two attributes and `<`, `<=` or `==` between them."""
    assert rule.always is not None
    names = _names(tables)
    before, sign, after = rule.always.partition("<")
    if sign and before.strip() in names and after.strip() in names:
        return before.strip(), "<", after.strip()
    return compared(rule.always, names)


def _expanded(rule: PersonRule, tables: Tables) -> list[Rule]:
    """A comparison that is not of every member's own attributes, category by category; any other rule as it is."""
    if rule.always is None or not is_conditional(rule, tables):
        return [Rule(never=rule.never, always=rule.always, why=rule.why)]
    first, sign, second = compared_in(rule, tables)
    a, b = (attribute_of(name, tables) for name in (first, second))
    if not isinstance(a, Integer | Numeric | Ordinal | Named) or (
        isinstance(a, Named) and not isinstance(a, Ordinal) and sign != "=="
    ):
        raise ValueError(f"{first} cannot be compared within a household; numbers and ordinal categories can")
    comparison([a, b], 0, "==" if sign == "==" else "<=", 1)
    found = []
    for code in range(a.present):
        wrong = [other for other in range(b.present) if not _holds(code, sign, other)]
        for run in _runs(wrong):
            found.append(Rule(never={**rule.when, first: _values(a, [code]), second: _values(b, run)}, why=rule.why))
    return found


def _holds(code: int, sign: str, other: int) -> bool:
    return code < other if sign == "<" else code <= other if sign == "<=" else code == other


def _runs(codes: list[int]) -> list[list[int]]:
    """Neighbouring codes together."""
    found: list[list[int]] = []
    for code in codes:
        if found and found[-1][-1] == code - 1:
            found[-1].append(code)
        else:
            found.append([code])
    return found


def _values(attribute: Attribute, codes: Sequence[int]) -> Any:
    """Neighbouring categories as a rule writes them."""
    if isinstance(attribute, Named):
        return tuple(attribute.categories[code] for code in codes)
    if attribute.spikes or attribute.is_open:
        raise ValueError(
            f"{attribute.name} has values of their own or an open end, which cannot be compared within a household"
        )
    edges = [int(edge) if float(edge).is_integer() else float(edge) for edge in attribute.edge_values]
    below = {"below": edges[codes[-1] + 1]} if codes[-1] + 1 < attribute.present else {}
    return {"from": edges[codes[0]], **below}


def for_member(rule: Rule, person: PersonTable) -> Rule | None:
    """What a rule says of other members; None where it is of reference persons alone."""
    if rule.never is None:
        return rule
    never = dict(rule.never)
    if person.reference_name in never:
        kept = tuple(label for label in _labels(rule, person) if label != person.reference_label)
        if not kept:
            return None
        never[person.reference_name] = kept
    return Rule(never=never, why=rule.why)


def _for_reference(rule: Rule, tables: Tables) -> Rule | None:
    """What a rule says of reference persons; None where it is of other members, or of their part in the household."""
    person = tables.person
    if rule.never is None:
        first, sign, second = compared(rule.always or "", person.names)
        return Rule(always=f"{REFERENCE}{first} {sign} {REFERENCE}{second}", why=rule.why)
    if any(name.startswith(REFERENCE) and name not in person.names for name in rule.never):
        return None
    if person.reference_name in rule.never and person.reference_label not in _labels(rule, person):
        return None
    others = ((name, value) for name, value in rule.never.items() if name != person.reference_name)
    never = {REFERENCE + name if name in person.names else name: value for name, value in others}
    if not never:
        raise ValueError("it leaves no household a reference person")
    return Rule(never=never, why=rule.why)


def _labels(rule: Rule, person: PersonTable) -> tuple[str | None, ...]:
    """The categories of the reference person's attribute that a rule names; None: missing."""
    attribute = person.attribute(person.reference_name)
    codes = codes_of_value(attribute, (rule.never or {})[person.reference_name])
    return tuple(None if code == attribute.missing_code else attribute.labels[code] for code in codes)


def _names(tables: Tables) -> tuple[str, ...]:
    return (*(each.name for each in household_attributes(tables)), *tables.person.names)


def attribute_of(name: str, tables: Tables) -> Attribute:
    every = {each.name: each for each in (*household_attributes(tables), *tables.person.attributes)}
    if name not in every:
        raise ValueError(f"there is no attribute {name!r}; {meant(name, tuple(every))}")
    return every[name]


def must_flatten(tables: Tables) -> None:
    """Refuses, with its line, what cannot be said in rows of households and of members."""
    person = tables.person
    if tables.household.key in tables.household.names:
        raise problem_at(("household", "key"), f"{tables.household.key!r} tells households apart: it is no attribute")
    kinds = math.prod(person.most_of(kind) + 1 for kind in person.listed_kinds[:-1])
    if kinds > MOST_RULES // 2:
        raise problem_at(
            ("person", "kinds"),
            f"{len(person.listed_kinds)} kinds of up to {person.members} members have {kinds:,} combinations; at most "
            f"{MOST_RULES // 2} can be released. Bound kinds by `most`, give the attribute fewer categories, or lower at_most",
        )
    must_count_kinds([number_of(kind) for kind in person.listed_kinds[:-1]])
    must_lie_in_one_place(tables)
    derived = (each.name for each in (*household_derived(tables), *person.derived))
    must_be_free(tables, (*_names(tables), *places_in(tables)[:-1], *derived))
    _must_keep_rules(tables)


def _must_keep_rules(tables: Tables) -> None:
    """Every rule of persons can be said of rows, and they are not too many."""
    person = tables.person
    for place, rule in enumerate(person.rules):
        try:
            must_name_no_place(rule, tables)
            for each in _expanded(rule, tables):
                for name, value in (each.never or {}).items():
                    codes_of_value(attribute_of(name, tables), value)
                _for_reference(each, tables)
        except ValueError as error:
            raise problem_at(("person", "rules", place), str(error)) from None
    try:
        number = len(member_rules(tables))
    except ValueError as error:
        raise problem_at(("person", "rules"), str(error)) from None
    if number > MOST_RULES:
        raise problem_at(
            ("person", "rules"),
            f"rules of persons come to {number:,} rules of rows, category by category; at most {MOST_RULES:,} can be kept. "
            "Compare attributes of fewer bins, or bound kinds by `most`",
        )
