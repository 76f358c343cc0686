"""Noisy counts made consistent: exact least squares with error bars, then whole non-negative numbers for every set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from schemas import tables
from schemas.plan import Plan
from steps_engine import noise
from steps_engine.least_squares import least_squares, least_squares_weights, variances
from steps_engine.nodes import Tree
from steps_engine.posterior import plausible_tables
from steps_engine.sanitize import NoisyCounts
from steps_engine.whole import whole_numbers


@dataclass(frozen=True)
class ConsistentCounts:
    """Root first: least-squares estimates (mean over sets) with standard errors; whole numbers as sets × nodes."""

    estimates: tuple[np.ndarray, ...]
    errors: tuple[np.ndarray, ...]
    whole: tuple[np.ndarray, ...]

    def to_table(self) -> pa.Table:
        parts = []
        for depth, (estimate, error, whole) in enumerate(zip(self.estimates, self.errors, self.whole, strict=True)):
            columns = {"layer": np.full(len(estimate), depth, dtype=np.int16), "node": np.arange(len(estimate))}
            columns |= {"estimate": estimate, "standard_error": error}
            parts.append(pa.table(columns | {f"whole_{i}": row for i, row in enumerate(whole, start=1)}))
        return pa.concat_tables(parts).cast(tables.consistent_counts(len(self.whole[0])))

    @classmethod
    def from_table(cls, table: pa.Table) -> ConsistentCounts:
        depth = table["layer"].to_numpy()
        whole = np.stack([table[name].to_numpy() for name in table.column_names[4:]])
        layers = [depth == d for d in range(int(depth.max()) + 1)]
        estimate, error = table["estimate"].to_numpy(), table["standard_error"].to_numpy()
        return cls(tuple(estimate[d] for d in layers), tuple(error[d] for d in layers), tuple(whole[:, d] for d in layers))


def correct(tree: Tree, noisy: NoisyCounts, plan: Plan, source: noise.Source) -> ConsistentCounts:
    """Estimates with error bars for inference, and for each set the whole numbers behind its rows.

    Measurements have independent noise of equal variance, so the mean of their estimates has variance T/measurements. T does
    not describe the whole numbers: keeping them non-negative makes them biased.
    """
    weights = least_squares_weights(tree, variances(tree, plan))
    sums = [np.zeros(width) for width in tree.widths()]
    whole = [np.empty((plan.sets, width), dtype=np.int64) for width in tree.widths()]
    for index in range(plan.measurements):
        total = np.array([noisy.total or 0], dtype=float)
        estimates = least_squares(tree, weights, [total, *(layer[index] for layer in noisy.layers)])
        for depth, estimate in enumerate(estimates):
            sums[depth] += estimate
        if plan.budget == "split":
            _keep(whole, index, whole_numbers(tree, estimates, source))
    if plan.budget == "shared":
        for index, table in enumerate(plausible_tables(tree, noisy, plan, source)):
            _keep(whole, index, whole_numbers(tree, table, source))
    errors = tuple(np.sqrt(variance / plan.measurements) for variance in weights.variance)
    return ConsistentCounts(tuple(total / plan.measurements for total in sums), errors, tuple(whole))


def _keep(whole: list[np.ndarray], index: int, rows: list[np.ndarray]) -> None:
    for of_layer, row in zip(whole, rows, strict=True):
        of_layer[index] = row
