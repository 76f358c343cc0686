"""Checks of a cascade's published tables: trees that its elections paid for, histograms and estimates that belong together.

Imports nothing of the planning: what a plan may say is not asked of the planner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np
import pyarrow as pa

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.accounting.mechanisms import noise_of
from steps_engine.methods.cascade.attribute_tree import AttributeTree
from steps_engine.methods.cascade.contrasts import tested
from steps_engine.methods.cascade.tables import Trees, cells_of, read_noisy, read_trees
from steps_engine.methods.checked import Checked, Ends, Findings

LEAST_VARIANCE = 1e-9  # of a count whose noise is practically 0
Drawn = tuple[tuple[np.ndarray, ...], int | None]  # noisy histograms, and the exact number of rows where that is known
Variances = list[np.ndarray]  # of every tree, of the noise in each cell that is sanitized
Structure = Callable[[Domain, Plan, Trees], Iterator[str]]  # what must have been paid for these trees to be known


def check(domain: Domain, plan: Plan, made: Mapping[str, pa.Table]) -> Checked:
    """Everything that does not hold in the tables, and for every attribute's tree how many elections its branches held."""
    return check_forest(domain, plan, made, structure_problems)


def check_forest(domain: Domain, plan: Plan, made: Mapping[str, pa.Table], structure: Structure) -> Checked:
    """One tree per attribute, whichever way they were elected."""
    found = Findings()
    trees = found.attempt("tree", read_trees, domain, made["tree"]) if "tree" in made else None
    if trees is None:
        return Checked(tuple(found.found))
    found.collect("plan", structure, domain, plan, trees)
    variances = found.attempt("plan", lambda: [_variances(domain, plan, tree) for tree in trees])
    drawn = _check_counts(domain, plan, trees, variances, made, found) if "noisy-counts" in made else None
    if drawn is None or variances is None:
        return Checked(tuple(found.found), _ends(domain, trees))
    noise = found.tested("noisy-counts", tested, plan, trees, *drawn)
    rows = partial(_rows, plan, variances, *drawn)
    return Checked(tuple(found.found), _ends(domain, trees), rows=rows, noise=noise)


def _ends(domain: Domain, trees: Trees) -> Ends:
    return {domain.names[tree.attribute]: frozenset(np.unique(tree.elections).tolist()) for tree in trees}


def _rows(
    plan: Plan, variances: Variances, noisy: tuple[np.ndarray, ...], total: int | None, number: int
) -> tuple[float, float]:
    """The mean of what the trees' histograms sum to, by precision; the exact number where that is known."""
    if total is not None:
        return total, 0.0
    precision = np.array([1 / each.sum() for each in variances])
    sums = np.array([counts[number - 1 if plan.budget == "split" else 0].sum() for counts in noisy])
    return float(sums @ precision / precision.sum()), float(1 / np.sqrt(precision.sum()))


def _check_counts(
    domain: Domain, plan: Plan, trees: Trees, variances: Variances | None, made: Mapping[str, pa.Table], found: Findings
) -> Drawn | None:
    """Histograms of the trees, and the estimates that follow."""
    drawn = found.attempt("noisy-counts", read_noisy, domain, trees, made["noisy-counts"])
    if drawn is None:
        return None
    if (drawn.total is None) != (plan.total == "estimated"):
        found.add("noisy-counts", "holds an exact number of rows that the plan does not publish, or lacks it")
    if "consistent-counts" in made and variances is not None:
        found.collect("consistent-counts", estimate_problems, plan, trees, variances, drawn.noisy, made["consistent-counts"])
    return drawn.noisy, drawn.total


def structure_problems(domain: Domain, plan: Plan, trees: Trees) -> Iterator[str]:
    """The order is the plan's or was elected place by place; every split was elected; n̂ for growing is public or drawn."""
    yield from utility_problems(plan)
    placed = [draw for draw in plan.draws if draw.kind == "election" and draw.tree is None]
    order, planned = [domain.names[tree.attribute] for tree in trees], [layer.attributes for layer in plan.layers]
    if not placed and [(name,) for name in order] != planned:
        yield "the trees do not stand in the plan's order, and no election accounts for another"
    if placed and len(placed) != len(trees) - 1:
        yield f"{len(placed)} elections put {len(trees)} attributes in order; it takes one for every place but the last"
    for tree in trees:
        yield from _way_problems(plan, domain.names[tree.attribute], int(tree.elections.max()))
    counted = any(draw.kind == "count" and draw.tree is None for draw in plan.draws)
    if domain.expected_units is None and plan.total == "estimated" and not counted:
        yield "the number of rows had to be drawn to grow the trees, and no draw accounts for it"


def _way_problems(plan: Plan, name: str, held: int) -> Iterator[str]:
    """A guarantee is over all records: what other ones would have made of the tree is paid for as well as what these did."""
    elections = {draw.layer for draw in plan.draws if (draw.kind, draw.tree) == ("election", name)}
    below = max((draw.layer for draw in plan.draws if (draw.kind, draw.tree) == ("count", name)), default=0)
    if not set(range(held)) <= elections:
        yield f"the ways through the tree of {name} lack a draw: {held} elections were held"
    elif not set(range(below)) <= elections:
        yield f"the ways through the tree of {name} lack a draw: its histograms lie below up to {below} elections"


def utility_problems(plan: Plan) -> Iterator[str]:
    """Trees over predecessors are elected by dependence, whatever a plan calls it."""
    elects = any(draw.kind == "election" for draw in plan.draws)
    if elects and (plan.election is None or (plan.election.utility, plan.election.what) != ("dependence", "groups")):
        yield "trees over other attributes are elected by their dependence on groups of these; the plan says otherwise"


def estimate_problems(
    plan: Plan, trees: Trees, variances: Variances, noisy: tuple[np.ndarray, ...], table: pa.Table
) -> Iterator[str]:
    """The published estimates are the means of the noisy counts, with the errors that the plan's scales give."""
    for name, expected in zip(("tree", "leaf", "category"), cells_of(trees), strict=True):
        if not np.array_equal(table[name].to_numpy(), expected):
            yield "does not have exactly the cells of the noisy counts"
            return
    means = [counts.mean(axis=0)[tree.allowed] for tree, counts in zip(trees, noisy, strict=True)]
    errors = [np.sqrt(each / plan.measurements) for each in variances]
    for name, parts in (("estimate", means), ("standard_error", errors)):
        if not np.allclose(table[name].to_numpy(), np.concatenate(parts), rtol=1e-9, atol=1e-9):
            yield f"column {name} does not follow from the noisy counts and the plan"


def _variances(domain: Domain, plan: Plan, tree: AttributeTree) -> np.ndarray:
    """Of the noise in every cell that is sanitized, in one measurement: by how many elections its leaf lies below."""
    name = domain.names[tree.attribute]
    place = ("count", name, plan.served[0])
    noises = {draw.layer: noise_of(draw) for draw in plan.draws if (draw.kind, draw.tree, draw.set) == place}
    if missing := sorted(set(tree.elections.tolist()) - set(noises)):
        raise ValueError(f"the tree of {name} has histograms below {missing[0]} elections that no draw accounts for")
    of_leaf = np.zeros(tree.leaves)
    for held, noise in noises.items():
        of_leaf[tree.elections == held] = max(noise.variance, LEAST_VARIANCE)
    return np.repeat(of_leaf, tree.allowed.sum(axis=1))
