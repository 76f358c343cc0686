"""Single facts as schemas write them: a text, a number, a day, a value of the data; nothing where it is no such thing."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal, InvalidOperation
from typing import Any

from schemas.spec.reading import day_format
from tasks.describing.description import DATES, WHOLE, Bound, Category

_UNICODE_FORM = re.compile(r"y+|M+|d+|[^A-Za-z]+")
LONGEST_TEXT = 2000


def mapping(value: Any) -> dict[str, Any]:
    """What a key holds where it holds an object, and nothing otherwise."""
    return value if isinstance(value, dict) else {}


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def said(value: Any) -> str:
    """A text in one line; of several languages English if there is any, of several texts the first.

    >>> said({"de": "Lohn", "en": " The\\n wage "}), said(["a", "b"]), said(None)
    ('The wage', 'a', '')
    """
    if isinstance(value, dict):
        value = value.get("@value") or value.get("en") or value.get("name") or next(iter(value.values()), "")
    if isinstance(value, list):
        return said(value[0]) if value else ""
    return " ".join(value.split())[:LONGEST_TEXT] if isinstance(value, str) else ""


def written(value: Any) -> str | None:
    """A value as a file of data would write it; 1.0 is 1.

    >>> written(1.0), written(True), written(" x"), written([])
    ('1', 'true', ' x', None)
    """
    if isinstance(value, bool | int):
        return str(value).lower()
    if isinstance(value, float | Decimal):
        number = Decimal(str(value))
        return f"{number.quantize(Decimal(1)) if number == number.to_integral_value() else number.normalize():f}"
    return value if isinstance(value, str) else None


def number(value: Any) -> Decimal | None:
    """
    >>> number("1,5"), number(" -9 "), number(True), number("nan")
    (None, Decimal('-9'), None, None)
    """
    if isinstance(value, bool) or value is None:
        return None
    try:
        read = Decimal(str(value).strip())
    except InvalidOperation:
        return None
    return read if read.is_finite() and abs(read.adjusted()) < 30 else None


def day(value: Any) -> datetime.date | None:
    """The day of a date or a moment.

    >>> day("2025-01-02T06:47:46"), day("2025"), day("soon")
    (datetime.date(2025, 1, 2), datetime.date(2025, 1, 1), None)
    """
    text = str(value)
    text = f"{text}-01-01" if re.fullmatch("[0-9]{4}", text) else text
    try:
        return datetime.date.fromisoformat(text[:10])
    except ValueError:
        return None


def bound(value: Any, holds: str) -> Bound | None:
    return day(value) if holds == DATES and value is not None else number(value)


def end(inclusive: Any, exclusive: Any, holds: str, inward: int) -> Bound | None:
    """An end of a range. Of whole numbers, the next one inward (1 or -1) where the end itself is excluded.

    >>> end(None, 14, "whole numbers", 1), end(None, 0, "numbers", 1), end(11, True, "whole numbers", -1), end(5, None, "", 1)
    (Decimal('15'), Decimal('0'), Decimal('10'), Decimal('5'))
    """
    found = bound(inclusive if exclusive is None or isinstance(exclusive, bool) else exclusive, holds)
    excluded = exclusive not in (None, False)
    return found + inward if excluded and holds == WHOLE and isinstance(found, Decimal) else found


def form_of_days(written: Any) -> str | None:
    """A pattern for days that can be read: %d.%m.%Y, or dd.MM.yyyy as CSVW writes it; None for ISO and for what cannot.

    >>> form_of_days("dd.MM.yyyy"), form_of_days("%d/%m/%Y"), form_of_days("yyyy-MM-dd"), form_of_days("default")
    ('%d.%m.%Y', '%d/%m/%Y', None, None)
    """
    if not isinstance(written, str):
        return None
    if "%" not in written:
        parts = _UNICODE_FORM.findall(written)
        if "".join(parts) != written:
            return None
        written = "".join({"y": "%Y", "M": "%m", "d": "%d"}.get(part[0], part) for part in parts)
    try:
        return day_format(written) if written != "%Y-%m-%d" else None
    except ValueError:
        return None


def categories_of(values: list[Any], labels: dict[str, str] | None = None) -> tuple[tuple[Category, ...], bool]:
    """Values that may occur, each once and as data write them; and whether null is among them."""
    texts = [written(value) for value in values]
    kept = dict.fromkeys(text for text in texts if text)
    return tuple(Category(text, (labels or {}).get(text, "")) for text in kept), None in values or "" in texts
