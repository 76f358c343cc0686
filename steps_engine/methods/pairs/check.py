"""Checks of published tables of pairs: margins, groups and pairs that the plan paid for, and contrasts that belong to them.

Imports nothing of the planning: what a plan may say is not asked of the planner.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np
import pyarrow as pa

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.domain.counting import most_rows
from steps_engine.methods.checked import Checked, Findings
from steps_engine.methods.pairs.contrasts import tested
from steps_engine.methods.pairs.estimate import told
from steps_engine.methods.pairs.structure import Structure, again_draws, elected_draws, ungrouped
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
    read = found.attempt("noisy-counts", read_noisy, structure, tables["noisy-counts"]) if made else None
    if read is not None and "consistent-counts" in tables:
        found.collect("consistent-counts", _estimate_problems, *read, tables)
    noise = found.tested("noisy-counts", tested, *read) if read is not None else None
    rows = partial(_rows, *(read or (structure, []))) if read is not None or not made else None
    return Checked(tuple(found.found), ends=_ends(plan), rows=rows, noise=noise)


def _rows(structure: Structure, noisy: list[np.ndarray], number: int) -> tuple[float, float]:
    """The number of rows as it was measured for a set; sets that share a measurement have draws of what it leaves open."""
    margins, plan = structure.margins, structure.margins.plan
    own = plan.budget == "split" or plan.sets == 1
    rows = told(structure, noisy, number - 1 if plan.budget == "split" else 0)[()]
    total = float(rows.value)
    if plan.total == "estimated":
        total = min(max(total, 1.0), most_rows(margins.domain))
    return total, 0.0 if own else math.sqrt(rows.variance)


def _ends(plan: Plan) -> dict[str | None, frozenset[int]]:
    """Every table that was measured is a tree of one layer."""
    layers: dict[str | None, set[int]] = {}
    for draw in plan.draws:
        if draw.of is not None:
            layers.setdefault(draw.tree, set()).add(draw.layer)
    return {tree: frozenset(of_tree) for tree, of_tree in layers.items()}


def structure_problems(structure: Structure, table: pa.Table) -> Iterator[str]:
    """Nothing stands beside what was measured; attributes that rules tie are not grouped; an exact number of rows is one."""
    domain = structure.margins.domain
    if not structure_table(structure).equals(table):
        yield "holds something beside groups, pairs and what was measured"
    if any(structure.sizes[j] < domain.sizes[j] for j in ungrouped(structure.margins.plan, domain)):
        yield "attributes that rules tie to others, or that analyses need, are grouped"
    if any(min(structure.shape(table)) < 2 for table in structure.tables):
        yield "a table of an attribute without a choice was measured"
    if () not in structure.margins.draws and len(set(structure.margins.total.tolist())) > 1:
        yield "there is more than one exact number of rows"


def draw_problems(structure: Structure) -> Iterator[str]:
    """Draws account for every table, every margin, and the number of rows unless it is exact."""
    plan, domain, named = structure.margins.plan, structure.margins.domain, structure.margins.draws
    yield from _election_problems(structure)
    yield from _joint_problems(plan, domain)
    unnamed = [*((("elected",), draws) for draws in elected_draws(plan)), *((("again",), draws) for draws in again_draws(plan))]
    for table, draws in [*named.items(), *unnamed]:
        if sorted(map(str, (draw.set for draw in draws))) != sorted(map(str, plan.served)):
            yield f"{' × '.join(table) or 'the number of rows'} does not have one draw in every measurement"
    if plan.total == "estimated" and () not in named:
        yield "the number of rows is estimated, and no draw accounts for it"
    for name, size in zip(domain.names, domain.sizes, strict=True):
        if size > 1 and (name,) not in named:
            yield f"the margin of {name} was measured, and no draw accounts for it"


def _joint_problems(plan: Plan, domain: Domain) -> Iterator[str]:
    """A row changes one entry of every table by 1, and all of these in one cell: of the attributes that all tables share."""
    sizes = dict(zip(domain.names, domain.sizes, strict=True))
    for draw in (draw for draw in plan.draws if draw.is_joint):
        cells = {tuple(name for name in table if sizes.get(name, 0) != 2 or len(table) > 2) for table in draw.tables}
        if len(cells) > 1 or len(set(draw.tables)) < len(draw.tables):
            yield f"draw {draw.name!r} measures tables together that do not cross the same cells with two categories"


def _election_problems(structure: Structure) -> Iterator[str]:
    """A table that no draw names was elected: every one has its election and its draw."""
    plan = structure.margins.plan
    elections, draws = sum(draw.kind == "election" for draw in plan.draws), len(elected_draws(plan))
    won = [table for table in structure.tables if structure.names(table) not in structure.margins.draws]
    if elections and len(won) > min(elections, draws):
        yield f"{len(won)} pairs were elected; {elections} elections and {draws} draws account for as many at most"
    if not elections and won:
        yield "a table was measured that no draw accounts for"
    if any(len(table) > 2 for table in won):
        yield "pairs are elected, and a larger table was measured that no draw names"
    if elections and (plan.election is None or (plan.election.utility, plan.election.what) != ("misfit", "pairs")):
        yield "pairs are elected by what margins alone misplace; the plan says otherwise"


def _estimate_problems(structure: Structure, noisy: list[np.ndarray], tables: Mapping[str, pa.Table]) -> Iterator[str]:
    expected, given = estimates_table(structure, noisy), tables["consistent-counts"]
    for name in ("attributes", "categories"):
        if not given[name].equals(expected[name]):
            yield "does not have exactly the cells of the noisy counts"
            return
    for name in ("estimate", "standard_error"):
        if not np.allclose(given[name].to_numpy(), expected[name].to_numpy(), rtol=1e-9, atol=1e-9):
            yield f"column {name} does not follow from the noisy counts and the plan"
