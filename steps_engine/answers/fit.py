"""A model that somebody asks of a release: all sets, its own combining rule, and whether what the model needs was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.errors import SpecError
from schemas.plan import Analysis, AnalysisPlan, NeededTable, Plan
from schemas.plan import Table as Names
from schemas.spec.domain import Domain
from steps_engine.analyses.honesty import ALIKE, combining_of, of_persons
from steps_engine.analyses.measured import Measured
from steps_engine.analyses.needed import needed_by
from steps_engine.analyses.questions import MOST_CELLS, cells_of, model_of
from steps_engine.analyses.results import Fitted, fitted, trusted
from steps_engine.analyses.seen import Seen, seen_of
from steps_engine.domain.columns import column_of, with_derived
from steps_engine.evaluation.combining import interval
from steps_engine.evaluation.regression import variables
from steps_engine.methods.registry import method_of
from steps_engine.methods.tabulated import Tabulating


@dataclass(frozen=True)
class Fit:
    """A model's coefficients with 95 % intervals, and how far these can be trusted."""

    analysis: AnalysisPlan
    found: Fitted
    error: np.ndarray
    low: np.ndarray
    high: np.ndarray
    honest: bool  # all that it needs was measured, and intervals of such sets cover
    why: str
    combining: str
    first: int | None = None  # of a set's rows that were looked at, where more of them differ than are held


def columns_of(analysis: Analysis) -> tuple[str, ...]:
    """The attributes that a model looks at."""
    outcome, predictors = variables(model_of(analysis))
    return tuple(dict.fromkeys((outcome, *predictors, *analysis.where)))


def _must_be_free(analysis: Analysis, domain: Domain) -> None:
    """What a condition fixes, a model cannot ask about: not by another name either."""
    outcome, predictors = variables(model_of(analysis))
    for fixed, named in product(analysis.where, (outcome, *predictors)):
        if column_of(fixed, domain).source == column_of(named, domain).source:
            raise SpecError(f"where fixes {fixed!r}, and the model names {named!r}, which goes with it; take one of them out")


def fit_sets(analysis: Analysis, domain: Domain, plan: Plan, tables: Mapping[str, pa.Table], sets: Sequence[Any]) -> Fit:
    """`tables` are the structure and the noisy counts; of the sets, in memory or not, the columns are read that it names."""
    _must_be_free(analysis, domain)
    planned, seen = _as_planned(analysis, domain, plan, tables), set(columns_of(analysis))
    attributes = tuple(each for each in with_derived(domain).attributes if each.name in seen)
    narrow = domain.model_copy(update={"attributes": attributes, "rules": (), "derived": ()})
    rows = [seen_of(analysis, narrow, records) for records in sets]
    _must_have_rows(analysis, rows)
    try:
        found = fitted(analysis, plan, narrow, rows)
    except np.linalg.LinAlgError:
        raise SpecError(f"{analysis.name!r} cannot be fitted: a set has too few rows of the kind it needs") from None
    low, high = interval(found.value, found.variance, found.freedom)
    honest, why = trusted(planned, plan, domain, sets)
    persons = of_persons(domain, plan)
    why = f"{why} {ALIKE}" if persons else why
    errors, first = np.sqrt(found.variance), _first_of(sets, rows)
    return Fit(planned, found, errors, low, high, honest, why, combining_of(plan, persons), first)


def _must_have_rows(analysis: Analysis, sets: Sequence[Seen]) -> None:
    for number in (number for number, each in enumerate(sets, start=1) if not each.fulfilling):
        if not analysis.where:
            raise SpecError(f"set {number} has no row at all; no model can be fitted to it")
        said = analysis.name.partition(" where ")[2]
        raise SpecError(f"set {number} has no row that fulfils {said}; ask for a wider condition")


def _first_of(sets: Sequence[Any], seen: Sequence[Seen]) -> int | None:
    """How many rows were looked at where sets have more."""
    return min((each.read for each, records in zip(seen, sets, strict=True) if each.read < records.num_rows), default=None)


def _as_planned(analysis: Analysis, domain: Domain, plan: Plan, tables: Mapping[str, pa.Table]) -> AnalysisPlan:
    """The analysis as the plan has it, where the release's author named it; else by what was measured."""
    for each in plan.analyses:
        if (each.name, each.kind) == (analysis.name, analysis.kind):
            return each
    needed = _by_sources(needed_by(analysis, with_derived(domain)), domain)
    told = _measured(needed, domain, plan, tables)
    needs = tuple(NeededTable(of=of, measured=measured) for of, measured in zip(needed, told, strict=True))
    return AnalysisPlan(**analysis.model_dump(), needs=needs, measured=all(told), share=Fraction(0), expected_width=None)


def _by_sources(needed: Sequence[Names], domain: Domain) -> tuple[Names, ...]:
    """What follows from an attribute is known as well as that one: the tables of their sources, each once."""
    places = (sorted({column_of(name, domain).source for name in of}) for of in needed)
    return tuple(dict.fromkeys(tuple(domain.names[j] for j in of) for of in places))


def _measured(needed: Sequence[Names], domain: Domain, plan: Plan, tables: Mapping[str, pa.Table]) -> list[bool]:
    """By the published structure, which knows what was elected and grouped; of a method that cannot say, by the plan."""
    method = method_of(plan)
    if isinstance(method, Tabulating):
        numbers = [tuple(domain.index(name) for name in of) for of in needed]
        told = [not untold for untold in method.lacking(domain, plan, tables, numbers)]
    else:
        told = [Measured.of(domain, plan).holds(of) for of in needed]
    return [measured and cells_of(of, domain) <= MOST_CELLS for measured, of in zip(told, needed, strict=True)]
