"""Which rows a question is about: `age=18`, `sector=public`, `wage=1000..3000`, by the public domain alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from schemas.errors import SpecError
from schemas.nearest import meant
from schemas.spec.attributes import EPOCH, Attribute, Named, Ranged, as_date
from schemas.spec.domain import Domain
from schemas.spec.values import minutes_of
from steps_engine.domain.cells import possible_cells
from steps_engine.domain.columns import column_of, some
from steps_engine.domain.values import codes_of_numbers


def read_conditions(texts: Iterable[str]) -> dict[str, str]:
    """`name=value` as a person writes it.

    >>> read_conditions(["age=18", "sector=public"])
    {'age': '18', 'sector': 'public'}
    """
    found: dict[str, str] = {}
    for text in texts:
        name, sign, value = (part.strip() for part in text.partition("="))
        if not sign or not name or not value:
            raise SpecError(f"--where {text!r}: write name=value, such as age=18, age=18..24 or sector=public,private")
        if name in found:
            raise SpecError(f"--where names {name} twice; write its values with commas: {name}={found[name]},{value}")
        found[name] = value
    return found


def codes_where(asked: Mapping[str, Any], domain: Domain) -> dict[int, tuple[int, ...]]:
    """{attribute's number: codes}; refused where no record that keeps the rules can fulfil it."""
    found: dict[int, tuple[int, ...]] = {}
    for name, value in asked.items():
        column = column_of(name, domain)
        held = np.flatnonzero(np.isin(column.codes, _codes(column.attribute, value))).tolist()
        found[column.source] = tuple(code for code in held if code in found.get(column.source, held))
    said = ", ".join(f"{name}={value}" for name, value in asked.items())
    if not all(found.values()):
        raise SpecError(f"nothing fulfils {said}: one part excludes another. Leave a part of it out.")
    if found and not possible_cells(domain, tuple(found))[np.ix_(*found.values())].any():
        raise SpecError(f"nothing fulfils {said}: the rules of this release exclude it. Leave a part of it out.")
    return found


def labels_where(asked: Mapping[str, Any], domain: Domain) -> dict[str, tuple[str, ...]]:
    """A condition by the labels of the columns that it names."""
    attributes = {name: column_of(name, domain).attribute for name in asked}
    return {name: tuple(each.labels[code] for code in _codes(each, asked[name])) for name, each in attributes.items()}


def _codes(attribute: Attribute, value: Any) -> tuple[int, ...]:
    if isinstance(value, list | tuple | set | frozenset):
        return tuple(sorted({code for each in value for code in _codes(attribute, each)}))
    if value is None:
        value = "(missing)"
    text = str(value).lower() if isinstance(value, bool) else str(value).strip()
    if text in attribute.labels:
        return (attribute.labels.index(text),)
    if not isinstance(attribute, Named) and ".." in text:
        return _range(attribute, *text.split("..", 1))
    if "," in text:
        return _codes(attribute, [part.strip() for part in text.split(",")])
    if isinstance(attribute, Named):
        raise SpecError(f"{attribute.name} has no category {text!r}; {meant(text, attribute.labels, 'it has')}")
    return (_alone(attribute, text),)


def _number(attribute: Ranged, text: str) -> float:
    """A value as the attribute's edges are written: days since 1970, minutes since midnight."""
    try:
        if attribute.kind == "date":
            return float((as_date(text) - EPOCH).days)
        return float(minutes_of(text) if attribute.kind == "time" else text)
    except ValueError:
        wanted = {"date": "a date such as 2000-01-31", "time": "a time such as 08:30"}.get(attribute.kind, "a number")
        raise SpecError(f"{attribute.name}: {text!r} is not {wanted}; its categories are {some(attribute.labels)}") from None


def _alone(attribute: Ranged, text: str) -> int:
    """A value by itself, where it has a category of its own: counts do not look into bins."""
    code, layout = int(codes_of_numbers(np.array([_number(attribute, text)]), attribute)[0]), attribute.layout
    if code < 0:
        beyond = f"it lies beyond its bounds; its categories are {some(attribute.labels)}"
        raise SpecError(f"nothing fulfils {attribute.name}={text}: {beyond}")
    if layout.low[code] < layout.high[code]:
        label = attribute.labels[code]
        raise SpecError(f"{attribute.name} is counted in bins, and {text} lies in {label}; ask for {attribute.name}={label}")
    return code


def _range(attribute: Ranged, low: str, high: str) -> tuple[int, ...]:
    """From … to, both included; whole categories only. An open end is left out: `65..`."""
    least, most = attribute.layout.low, attribute.layout.high
    first = _number(attribute, low) if low.strip() else -np.inf
    last = _number(attribute, high) if high.strip() else np.inf
    inside = (least >= first) & (most <= last)
    begins = not low.strip() or (least[inside] == first).any()
    ends = not high.strip() or (np.nextafter(most[inside], np.inf) == last).any() or (most[inside] == last).any()
    if not (begins and ends and inside.any()):
        raise SpecError(f"{attribute.name}={low}..{high} must begin and end where bins do: {some(attribute.labels)}")
    return tuple(np.flatnonzero(inside).tolist())
