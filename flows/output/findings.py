"""What a check answers, as plain JSON values. Imports nothing of the pipeline, so that `steps verify` runs on the base."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def findings(problems: Iterable[Any], notes: Iterable[Any] = ()) -> dict[str, Any]:
    texts = [str(problem) for problem in problems]
    return {"ok": not texts, "problems": texts, "notes": [str(note) for note in notes]}
