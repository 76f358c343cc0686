"""Characters that nobody sees and that change what is read: refused in names, and shown as what they are in messages."""

from __future__ import annotations

import unicodedata

_JOINERS = "\u200c\u200d"  # format characters that are part of writing, in Persian, Hindi or a family of emoji


def invisible(text: str) -> str | None:
    """A character that nobody sees and that changes what is read: a control, a mark of bytes or of direction, half a pair.

    >>> invisible("no\ufeff"), invisible("naïve 東京 می\u200cخواهم")
    ('\\ufeff', None)
    """
    if text.isprintable():
        return None
    return next((character for character in text if _is_invisible(character)), None)


def visible(text: str) -> str:
    """The text as a terminal may show it: what cannot be seen stands there by its number; line breaks stay.

    >>> print(visible("sex\u202e, red\x1b[31m"))
    sex\\u202e, red\\x1b[31m
    """
    if text.isprintable():
        return text
    return "".join(ascii(c)[1:-1] if c != "\n" and _is_invisible(c) else c for c in text)


def _is_invisible(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") and character not in _JOINERS
