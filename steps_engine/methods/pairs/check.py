"""Checks of published tables of pairs: margins, groups and pairs that the plan paid for, and contrasts that belong to them.

Imports nothing of the planning: what a plan may say is not asked of the planner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.domain.cells import Space
from steps_engine.methods.checked import Checked, Findings
from steps_engine.methods.pairs.structure import Structure, one_way_draws, total_draws
from steps_engine.methods.pairs.tables import estimates_table, read_noisy, read_structure, structure_table


def check(domain: Domain, plan: Plan, tables: Mapping[str, pa.Table]) -> Checked:
    found = Findings()
    if "tree" not in tables:
        return Checked(())
    structure = found.attempt("tree", read_structure, domain, plan, tables["tree"])
    if structure is None:
        return Checked(tuple(found.found))
    found.collect("tree", structure_problems, structure, tables["tree"])
    found.collect("plan", draw_problems, structure)
    made = "noisy-counts" in tables
    noisy = found.attempt("noisy-counts", read_noisy, structure, tables["noisy-counts"]) if made else None
    if noisy is not None and "consistent-counts" in tables:
        found.collect("consistent-counts", _estimate_problems, structure, noisy, tables)
    return Checked(tuple(found.found), ends=_ends(plan))


def _ends(plan: Plan) -> dict[str | None, frozenset[int]]:
    """Every table that was measured is a tree of one layer."""
    layers: dict[str | None, set[int]] = {}
    for draw in plan.draws:
        if draw.of is not None:
            layers.setdefault(draw.tree, set()).add(draw.layer)
    return {tree: frozenset(of_tree) for tree, of_tree in layers.items()}


def structure_problems(structure: Structure, table: pa.Table) -> Iterator[str]:
    """Nothing stands beside what was measured; attributes that rules tie are not grouped; an exact number of rows is one."""
    plan, domain = structure.margins.plan, structure.margins.domain
    if not structure_table(structure).equals(table):
        yield "holds something beside groups, pairs and what was measured"
    tied = {j for component in Space(domain).components for j in component.attributes}
    if any(structure.sizes[j] < domain.sizes[j] for j in tied):
        yield "attributes that rules tie to others are grouped"
    if any(min(structure.shape(pair)) < 2 for pair in structure.pairs):
        yield "a pair of an attribute without a choice was measured"
    if not total_draws(plan) and len(set(structure.margins.total.tolist())) > 1:
        yield "there is more than one exact number of rows"


def draw_problems(structure: Structure) -> Iterator[str]:
    """Draws account for every pair, every margin, and the number of rows unless it is exact."""
    plan, domain = structure.margins.plan, structure.margins.domain
    yield from _election_problems(structure)
    if plan.total == "estimated" and not total_draws(plan):
        yield "the number of rows is estimated, and no draw accounts for it"
    for j, size in enumerate(domain.sizes):
        if size > 1 and not one_way_draws(plan, domain.names[j]):
            yield f"the margin of {domain.names[j]} was measured, and no draw accounts for it"


def _election_problems(structure: Structure) -> Iterator[str]:
    """Where pairs are elected, every one has its election and its draw; otherwise a draw names it."""
    plan, domain = structure.margins.plan, structure.margins.domain
    elections = sum(draw.kind == "election" for draw in plan.draws)
    named = {draw.of for draw in plan.draws}
    elected = {draw.tree for draw in plan.draws if draw.of == "elected"}
    pairs = [(domain.names[a], domain.names[b]) for a, b in structure.pairs]
    if elections and (len(pairs) > elections or len(elected) < len(pairs)):
        yield f"{len(pairs)} pairs were measured; {elections} elections and {len(elected)} draws account for as many at most"
    if not elections and not named.issuperset(pairs):
        yield "a pair was measured that no draw accounts for"
    if elections and (plan.election is None or (plan.election.utility, plan.election.what) != ("misfit", "pairs")):
        yield "pairs are elected by what margins alone misplace; the plan says otherwise"


def _estimate_problems(structure: Structure, noisy: list[np.ndarray], tables: Mapping[str, pa.Table]) -> Iterator[str]:
    expected, given = estimates_table(structure, noisy), tables["consistent-counts"]
    for name in ("first", "second", "category", "second_group"):
        if not given[name].equals(expected[name]):
            yield "does not have exactly the cells of the noisy counts"
            return
    for name in ("estimate", "standard_error"):
        if not np.allclose(given[name].to_numpy(), expected[name].to_numpy(), rtol=1e-9, atol=1e-9):
            yield f"column {name} does not follow from the noisy counts and the plan"
