"""The pictures of a study: ours above, the paper's below where it printed numbers."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from steps_engine.studies import paper
from steps_engine.studies.methods import SIMULATION, VOTER, StudyMethod, find_methods, known
from tasks.studies.tables import Tables

_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "steps", "svg.fonttype": "none", "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"], "font.size": 8,
    "axes.spines.top": False, "axes.spines.right": False, "lines.linewidth": 1.3, "lines.markersize": 3.5,
}  # fmt: skip
_COLOURS = ("#1b4965", "#d1603d", "#8d99ae", "#5f8f4e", "#a23b72", "#e0a030", "#4c9fb0", "#7a6148", "#333333", "#b0b0b0")
_MARKERS = "osD^vPX<>*"
_DRAWN = re.compile(rb' (?:d|x|y|transform)="[^"]*"')
_QUANTILES = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
_SIZES = {4_000: ("#d1603d", -0.18), 10_000: ("#1b4965", 0.18)}
CAPTIONS = {
    "ks": "SPECKS against log ε. Dashed: methods that the paper does not have.",
    "chi-square": "How often original and synthetic sets lead to the same conclusion in 105 χ² tests.",
    "overlap": "Overlap of 95% intervals of the difference-in-differences model, original against synthetic.",
    "model-1": "Model 1, main effects: one line per coefficient.",
    "model-2": "Model 2, saturated, over its 120 coefficients: thin from the 5% to the 95% quantile, thick 25% to 75%, a dot "
    "at the median.",
}
Pictures = dict[str, Figure]


def voter_pictures(tables: Tables) -> Pictures:
    """KS distance, χ² agreement and interval overlap against log ε."""
    ours = tables["utility"]
    return {
        "ks": _against_epsilon(ours, {"ks": "SPECKS: KS distance"}),
        "chi-square": _against_epsilon(ours, {f"agreement {a}": f"χ² agreement, α = {a}" for a in ("0.01", "0.05", "0.1")}),
        "overlap": _against_epsilon(
            ours,
            {
                "overlap all": "overlap: all coefficients",
                "overlap prereg_state": "overlap: prereg. state",
                "overlap registered": "overlap: registered",
                "overlap prereg_state:registered": "overlap: prereg. × registered",
            },
        ),
    }


def _against_epsilon(ours: pd.DataFrame, measures: dict[str, str]) -> Figure:
    printed = paper.utility()
    methods = find_methods(VOTER, list(ours["method"].unique()))
    figure = Figure(figsize=(max(6.4, 2.6 * len(measures) + 1.6), 5.2), layout="constrained")
    axes = figure.subplots(2, len(measures), squeeze=False, sharex=True, sharey="col")
    for column, (measure, title) in enumerate(measures.items()):
        for row, table in enumerate((ours, printed)):
            _lines(axes[row, column], table[table["measure"] == measure], methods)
        axes[0, column].set_title(title, fontsize=8)
        axes[1, column].set_xlabel("log ε")
    axes[0, 0].set_ylabel("ours (stand-in)")
    axes[1, 0].set_ylabel("the paper's (CPS)")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right upper", frameon=False)
    return figure


def _lines(axes: Axes, table: pd.DataFrame, methods: Sequence[StudyMethod]) -> None:
    places = {name: place for place, name in enumerate(known(VOTER))}
    for method in methods:
        part, place = table[table["method"] == method.name].sort_values("log_epsilon"), places[method.base]
        if part.empty:
            continue
        look: dict[str, Any] = {"color": _COLOURS[place % 10], "label": method.title}
        if part["log_epsilon"].notna().all():
            style = "-." if method.delta else "-" if method.name in paper.METHODS else "--"
            axes.plot(part["log_epsilon"], part["value"], style, marker=_MARKERS[place % 10], **look)
        else:
            axes.axhline(part["value"].iloc[0], linestyle=":", **look)


def simulation_pictures(tables: Tables) -> Pictures:
    """The paper's two figures: a line per coefficient for Model 1, boxes over the 120 for Model 2; columns are methods."""
    models = tables["coefficients"]["model"].unique()
    return {f"model-{model}": _model(tables, model, {1: _coefficient_lines, 2: _boxes}[model]) for model in models}


def _model(tables: Tables, model: int, draw: Callable[[Axes, pd.DataFrame, str, list[str]], None]) -> Figure:
    coefficients, prediction = (tables[name][tables[name]["model"] == model] for name in ("coefficients", "prediction"))
    methods = find_methods(SIMULATION, list(prediction["method"].unique()))
    epsilons = sorted(set(prediction["epsilon"]) - {""}, key=float) or [""]
    figure = Figure(figsize=(1.9 * len(methods) + 1, 7.2), layout="constrained")
    axes = figure.subplots(4, len(methods), squeeze=False, sharex=True, sharey="row")
    for column, method in enumerate(methods):
        part = _at_every_epsilon(coefficients[coefficients["method"] == method.name], epsilons)
        for row, measure in enumerate(("bias", "rmse", "coverage")):
            draw(axes[row, column], part, measure, epsilons)
        _predictions(axes[3, column], _at_every_epsilon(prediction[prediction["method"] == method.name], epsilons), epsilons)
        axes[0, column].set_title(method.title.replace(", zCDP", ",\nzCDP"), fontsize=7)
        axes[0, column].axhline(0, color="#8d99ae", linewidth=0.6)
        axes[2, column].axhline(0.95, color="#8d99ae", linewidth=0.6)
        axes[2, column].set_ylim(0, 1.03)
        axes[3, column].set_xticks(range(len(epsilons)), epsilons)
        axes[3, column].set_xlabel("ε")
    for row, label in enumerate(("bias", "RMSE", "coverage of 95% intervals", "prediction RMSE")):
        axes[row, 0].set_ylabel(label)
    for rows, (colour, _) in _SIZES.items():
        axes[3, 0].plot([], [], color=colour, label=f"n = {rows:,}")
    figure.legend(*axes[3, 0].get_legend_handles_labels(), loc="outside upper right", ncols=2, frameon=False)
    return figure


def _at_every_epsilon(table: pd.DataFrame, epsilons: list[str]) -> pd.DataFrame:
    """A yardstick, which spends nothing, stands at every ε."""
    if set(table["epsilon"]) == {""}:
        return pd.concat([table.assign(epsilon=epsilon) for epsilon in epsilons])
    return table


def _coefficient_lines(axes: Axes, table: pd.DataFrame, measure: str, epsilons: list[str]) -> None:
    for rows, (colour, _) in _SIZES.items():
        part = table[table["rows"] == rows]
        values = part.pivot(index="coefficient", columns="epsilon", values=measure).reindex(columns=epsilons).to_numpy()
        _pieces(axes, np.tile(np.arange(len(epsilons)), (len(values), 1)), values, color=colour, alpha=0.6, linewidth=0.8)


def _boxes(axes: Axes, table: pd.DataFrame, measure: str, epsilons: list[str]) -> None:
    """Thin from the 5% to the 95% quantile over coefficients, thick from 25% to 75%, a dot at the median."""
    for rows, (colour, shift) in _SIZES.items():
        part = table[table["rows"] == rows].dropna(subset=[measure])
        groups = part.groupby("epsilon")[measure].quantile(_QUANTILES).unstack().reindex(epsilons)
        place, quantile = np.arange(len(epsilons)) + shift, groups.to_numpy()
        for ends, width in (([0, 4], 0.9), ([1, 3], 4.0)):
            _pieces(axes, np.stack([place, place], axis=1), quantile[:, ends], color=colour, linewidth=width)
        axes.plot(place, quantile[:, 2], "o", color="white", markersize=2, zorder=3)


def _pieces(axes: Axes, x: np.ndarray, y: np.ndarray, **look: Any) -> None:
    """Each row is a line of its own, all in one path: a picture of thousands of lines stays small."""
    gap = np.full((len(y), 1), np.nan)
    axes.plot(np.hstack([x, gap]).ravel(), np.hstack([y, gap]).ravel(), solid_capstyle="butt", **look)


def _predictions(axes: Axes, table: pd.DataFrame, epsilons: list[str]) -> None:
    for rows, (colour, _) in _SIZES.items():
        values = table[table["rows"] == rows].set_index("epsilon")["rmse"].reindex(epsilons)
        axes.plot(range(len(epsilons)), values, color=colour, marker="o")


def as_bytes(figure: Figure, kind: str) -> bytes:
    """The picture as svg or png; equal figures give equal bytes."""
    content = io.BytesIO()
    with matplotlib.rc_context(_STYLE):
        figure.savefig(content, format=kind, dpi=150, metadata={"Date": None, "Creator": None} if kind == "svg" else None)
    if kind != "svg":
        return content.getvalue()
    return re.sub(rb"\n +", b"\n", _DRAWN.sub(_shorter, content.getvalue()))


def _shorter(drawn: re.Match[bytes]) -> bytes:
    """Coordinates to a hundredth of a point: nobody sees more, and the file is a third smaller."""
    return re.sub(rb"(\.\d\d)\d+", rb"\1", drawn[0])


def styled(make: Callable[[Tables], Pictures], tables: Tables) -> Pictures:
    with matplotlib.rc_context(_STYLE):
        return make(tables)
