"""Noisy counts made consistent: exact least squares with error bars, then whole non-negative numbers for every set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from schemas.plan import Plan
from schemas.spec.weights import LARGEST_SET
from steps_engine import noise
from steps_engine.domain.counting import most_rows
from steps_engine.domain.nodes import Tree
from steps_engine.inference.least_squares import least_squares, least_squares_weights, variances
from steps_engine.inference.rounding import whole_numbers
from steps_engine.methods.tree.likely import likely_table
from steps_engine.methods.tree.plan import are_likely
from steps_engine.methods.tree.posterior import plausible_tables
from steps_engine.methods.tree.sanitize import NoisyCounts
from steps_engine.methods.tree.sparse import WholeCells, correct_cells, is_sampled
from steps_engine.methods.tree.tables import consistent_counts


@dataclass(frozen=True)
class ConsistentCounts:
    """Root first: least-squares estimates (mean over sets) with standard errors; whole numbers as sets × nodes.

    `cells` are those of the last layer that hold rows, where they are too many to list; they have no estimates.
    """

    estimates: tuple[np.ndarray, ...]
    errors: tuple[np.ndarray, ...]
    whole: tuple[np.ndarray, ...]
    cells: WholeCells | None = None

    def to_table(self) -> pa.Table:
        layers = zip(self.estimates, self.errors, self.whole, strict=True)
        parts = [_rows(d, np.arange(len(e)), e, error, whole) for d, (e, error, whole) in enumerate(layers)]
        if self.cells is not None:
            nothing = pa.nulls(len(self.cells.cells), pa.float64())
            parts.append(_rows(len(parts), self.cells.cells, nothing, nothing, self.cells.whole))
        return pa.concat_tables(parts).cast(consistent_counts(len(self.whole[0]), self.cells is not None))

    @classmethod
    def from_table(cls, table: pa.Table, sparse: bool = False) -> ConsistentCounts:
        depth, node = table["layer"].to_numpy(), table["node"].to_numpy()
        whole = np.stack([table[name].to_numpy() for name in table.column_names[4:]])
        last = table["estimate"].is_null().to_numpy() if sparse else None  # all of them, or none where no cell holds rows
        listed = depth if last is None else np.where(last, -1, depth)
        layers = [listed == d for d in range(int(listed.max()) + 1)]
        estimate, error = table["estimate"].to_numpy(), table["standard_error"].to_numpy()
        cells = None if last is None else WholeCells(node[last], whole[:, last])
        estimates, errors, numbers = (tuple(values[..., d] for d in layers) for values in (estimate, error, whole))
        return cls(estimates, errors, numbers, cells)


def _rows(depth: int, node: np.ndarray, estimate: np.ndarray, error: np.ndarray, whole: np.ndarray) -> pa.Table:
    columns = {"layer": np.full(len(node), depth, dtype=np.int16), "node": node, "estimate": estimate, "standard_error": error}
    return pa.table(columns | {f"whole_{i}": row for i, row in enumerate(whole, start=1)})


def correct(tree: Tree, noisy: NoisyCounts, plan: Plan, randomness: noise.Randomness, likely: bool = True) -> ConsistentCounts:
    """Estimates with error bars for inference, and for each set the whole numbers behind its rows.

    Measurements have independent noise of equal variance, so the mean of their estimates has variance T/measurements. T does
    not describe the whole numbers: keeping them non-negative makes them biased. Those of a flat table are `likely` ones.
    """
    most = most_rows(tree.domain) if plan.total == "estimated" else LARGEST_SET
    weights = least_squares_weights(tree, variances(tree, plan))
    sums = [np.zeros(width) for width in tree.widths()]
    whole = [np.empty((plan.sets, width), dtype=np.int64) for width in tree.widths()]
    for index in range(plan.measurements):
        total = np.array([noisy.total or 0], dtype=float)
        estimates = least_squares(tree, weights, [total, *(layer[index] for layer in noisy.layers)])
        for depth, estimate in enumerate(estimates):
            sums[depth] += estimate
        if likely and are_likely(len(plan.layers), plan.budget):
            _keep(whole, index, likely_table(tree, noisy.layers[0][index], plan, estimates[0], most, randomness))
        elif plan.budget == "split":
            _keep(whole, index, whole_numbers(tree, estimates, randomness, most))
    if plan.budget == "shared":
        for index, table in enumerate(plausible_tables(tree, noisy, plan, randomness)):
            _keep(whole, index, whole_numbers(tree, table, randomness, most))
    errors = tuple(np.sqrt(variance / plan.measurements) for variance in weights.variance)
    cells = correct_cells(tree, noisy.kept(), whole[-1], plan, randomness) if is_sampled(plan) else None
    return ConsistentCounts(tuple(total / plan.measurements for total in sums), errors, tuple(whole), cells)


def _keep(whole: list[np.ndarray], index: int, rows: list[np.ndarray]) -> None:
    for of_layer, row in zip(whole, rows, strict=True):
        of_layer[index] = row
