"""Checks of a tree's published tables: counts that add up over the tree, and structure that its elections paid for.

Imports nothing of the planning: what a plan may say is not asked of the planner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.domain.nodes import Tree
from steps_engine.inference.least_squares import least_squares, least_squares_weights, variances
from steps_engine.inference.noise_test import NoiseTest
from steps_engine.methods.checked import Checked, Ends, Findings
from steps_engine.methods.tree.branches import Branches, read_branches
from steps_engine.methods.tree.contrasts import tested
from steps_engine.methods.tree.sanitize import NoisyCounts
from steps_engine.methods.tree.sparse import are_cells, cells_below, is_sampled

MOST_ROWS = 2**40  # so that sums of whole numbers cannot overflow
TOLERANCE = 1e-6


def check(domain: Domain, plan: Plan, made: Mapping[str, pa.Table]) -> Checked:
    """Everything that does not hold in the tables, the layers in which branches end, and the cells with rows."""
    found = Findings()
    branches = found.attempt("tree", read_branches, domain, plan, made["tree"]) if "tree" in made else None
    if branches is None:
        return Checked(tuple(found.found))
    found.collect("plan", election_problems, branches, plan)
    found.collect("plan", unpaid_problems, branches, plan)
    noisy, noise = _check_noisy(branches, plan, made["noisy-counts"], found) if "noisy-counts" in made else (None, None)
    ends: Ends = {None: frozenset(branches.leaf_layers)}
    if "consistent-counts" not in made or not _check_consistent(branches, plan, noisy, made["consistent-counts"], found):
        return Checked(tuple(found.found), ends, noise=noise)
    held, cells = held_and_sampled(made["consistent-counts"], plan)
    return Checked(tuple(found.found), ends, lambda number: cells_with_rows(branches, held, cells, number), noise=noise)


def _check_noisy(
    branches: Branches, plan: Plan, table: pa.Table, found: Findings
) -> tuple[NoisyCounts | None, NoiseTest | None]:
    """The noisy counts of the nodes that are held, if they are sound, and what their contrasts say of the noise."""
    held, cells = held_and_sampled(table, plan)
    sound = found.collect("noisy-counts", noisy_problems, branches, plan, held)
    if is_sampled(plan):
        found.collect("noisy-counts", noisy_cell_problems, branches, plan, cells)
    if not sound:
        return None, None
    noisy = NoisyCounts.from_table(held)
    return noisy, found.tested("noisy-counts", tested, branches.tree, plan, noisy)


def _check_consistent(branches: Branches, plan: Plan, noisy: NoisyCounts | None, table: pa.Table, found: Findings) -> bool:
    held, cells = held_and_sampled(table, plan)
    sound = [found.collect("consistent-counts", consistent_problems, branches, plan, held)]
    if noisy is not None:
        sound.append(found.collect("consistent-counts", total_problems, plan, noisy, held))
        if all(sound):
            found.collect("consistent-counts", estimate_problems, branches.tree, plan, noisy, held)
    if is_sampled(plan):
        sound.append(found.collect("consistent-counts", whole_cell_problems, branches, held, cells))
    return all(sound)


def election_problems(branches: Branches, plan: Plan) -> Iterator[str]:
    """A layer whose attributes the plan does not give was elected: at every node above it, or once as a grouping."""
    elections = sorted(draw.layer for draw in plan.draws if draw.kind == "election")
    if plan.election is None:
        if elections or any(layer.attributes is None for layer in plan.layers):
            yield "layers are elected, or elections listed, in a plan that elects nothing"
        return
    grouped, rounds = plan.election.what == "groups", plan.election.layers
    if elections != list(range(1 if grouped else rounds)):
        yield "the elections are not those of the plan's layers: one above each, or one for a grouping"
    if len(plan.layers) > rounds + (not grouped):
        yield f"{rounds} layers were elected; the plan has {len(plan.layers)}"
    if grouped and any(len(np.unique(nodes.split)) > 1 for nodes in branches.layers):
        yield "a layer is split on different attributes, though one grouping was elected for all"
    if not grouped and not _rest_is_whole(branches, rounds):
        yield "the layer below the last election does not split every branch on all that is left"


def _rest_is_whole(branches: Branches, rounds: int) -> bool:
    """Below the last election nothing is chosen: a branch has then used every attribute, once each."""
    sizes, used = np.array([len(split) for split in branches.splits]), np.zeros(1, dtype=np.int64)
    for depth, nodes in enumerate(branches.layers, start=1):
        used = used[nodes.parent] + sizes[nodes.split]
        if depth > rounds and (used < len(branches.tree.domain.sizes)).any():
            return False
    return True


def unpaid_problems(branches: Branches, plan: Plan) -> Iterator[str]:
    """Every node that is published has a noisy count, so every layer has draws: for its leaves, and for its other nodes."""
    drawn = {(draw.layer, draw.set, draw.nodes) for draw in plan.draws if draw.kind == "count"}
    for depth, nodes in enumerate(branches.layers, start=1):
        kinds = {"leaves" if leaf else "inner" for leaf in np.unique(nodes.leaf)}
        if not {(depth, set_, kind) for set_ in plan.served for kind in kinds} <= drawn:
            yield f"layer {depth} has counts that no draw accounts for"


def held_and_sampled(table: pa.Table, plan: Plan) -> tuple[pa.Table, pa.Table]:
    """The nodes of the tree, and the cells below it where those are too many to list."""
    if not is_sampled(plan):
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


def estimate_problems(tree: Tree, plan: Plan, noisy: NoisyCounts, table: pa.Table) -> Iterator[str]:
    """Estimates are the least squares of the noisy counts, with the errors that the plan's scales give."""
    weights = least_squares_weights(tree, variances(tree, plan))
    total, numbers = np.array([float(noisy.total or 0)]), range(plan.measurements)
    fitted = [least_squares(tree, weights, [total, *(layer[i] for layer in noisy.layers)]) for i in numbers]
    estimate = np.concatenate([np.mean(layer, axis=0) for layer in zip(*fitted, strict=True)])
    error = np.sqrt(np.concatenate(weights.variance) / plan.measurements)
    if not np.allclose(table["estimate"].to_numpy(), estimate, rtol=TOLERANCE, atol=TOLERANCE * float(error.max(initial=1.0))):
        yield "column estimate is not the least squares of the noisy counts"
    if not np.allclose(table["standard_error"].to_numpy(), error, rtol=TOLERANCE, atol=TOLERANCE):
        yield "column standard_error does not follow from the plan's scales"


def total_problems(plan: Plan, noisy: NoisyCounts, consistent: pa.Table) -> Iterator[str]:
    """A total that is known is kept by every set."""
    if plan.total != "estimated":
        known = noisy.total
        if any(consistent[f"whole_{i}"][0].as_py() != known for i in range(1, plan.sets + 1)):
            yield "a set has another total than the one that is known"


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
