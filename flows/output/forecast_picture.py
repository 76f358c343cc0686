"""The balances over time, as the schedule will spend them: one panel for each population."""

from __future__ import annotations

import datetime
import io
from decimal import Decimal
from itertools import accumulate
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from schemas.errors import SpecError
from steps_engine.accounting.measures import MEASURES

_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "steps",
    "svg.fonttype": "none",
    "font.size": 9,
    "date.converter": "concise",
    "text.parse_math": False,
}
_PAID, _LACKING = "#1b4965", "#d1603d"


def draw(answer: dict[str, Any], path: Path) -> str:
    """Writes the picture; what is scheduled and not covered is below zero."""
    if path.suffix != ".svg":
        raise SpecError(f"--picture {path}: pictures are SVG; give a name that ends in .svg")
    shown = [each for each in answer["populations"] if each["runs"]]
    if not shown:
        raise SpecError("there is nothing to draw: no release that is still to be paid is scheduled.")
    written = io.BytesIO()
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(8, 2.6 * len(shown)), layout="constrained")
        for axes, population in zip(figure.subplots(len(shown), squeeze=False)[:, 0], shown, strict=True):
            _panel(axes, population, answer["at"])
        figure.savefig(written, format="svg", metadata={"Date": None})
    try:
        path.write_bytes(written.getvalue())
    except OSError as error:
        raise SpecError(f"--picture {path}: cannot be written ({error.strerror}).") from None
    return str(path)


def _panel(axes: Axes, population: dict[str, Any], now: str) -> None:
    runs = population["runs"]
    costs = (Decimal(run["cost"] or 0) for run in runs)
    left = list(accumulate(costs, lambda balance, cost: balance - cost, initial=Decimal(population["balance"] or 0)))
    times: list[Any] = [datetime.datetime.fromisoformat(at) for at in (now, *(run["due"] for run in runs))]
    heights = [float(each) for each in left]
    axes.step(times, heights, where="post", color=_PAID)
    axes.scatter(times, heights, c=[_PAID if each >= 0 else _LACKING for each in left], s=16)
    axes.axhline(0, color="#333333", linewidth=0.8)
    dry = population["dry_on"]
    axes.set_title(
        f"{population['population']}: " + (f"runs dry on {dry[:10]}" if dry else "covers what is scheduled"), loc="left"
    )
    axes.set_ylabel(f"{MEASURES[population['measure']].symbol} left")
    axes.spines[["top", "right"]].set_visible(False)
