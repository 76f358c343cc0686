"""What `steps init` and `steps validate` say: what was taken from where and what is left to do; nothing of the records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from schemas.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from schemas.spec.release import Release
    from tasks.describing.start import Started
    from tasks.reading.fitting import Look
    from tasks.stages.validate import Verdict

SHOWN = 30


def _say(line: str) -> None:
    click.echo(visible(line))


def started(made: Started) -> dict[str, Any]:
    return {
        "folder": str(made.folder),
        "files": [str(made.folder / name) for name in ("dataset.yaml", "release.yaml")],
        "from": made.origin or None,
        "attributes": made.attributes,
        "taken": list(made.taken),
        "remarks": list(made.remarks),
        "gaps": list(made.gaps),
        "problems": list(made.problems),
        "complete": not (made.gaps or made.problems),
    }


def show_started(answer: dict[str, Any]) -> None:
    dataset, release = answer["files"]
    _say(f"{dataset}, {release}")
    if answer["from"]:
        _say(f"from      {answer['from']}")
        _say(f"taken     {', '.join(answer['taken'])}")
    for remark in answer["remarks"]:
        _say(f"note      {remark}")
    said = ""  # what to write is told once where gaps in a row want the same
    for gap in answer["gaps"][:SHOWN]:
        write = gap["write"] or "fill it in"
        _say(f"to do     {gap['file']}, line {gap['line']}: {gap['key']}{': ' + write if write != said else ''}")
        said = write
    if (more := len(answer["gaps"]) - SHOWN) > 0:
        _say(f"to do     and {more} more, each marked TODO")
    for problem in answer["problems"]:
        _say(f"to mend   {problem}")
    filled = (
        ""
        if answer["complete"]
        else "fill in what is to do, or take out attributes that are not released and name them in ignore; then "
    )
    _say(f"next      look both files through; {filled}steps plan {release}")


def validated(asked: Release, seen: Look, verdict: Verdict) -> dict[str, Any]:
    """For programs: that nothing refuses the data, and where the page is. Whether something was warned of stands there."""
    said = {"release": asked.name, "reads": seen.words, "expectations": verdict.expectations, "page": str(verdict.page)}
    return said | ({"remarks": list(asked.domain.remarks)} if asked.domain.remarks else {})


def shown_with(verdict: Verdict) -> Callable[[dict[str, Any]], None]:
    """For the person at the terminal, who may read the page: also how much was warned of."""

    def show(answer: dict[str, Any]) -> None:
        warned = f"{verdict.warnings} warning{'s' * (verdict.warnings > 1)}" if verdict.warnings else "no warnings"
        _say(f"{answer['release']}: reads {answer['reads']}; the data may be released ({warned})")
        _say(f"page      {answer['page']}   (confidential: keep it inside)")
        for remark in answer.get("remarks", ()):
            _say(f"note      {remark}")
        _say("Nothing was charged, and nothing was counted.")

    return show


def suite_written(asked: Release, path: Path, suite: dict[str, Any]) -> dict[str, Any]:
    about = suite["meta"]["steps_release"]
    return {
        "release": asked.name,
        "suite": str(path),
        "expectations": len(suite["expectations"]),
        "not_checked": about["not_checked"],
    }


def show_suite(answer: dict[str, Any]) -> None:
    _say(f"{answer['suite']}: {answer['expectations']} expectations, all public; no record was read")
    for each in answer["not_checked"]:
        _say(f"not in it {each}")
