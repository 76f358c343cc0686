"""Pictures of an evaluation as SVG text, ready to stand inside a page; equal figures give equal text."""

from __future__ import annotations

import io
from collections.abc import Callable

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from steps_engine.evaluation.association import CLASSES, Association
from steps_engine.evaluation.comparison import Comparison
from steps_engine.evaluation.specks import BINS, Specks

ORIGINAL, SYNTHETIC, QUIET = "#1b4965", "#d1603d", "#8d99ae"
_STYLE = {
    "svg.hashsalt": "steps",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_FAR = 10.0  # log odds beyond which the picture ends


def score_distributions(specks: Specks) -> str:
    def draw(axes) -> None:
        edges = np.linspace(0, 1, BINS + 1)
        for name, colour in (("original", ORIGINAL), ("synthetic", SYNTHETIC)):
            axes.stairs(specks.histogram[name], edges, fill=True, alpha=0.45, color=colour, label=name)
        axes.set(xlabel="score: estimated probability of being synthetic", ylabel="share of the records", xlim=(0, 1))
        axes.legend(frameon=False)

    return _svg(draw, 6.2, 3.0)


def margin_scatter(points: dict[str, tuple[tuple[float, float], ...]]) -> str:
    def draw(axes) -> None:
        shares = np.array([pair for pairs in points.values() for pair in pairs])
        least = np.floor(np.log10(shares[shares > 0].min()))  # linear below this power of ten: empty cells stay visible
        axes.plot([0, 1], [0, 1], color=QUIET, linewidth=0.8, zorder=0)
        for ways, colour, size in (("2", SYNTHETIC, 7), ("1", ORIGINAL, 18)):
            pairs = np.array(points[ways]).reshape(-1, 2)
            axes.scatter(*pairs.T, s=size, color=colour, alpha=0.5, linewidths=0, label=f"{ways}-way cells")
        axes.set_xscale("symlog", linthresh=10**least, linscale=0.4)
        axes.set_yscale("symlog", linthresh=10**least, linscale=0.4)
        ticks = [0, *10 ** np.arange(least, 1)]
        axes.set_xticks(ticks)
        axes.set_yticks(ticks)
        axes.set(xlabel="share in the original", ylabel="share in the first synthetic set", xlim=(0, 1.2), ylim=(0, 1.2))
        axes.legend(frameon=False, loc="upper left")

    return _svg(draw, 4.4, 4.2)


def p_value_classes(association: Association) -> str:
    def draw(axes) -> None:
        table = np.array(association.classes)
        axes.pcolormesh(table / max(table.max(), 1), cmap="Blues", vmin=0, vmax=1.4)
        for (row, column), count in np.ndenumerate(table):
            axes.text(column + 0.5, row + 0.5, count, ha="center", va="center", weight="bold" if row == column else "normal")
        axes.set_xticks(np.arange(4) + 0.5, CLASSES)
        axes.set_yticks(np.arange(4) + 0.5, CLASSES)
        axes.set(xlabel="p-value, synthetic", ylabel="p-value, original", ylim=(4, 0), aspect="equal")

    return _svg(draw, 4.4, 4.2)


def interval_forest(comparison: Comparison) -> str:
    def draw(axes) -> None:
        shown = [c for c in comparison.coefficients if c.original or c.synthetic]
        bounded = [e for c in shown if not c.separated for i in (c.original, c.synthetic) if i for e in (i.low, i.high)]
        low, high = (min(bounded, default=-1.0), max(bounded, default=1.0))
        edge = 0.05 * (high - low) or 1.0
        low, high = low - edge, high + edge
        if comparison.kind == "logistic":
            low, high = np.clip((low, high), -_FAR, _FAR)
        for place, coefficient in enumerate(shown):
            for shift, colour, found in ((-0.15, ORIGINAL, coefficient.original), (0.15, SYNTHETIC, coefficient.synthetic)):
                if found:
                    axes.plot([found.low, found.high], [place + shift] * 2, color=colour, linewidth=1.6)
                    axes.plot(found.estimate, place + shift, "o", color=colour, markersize=3)
        axes.axvline(0, color=QUIET, linewidth=0.8, zorder=0)
        names = [_plain(c.name) + (" (separated)" if c.separated else "") for c in shown]
        axes.set_yticks(range(len(shown)), names)
        axes.set(xlabel="coefficient, 95% interval (clipped to the picture)", xlim=(low, high), ylim=(len(shown), -1))
        axes.plot([], [], color=ORIGINAL, label="original")
        axes.plot([], [], color=SYNTHETIC, label="synthetic")
        axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.02), ncols=2)

    return _svg(draw, 7.6, 1.2 + 0.22 * len(comparison.coefficients))


def _plain(name: str) -> str:
    """The name without formula brackets, safe from the picture's own markup."""
    return name.replace("[T.", "=").replace("[", "=").replace("]", "").replace("$", r"\$")


def _svg(draw: Callable, width: float, height: float) -> str:
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure.subplots())
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()[text.getvalue().index("<svg") :]
