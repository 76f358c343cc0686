"""What a file says in words: titles, descriptions, labels of categories, sources and reasons. All public, and optional.

A text is one line, however the file breaks it, and holds no character that cannot be seen; whoever shows it escapes it. Where
none is given nothing is written or hashed, as before there were such keys.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from schemas.visible import invisible

LONGEST_TITLE, LONGEST_TEXT = 200, 4000
WORDS = ("title", "description", "publisher", "contact", "licence", "labels", "source", "why", "registry")
_BLANKS = re.compile(r"[ \t\r\n]+")
_SPDX = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,99}")
_ADDRESS = re.compile(r"https?://[^\s<>\"'`\\{}|^]{3,500}")


def one_line(text: Any) -> str:
    """
    >>> one_line("Who works,\\n  and for how much\\n")
    'Who works, and for how much'
    """
    if not isinstance(text, str):
        raise ValueError(
            f'is a text; write "{text}" in quotes' if text is not None else "is empty; say it, or leave the key out"
        )
    line = _BLANKS.sub(" ", text).strip()
    if not line:
        raise ValueError("is empty; say it, or leave the key out")
    if (hidden := invisible(line)) is not None:
        raise ValueError(f"holds a character that cannot be seen (U+{ord(hidden):04X}); write it without")
    return line


def _title(text: Any) -> str:
    return _at_most(one_line(text), LONGEST_TITLE)


def _text(text: Any) -> str:
    return _at_most(one_line(text), LONGEST_TEXT)


def _at_most(line: str, most: int) -> str:
    if len(line) > most:
        raise ValueError(f"has {len(line):,} characters; at most {most:,} fit")
    return line


def licence_of(text: str) -> str:
    if not _SPDX.fullmatch(text) and not _ADDRESS.fullmatch(text):
        raise ValueError(f"{text!r} is no licence: write its SPDX identifier, such as CC-BY-4.0, or its address (https://…)")
    return text


def _labels(labels: Any) -> dict[str, str]:
    """By category; a number is a text here, as it is for categories."""
    if not isinstance(labels, dict):
        raise ValueError(f'write {{category: "what it means"}}, not {labels!r}')
    return {category: _label(category, text) for category, text in labels.items()}


def _label(category: str, text: Any) -> str:
    try:
        return _title(str(text) if isinstance(text, int) and not isinstance(text, bool) else text)
    except ValueError as error:
        raise ValueError(f"the label of {category!r} {error}") from None


Title = Annotated[str, BeforeValidator(_title)]
Text = Annotated[str, BeforeValidator(_text)]
Licence = Annotated[Title, AfterValidator(licence_of)]
CategoryLabels = Annotated[dict[str, str], BeforeValidator(_labels)]


def without_silence(document: dict[str, Any], *names: str) -> dict[str, Any]:
    """A document without those of the named keys that say nothing."""
    return {key: value for key, value in document.items() if key not in names or value}
