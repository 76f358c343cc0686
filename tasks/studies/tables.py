"""The tables of a study from the figures of its points: ours and the paper's beside each other."""

from __future__ import annotations

from typing import Any

import pandas as pd

from steps_engine.evaluation.measures.association import CLASSES
from steps_engine.studies import paper
from steps_engine.studies.methods import SIMULATION, VOTER, StudyMethod, find_methods
from steps_engine.studies.ranking import log_epsilon, ranks, scores
from steps_engine.studies.simulation import TRUTHS, summarize

Tables = dict[str, pd.DataFrame]


def voter_tables(figures: pd.DataFrame) -> Tables:
    """utility (the paper's Table 3), scores (its last column), classes (its appendix), figures (means of everything)."""
    means = _means(figures)
    utility = _utility(means)
    printed_scores = paper.scores().rename(columns={"score": "paper_score"}).astype({"log_epsilon": float})
    found_scores = scores(utility.dropna(subset=["log_epsilon"]))
    return {
        "utility": utility,
        "scores": found_scores.merge(printed_scores, on=["log_epsilon", "method"], how="left"),
        "classes": _classes(means),
        "figures": means,
    }


def _means(figures: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation over repeats; log ε to 6 decimals, missing for yardsticks."""
    keys = ["method", "epsilon", "measure", "which"]
    summary = figures.groupby(keys, sort=False)["value"].agg(["mean", "std", "count"]).reset_index()
    summary = summary.rename(columns={"mean": "value", "std": "deviation", "count": "repeats"})
    logs = summary["epsilon"].map(log_epsilon)
    return _in_order(summary.assign(log_epsilon=logs))


def _in_order(table: pd.DataFrame) -> pd.DataFrame:
    """By ε, then by the registry's order of methods."""
    place = table["method"].map(_places(VOTER, table))
    return table.assign(place=place).sort_values(["log_epsilon", "place"], kind="stable").drop(columns="place")


def _places(listed: dict[str, StudyMethod], table: pd.DataFrame) -> dict[str, int]:
    return {method.name: place for place, method in enumerate(find_methods(listed, list(table["method"].unique())))}


def _utility(means: pd.DataFrame) -> pd.DataFrame:
    """One row per ε, method and measure of the paper's table: value, deviation, rank; the paper's value and rank."""
    named = means.assign(measure=(means["measure"] + " " + means["which"]).str.strip())
    ours = named[named["measure"].isin(paper.MEASURES)].drop(columns="which").reset_index(drop=True)
    ours = ours.assign(rank=ranks(ours))
    printed = paper.utility().rename(columns={"value": "paper", "rank": "paper_rank"}).astype({"log_epsilon": float})
    return ours.merge(printed, on=["log_epsilon", "method", "measure"], how="left")


def _classes(means: pd.DataFrame) -> pd.DataFrame:
    """Original × synthetic classes of p-values: mean number of pairs over repeats, and the paper's number."""
    ours = means[means["measure"] == "class"].rename(columns={"value": "count"})
    cell = ours["which"].str.split(",", expand=True).astype(int)
    ours = ours.assign(original=cell[0], synthetic=cell[1])
    printed = paper.classes().rename(columns={"count": "paper"}).astype({"log_epsilon": float})
    joined = ours.merge(printed, on=["log_epsilon", "method", "original", "synthetic"], how="left")
    label = dict(enumerate(CLASSES))
    joined = joined.assign(original=joined["original"].map(label), synthetic=joined["synthetic"].map(label))
    return joined[["method", "epsilon", "log_epsilon", "original", "synthetic", "count", "paper"]]


def simulation_tables(figures: pd.DataFrame) -> Tables:
    """coefficients (bias, RMSE, coverage of each), prediction (RMSE), overview (their means)."""
    keys = ["model", "rows", "method", "epsilon"]
    wide = figures[figures["measure"].isin(("estimate", "low", "high"))].pivot_table(
        index=[*keys, "repeat", "which"], columns="measure", values="value", sort=False, dropna=False
    )
    parts = []
    for group, part in wide.dropna(how="all").reset_index().groupby(keys, sort=False):
        scenario: dict[str, Any] = dict(zip(keys, group, strict=True))
        parts.append(summarize(part, TRUTHS[scenario["model"]]).assign(**scenario))
    coefficients = pd.concat(parts, ignore_index=True)
    squared = figures[figures["measure"] == "prediction"].groupby(keys, sort=False)["value"].mean()
    prediction = (squared**0.5).rename("rmse").reset_index()
    return {
        "coefficients": coefficients[[*keys, "coefficient", "truth", "bias", "rmse", "coverage", "repeats"]],
        "prediction": prediction,
        "overview": _overview(coefficients, prediction, keys),
    }


def _overview(coefficients: pd.DataFrame, prediction: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Per scenario: mean |bias|, root of the mean squared error over coefficients, mean coverage, prediction RMSE."""
    errors = coefficients.assign(absolute=coefficients["bias"].abs(), squared=coefficients["rmse"] ** 2)
    chosen = {"bias": ("absolute", "mean"), "rmse": ("squared", "mean"), "coverage": ("coverage", "mean")}
    means = errors.groupby(keys, sort=False).agg(**chosen).reset_index()
    joined = means.assign(rmse=means["rmse"] ** 0.5).merge(prediction.rename(columns={"rmse": "prediction"}), on=keys)
    order = joined.assign(place=joined["method"].map(_places(SIMULATION, joined)), value=pd.to_numeric(joined["epsilon"]))
    return order.sort_values(["model", "rows", "value", "place"]).drop(columns=["place", "value"]).reset_index(drop=True)
