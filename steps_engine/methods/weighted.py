"""Counts of units as counts of people: multiplied by the step, with what rounding to whole units may add to their errors.

Noise has its own law; rounding has mean 0 and, of x units in a number of cells, a variance of at most `rounding`·x and of a
quarter per cell (PRIVACY.md, `weights_sql.rounded`). x is not known: its upper end stands for it, or a small cell in which
nothing was found would be told without an error. Both are told together, as half of an interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import numpy as np

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.domain.columns import column_of, with_derived
from steps_engine.methods.tabulated import Asked, Tabulated
from steps_engine.methods.views import Branch, LevelView, Margin, Sketch, Total, View

NORMAL = 1.96  # standard errors that hold 95 % of a sum of many small errors
MOST_CELLS = 2**62
Shown = TypeVar("Shown", Margin, LevelView)


def rounding_variance(found: np.ndarray, half: np.ndarray, within: int, domain: Domain) -> np.ndarray:
    """The most that rounding adds to the variance of counts of units, each of so many cells of the domain.

    Of noise a count has at most t = found + half, and of rounding x ≤ t + z·√(r·x): x is at most what solves this. Where every
    household has a lot of its own, cells bound nothing.
    """
    assert domain.weighing is not None
    rounding = float(domain.weighing.rounding)
    least = NORMAL * rounding**0.5 / 2
    most = (least + np.sqrt(least**2 + np.maximum(found + half, 0.0))) ** 2
    of_cells = math.inf if domain.weighing.by_household else min(within, MOST_CELLS) / 4
    return np.asarray(np.minimum(rounding * most, of_cells))


def _within(classes: Mapping[int, np.ndarray], domain: Domain) -> int:
    """Cells of the domain that a cell of a table has at most: those of the other attributes, times the widest classes."""
    widest = (int(np.bincount(held[held >= 0]).max()) for held in classes.values())
    others = domain.all_cells // math.prod(domain.sizes[j] for j in classes)
    return others * math.prod(widest)


def _within_column(name: str, domain: Domain) -> int:
    """Of a category of an attribute, or of what follows from one, such as a level of places."""
    column = column_of(name, domain)
    return _within({column.source: column.codes}, domain)


def table_in_people(found: Tabulated, asked: Asked, domain: Domain) -> Tabulated:
    """A table of units as one of people; of all units in a cell and in the whole table the same ones are rounded."""
    if domain.weighing is None:
        return found
    step, within = float(domain.weighing.step), _within({j: asked.class_of(j, domain) for j in asked.attributes}, domain)
    added = rounding_variance(found.estimate, found.half, within, domain)
    whole = _added(found.whole, NORMAL * found.whole_variance**0.5, domain)
    return replace(
        found,
        estimate=step * found.estimate,
        variance=step**2 * (found.variance + added),
        cross=step**2 * (found.cross + np.minimum(added, whole)),
        whole=step * found.whole,
        whole_variance=step**2 * (found.whole_variance + whole),
        reach=step * np.hypot(found.half, NORMAL * np.sqrt(added)),
    )


def sketch_in_units(sketch: Sketch, plan: Plan) -> Sketch:
    """A plan at a glance, with what its scales and errors are counted in."""
    if plan.weight is None:
        return sketch
    step, units = float(plan.weight.step), plan.units_per_person
    who, members = "people", ""
    if plan.at_most is not None:
        who, members = "households", f", its other members together as up to {(plan.at_most - 1) * units:,}"
    counts = f"one {plan.unit} counts as up to {units:,} units{members}"
    remark = f"weights   a unit, and a synthetic row, stands for {step:.6g} {who}; {counts}"
    return replace(sketch, remarks=(*sketch.remarks, f"{remark}; scales and errors are in units"))


def in_people(view: View, domain: Domain) -> View:
    """What the page shows, with counts of people in the population."""
    if (weighing := domain.weighing) is None:
        return view
    step, factor = float(weighing.step), float(weighing.inflation)
    most = "up to" if weighing.effect is None else "by the survey's design effect about"
    remark = (
        f"{_stands_for(step, domain)}, those in the Parquet tables of such rows. Sampling makes differences that are "
        f"{most} {factor**0.5:.2g} times as large as between independent rows; what is called clear of chance takes them as "
        "such."
    )
    return replace(
        view,
        total=_total(view.total, step, domain),
        margins=tuple(_counted(each, each.attribute, step, domain) for each in view.margins),
        derived=tuple(_counted(each, each.attribute, step, domain) for each in view.derived),
        tree=_branch(view.tree, step, domain) if view.tree else None,
        levels=tuple(_counted(each, each.level, step, domain) for each in view.levels),
        remarks=(remark, *view.remarks),
    )


def _stands_for(step: float, domain: Domain) -> str:
    if domain.tables is None:
        return (
            f"Records have weights, and every synthetic row stands for {step:.6g} people of the population: counts shown here "
            "are of people"
        )
    return (
        f"Households have weights, and every synthetic one, with everybody in it, stands for {step:.6g} households of the "
        "population: counts shown here are of households, and of persons, of the population"
    )


def _added(found: float, half: float, domain: Domain) -> float:
    return float(rounding_variance(np.array([found]), np.array([half]), domain.all_cells, domain)[0])


def _total(total: Total, step: float, domain: Domain) -> Total:
    added = _added(total.estimate, total.half, domain)
    error, half = np.hypot(total.error, added**0.5), np.hypot(total.half, NORMAL * added**0.5)
    return Total(step * total.estimate, float(step * error), total.rows, float(step * half))


def _counted(shown: Shown, column: str, step: float, domain: Domain) -> Shown:
    """The categories of an attribute, of what follows from one, or the places of a level; of linked tables members' too."""
    if domain.tables is not None and column not in with_derived(domain).names:
        domain = domain.counted
    added = rounding_variance(shown.estimate, shown.half, _within_column(column, domain), domain)
    return replace(
        shown,
        estimate=step * shown.estimate,
        error=step * np.hypot(shown.error, np.sqrt(added)),
        synthetic=step * shown.synthetic,
        reach=step * np.hypot(shown.half, NORMAL * np.sqrt(added)),
    )


def _branch(branch: Branch, step: float, domain: Domain) -> Branch:
    added = _added(branch.estimate, NORMAL * branch.error, domain)
    return replace(
        branch,
        estimate=step * branch.estimate,
        error=float(step * np.hypot(branch.error, added**0.5)),
        children=tuple(_branch(child, step, domain) for child in branch.children),
    )
