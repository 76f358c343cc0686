"""What people are shown of places: tables before anything is drawn; levels with their errors, margins and pairs afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from schemas.plan import Draw, LayerPlan, Plan
from schemas.spec.domain import Domain
from steps_engine.accounting.mechanisms import length_of
from steps_engine.domain.blocks import one_way_counts
from steps_engine.domain.columns import columns_of
from steps_engine.domain.places import Places, places_of
from steps_engine.inference.place_tables import BY, depths, is_of_places, names_of
from steps_engine.inference.reach import standard_errors
from steps_engine.inference.strength import Beyond, Side, against
from steps_engine.methods.margins import apart
from steps_engine.methods.pairs import view as of_pairs
from steps_engine.methods.pairs.tables import estimates_table
from steps_engine.methods.pairs.tabulate import tabulated
from steps_engine.methods.places.estimate import Joined, Measured, joined, of_all_places
from steps_engine.methods.places.tables import read_measured
from steps_engine.methods.protocol import Tables
from steps_engine.methods.relations import Two, pairs_of
from steps_engine.methods.tabulated import Asked
from steps_engine.methods.views import LevelView, Margin, Pair, Sketch, SketchRow, Total, View

if TYPE_CHECKING:
    import pandas as pd

OneWay = list[np.ndarray]  # of every attribute how many rows of a set each category has


def sketch(plan: Plan) -> Sketch:
    """The nation's lines, then a line per level of the places and of every attribute by place."""
    of_places = [draw for draw in plan.draws if is_of_places(draw)]
    before = len(plan.layers) - len(of_places) // plan.measurements
    kept = tuple(draw for draw in plan.draws if not is_of_places(draw))
    nation = of_pairs.sketch(plan.model_copy(update={"draws": kept, "layers": plan.layers[:before]}))
    first = [draw for draw in of_places if draw.set == plan.served[0]]
    rows = [_line(layer, draw) for layer, draw in zip(plan.layers[before:], first, strict=True)]
    said = {draw.name: " × ".join(layer.attributes or ()) for layer, draw in zip(plan.layers[before:], first, strict=True)}
    by_tree = {(draw.tree, draw.layer): said[draw.name] for draw in first}
    draws = nation.draws | {draw.name: by_tree[draw.tree, draw.layer] for draw in of_places}
    return replace(nation, rows=(*nation.rows, *rows), draws=draws)


def _line(layer: LayerPlan, draw: Draw) -> SketchRow:
    what = " × ".join(layer.attributes or ())
    return SketchRow(layer.layer, what, f"{layer.nodes:,}", f"{float(layer.share):.2%}", length_of(draw), layer.expected_error)


def view(domain: Domain, plan: Plan, tables: Tables) -> View:
    measured = read_measured(domain, plan, tables)
    places, found, factor = measured.places, joined(measured, None), standard_errors(plan)
    sets = [one_way_counts(tables[f"synthetic-{i}"], domain) for i in range(1, plan.sets + 1)]
    total, error = float(found.rows.value[0][0, 0]), float(np.sqrt(found.rows.variance[0][0]))
    strengths = {_lifted(places, pair): each for pair, each in of_pairs.strengths(measured.nation, measured.of_nation).items()}
    strengths |= _strengths(measured, found)
    own, derived = apart(_margins(measured, found, sets, factor), domain)
    return View(
        total=Total(total, error, tuple(int(counts[0].sum()) for counts in sets), factor * error),
        margins=own,
        derived=derived,
        estimated_by="Counts by least squares over everything that was measured, of places from all levels,",
        heading="The places",
        text=f"The places of {places.name} were counted at every level, and levels joined by least squares, so that they add "
        "up from the finest to all. Of all places together every attribute and pairs of attributes were measured; an attribute "
        "was counted by place down to the finest level at which it does not drown in noise, and below it places have the "
        "shares of the place that they lie in. Two attributes were counted by place together where an analysis asked for it. "
        "Rows agree with all of it.",
        caption="A full arc: rows were first drawn given that attribute. A dashed one: a pair about as strong. On the right, "
        "how many categories an attribute has. All of it without places.",
        network=of_pairs.network(measured.nation, measured.of_nation),
        pairs=tuple(_of_finest(places, pair) for pair in pairs_of(places.at_level(_told(places)), strengths)),
        standard_errors=factor,
        warning="Sets agree with the tables that were measured: pairs of attributes, and attributes by place. What attributes "
        "have in common within a place beyond that is the nation's, and no interval knows of it.",
        levels=tuple(_levels(measured, found, sets, factor)),
    )


def _lifted(places: Places, pair: Two) -> Two:
    a, b = pair
    return places.others[a], places.others[b]


def _told(places: Places) -> int:
    """The coarsest level that has a choice."""
    return next((level for level in range(1, places.finest) if places.sizes[level] > 1), places.finest)


def _of_finest(places: Places, pair: Pair) -> Pair:
    """What is told of a level is said of the attribute."""
    level = places.levels[_told(places) - 1]
    first, second = (places.name if name == level else name for name in (pair.first, pair.second))
    return replace(pair, first=first, second=second)


def _levels(measured: Measured, found: Joined, sets: Sequence[OneWay], factor: float) -> list[LevelView]:
    """Every level with every place of it, and the attributes that were counted at it."""
    places, deepest = measured.places, depths(measured.tables)
    shown = []
    for level in range(1, places.finest + 1):
        counted = tuple(BY.join(names_of(places, of)) for of, depth in deepest.items() if of and depth >= level)
        error = np.sqrt(found.rows.variance[level])
        finest = (counts[places.attribute] for counts in sets)
        synthetic = np.mean([np.bincount(places.at(level), rows, places.sizes[level]) for rows in finest], axis=0)
        above = places.labels[level - 2] if level > 1 else ("",)
        parents = tuple(above[k] for k in places.within(level, level - 1).tolist())
        labels = places.labels[level - 1]
        values = found.rows.value[level][:, 0]
        shown.append(LevelView(places.levels[level - 1], labels, parents, values, error, factor * error, synthetic, counted))
    return shown


def _margins(measured: Measured, found: Joined, sets: Sequence[OneWay], factor: float) -> list[Margin]:
    """Of places and their levels from all levels, of other columns as the nation's pairs and their levels tell of them."""
    places, known = measured.places, of_all_places(measured)
    margins = []
    for column in columns_of(places.domain):
        name, labels = column.attribute.name, column.attribute.labels
        if name in places.levels:
            level = places.levels.index(name) + 1
            estimate, error = found.rows.value[level][:, 0], np.sqrt(found.rows.variance[level])
        elif column.source == places.attribute:
            continue  # derived from places: nobody has summed these
        else:
            one = places.others.index(column.source)
            alone = tabulated(measured.nation, known, Asked((one,), {}, {one: tuple(column.codes.tolist())}))
            if isinstance(alone, str):
                continue
            estimate, error = alone.estimate, np.sqrt(alone.variance)
        rows = [np.bincount(column.codes, counts[column.source], len(labels)) for counts in sets]
        margins.append(Margin(name, labels, estimate, error, np.mean(rows, axis=0), factor * error))
    return margins


def _strengths(measured: Measured, found: Joined) -> dict[Two, Beyond | None]:
    """Of every attribute that was counted by place, how places of the coarsest level differ in it, over noise and chance."""
    places, strengths = measured.places, dict[Two, Beyond | None]()
    level = _told(places)
    rows = found.rows.value[level][:, 0]
    for (j,), levels in ((of, levels) for of, levels in found.contrasts.items() if len(of) == 1 and levels.depth >= level):
        table = levels.value[level] + (rows / levels.value[level].shape[1])[:, None]
        apart = levels.value[level] - levels.value[level].mean(axis=0)
        variance, of = float(levels.variance[level].mean()), (min(j, places.attribute), max(j, places.attribute))
        of_places = Side(rows, float(found.rows.variance[level].mean()))
        strengths[of] = against(apart, variance, of_places, Side(table.sum(axis=0), variance * len(rows)), float(rows.sum()))
    return strengths


def table_counts(domain: Domain, plan: Plan, tables: Tables, number: int) -> pd.DataFrame:
    """One table: 1, 2, … are the attributes' own, then the nation's others, then those of places."""
    import pandas as pd

    measured, places = read_measured(domain, plan, tables), places_of(domain)
    nation = len(places.others) + len(measured.nation.tables)
    if number <= nation:
        own = measured.of_nation_in(tables) | {"consistent-counts": estimates_table(measured.nation, measured.of_nation)}
        return of_pairs.table_counts(places.nation, measured.nation.margins.plan, own, number)
    frame = tables["consistent-counts"].to_pandas()
    table = measured.tables[number - nation - 1]
    mine = frame[(frame["level"] == table.level) & (frame["attributes"].map(tuple) == table.of)].reset_index(drop=True)
    labels = np.array(places.labels[table.level - 1], dtype=object)
    found = pd.DataFrame({places.levels[table.level - 1]: labels[mine["place"].to_numpy(dtype=np.int64)]})
    for axis, name in enumerate(names_of(places, table.of)):
        found[name] = [each[axis] for each in mine["categories"]]
    return found.assign(estimate=mine["estimate"], standard_error=mine["standard_error"])
