"""Tables from what was measured of places: by places of any level, or sums of them, and by categories of one or two attributes.

A cell is a sum over places and categories of parts θ_S, one for every set S of the attributes, spread evenly over the others:
Π_{j∈S} u_j·θ_S·Π_{j∉S} Σu_j/K_j. Parts have independent noise, and variances of their sums over places are exact
(inference/levels.py). Tables without a place are the nation's, as those of pairs, with what places tell of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.domain.cells import possible_cells
from steps_engine.domain.places import Places
from steps_engine.inference.levels import Levels, Sums
from steps_engine.inference.place_tables import BY, Of, names_of, parts
from steps_engine.inference.place_tables import told as told_levels
from steps_engine.inference.reach import standard_errors
from steps_engine.methods.pairs import tabulate as of_pairs
from steps_engine.methods.places.estimate import Measured, joined, of_all_places
from steps_engine.methods.places.tables import read_measured
from steps_engine.methods.protocol import Tables
from steps_engine.methods.tabulated import Asked, Tabulated


def lacking(domain: Domain, plan: Plan, tables: Tables, asked: Sequence[Sequence[int]]) -> list[tuple[str, ...]]:
    """Tables with the finest place are told where they were counted by it; others as those of pairs."""
    measured = read_measured(domain, plan, tables)
    return [_lacking(measured, tables, tuple(of)) for of in asked]


def _lacking(measured: Measured, tables: Tables, of: tuple[int, ...]) -> tuple[str, ...]:
    places = measured.places
    if places.attribute not in of:
        return of_pairs.lacking(
            places.nation, measured.nation.margins.plan, measured.of_nation_in(tables), [_lowered(places, of)]
        )[0]
    others = tuple(sorted(j for j in of if j != places.attribute and places.domain.sizes[j] > 1))
    if told_levels(measured.tables).get(others, 0) == places.finest:
        return ()
    return (" × ".join(places.domain.names[j] for j in of),)


def _lowered(places: Places, of: Sequence[int]) -> tuple[int, ...]:
    return tuple(places.others.index(j) for j in of)


def tabulate(domain: Domain, plan: Plan, tables: Tables, asked: Asked) -> Tabulated | str:
    measured = read_measured(domain, plan, tables)
    places = measured.places
    if places.attribute in asked.all:
        return _by_place(measured, plan, asked)
    lowered = replace(asked, attributes=_lowered(places, asked.attributes), **_mapped(places, asked))
    return of_pairs.tabulated(measured.nation, of_all_places(measured), lowered)


def _mapped(places: Places, asked: Asked) -> dict[str, Mapping[int, tuple[int, ...]]]:
    named = {"kept": asked.kept, "classes": asked.classes}
    return {name: {places.others.index(j): codes for j, codes in of.items()} for name, of in named.items()}


@dataclass(frozen=True)
class _Sum:
    """Sums along one axis: of every category the sum in which it is, −1 for none; one sum where the axis is not listed."""

    classes: np.ndarray

    @classmethod
    def of(cls, asked: Asked, attribute: int, domain: Domain) -> _Sum:
        if attribute in asked.attributes:
            return cls(asked.class_of(attribute, domain))
        return cls(np.where(np.isin(np.arange(domain.sizes[attribute]), asked.kept[attribute]), 0, -1))

    @property
    def number(self) -> int:
        return int(self.classes.max()) + 1

    @property
    def rows(self) -> np.ndarray:
        """Sums × categories of ones and noughts."""
        rows: np.ndarray = (self.classes[None] == np.arange(self.number)[:, None]).astype(float)
        return rows


@dataclass(frozen=True)
class _Part:
    """Sums over places of one of the two parts, sums × columns, with variances of one column."""

    value: np.ndarray
    sums: Sums


def _part(levels: Levels, places: Places, by: _Sum) -> _Part | None:
    """None where a sum has a part only of a place of the deepest level that was counted."""
    first = np.flatnonzero(np.diff(places.at(levels.depth), prepend=-1))
    classes = by.classes[first]
    if not np.array_equal(classes[places.at(levels.depth)], by.classes):
        return None
    inside = np.flatnonzero(classes >= 0)
    value = np.zeros((by.number, levels.value[-1].shape[1]))
    np.add.at(value, classes[inside], levels.value[-1][inside])
    return _Part(value, levels.sums(classes, classes >= 0))


def _by_place(measured: Measured, plan: Plan, asked: Asked) -> Tabulated | str:
    places, domain = measured.places, measured.places.domain
    chosen = tuple(sorted(j for j in asked.all if j != places.attribute and domain.sizes[j] > 1))
    found, by = joined(measured, None), _Sum.of(asked, places.attribute, domain)
    if chosen and chosen not in found.contrasts:
        why = "where it would have drowned in noise" if len(chosen) == 1 else "which no analysis asked for"
        return f"not measured: {BY.join(names_of(places, chosen))} was not counted by place, {why}"
    told = {part: _part(found.of(part), places, by) for part in parts(chosen)}
    known = {part: each for part, each in told.items() if each is not None}
    if len(known) < len(told):
        why = "would have drowned further down" if len(chosen) == 1 else "no analysis asked for more"
        reached = places.levels[found.of(chosen).depth - 1]
        return f"not measured: {BY.join(names_of(places, chosen))} was counted down to {reached}, and {why}"
    axes = {j: _Sum.of(asked, j, domain) for j in chosen}
    return _tabulated(domain, asked, plan, {places.attribute: by, **axes}, *_crossed(known, axes))


def _crossed(found: dict[Of, _Part], axes: dict[int, _Sum]) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Estimate, variance and covariance with the whole, places × sums of categories; and the whole's variance."""
    value, variance, cross, both = np.zeros(1), np.zeros(1), np.zeros(1), 0.0
    for of, part in found.items():
        sums = {j: _Along.of(axis, j in of) for j, axis in axes.items()}
        shape = [len(part.value), *(len(axes[j].rows[0]) for j in of)]
        value = value + _spread(part.value.reshape(shape), of, sums)
        variance = variance + _outer(part.sums.variance, [each.own for each in sums.values()])
        cross = cross + _outer(part.sums.cross, [each.beside for each in sums.values()])
        both += part.sums.whole * math.prod(each.whole for each in sums.values())
    return value, variance, cross, both


@dataclass(frozen=True)
class _Along:
    """Sums along an axis, of a part that has it or is spread evenly over it: weights, and u·v with themselves and the whole."""

    rows: np.ndarray
    own: np.ndarray
    beside: np.ndarray
    whole: float

    @classmethod
    def of(cls, axis: _Sum, inside: bool) -> _Along:
        size, all_ = axis.rows.shape[1], axis.rows.sum(axis=0)
        even, all_even = axis.rows.sum(axis=1) / size, float(all_.sum()) / size
        if not inside:
            return cls(even[:, None], even**2, even * all_even, all_even**2)
        own, beside = (axis.rows**2).sum(axis=1) - size * even**2, axis.rows @ all_ - size * even * all_even
        return cls(axis.rows, own, beside, float(all_ @ all_) - size * all_even**2)


def _spread(value: np.ndarray, of: Of, sums: dict[int, _Along]) -> np.ndarray:
    """A part's sums, places first, then an axis for every attribute in order."""
    for place, (j, along) in enumerate(sums.items(), start=1):
        value = value if j in of else np.expand_dims(value, place)
        value = np.moveaxis(np.tensordot(value, along.rows, (place, 1)), -1, place)
    return value


def _outer(first: np.ndarray, others: list[np.ndarray]) -> np.ndarray:
    return reduce(np.multiply.outer, others, first)


def _tabulated(
    domain: Domain,
    asked: Asked,
    plan: Plan,
    axes: dict[int, _Sum],
    value: np.ndarray,
    variance: np.ndarray,
    cross: np.ndarray,
    whole: float,
) -> Tabulated:
    """Cells in the order that was asked for: first attribute slowest; attributes without a choice add nothing to it."""
    shape = tuple(axis.number for axis in axes.values())
    order = np.argsort([asked.all.index(j) for j in axes])
    cells, variances, crosses = (each.reshape(shape).transpose(order).ravel() for each in (value, variance, cross))
    nothing = np.zeros(1, dtype=np.int64)
    group = tuple(axes[j].classes if j in axes else nothing for j in asked.attributes)
    there = _possible(domain, axes).transpose(order).ravel()
    cells, variances, crosses = (np.where(there, each, 0.0) for each in (cells, variances, crosses))
    return Tabulated(group, cells, variances, crosses, float(value.sum()), whole, there, standard_errors(plan))


def _possible(domain: Domain, axes: dict[int, _Sum]) -> np.ndarray:
    """One axis each: the sums of which some cell has an allowed completion. Others are nought, whatever was measured."""
    there = possible_cells(domain, tuple(axes))
    for place, axis in enumerate(axes.values()):
        cells, inside = np.moveaxis(there, place, 0), axis.classes >= 0
        sums = np.zeros((axis.number, *cells.shape[1:]), dtype=bool)
        np.logical_or.at(sums, axis.classes[inside], cells[inside])
        there = np.moveaxis(sums, 0, place)
    return there
