"""What a check answers, as plain JSON values. Imports nothing of the pipeline, so that `steps verify` runs on the base."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tasks.verify.bundle import Recomputed, Verdict


def findings(problems: Iterable[Any], notes: Iterable[Any] = ()) -> dict[str, Any]:
    texts = [str(problem) for problem in problems]
    return {"ok": not texts, "problems": texts, "notes": [str(note) for note in notes]}


def verdict(found: Verdict) -> dict[str, Any]:
    """Of a bundle also what it says it is, whether its noise could be tested, and what was made again."""
    problems = [problem for problem in found.problems if not problem.note]
    noise, again = found.noise, found.recomputed
    return findings(problems, [problem for problem in found.problems if problem.note]) | {
        "bundle": asdict(found.told) if found.told is not None else None,
        "noise": {"contrasts": noise.contrasts, "untested": list(noise.untested)} if noise is not None else None,
        "recomputed": _again(again) if again is not None else None,
    }


def _again(again: Recomputed) -> dict[str, Any]:
    return {"files": dict(again.same), "why_not": again.why_not, "otherwise": list(again.otherwise)}
