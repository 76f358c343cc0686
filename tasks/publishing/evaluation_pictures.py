"""Pictures of an evaluation as SVG text, ready to stand inside a page; equal figures give equal text."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from steps_engine.evaluation.section import Distributions, Grid, Intervals, Picture, Scatter

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ORIGINAL, SYNTHETIC, QUIET = "#1b4965", "#d1603d", "#8d99ae"
_STYLE: Any = {  # of matplotlib, by its own names
    "svg.hashsalt": "steps",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def draw_picture(picture: Picture) -> str:
    """The SVG text of any kind of picture that a measure can ask for."""
    match picture:
        case Distributions():
            return _distributions(picture)
        case Scatter():
            return _scatter(picture)
        case Grid():
            return _grid(picture)
        case Intervals():
            return _intervals(picture)


def _distributions(picture: Distributions) -> str:
    def draw(axes: Axes) -> None:
        for name, colour in (("original", ORIGINAL), ("synthetic", SYNTHETIC)):
            shares = picture.shares[name]
            edges = np.linspace(0, 1, len(shares) + 1)
            axes.stairs(shares, edges, fill=True, alpha=0.45, color=colour, label=name)
        axes.set(xlabel=picture.x, ylabel=picture.y, xlim=(0, 1))
        axes.legend(frameon=False)

    return _svg(draw, 6.2, 3.0)


def _scatter(picture: Scatter) -> str:
    def draw(axes: Axes) -> None:
        least = picture.least_power
        axes.plot([0, 1], [0, 1], color=QUIET, linewidth=0.8, zorder=0)
        looks = zip(picture.points.items(), ((ORIGINAL, 18), (SYNTHETIC, 7), (QUIET, 7)), strict=False)
        for (name, points), (colour, size) in reversed(list(looks)):  # the most important last, on top
            pairs = np.array(points).reshape(-1, 2)
            axes.scatter(pairs[:, 0], pairs[:, 1], s=size, color=colour, alpha=0.5, linewidths=0, label=name)
        axes.set_xscale("symlog", linthresh=10.0**least, linscale=0.4)
        axes.set_yscale("symlog", linthresh=10.0**least, linscale=0.4)
        ticks = [0.0, *(10.0**power for power in range(least, 1))]
        axes.set_xticks(ticks)
        axes.set_yticks(ticks)
        axes.set(xlabel=picture.x, ylabel=picture.y, xlim=(0, 1.2), ylim=(0, 1.2))
        axes.legend(frameon=False, loc="upper left")

    return _svg(draw, 4.4, 4.2)


def _grid(picture: Grid) -> str:
    def draw(axes: Axes) -> None:
        table, size = np.array(picture.counts), len(picture.classes)
        axes.pcolormesh(table / max(table.max(), 1), cmap="Blues", vmin=0, vmax=1.4)
        for (row, column), count in np.ndenumerate(table):
            weight = "bold" if row == column else "normal"
            axes.text(column + 0.5, row + 0.5, str(count), ha="center", va="center", weight=weight)
        axes.set_xticks(np.arange(size) + 0.5, picture.classes)
        axes.set_yticks(np.arange(size) + 0.5, picture.classes)
        axes.set(xlabel=picture.x, ylabel=picture.y, ylim=(size, 0), aspect="equal")

    return _svg(draw, 4.4, 4.2)


def _intervals(picture: Intervals) -> str:
    def draw(axes: Axes) -> None:
        for place, (_, original, synthetic, _) in enumerate(picture.rows):
            for shift, colour, found in ((-0.15, ORIGINAL, original), (0.15, SYNTHETIC, synthetic)):
                if found:
                    axes.plot([found.low, found.high], [place + shift] * 2, color=colour, linewidth=1.6)
                    axes.plot(found.estimate, place + shift, "o", color=colour, markersize=3)
        axes.axvline(0, color=QUIET, linewidth=0.8, zorder=0)
        axes.set_yticks(range(len(picture.rows)), [_plain(name) for name, *_ in picture.rows])
        axes.set(xlabel=picture.x, xlim=_reach(picture), ylim=(len(picture.rows), -1))
        axes.plot([], [], color=ORIGINAL, label="original")
        axes.plot([], [], color=SYNTHETIC, label="synthetic")
        axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.02), ncols=2)

    return _svg(draw, 7.6, 1.2 + 0.22 * len(picture.rows))


def _reach(picture: Intervals) -> tuple[float, float]:
    """Wide enough for the intervals that count, and no wider than the picture may be."""
    counted = [ends for _, *ends, counts in picture.rows if counts]
    bounded = [edge for ends in counted for found in ends if found for edge in (found.low, found.high)]
    low, high = min(bounded, default=-1.0), max(bounded, default=1.0)
    edge, far = 0.05 * (high - low) or 1.0, picture.farthest or math.inf
    return max(low - edge, -far), min(high + edge, far)


def _plain(name: str) -> str:
    """The name without formula brackets, safe from the picture's own markup."""
    return name.replace("[T.", "=").replace("[", "=").replace("]", "").replace("$", r"\$")


def _svg(draw: Callable[[Axes], None], width: float, height: float) -> str:
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure.subplots())
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()[text.getvalue().index("<svg") :]
