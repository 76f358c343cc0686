"""What the synthetic sets say of every analysis that was asked for: estimates with 95% intervals, combined over the sets.

A function of what is published, plan, domain and sets, so that anybody can compute it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from schemas.errors import SpecError
from schemas.plan import Analysis, AnalysisPlan, Plan
from schemas.results import AnalysisResult, Estimate
from schemas.spec.domain import Domain
from steps_engine.analyses.honesty import combining_of, honesty
from steps_engine.analyses.questions import model_of, seen_by
from steps_engine.analyses.seen import Seen, first_rows, first_seen
from steps_engine.analyses.weakened import weakened
from steps_engine.domain.blocks import blocks_of
from steps_engine.domain.cells import possible_cells
from steps_engine.domain.records import codes_of
from steps_engine.evaluation.combining import combine, interval, variance_of_shares
from steps_engine.evaluation.regression import INTERCEPT, fit

TOO_FEW = "Measured, but it cannot be computed: a set has too few rows of the kind it needs."
UNDETERMINED = "Measured, but the sets do not determine it: in one of them a coefficient could grow without bound."
Numbers = tuple[tuple[str, ...], np.ndarray, np.ndarray, np.ndarray]  # names, estimates, lower and upper ends


def results_of(plan: Plan, domain: Domain, sets: Sequence[Any], persons: Sequence[Any] = ()) -> tuple[AnalysisResult, ...]:
    """Of every analysis of a plan; what was not measured has no estimates. Sets may have more columns than are seen.

    `persons` are all persons of every set, where tables are linked and an analysis is of them.
    """
    kinds = {each.rows_of for each in plan.analyses}
    rows = {None: sets, "person": persons}
    found = {rows_of: iter(_results(plan, domain, rows_of, rows[rows_of])) for rows_of in kinds}
    return tuple(next(found[each.rows_of]) for each in plan.analyses)


def _results(plan: Plan, domain: Domain, rows_of: str | None, sets: Sequence[Any]) -> Iterator[AnalysisResult]:
    """Of those analyses that are of one kind of rows."""
    asked = [each for each in plan.analyses if each.rows_of == rows_of]
    seen, domain = set(columns_of(asked)), seen_by(asked[0], domain)
    whole, domain = domain, _narrow(domain, [j for j, name in enumerate(domain.names) if name in seen])
    first = [first_rows(records, domain.names) for records in sets] if any(not each.table for each in asked) else []
    codes = [codes_of(records, domain) for records in first]
    for each in asked:
        of = whole if each.table else domain  # what rules exclude is known to be empty
        yield _result(each, plan, whole, sets, _numbers(each, plan, of, sets, first, codes) if each.measured else None)


def _narrow(domain: Domain, places: Sequence[int]) -> Domain:
    """So many of its attributes, without anything that ties them together."""
    return domain.model_copy(update={"attributes": tuple(domain.attributes[j] for j in places), "rules": (), "derived": ()})


def columns_of(analyses: Sequence[AnalysisPlan]) -> tuple[str, ...]:
    """The attributes that measured analyses look at."""
    tables = (each.table or [name for table in each.needs for name in table.of] for each in analyses if each.measured)
    return tuple(sorted({name for table in tables for name in table}))


def _numbers(
    analysis: Analysis, plan: Plan, domain: Domain, sets: Sequence[Any], first: Sequence[pa.Table], codes: Sequence[np.ndarray]
) -> Numbers | None:
    """Estimates with their intervals; None where a set has too few rows to compute them."""
    try:
        return _cells(analysis, plan, domain, sets) if analysis.table else _fits(analysis, plan, domain, first, codes)
    except (SpecError, np.linalg.LinAlgError):
        return None


def trusted(analysis: AnalysisPlan, plan: Plan, domain: Domain, sets: Sequence[Any]) -> tuple[bool, str]:
    """Whether its intervals are honest, and why: by what was measured, and by what noise has left of it in the sets."""
    honest, why = honesty(analysis, plan)
    found = weakened(analysis.needs, domain, sets) if honest else None
    return (honest, why) if found is None else (False, str(found))


def _result(analysis: AnalysisPlan, plan: Plan, domain: Domain, sets: Sequence[Any], found: Numbers | None) -> AnalysisResult:
    honest, why = trusted(analysis, plan, domain, sets) if found else honesty(analysis, plan)
    width = _width(analysis, found) if found else None
    if analysis.measured and width is None:
        honest, why = False, UNDETERMINED if found else TOO_FEW
    return AnalysisResult(
        name=analysis.name,
        measured=analysis.measured,
        honest=honest,
        why=why,
        combining=combining_of(plan, analysis.rows_of is not None),
        expected_width=analysis.expected_width,
        achieved_width=width,
        estimates=_estimates(found) if found else (),
    )


def _counted(records: Any, domain: Domain, places: Sequence[int], sizes: Sequence[int]) -> np.ndarray:
    """How many rows of a set each cell of a table has."""
    narrow = _narrow(domain, places)
    counts = np.zeros(int(np.prod(sizes)), dtype=np.int64)
    for block in blocks_of(records, narrow.names):
        counts += np.bincount(np.ravel_multi_index(tuple(codes_of(block, narrow).T), sizes), minlength=len(counts))
    return counts


def _cells(analysis: Analysis, plan: Plan, domain: Domain, sets: Sequence[Any]) -> Numbers:
    """Every cell's share of the rows; the variance of sampling in a set is inflated by weights or households."""
    places = [domain.index(name) for name in analysis.table]
    sizes = [domain.sizes[j] for j in places]
    if not all(each.num_rows for each in sets):
        raise SpecError("a set has no rows")
    counts = np.stack([_counted(each, domain, places, sizes) for each in sets])
    possible = possible_cells(domain, places).ravel()
    shares = counts / counts.sum(axis=1, keepdims=True)
    combined = combine(shares, domain.inflation * variance_of_shares(counts, possible), plan.budget)
    labels = product(*(domain.attributes[j].labels for j in places))
    names = tuple(", ".join(f"{name} = {label}" for name, label in zip(analysis.table, cell, strict=True)) for cell in labels)
    low, high = interval(combined.value, combined.variance, combined.freedom)
    return names, combined.value, np.clip(low, 0, 1), np.clip(high, 0, 1)  # a share lies between 0 and 1


@dataclass(frozen=True)
class Fitted:
    """A model's coefficients, combined over the sets. `unknown`: a set does not determine one, or only on one side."""

    names: tuple[str, ...]
    value: np.ndarray
    variance: np.ndarray
    freedom: np.ndarray
    unknown: np.ndarray
    rows: tuple[int, ...]  # that it was fitted to, in each set


def fitted(analysis: Analysis, plan: Plan, domain: Domain, sets: Sequence[Seen]) -> Fitted:
    """The model on every set, combined as sets of this plan are."""
    fits = [fit(model_of(analysis), each.frame, each.weight) for each in sets]
    variances = domain.inflation * np.array([each.variance for each in fits])
    combined = combine(np.array([each.value for each in fits]), variances, plan.budget)
    freedom = np.minimum(combined.freedom, min(each.freedom for each in fits))
    unknown = np.any([each.separated for each in fits], axis=0) | ~np.isfinite(combined.value + combined.variance)
    rows = tuple(each.rows for each in sets)
    return Fitted(fits[0].names, combined.value, combined.variance, freedom, unknown, rows)


def _fits(analysis: Analysis, plan: Plan, domain: Domain, sets: Sequence[pa.Table], codes: Sequence[np.ndarray]) -> Numbers:
    """A coefficient that a set does not determine has no interval."""
    seen = [first_seen(analysis, domain, records, each) for records, each in zip(sets, codes, strict=True)]
    found = fitted(analysis, plan, domain, seen)
    ends = interval(found.value, found.variance, found.freedom)
    value, low, high = (np.where(found.unknown, np.nan, numbers) for numbers in (found.value, *ends))
    return found.names, value, low, high


def _width(analysis: Analysis, found: Numbers) -> float | None:
    """Half of an interval: the mean over cells, or the widest of the coefficients, the intercept aside."""
    names, _, low, high = found
    halves = (high - low) / 2
    if analysis.kind != "table":
        halves = np.array([half for name, half in zip(names, halves, strict=True) if name != INTERCEPT or len(names) == 1])
    halves = halves[np.isfinite(halves)]
    if not len(halves):
        return None
    return _written(float(halves.mean() if analysis.kind == "table" else halves.max()))


def _estimates(found: Numbers) -> tuple[Estimate, ...]:
    names, value, low, high = found
    return tuple(
        Estimate(name=name, estimate=_written(a), low=_written(b), high=_written(c))
        for name, a, b, c in zip(names, value.tolist(), low.tolist(), high.tolist(), strict=True)
    )


def _written(number: float) -> float | None:
    """Six digits: more than an interval bears."""
    return float(f"{number:.6g}") if np.isfinite(number) else None
