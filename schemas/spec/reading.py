"""How files write what an attribute means: values that stand for others or for nothing, and the forms of CSV. All public.

Every value is read by itself, by these rules alone: nothing is learnt from records.
"""

from __future__ import annotations

import codecs
import re
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SerializerFunctionWrapHandler, field_validator, model_serializer

from schemas.spec.yaml import Strict

MOST_VALUES = 10_000  # that stand for others, of one attribute
NO_VALUES: dict[str, str | None] = {}
CLOCK = r"([01]?[0-9]|2[0-3]):([0-5][0-9])(?::[0-5][0-9](?:\.[0-9]+)?)?"  # a time of day as text: its hour and minute
_DIRECTIVES = re.compile(r"%(.)")


def text_of(value: Any) -> str:
    """What a file would write: a text, or the digits of a number.

    >>> text_of(-9), text_of(True), text_of("NA")
    ('-9', 'true', 'NA')
    """
    if isinstance(value, bool | int):
        return str(value).lower()
    if isinstance(value, Decimal):
        return f"{value:f}" if abs(value.adjusted()) < 30 else str(value)
    if not isinstance(value, str):
        raise ValueError(f"a value of a file is a text, a number, true or false; not {value!r}")
    return value


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, tuple | list):
        raise ValueError(f'write a list of values, such as [-9, "NA"], not {values!r}')
    return tuple(map(text_of, values))


def _pairs(values: Any) -> dict[str, str | None]:
    if not isinstance(values, dict):
        raise ValueError(f'write {{"value in the file": value that is meant}}, not {values!r}')
    return {key: None if value is None else text_of(value) for key, value in values.items()}


Texts = Annotated[tuple[str, ...], BeforeValidator(_texts)]
Recode = Annotated[dict[str, str | None], BeforeValidator(_pairs)]


def day_format(written: str) -> str:
    """A pattern that says day, month and year, each once: what it leaves open would have to be guessed."""
    found = sorted(_DIRECTIVES.findall(written))
    if not set(found) <= set("dmYHMS") or not {"d", "m", "Y"} <= set(found) or len(set(found)) < len(found):
        raise ValueError(f"{written!r} is no form of a date: write %d, %m and %Y once each, such as %d.%m.%Y (and %H:%M:%S)")
    return written


def time_format(written: str) -> str:
    """A pattern that says hour and minute, each once."""
    found = sorted(_DIRECTIVES.findall(written))
    if found not in (["H", "M"], ["H", "M", "S"], ["I", "M", "p"], ["I", "M", "S", "p"]):
        raise ValueError(
            f"{written!r} is no form of a time of day: write %H and %M once each, such as %H:%M or %H.%M.%S (or %I:%M %p)"
        )
    return written


class Csv(Strict):
    """How CSV files are written, where they are not as they should be: commas, points and UTF-8."""

    separator: str | None = Field(
        default=None,
        min_length=1,
        max_length=1,
        description="Between values: `,`, `;`, a tab or `|`; otherwise whichever splits the header into the most columns.",
    )
    decimal: Literal[".", ","] = Field(default=".", description="Of numbers: 1.5 or 1,5.")
    encoding: str = Field(
        default="utf-8", description="Of the text: `latin-1`, `windows-1252`, `utf-16` or another that Python knows."
    )

    @field_validator("separator")
    @classmethod
    def _separates(cls, separator: str | None) -> str | None:
        if separator is not None and (separator in "\"'\r\n\0." or separator.isalnum()):
            raise ValueError(f"{separator!r} cannot separate values; write one of , ; | or a tab")
        return separator

    @field_validator("encoding")
    @classmethod
    def _known(cls, encoding: str) -> str:
        try:
            found = codecs.lookup(encoding)
            "a,1".encode(encoding)
        except (LookupError, ValueError, TypeError):
            raise ValueError(
                f"{encoding!r} is no encoding that is known; write utf-8, latin-1, windows-1252 or utf-16"
            ) from None
        return found.name

    @model_serializer(mode="wrap")
    def _said(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in plain(self).items() if value != type(self).model_fields[name].default}


PLAIN_CSV = Csv()
