"""What a bundle says of the analyses that its author asked for: computed from the sets that it publishes, nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from schemas.manifest import Manifest
from schemas.plan import AnalysisPlan, Plan
from schemas.results import AnalysisResult, Estimate
from schemas.spec.domain import Domain
from schemas.tables import PERSON
from steps_engine.analyses.results import results_of
from steps_engine.domain.linked_records import Everybody
from tasks.publishing import bundle
from tasks.tables_on_disk import Stored

MOST_SHOWN = 60  # estimates of one analysis on the page; all of them stand in the manifest


def analyses_of(plan: Plan, domain: Domain, tables: Mapping[str, bundle.Content]) -> tuple[AnalysisResult, ...]:
    """The results of a plan's analyses, from its sets."""
    if not plan.analyses:
        return ()
    sets = [_opened(tables[f"synthetic-{i}"]) for i in range(1, plan.sets + 1)]
    persons = list[Everybody]()
    if any(each.rows_of is not None for each in plan.analyses):
        of_sets = (_opened(tables[f"{PERSON}-{i}"]) for i in range(1, plan.sets + 1))
        persons = [Everybody(domain, rows, each) for rows, each in zip(sets, of_sets, strict=True)]
    return results_of(plan, domain, sets, persons)


def _opened(table: bundle.Content) -> Any:
    return Stored(table) if isinstance(table, Path) else bundle.read_table(table)


def analysis_views(manifest: Manifest, plan: Plan) -> Iterator[dict[str, Any]]:
    """Of every analysis what the page shows: how it was measured, and its estimates."""
    for planned, result in zip(plan.analyses, manifest.analyses, strict=True):
        yield {
            "name": result.name,
            "kind": "table" if planned.kind == "table" else f"{planned.kind} regression",
            "measured": result.measured,
            "honest": result.honest,
            "why": result.why,
            "share": f"{100 * float(planned.share):.3g} %",
            "expected": _width(planned, result.expected_width),
            "achieved": _width(planned, result.achieved_width),
            "quantity": _quantity(planned),
            "intervals": _intervals(plan, result),
            "undetermined": _undetermined(result),
            "rows": [_row(planned, each) for each in result.estimates[:MOST_SHOWN]],
            "more": max(len(result.estimates) - MOST_SHOWN, 0),
        }


def _quantity(planned: AnalysisPlan) -> str:
    if planned.kind != "table":
        return "coefficient"
    return "share of all rows" if planned.rows_of is None else "share of all persons"


def _intervals(plan: Plan, result: AnalysisResult) -> str:
    if result.honest:
        return "honest"
    if not result.measured:
        return "none: the data do not say"
    return "not honest" if plan.at_most is None else "not known to cover"


def _undetermined(result: AnalysisResult) -> list[str]:
    """Coefficients without an estimate, where others have one."""
    return [each.name for each in result.estimates if each.estimate is None]


def _width(planned: AnalysisPlan, width: float | None) -> str:
    return "not known" if width is None else f"± {_figure(planned, width)}"


def _row(planned: AnalysisPlan, each: Estimate) -> dict[str, str]:
    if each.estimate is None or each.low is None or each.high is None:
        return {"name": each.name, "estimate": "not determined", "interval": ""}
    interval = f"{_figure(planned, each.low)} to {_figure(planned, each.high)}"
    return {"name": each.name, "estimate": _figure(planned, each.estimate), "interval": interval}


def _figure(planned: AnalysisPlan, value: float) -> str:
    """A share in percent, a coefficient as it is."""
    shown = f"{100 * value:.2f} %" if planned.kind == "table" else f"{value:.3g}"
    return shown.replace("-", "−")
