"""What `steps catalogue` prints for people."""

from __future__ import annotations

from typing import Any

from flows.output.terminal import MOST_PROBLEMS, say


def show(answer: dict[str, Any]) -> None:
    for note in answer["notes"]:
        say(f"note: {note}")
    for problem in answer["problems"][:MOST_PROBLEMS]:
        say(f"problem: {problem}")
    if answer["left_out"]:
        say(f"left out, since they do not verify: {', '.join(answer['left_out'])}")
    number = answer["releases"]
    copied, kept, removed = (len(answer[key]) for key in ("copied", "kept", "removed"))
    say(
        f"{number} release{'' if number == 1 else 's'}: {copied} copied, {kept} as they were, {removed} removed",
        f"open {answer['index']}",
    )
