"""What was meant by a name that is not known: the nearest one, or those that there are."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

SHOWN = 8
LOOKED_AT = 1000  # names among which the nearest is looked for: a domain may have 100,000 categories


def meant(asked: object, known: Sequence[str], there: str = "there are") -> str:
    """
    >>> meant("sectr", ["sector", "grade"]), meant("boss", ["junior", "senior"], "it has")
    ("did you mean 'sector'?", 'it has junior, senior')
    """
    near = difflib.get_close_matches(str(asked), [str(name) for name in known[:LOOKED_AT]], n=1)
    return f"did you mean {near[0]!r}?" if near else f"{there} {', '.join(known[:SHOWN])}{', …' * (len(known) > SHOWN)}"
