"""From a variable to an attribute of dataset.yaml: facts where they are known, gaps where a person has to say more."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pydantic import TypeAdapter, ValidationError

from schemas.spec.attribute_base import MOST_CATEGORIES
from schemas.spec.described import LONGEST_TEXT, LONGEST_TITLE
from schemas.spec.reading import MOST_VALUES
from schemas.spec.values import Label
from schemas.spec.yaml import GAP, GAPS
from schemas.visible import invisible
from tasks.describing.description import BOOLEANS, DATES, NUMBERS, TEXT, TIMES, UNKNOWN, WHOLE, Bound, Variable

MANY, BINS, DAY_BINS = 100, 20, 12  # more whole numbers or days than that are binned, into so many
NUMBER_BINS = 10
_LABEL: TypeAdapter[str] = TypeAdapter(Label)


class Gap(str):
    """What a person has to fill in; a value of the same letters is another thing."""


OPEN = Gap(GAP)


@dataclass
class Written:
    """Keys of an attribute in the order in which they are written, and what is said beside some of them."""

    keys: dict[str, Any] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)

    def gap(self, key: str, more: str = "") -> None:
        self.keys[key] = OPEN
        self.comments[key] = f"{more}{GAPS[key]}"


def attribute_of(variable: Variable, name: str) -> Written:
    """An attribute; facts that a domain cannot hold are left as gaps, with the reason."""
    made = Written({"name": name})
    if variable.remarks:
        made.comments["name"] = "; ".join(variable.remarks)
    _words(made, variable)
    labels = [each for each in variable.categories if not each.missing]
    if variable.holds == TIMES and not labels:
        made.keys |= {"kind": "time", "bounds": ["00:00", "24:00"], "bins": 24}
        made.comments["bins"] = "one for each hour; your choice, or edges: […]"
    elif labels or variable.holds in (TEXT, UNKNOWN, BOOLEANS):
        _named(made, variable)
    else:
        _ranged(made, variable)
    _missing(made, variable)
    return made


def _words(made: Written, variable: Variable) -> None:
    title, description = plain(variable.title, LONGEST_TITLE), plain(variable.description, LONGEST_TEXT)
    made.keys |= {key: text for key, text in (("title", title), ("description", description)) if text}
    if description == title:
        made.keys.pop("description", None)


def plain(text: str, longest: int) -> str:
    """One line without characters that nobody sees, cut where it is too long.

    >>> plain("a\\n b\\u200b", 200), plain("abcdef", 4)
    ('a b', 'abc…')
    """
    line = "".join(" " if c.isspace() else c for c in text)
    line = " ".join("".join(c for c in line if invisible(c) is None).split())
    return line if len(line) <= longest else f"{line[: longest - 1].rstrip()}…"


def _named(made: Written, variable: Variable) -> None:
    made.keys["kind"] = "ordinal" if variable.ordered else "categorical"
    categories, recode, problem = _usable(variable)
    if not categories or problem or not variable.complete:
        known = ", ".join(categories[:5]) + (", …" if len(categories) > 5 else "")
        more = f"{problem}: " if problem else f"besides {known}, which are not all: " if categories else ""
        if variable.holds == UNKNOWN and not categories:
            made.gap("kind")
        else:
            made.gap("categories", more)
        return
    made.keys["categories"] = categories
    if recode:
        made.keys["recode"] = recode
    texts = {each.value.strip(): plain(each.label, LONGEST_TITLE) for each in variable.categories if not each.missing}
    if labels := {category: texts[category] for category in categories if texts.get(category) not in (None, "", category)}:
        made.keys["labels"] = labels


def _usable(variable: Variable) -> tuple[list[str], dict[str, str], str]:
    """Categories without blanks at their ends, how the data write those that have some, and why they cannot be used."""
    recode = dict(variable.recode)
    for each in variable.categories:
        if not each.missing and each.value != each.value.strip():
            recode[each.value] = each.value.strip()
    found = list(dict.fromkeys(each.value.strip() for each in variable.categories if not each.missing))
    if len(found) > MOST_CATEGORIES:
        return found[:5], {}, f"{len(found):,} categories are described, and at most {MOST_CATEGORIES:,} fit; give coarser ones"
    for category in found:
        try:
            _LABEL.validate_python(category)
        except ValidationError as error:
            return found[:5], {}, plain(error.errors()[0]["msg"].removeprefix("Value error, "), 200)
    return found, recode if len(recode) <= MOST_VALUES else {}, ""


def _ranged(made: Written, variable: Variable) -> None:
    made.keys["kind"] = {WHOLE: "integer", NUMBERS: "numeric", DATES: "date"}[variable.holds]
    low, high = variable.low, variable.high
    if variable.holds == WHOLE and any(end is not None and end != int(end) for end in (low, high) if isinstance(end, Decimal)):
        made.keys["kind"] = "numeric"
    if low is None or high is None or not low < high:  # type: ignore[operator]  # both are of the variable's own kind
        made.gap("bounds", _half(low, high))
    else:
        made.keys["bounds"] = [_value(low), _value(high)]
    if variable.edges:
        made.keys["edges"] = [_value(edge) for edge in variable.edges]
    elif bins := _bins(made.keys["kind"], low, high):
        made.keys["bins"], made.comments["bins"] = bins, "of equal width; your choice, or edges: […]"
    if variable.form:
        made.keys["format"] = variable.form


def _half(low: Bound | None, high: Bound | None) -> str:
    return f"at least {low}: " if low is not None else f"at most {high}: " if high is not None else ""


def _value(bound: Bound) -> Any:
    return bound if isinstance(bound, datetime.date) else int(bound) if bound == int(bound) else float(bound)


def _bins(kind: str, low: Any, high: Any) -> int | None:
    """A first choice, which is public: it follows from the bounds alone."""
    if kind == "numeric":
        return NUMBER_BINS
    if low is None or high is None or not low < high:
        return None
    values = (high - low).days + 1 if kind == "date" else int(high - low) + 1
    return None if values <= MANY else DAY_BINS if kind == "date" else BINS


def _missing(made: Written, variable: Variable) -> None:
    if not variable.may_be_missing:
        return
    told = [each.value for each in variable.categories if each.missing]
    values = [value for value in dict.fromkeys((*told, *variable.missing_values)) if value not in made.keys.get("recode", {})]
    values = [value for value in values if value not in (made.keys.get("categories") or ())]
    if values:
        made.keys["missing"] = values[:MOST_VALUES]
    else:
        made.keys["missing"] = "category"
