"""Sanitize: exact node counts plus the noise that the plan prescribes. The draw itself is in noise.py."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from schemas.plan import Plan
from steps_engine.accounting.mechanisms import noise_of
from steps_engine.domain.counting import Counts
from steps_engine.domain.nodes import Tree, kinds_of_nodes
from steps_engine.methods.tree.sparse import BELOW, KeptCells, is_sampled, sanitize_cells
from steps_engine.methods.tree.tables import noisy_counts
from steps_engine.noise import Randomness


@dataclass(frozen=True)
class NoisyCounts:
    """What was drawn: per layer, measurements × nodes. `total` is the exact number of rows, where that is published.

    `cells` are those of the last layer that reached the threshold, where they are too many to list.
    """

    layers: tuple[np.ndarray, ...]
    total: int | None
    cells: KeptCells | None = None

    def kept(self) -> KeptCells:
        """`cells`, by a plan that samples them."""
        if self.cells is None:
            raise ValueError("the noisy counts hold no sampled cells, and the plan has some; read them as sparse")
        return self.cells

    def to_table(self) -> pa.Table:
        measurements = len(self.layers[0])
        parts = [] if self.total is None else [_rows(0, np.full((measurements, 1), self.total))]
        parts += [_rows(depth, counts) for depth, counts in enumerate(self.layers, start=1)]
        if self.cells is not None:
            parts.append(_rows(len(self.layers) + 1, self.cells.noisy, self.cells.cells))
        return pa.concat_tables(parts).cast(noisy_counts(measurements, self.cells is not None))

    @classmethod
    def from_table(cls, table: pa.Table, sparse: bool = False) -> NoisyCounts:
        depth, node = table["layer"].to_numpy(), table["node"].to_numpy()
        values = np.stack([table[name].fill_null(BELOW).to_numpy() for name in table.column_names[2:]])
        exact, deepest = values[:, depth == 0], int(depth.max())
        layers = [values[:, depth == d] for d in range(1, deepest + 1)]
        kept = KeptCells(node[depth == deepest], layers.pop()) if sparse else None
        return cls(tuple(layers), int(exact[0, 0]) if exact.size else None, kept)


def _rows(depth: int, counts: np.ndarray, node: np.ndarray | None = None) -> pa.Table:
    width = counts.shape[1]
    columns = {"layer": np.full(width, depth, dtype=np.int16), "node": np.arange(width) if node is None else node}
    return pa.table(columns | {f"noisy_{i}": pa.array(row, mask=row == BELOW) for i, row in enumerate(counts, start=1)})


def sanitize(tree: Tree, counts: Counts, plan: Plan, randomness: Randomness) -> NoisyCounts:
    """Every node of every layer gets noise, empty ones too: a cell without noise would say that nobody is in it."""
    exact = tree.node_counts(counts)
    noisy = tuple(np.tile(values, (plan.measurements, 1)) for values in exact[1:])
    for depth, (layer, counts_of) in enumerate(zip(tree.layers, noisy, strict=True), start=1):
        for measurement, row in enumerate(counts_of, start=1):
            for nodes, chosen in kinds_of_nodes(layer).items():
                drawn = noise_of(plan.count_draw(depth, measurement, nodes)).draw(_size(row, chosen), randomness)
                row[chosen] += drawn
    cells = sanitize_cells(tree, counts, plan, randomness) if is_sampled(plan) else None
    return NoisyCounts(noisy, None if plan.total == "estimated" else int(exact[0][0]), cells)


def _size(row: np.ndarray, chosen: slice | np.ndarray) -> int:
    return len(row) if isinstance(chosen, slice) else len(chosen)
