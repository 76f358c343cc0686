"""What people are shown of pairs: its tables before anything is drawn, its margins and strongest pairs afterwards."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from schemas.plan import Draw, LayerPlan, Plan
from schemas.spec.domain import Domain
from steps_engine.accounting.mechanisms import length_of
from steps_engine.inference.reach import standard_errors
from steps_engine.inference.strength import Beyond, Side, against
from steps_engine.methods.margins import ESTIMATED_BY, margins_of
from steps_engine.methods.pairs.estimate import estimate, evidence, told
from steps_engine.methods.pairs.structure import Structure, again_draws
from steps_engine.methods.pairs.synthesize import trunk, walk
from steps_engine.methods.pairs.tables import read_measured
from steps_engine.methods.pairs.tabulate import tabulated
from steps_engine.methods.protocol import Tables
from steps_engine.methods.relations import Two, pairs_of
from steps_engine.methods.views import Dependent, Sketch, SketchRow, Total, View

if TYPE_CHECKING:
    import pandas as pd

MOST_LINES = 40  # of a plan; where there are more tables, those that are alike share one
_KIND = {1: "margins", 2: "pairs", 3: "triples"}
DRAWS = (
    "sets      each is a draw of what the noise leaves open, for intervals from all of them; where noise is large, one set "
    "alone (count: 1) lies closer to the records"
)
STRONG = 0.5  # of the information of the pair that ties an attribute to the tree: others as strong are shown beside it


def sketch(plan: Plan) -> Sketch:
    first = [draw for draw in plan.draws if draw.of is not None and draw.set == plan.served[0]]
    alike: dict[object, list[tuple[LayerPlan, Draw]]] = {}
    for layer, draw in zip(plan.layers, first, strict=True):
        of = len(draw.tables[0]) if draw.tables else draw.of
        kind = (of, layer.nodes, draw.cost) if len(first) > MOST_LINES else layer.layer
        alike.setdefault(draw.of if draw.of in ("elected", "again") else kind, []).append((layer, draw))
    rows = [_line(group) for group in alike.values()]
    remarks = [f"pairs     {plan.election.layers} of {plan.election.candidates:,} are elected"] if plan.election else []
    if twice := len(again_draws(plan)):
        remarks.append(f"again     {twice} pairs are measured twice: those that the first noise leaves most to be said of")
    remarks += [DRAWS] if plan.sets > 1 and plan.measurements == 1 else []
    return Sketch("table", "of", tuple(rows), "shares", {draw.name: said(draw) for draw in plan.draws}, tuple(remarks))


def _line(alike: list[tuple[LayerPlan, Draw]]) -> SketchRow:
    """One table, or all that have as many cells and cost as much."""
    (layer, draw), number = alike[0], len(alike)
    what = said(draw) if number == 1 else _several(number, layer, draw)
    nodes = ("≤ " if layer.nodes_are == "at most" else "") + f"{layer.nodes * number:,}"
    return SketchRow(layer.layer, what, nodes, f"{float(layer.share * number):.2%}", length_of(draw), layer.expected_error)


def _several(number: int, layer: LayerPlan, draw: Draw) -> str:
    if draw.tables:
        return f"{number} {_KIND.get(len(draw.tables[0]), 'tables')} of {layer.nodes:,} cells"
    return f"{number} pairs again" if draw.of == "again" else f"{number} elected pairs"


def said(draw: Draw) -> str:
    """What a draw measures or elects; of linked tables, whose."""
    return f"{draw.rows_of}: {_said(draw)}" if draw.rows_of else _said(draw)


def _said(draw: Draw) -> str:
    if draw.kind == "election":
        return f"election {draw.layer + 1} of a pair"
    if draw.of == "elected":
        return f"elected {draw.tree}"
    if draw.of == "again":
        return f"a pair {draw.tree}"
    if not draw.is_joint:
        return " × ".join(draw.tables[0]) or "number of rows"
    if draw.layer == 0:
        margins = sum(map(bool, draw.tables))
        counted = f"{margins} margin{'s' * (margins != 1)} of two categories"
        return counted + (", with the number of rows" if margins < len(draw.tables) else "")
    shared = set.intersection(*map(set, draw.tables))
    pairs = len(draw.tables)
    return f"{pairs} pair{'s' * (pairs != 1)}" + (f" with {' × '.join(sorted(shared))}" if shared else " of two categories")


def view(domain: Domain, plan: Plan, tables: Tables) -> View:
    structure, noisy = read_measured(domain, plan, tables)
    sets = [tables[f"synthetic-{i}"] for i in range(1, plan.sets + 1)]
    known = told(structure, noisy)
    margins, derived = margins_of(domain, partial(tabulated, structure, known), sets)
    error = float(np.sqrt(known[()].variance))
    first, factor = ", ".join(structure.names(trunk(structure))), standard_errors(plan)
    return View(
        total=Total(float(known[()].value), error, tuple(each.num_rows for each in sets), factor * error),
        margins=margins,
        derived=derived,
        estimated_by=ESTIMATED_BY,
        heading="The pairs",
        text="Every attribute was counted by itself, and of pairs of attributes what they add to that was measured"
        + (", all of them" if plan.election is None else f"; {plan.election.layers} pairs were elected privately")
        + (f", {len(structure.again)} of them twice" if structure.again else "")
        + _larger(structure)
        + " Rows follow the strongest pairs and are weighted to agree with everything that was measured.",
        caption="A full arc: rows were first drawn given that attribute. A dashed one: a pair about as strong. On the right, "
        "how many categories an attribute has." + (f" Drawn first, together: {first}." if first else ""),
        network=network(structure, noisy),
        pairs=pairs_of(domain, strengths(structure, noisy)),
        standard_errors=factor,
        warning="Sets agree with the tables that were measured: pairs of attributes"
        + (", and some of three or more" if any(len(table) > 2 for table in structure.tables) else "")
        + ". What attributes have in common beyond these was not measured, and no interval knows of it.",
    )


def _larger(structure: Structure) -> str:
    """What was measured beside pairs."""
    number = sum(len(table) > 2 for table in structure.tables)
    why = "which the release's analyses need, or in which noise was expected to be less than chance"
    return f"; and {number} larger table{'s' if number > 1 else ''}, {why}." if number else "."


def strengths(structure: Structure, noisy: list[np.ndarray]) -> dict[Two, Beyond | None]:
    """Of every pair that was measured: what it was found to add to its margins, over what noise and chance would."""
    said, margins = [evidence(structure, noisy, i) for i in range(structure.margins.plan.measurements)], structure.margins
    sides = [_side(structure, j, g) for j, g in enumerate(structure.group)]
    total, found = float(margins.total.mean()), dict[Two, Beyond | None]()
    for i, j in (pair for pair in said[0] if len(pair) == 2):
        value = np.mean([each[i, j].value for each in said], axis=0)
        found[i, j] = against(value, said[0][i, j].variance / len(said), sides[i], sides[j], total)
    return found


def _side(structure: Structure, attribute: int, group: np.ndarray) -> Side:
    """An attribute's own counts by groups of its categories; noise adds up within a group."""
    margins = structure.margins
    each = margins.variance(attribute) / len(margins.total)
    return Side(np.bincount(group, margins.estimates(attribute).mean(axis=0)), each * float(np.bincount(group).mean()))


def network(structure: Structure, noisy: list[np.ndarray]) -> tuple[Dependent, ...]:
    """In the order in which rows are drawn: each attribute, what it was drawn given, and other pairs about as strong."""
    domain, found = structure.margins.domain, estimate(structure, noisy, 0, None)
    information = found.information(structure.tables)
    told: dict[tuple[int, ...], float] = dict(zip(structure.tables, information.tolist(), strict=True))
    shown, before = [], list[int]()
    for j, above, _ in walk(structure, found, information, trunk(structure)):
        first = told.get((min(j, above), max(j, above)), 0.0) if above is not None else 0.0
        others = [i for i in before if i != above and told.get((min(i, j), max(i, j)), 0.0) > STRONG * first > 0]
        on = [(domain.names[i], i == above) for i in before if i == above or i in others]
        shown.append(Dependent(domain.names[j], tuple(on), 0, domain.sizes[j]))
        before.append(j)
    return tuple(shown)


def table_counts(domain: Domain, plan: Plan, tables: Tables, number: int) -> pd.DataFrame:
    """One table: 1, 2, … are the attributes' own, then those of the structure: categories or groups, estimate and error."""

    import pandas as pd

    structure, _ = read_measured(domain, plan, tables)
    listed: list[tuple[int, ...]] = [(j,) for j in range(len(domain.sizes))] + [*structure.tables]
    of = listed[number - 1]
    frame = tables["consistent-counts"].to_pandas()
    mine = frame[frame["attributes"].map(tuple) == of].drop(columns="attributes").reset_index(drop=True)
    categories = pd.DataFrame(mine.pop("categories").tolist(), columns=[domain.names[j] for j in of])
    found: pd.DataFrame = pd.concat([categories, mine], axis=1)
    return found
