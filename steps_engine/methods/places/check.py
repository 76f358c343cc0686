"""Checks of published tables of places: the nation's as those of pairs, and counts and estimates of places that the plan paid
for.

Imports nothing of the planning.
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
from steps_engine.domain.places import places_of
from steps_engine.inference.place_tables import depths, place_tables, tree_name
from steps_engine.methods.checked import Checked, Findings
from steps_engine.methods.pairs.check import draw_problems, structure_problems
from steps_engine.methods.places.contrasts import tested
from steps_engine.methods.places.estimate import Measured, joined
from steps_engine.methods.places.tables import estimates, read_nation, with_noisy


def check(domain: Domain, plan: Plan, tables: Mapping[str, pa.Table]) -> Checked:
    found = Findings()
    if "tree" not in tables:
        return Checked(())
    nation = found.attempt("tree", read_nation, domain, plan, tables["tree"])
    if nation is None or found.attempt("plan", place_tables, places_of(domain), plan) is None:
        return Checked(tuple(found.found))
    found.collect("tree", structure_problems, nation, tables["tree"])
    found.collect("plan", draw_problems, nation)
    made = "noisy-counts" in tables
    measured = found.attempt("noisy-counts", with_noisy, domain, plan, nation, tables["noisy-counts"]) if made else None
    if measured is not None and "consistent-counts" in tables:
        found.collect("consistent-counts", _estimate_problems, measured, tables["consistent-counts"])
    noise = found.tested("noisy-counts", tested, measured) if measured is not None else None
    rows = partial(_rows, measured) if measured is not None else None
    return Checked(tuple(found.found), ends=_ends(domain, plan), rows=rows, noise=noise)


def _ends(domain: Domain, plan: Plan) -> dict[str | None, frozenset[int]]:
    """Of the nation every table is a tree of one layer; of places every branch ends in the finest level that was counted."""
    layers: dict[str | None, set[int]] = {}
    for draw in plan.draws:
        if draw.of is not None:
            layers.setdefault(draw.tree, set()).add(draw.layer)
    places = places_of(domain)
    ends: dict[str | None, frozenset[int]] = {tree: frozenset(of_tree) for tree, of_tree in layers.items()}
    return ends | {tree_name(places, of): frozenset({depth}) for of, depth in depths(place_tables(places, plan)).items()}


def _rows(measured: Measured, number: int) -> tuple[float, float]:
    """The number of rows as all levels tell it; sets that share a measurement have draws of what it leaves open."""
    plan = measured.nation.margins.plan
    own = plan.budget == "split" or plan.sets == 1
    found = joined(measured, number - 1 if plan.budget == "split" else 0).rows
    total = round(float(found.value[0][0, 0]), 6)
    if plan.total == "estimated":
        total = min(max(total, 1.0), most_rows(measured.places.domain))
    return total, 0.0 if own else math.sqrt(float(found.variance[0][0]))


def _estimate_problems(measured: Measured, given: pa.Table) -> Iterator[str]:
    expected = estimates(measured)
    for name in ("attributes", "categories", "level", "place"):
        if not given[name].equals(expected[name]):
            yield "does not have exactly the cells of the noisy counts"
            return
    for name in ("estimate", "standard_error"):
        if not np.allclose(given[name].to_numpy(), expected[name].to_numpy(), rtol=1e-9, atol=1e-6):
            yield f"column {name} does not follow from the noisy counts and the plan"
