"""Rules of a domain: combinations of categories that cannot occur, written as what never meets or as a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from schemas.nearest import meant
from schemas.spec.attributes import (
    EPOCH,
    Attribute,
    Categorical,
    DateAttribute,
    Integer,
    Named,
    Ranged,
    TimeAttribute,
    as_date,
)
from schemas.spec.described import Text, without_silence
from schemas.spec.values import minutes_of
from schemas.spec.yaml import Strict, problem_at

Relation = Literal["<=", "=="]


def not_empty(never: dict[str, Any]) -> dict[str, Any]:
    if not never:
        raise ValueError("a rule names at least one attribute")
    return never


NeverValues = Annotated[dict[str, Any], AfterValidator(not_empty)]


class Rule(Strict):
    """A structural zero, by what never occurs or by what always holds."""

    never: NeverValues | None = Field(
        default=None,
        description="What never occurs together: attribute to label, list of labels, null (missing) or {from: a, below: b}. A "
        "level of places may be named as an attribute is.",
    )
    always: str | None = Field(
        default=None,
        max_length=300,
        description="What holds in every row between two attributes of the same bins: `first_job <= age`, or `a == b`; bin by "
        "bin in the source, value by value in synthetic rows. A missing value beside any other is allowed.",
    )
    why: Text | None = Field(default=None, description="Why it cannot be otherwise, and from where that is known.")

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if (self.never is None) == (self.always is None):
            raise ValueError("a rule says never: {…} or always: a <= b, one of them")
        return self

    @model_serializer(mode="wrap")
    def _said(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without_silence(plain(self), "never", "always", "why")

    @property
    def words(self) -> str:
        """The rule as people read it."""
        if self.never is None:
            return f"always {self.always}"
        return f"never {' with '.join(spoken(name, value) for name, value in self.never.items())}"


def spoken(name: str, value: Any) -> str:
    """What a rule says of one attribute.

    >>> spoken("a", ("yes", None)), spoken("a", {"from": 1, "below": 5}), spoken("a", {"below": 5})
    ('a = yes or (missing)', 'a from 1 and below 5', 'a below 5')
    """
    if isinstance(value, dict):
        return f"{name} " + " and ".join(f"{key} {value[key]}" for key in ("from", "below") if key in value)
    parts = value if isinstance(value, tuple | list) else (value,)
    return f"{name} = " + " or ".join("(missing)" if part is None else str(part) for part in parts)


@dataclass(frozen=True)
class Never:
    """{attribute index: category codes that may not all meet}."""

    codes: dict[int, tuple[int, ...]]

    @property
    def places(self) -> tuple[int, ...]:
        return tuple(self.codes)


@dataclass(frozen=True)
class Comparison:
    """Two attributes of the same categories: code of the first ≤ code of the second, or both the same.

    A code of `present` or more is the missing one, which is compared with nothing.
    """

    first: int
    second: int
    relation: Relation
    present: int

    @property
    def places(self) -> tuple[int, ...]:
        return self.first, self.second


@dataclass(frozen=True)
class Conditional:
    """A comparison of those rows that meet a condition: {attribute index: category codes}; of all rows where it is empty."""

    compared: Comparison
    when: dict[int, tuple[int, ...]]


def compared(text: str, names: Sequence[str]) -> tuple[str, Relation, str]:
    """The two attributes that a text such as `a <= b` compares; names may hold any sign themselves."""
    signs: tuple[Relation, ...] = ("<=", "==")
    for sign in signs:
        parts = text.split(sign)
        for place in range(1, len(parts)):
            first, second = sign.join(parts[:place]).strip(), sign.join(parts[place:]).strip()
            if first in names and second in names and first != second:
                return first, sign, second
    raise ValueError(
        f"always compares two attributes, as in `a <= b` or `a == b`; found {text!r}. There are {some_of(tuple(names))}"
    )


def comparison(attributes: Sequence[Attribute], first: int, relation: Relation, second: int) -> Comparison:
    a, b = attributes[first], attributes[second]
    if isinstance(a, Categorical) and relation == "<=":
        raise ValueError(f"{a.name} has no order; say kind: ordinal, or compare by ==")
    if a.kind != b.kind:
        raise ValueError(f"{a.name} is {a.kind} and {b.name} is {b.kind}; what is compared is of one kind")
    if a.present_labels != b.present_labels:
        differ = [
            next((x for x in one.present_labels if x not in other.present_labels), "all") for one, other in ((a, b), (b, a))
        ]
        raise ValueError(
            f"{a.name} and {b.name} need the same bins to be compared; {a.name} has {differ[0]}, {b.name} has {differ[1]}. "
            "Give both the same bounds and bins, in the same order"
        )
    if isinstance(a, Ranged) and relation == "<=" and not set(a.spikes) <= set(a.edge_values[:-1].tolist()):
        raise ValueError(f"{a.name} has a value of its own inside a bin, which cannot be compared; let a bin begin at it")
    return Comparison(first, second, relation, a.present)


def must_not_circle(comparisons: Sequence[Comparison], names: Sequence[str]) -> None:
    """`a <= b` and `b <= a` would say that they are equal, which `==` says."""
    like = {place: place for each in comparisons for place in each.places}
    for each in comparisons:
        if each.relation == "==":
            like = {place: like[each.first] if same == like[each.second] else same for place, same in like.items()}
    graph = TopologicalSorter[int]()
    for each in comparisons:
        if each.relation == "<=":
            graph.add(like[each.second], like[each.first])
    try:
        graph.prepare()
    except CycleError as error:
        circle = " <= ".join(names[place] for place in error.args[1])
        raise problem_at(("rules",), f"rules say {circle}: then all of them are equal; write == instead") from None


def codes_of_value(attribute: Attribute, value: Any) -> tuple[int, ...]:
    """Category codes of what a rule says: a value, a list of values, null (missing), or {from: a, below: b}."""
    name = attribute.name
    if isinstance(value, tuple | list):
        if not value:
            raise ValueError(f"{name}: the list names no category; name one, or leave {name} out")
        return tuple(sorted({code for part in value for code in codes_of_value(attribute, part)}))
    if value is None:
        if attribute.missing_code is None:
            raise ValueError(f"{name} has no missing category; say missing: category or leave null out of the rule")
        return (attribute.missing_code,)
    if isinstance(value, dict):
        return _range(attribute, value)
    if isinstance(attribute, Named):
        value = str(value).lower() if isinstance(value, bool | int) else value  # as labels are read
        if value not in attribute.code_of:
            raise ValueError(f"{name} has no category {value!r}; {meant(value, attribute.categories, 'it has')}")
        return (attribute.code_of[value],)
    if isinstance(value, int | Decimal) and not isinstance(value, bool) and float(value) in attribute.spikes:
        return (attribute.layout.spike_code[attribute.layout.spike == float(value)].item(),)
    if attribute.binned or not isinstance(attribute, Integer) or isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name}: write a range on bin edges in a rule, such as {{from: a, below: b}}")
    return _range(attribute, {"from": value, "below": value + 1})


def _range(attribute: Attribute, value: dict[str, Any]) -> tuple[int, ...]:
    if isinstance(attribute, Named) or not value or set(value) - {"from", "below"}:
        raise ValueError(f"{attribute.name}: a rule's range is {{from: a, below: b}}, for numbers, dates and times")
    bins = attribute.code_of
    ends = {key: bins.get(_end(attribute, end)) for key, end in value.items()}
    first, past = ends.get("from", 0), ends["below"] if "below" in ends else attribute.present
    if first is None or past is None or first >= past:
        raise ValueError(f"{attribute.name}: a rule's range must begin and end where bins do: {some_of(attribute.labels)}")
    return tuple(range(first, past))


def _end(attribute: Ranged, end: Any) -> float:
    """Where a rule's range begins or ends, as the attribute's edges are written."""
    wanted = {"date": "a date written 2000-01-31", "time": "a time of day written 08:30"}.get(attribute.kind, "a number")
    try:
        if isinstance(attribute, DateAttribute):
            return (as_date(end) - EPOCH).days
        if isinstance(attribute, TimeAttribute):
            return minutes_of(end)
        if not isinstance(end, bool):
            return float(end)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"{attribute.name}: a rule's range begins and ends with {wanted}, not {end!r}; leave an open end out")


def some_of(labels: tuple[str, ...]) -> str:
    return ", ".join(labels[:8]) + (f", … ({len(labels)} in all)" if len(labels) > 8 else "")
