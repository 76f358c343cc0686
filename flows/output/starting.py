"""What `steps init` and `steps validate` say: what was taken from where and what is left to do; nothing of the records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from tasks.describing.start import Started

SHOWN = 30


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
    click.echo(f"{dataset}, {release}")
    if answer["from"]:
        click.echo(f"from      {answer['from']}")
        click.echo(f"taken     {', '.join(answer['taken'])}")
    for remark in answer["remarks"]:
        click.echo(f"note      {remark}")
    for gap in answer["gaps"][:SHOWN]:
        click.echo(f"to do     {gap['file']}, line {gap['line']}: {gap['key']}: {gap['write'] or 'fill it in'}")
    if (more := len(answer["gaps"]) - SHOWN) > 0:
        click.echo(f"to do     and {more} more, each marked TODO")
    for problem in answer["problems"]:
        click.echo(f"to mend   {problem}")
    filled = "" if answer["complete"] else "fill in what is to do, then "
    click.echo(f"next      look both files through; {filled}steps plan {release}")
