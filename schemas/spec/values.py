"""What may stand where a domain names a category, a number or a day: labels, numbers, dates of the calendar."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator

from schemas.visible import invisible

EPOCH = datetime.date(1970, 1, 1)
DAY = 24 * 60  # minutes
_TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]|24:00")


def _plain_label(label: Any) -> str:
    """Whole numbers and true or false are labels as files write them; what may be a formula is quoted where CSV is made."""
    if isinstance(label, bool | int):
        label = str(label).lower()
    if not isinstance(label, str):
        raise ValueError(f'a category is a text, a whole number, true or false; write "{label}" in quotes')
    if not label or label != label.strip() or len(label) > 200:
        raise ValueError(f"category {label!r} must be 1 to 200 printable characters without blanks at its ends")
    if (hidden := invisible(label)) is not None:
        raise ValueError(f"category {label!r} holds a character that cannot be seen (U+{ord(hidden):04X}); write it without")
    return label


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        raise ValueError(f"must be a number, not {value!r}")
    return float(value)


def as_date(value: Any) -> datetime.date:
    try:
        return datetime.date.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(f"must be a date written 2000-01-31, not {value!r}") from None


def minutes_of(time: str) -> int:
    """Minutes since midnight; 24:00 is where the day ends.

    >>> minutes_of("08:30"), minutes_of("24:00")
    (510, 1440)
    """
    found = _TIME.fullmatch(time) if isinstance(time, str) else None
    if found is None:
        raise ValueError(f"must be a time of day written 08:30, not {time!r}")
    return 60 * int(time[:2]) + int(time[3:])


def as_time(value: Any) -> str:
    minutes_of(value)
    return str(value)


def missing_policy(policy: Any) -> Any:
    if policy not in ("forbid", "category"):
        raise ValueError(f'is forbid, category, or a list of values that mean missing such as [-9, "NA"]; not {policy!r}')
    return policy


Label = Annotated[str, BeforeValidator(_plain_label)]
Number = Annotated[float, BeforeValidator(_number)]
Date = Annotated[datetime.date, BeforeValidator(as_date)]
TimeOfDay = Annotated[str, BeforeValidator(as_time)]
