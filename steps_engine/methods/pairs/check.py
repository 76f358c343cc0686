"""Checks of published tables of pairs: margins, groups and pairs that the plan paid for, and contrasts that belong to them.

Imports nothing of the planning: what a plan may say is not asked of the planner.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.domain.cells import Space
from steps_engine.methods.checked import Checked, Findings
from steps_engine.methods.pairs.structure import Structure
from steps_engine.methods.pairs.tables import estimates_table, read_noisy, read_structure
from steps_engine.methods.protocol import Tables


def check(domain: Domain, plan: Plan, tables: Tables) -> Checked:
    found = Findings()
    if "tree" not in tables:
        return Checked(())
    structure = found.attempt("tree.parquet", read_structure, domain, plan, tables["tree"])
    if structure is None:
        return Checked(tuple(found.found))
    found.collect("tree.parquet", structure_problems, structure)
    noisy = (
        found.attempt("noisy-counts.parquet", read_noisy, structure, tables["noisy-counts"])
        if "noisy-counts" in tables
        else None
    )
    if noisy is not None and "consistent-counts" in tables:
        found.collect("consistent-counts.parquet", _estimate_problems, structure, noisy, tables)
    return Checked(tuple(found.found), ends=_ends(plan))


def _ends(plan: Plan) -> dict[str | None, frozenset[int]]:
    """Every table that was measured is a tree of one layer."""
    layers: dict[str | None, set[int]] = {}
    for draw in plan.draws:
        if draw.of is not None:
            layers.setdefault(draw.tree, set()).add(draw.layer)
    return {tree: frozenset(of_tree) for tree, of_tree in layers.items()}


def structure_problems(structure: Structure) -> Iterator[str]:
    """Pairs are the plan's, or as many as were elected; attributes that rules tie are not grouped; n̂ is drawn."""
    plan, domain = structure.margins.plan, structure.margins.domain
    elections = sum(draw.kind == "election" for draw in plan.draws)
    named = [draw.of for draw in plan.draws if isinstance(draw.of, tuple) and len(draw.of) == 2 and draw.set == plan.served[0]]
    elected = {draw.tree for draw in plan.draws if draw.of == "elected"}
    pairs = [(domain.names[a], domain.names[b]) for a, b in structure.pairs]
    if elections and (len(pairs) > elections or len(elected) < len(pairs)):
        yield f"{len(pairs)} pairs were measured; {elections} elections and {len(elected)} draws account for as many at most"
    if not elections and not set(pairs) <= set(named):
        yield "a pair was measured that no draw accounts for"
    if elections and (plan.election is None or (plan.election.utility, plan.election.what) != ("misfit", "pairs")):
        yield "pairs are elected by what margins alone misplace; the plan says otherwise"
    tied = {j for component in Space(domain).components for j in component.attributes}
    if any(structure.sizes[j] < domain.sizes[j] for j in tied):
        yield "attributes that rules tie to others are grouped"
    if any(min(structure.shape(pair)) < 2 for pair in structure.pairs):
        yield "a pair of an attribute without a choice was measured"
    if plan.total == "estimated" and not any(draw.of == () for draw in plan.draws):
        yield "the number of rows is estimated, and no draw accounts for it"
    if plan.total != "estimated" and len(set(structure.margins.total.tolist())) > 1:
        yield "there is more than one exact number of rows"
    for j, size in enumerate(domain.sizes):
        if size > 1 and not any(draw.of == (domain.names[j],) for draw in plan.draws):
            yield f"the margin of {domain.names[j]} was measured, and no draw accounts for it"


def _estimate_problems(structure: Structure, noisy: list[np.ndarray], tables: Tables) -> Iterator[str]:
    expected, given = estimates_table(structure, noisy), tables["consistent-counts"]
    for name in ("first", "second", "category", "second_group"):
        if not given[name].equals(expected[name]):
            yield "does not have exactly the cells of the noisy counts"
            return
    for name in ("estimate", "standard_error"):
        if not np.allclose(given[name].to_numpy(), expected[name].to_numpy(), rtol=1e-9, atol=1e-9):
            yield f"column {name} does not follow from the noisy counts and the plan"
