"""What `steps fit`, `steps table` and `steps sample` print for people."""

from __future__ import annotations

from typing import Any

from flows.output.terminal import say, shown_table
from schemas.counted import counted

FIGURES = ("count", "standard_error", "low", "high", "share", "share_low", "share_high", "trust")


def fit(answer: dict[str, Any]) -> None:
    say(f"{answer['model']}{_where(answer)}   ({answer['kind']}; {counted(answer['sets'], 'set')}; 95% intervals)")
    columns = ("coefficient", "estimate", "std. error", "low", "high")
    rows = [
        (each["name"], *(_number(each[name]) for name in ("estimate", "standard_error", "low", "high")))
        for each in answer["coefficients"]
    ]
    shown_table(columns, rows, right=columns[1:])
    _below(answer)


def table(answer: dict[str, Any]) -> None:
    names = answer["table"]
    say(f"{' × '.join(names)}{_where(answer)}   (about {answer['rows']:,.0f} {answer.get('of', 'rows')}; 95% intervals)")
    columns = ("count", "std. error", "95% interval", "share", "95% interval of the share")
    called = {name: answer.get("renamed", {}).get(name, name) for name in FIGURES}  # where an attribute has such a name
    figures = [{name: each[column] for name, column in called.items()} for each in answer["cells"]]
    labels = [[str(each[name]) for name in names] for each in answer["cells"]]
    rows = [(*label, *_cell(each), each["trust"]) for label, each in zip(labels, figures, strict=True)]
    shown_table((*names, *columns, ""), rows, right=columns)
    _below(answer)


def brief(answer: dict[str, Any]) -> None:
    """Of a table that was written to a file."""
    about = f"about {answer['rows']:,.0f} {answer.get('of', 'rows')}"
    say(f"{' × '.join(answer['table'])}{_where(answer)}: {len(answer['cells']):,} cells, {about}")
    _below(answer)


def more_rows(answer: dict[str, Any]) -> None:
    made = f"{counted(answer['sets'], 'set')} of {answer['rows']:,} {answer['of']}"
    say(f"{made}{_where(answer)} from {answer['release']}, seed {answer['seed']}")
    first = ", ".join(name for name in answer["files"] if "-1." in name)
    say(f"written: {answer['folder']}/{first} …, sample.json")
    say(*(f"WARNING: {warning}" for warning in answer["warnings"]), answer["sentence"], *answer["notes"])


def _cell(each: dict[str, Any]) -> tuple[str, ...]:
    interval = f"{round(each['low']):,} to {round(each['high']):,}"  # whole numbers: there is no -0
    share = "" if each["share"] is None else f"{each['share']:.2%}"
    return (
        f"{round(each['count']):,}",
        f"{each['standard_error']:,.0f}",
        interval,
        share,
        f"{each['share_low']:.2%} to {each['share_high']:.2%}",
    )


def _where(answer: dict[str, Any]) -> str:
    said = ", ".join(f"{name} = {' or '.join(labels)}" for name, labels in answer["where"].items())
    return f" where {said}" if said else ""


def _number(value: float | None) -> str:
    return "not determined" if value is None else f"{value:.5g}"


def _below(answer: dict[str, Any]) -> None:
    say(*(f"WARNING: {warning}" for warning in answer["warnings"]), *answer["notes"])
    say(*(f"written: {answer[name]}" for name in ("csv", "picture") if name in answer))
