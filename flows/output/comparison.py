"""What `steps evaluate` prints for people."""

from __future__ import annotations

from typing import Any

from flows.output.terminal import say, shown_table
from schemas.counted import counted


def evaluation(answer: dict[str, Any]) -> None:
    from steps_engine.evaluation import measures

    said = (each.name for each in measures.MEASURES.entries() if each.name in answer)
    found = ((measure, name, value) for measure in said for name, value in answer[measure].items())
    rows = [(f"{measure} {name}", f"{value:.4g}") for measure, name, value in found if isinstance(value, float)]
    shown_table(("measure", "value"), rows, right=("value",))
    if answer["regression"]:
        _regression(answer["regression"])


def _regression(answer: dict[str, Any]) -> None:
    """Coefficient by coefficient, both intervals and how far they overlap."""
    numbers, rows = ("original", "synthetic", "overlap"), list[tuple[str, ...]]()
    for each in answer["coefficients"]:
        intervals = (_interval(each[name]) for name in ("original", "synthetic"))
        rows.append((each["name"], *intervals, _share(each["overlap"]), "separated" if each["separated"] else ""))
    say("", f"{answer['model']}   ({answer['kind']}; {counted(answer['m'], 'set')}, {answer['sets']}; 95% intervals)")
    shown_table(("coefficient", *numbers, ""), rows, right=numbers)
    mean, rest = (_share(answer[name]) for name in ("mean_overlap", "mean_overlap_without_separated"))
    say(f"mean overlap {mean}; without separated coefficients {rest}")
    if not answer["between_variance_known"]:
        say("note: with one set the variance between sets is unknown; its intervals are too narrow")
    if not answer["converged"]:
        say("note: at least one fit did not converge")


def _share(value: float | None) -> str:
    return "not defined" if value is None else f"{value:.3f}"


def _interval(found: dict[str, float] | None) -> str:
    return "not estimable" if found is None else f"{found['estimate']:,.5g} [{found['low']:,.5g}, {found['high']:,.5g}]"
