"""Names that data sets and attributes may have, from names that people and programs gave."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from schemas.spec.consistent import alike
from schemas.visible import invisible
from tasks.describing.description import Variable

LONGEST = 48  # of a data set's name: a release's has a period besides


def slug(text: str) -> str:
    """A name for files and budgets.

    >>> slug("Löhne & Gehälter 2026"), slug("東京")
    ('lohne-gehalter-2026', 'data')
    """
    ascii_ = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9_]+", "-", ascii_).strip("-_")[:LONGEST].rstrip("-_") or "data"


def names_of(variables: Iterable[Variable]) -> dict[str, str]:
    """What each column is called in the domain: as it is where that can be, and nobody could take two for one.

    >>> names_of([Variable("age"), Variable("1st job"), Variable("AGE"), Variable("a;b")])
    {'age': 'age', '1st job': 'v1st job', 'AGE': 'AGE_2', 'a;b': 'a_b'}
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for variable in variables:
        name = wanted = _allowed(variable.name or variable.column)
        number = 1
        while alike(name) in taken:
            number += 1
            name = f"{wanted[:120]}_{number}"
        taken.add(alike(name))
        names[variable.column] = name
    return names


def _allowed(name: str) -> str:
    """No quotes, backslashes, semicolons or characters that nobody sees; a letter first."""
    plain = "".join("_" if c in "\"'`\\;" else c for c in name if c.isspace() or invisible(c) is None)
    plain = " ".join(plain.split())[:120].strip()
    return plain if re.match(r"[^\W\d]", plain) else f"v{plain}"
