"""Checks of the published numbers: counts that add up over the tree, and synthetic rows that are those counts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.domain.cells import Space
from steps_engine.methods.tree.sparse import are_cells, cells_below
from tasks.verify.tree import Branches

MOST_ROWS = 2**40  # so that sums of whole numbers cannot overflow
TOLERANCE = 1e-6


def held_and_sampled(table: pa.Table, plan: Plan) -> tuple[pa.Table, pa.Table]:
    """The nodes of the tree, and the cells below it where those are too many to list."""
    if not plan.sparse:
        return table, table.slice(0, 0)
    sampled = pc.equal(table["layer"], len(plan.layers))
    return table.filter(pc.invert(sampled)), table.filter(sampled)


def cells_with_rows(branches: Branches, held: pa.Table, cells: pa.Table, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Cells that may have rows in a set, increasing, and how many: leaves of the tree, and sampled cells below it."""
    whole, leaf = held[f"whole_{number}"].to_numpy()[1:], np.concatenate([nodes.leaf for nodes in branches.layers])
    leaves = np.flatnonzero(leaf[branches.end_row])
    where = np.concatenate([branches.ends[leaves], cells["node"].to_numpy()])
    rows = np.concatenate([whole[branches.end_row[leaves]], cells[f"whole_{number}"].to_numpy()])
    order = np.argsort(where, kind="stable")
    return where[order], rows[order]


def noisy_problems(branches: Branches, plan: Plan, table: pa.Table) -> Iterator[str]:
    """Exactly the tree's nodes; the root only where the number of rows is not protected."""
    if not _has_nodes(branches, table, with_root=plan.total != "estimated"):
        yield "does not hold exactly the tree's nodes"
    elif any(column.null_count for column in table.columns):
        yield "lacks the noisy count of a node"
    elif plan.total != "estimated" and len({table[f"noisy_{i}"][0].as_py() for i in range(1, plan.measurements + 1)}) > 1:
        yield "gives different exact totals for different measurements"


def consistent_problems(branches: Branches, plan: Plan, table: pa.Table) -> Iterator[str]:
    """Children sum to their parent: estimates up to rounding, whole numbers exactly."""
    if not _has_nodes(branches, table, with_root=True):
        yield "does not hold exactly the tree's nodes"
        return
    estimate, error = table["estimate"].to_numpy(), table["standard_error"].to_numpy()
    if not np.isfinite(estimate).all() or not (np.isfinite(error) & (error >= 0)).all():
        yield "has an estimate or a standard error that is no number"
    else:
        for depth, parents, sums in _families(branches, estimate):
            if (np.abs(parents - sums) > TOLERANCE * np.maximum(1.0, np.abs(parents))).any():
                yield f"estimates in layer {depth} do not sum to those above"
    for name in table.column_names[4:]:
        whole = table[name].to_numpy()
        if whole.min() < 0 or whole.max() > MOST_ROWS:
            yield f"{name} has a count that is negative or too large"
            continue
        for depth, parents, sums in _families(branches, whole):
            if (parents != sums).any():
                yield f"{name} in layer {depth} does not sum to the layer above"


def total_problems(plan: Plan, noisy: pa.Table, consistent: pa.Table) -> Iterator[str]:
    """A total that is known is kept by every set."""
    if plan.total != "estimated":
        known = noisy["noisy_1"][0].as_py()
        if any(consistent[f"whole_{i}"][0].as_py() != known for i in range(1, plan.sets + 1)):
            yield "a set has another total than the one that is known"


def record_problems(space: Space, records: pa.Table, held: np.ndarray, whole: np.ndarray) -> Iterator[str]:
    """Every row lies in one of the cells `held` (increasing), each of which has as many rows as its whole number says."""
    domain = space.domain
    codes = coded(records, domain)
    if (codes < 0).any():
        outside = [name for name, bad in zip(domain.names, (codes < 0).any(axis=0), strict=True) if bad]
        yield f"has values outside the domain: {', '.join(outside)}"
        return
    cells = space.cells(codes)
    place = np.minimum(np.searchsorted(held, cells), len(held) - 1)
    if (held[place] != cells).any():
        yield "has a row that breaks a rule, or lies in a cell that its whole counts do not have"
    elif not np.array_equal(np.bincount(place, minlength=len(held)), whole):
        yield "does not have as many rows in each cell as its whole counts say"


def _has_nodes(branches: Branches, table: pa.Table, with_root: bool) -> bool:
    widths = ([1] if with_root else []) + [len(nodes) for nodes in branches.layers]
    first = 0 if with_root else 1
    if table.num_rows != sum(widths) or table["layer"].null_count or table["node"].null_count:
        return False
    depth = np.repeat(np.arange(first, first + len(widths)), widths)
    node = np.concatenate([np.arange(width) for width in widths])
    return np.array_equal(table["layer"].to_numpy(), depth) and np.array_equal(table["node"].to_numpy(), node)


def noisy_cell_problems(branches: Branches, plan: Plan, table: pa.Table) -> Iterator[str]:
    """Where cells are too many to list: only those of the domain, in order, and no count below the threshold."""
    yield from _cell_problems(branches, table)
    for number in range(1, plan.measurements + 1):
        draw, noisy = plan.count_draw(len(plan.layers), number, "leaves"), table[f"noisy_{number}"].drop_null().to_numpy()
        if (noisy < draw.threshold).any():
            yield f"noisy_{number} has a count below the threshold {draw.threshold}"


def whole_cell_problems(branches: Branches, held: pa.Table, table: pa.Table) -> Iterator[str]:
    """Sampled cells have no estimates, and their whole numbers sum to those of the last layer that is held."""
    problems = list(_cell_problems(branches, table))
    yield from problems
    if problems:
        return
    if table["estimate"].null_count < len(table) or table["standard_error"].null_count < len(table):
        yield "gives estimates of cells that were kept for being large: they would be biased"
    _, parent = cells_below(branches.tree, branches.space.codes(table["node"].to_numpy()))
    opened = ~branches.layers[-1].leaf
    for name in table.column_names[4:]:
        whole, total = table[name].to_numpy(), held[name].to_numpy()[-len(opened) :]
        if whole.min(initial=0) < 0 or whole.max(initial=0) > MOST_ROWS:
            yield f"{name} has a count that is negative or too large"
        elif not np.array_equal(np.bincount(parent, weights=whole, minlength=len(opened)), np.where(opened, total, 0)):
            yield f"{name} does not sum to the layer above in the last layer"


def _cell_problems(branches: Branches, table: pa.Table) -> Iterator[str]:
    node = table["node"].to_numpy()
    if table["node"].null_count or (np.diff(node) <= 0).any() or not are_cells(branches.tree, node).all():
        yield "has numbers in its last layer that are no cells below the tree, or not in order"


def _families(branches: Branches, values: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Per layer: the values of the nodes that have children, and the sums of those children. `values` has the root first."""
    start, above = 1, values[:1]
    for depth, nodes in enumerate(branches.layers, start=1):
        here = values[start : start + len(nodes)]
        first = np.flatnonzero(np.diff(nodes.parent, prepend=-1))
        yield depth, above[nodes.parent[first]], np.add.reduceat(here, first)
        start, above = start + len(nodes), here


def coded(records: pa.Table, domain: Domain) -> np.ndarray:
    """Rows × attributes of category codes, -1 for a value that the domain does not have."""
    codes = np.empty((records.num_rows, len(domain.names)), dtype=np.int64)
    for j, attribute in enumerate(domain.attributes):
        codes[:, j] = _codes(records[attribute.name], attribute)
    return codes


def _codes(column: pa.ChunkedArray, attribute) -> np.ndarray:
    """Category codes of a published column, -1 for a value that the domain does not have."""
    missing = -1 if attribute.missing_code is None else attribute.missing_code
    if attribute.kind in ("categorical", "ordinal"):
        codes = pc.index_in(column.cast(pa.string()), pa.array(attribute.categories)).fill_null(-1).to_numpy()
    else:
        kind = {"integer": pa.int64(), "numeric": pa.float64(), "date": pa.int32()}[attribute.kind]
        values = column.cast(kind).fill_null(0).to_numpy()
        edges = attribute.edge_values
        top = values <= edges[-1] if attribute.kind == "numeric" else values < edges[-1]
        codes = np.minimum(np.searchsorted(edges, values, side="right") - 1, attribute.present - 1)
        codes = np.where((values >= edges[0]) & top, codes, -1)
    return np.where(column.is_null().to_numpy(), missing, codes)
