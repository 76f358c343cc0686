"""Checks of what a release says of its analyses: which tables they need, which of them were measured, and every estimate.

The tables and what is measured are read from the formula and the draws here, the estimates are computed again from the sets.
What was expected of widths is a prediction; the plan that has it was hashed before the draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import isclose, prod
from pathlib import Path
from typing import Any

from schemas import tables
from schemas.plan import Analysis, Plan
from schemas.results import AnalysisResult
from schemas.spec.domain import Domain
from steps_engine.analyses.needed import needed_by
from steps_engine.analyses.questions import name_of
from steps_engine.analyses.results import results_of
from steps_engine.domain.cells import Space
from steps_engine.domain.linked import measured_members
from steps_engine.domain.linked_records import Everybody
from steps_engine.domain.places import with_levels
from steps_engine.domain.settled import is_settled
from steps_engine.methods.checked import Findings
from tasks.publishing import bundle
from tasks.verify.files import open_table

MOST_ANALYSES = 100
MOST_CELLS = 10_000  # of a table that is measured for an analysis
ONE_TREE = frozenset({"tree", "flat", "uh"})  # methods whose leaves are cells of all attributes
BY_PLACE = frozenset({"places", "households"})  # methods whose counts are of levels of places
MOST_BY_PLACE = 2  # attributes that are counted by place together
COUNTED = frozenset({"two_sided_geometric"})
CLOSE = 1e-3  # of an interval's width: further than machines differ, and too little to mislead


def check_analyses(
    files: Mapping[str, Path], manifest: bundle.AnyManifest, plan: Plan, domain: Domain, found: Findings
) -> None:
    """What plan and manifest say of analyses, where there are any; sets that cannot be read are told elsewhere."""
    said: tuple[AnalysisResult, ...] = getattr(manifest, "analyses", ())
    if not plan.analyses and not said:
        return
    found.collect(bundle.PLAN, planned_problems, plan, domain)
    kinds = ["synthetic", *(tables.linked(domain) and [tables.PERSON])]
    names = [[f"{kind}-{number}.parquet" for number in range(1, plan.sets + 1)] for kind in kinds]
    if all(name in files for each in names for name in each):
        found.collect(bundle.MANIFEST, _published_problems, said, plan, domain, [[files[name] for name in n] for n in names])


def planned_problems(plan: Plan, domain: Domain) -> Iterator[str]:
    """An analysis needs the tables that follow from it, and those are measured whose every part is."""
    if len(plan.analyses) > MOST_ANALYSES:
        raise ValueError(f"a plan has at most {MOST_ANALYSES} analyses")
    for analysis in plan.analyses:
        if (analysis.rows_of is not None) != _names_persons(analysis, domain):
            yield f"analysis {analysis.name!r} is said to be of other rows than those that have its attributes"
            continue
        needed = needed_by(analysis, domain)
        if analysis.name != name_of(analysis):
            yield f"analysis {analysis.name!r} is called by another name than what it asks"
        if tuple(table.of for table in analysis.needs) != needed:
            yield f"analysis {analysis.name!r} does not name the tables that it needs"
        for table in analysis.needs:
            if table.measured and not _is_measured(table.of, plan, domain):
                yield f"analysis {analysis.name!r}: the table of {', '.join(table.of)} is not measured, and the plan says it is"
        if analysis.measured and not all(table.measured for table in analysis.needs):
            yield f"analysis {analysis.name!r} is called measured, and not all of its tables are"


def _names_persons(analysis: Analysis, domain: Domain) -> bool:
    """Whether an analysis of linked tables is of persons: it names an attribute that household rows do not have."""
    named = analysis.table or [name for table in needed_by(analysis, domain) for name in table]
    return domain.tables is not None and not set(named) <= {*domain.names, *domain.coarser}


def _is_measured(table: Sequence[str], plan: Plan, domain: Domain) -> bool:
    """Where tables are drawn, a draw or the rules tell of every part of this one; in one tree, leaves hold every attribute.

    Of linked tables those draws alone that are of the rows which have these attributes: of other members, or of households.
    """
    of_members = domain.tables is not None and not set(table) <= {*domain.names, *domain.coarser}
    domain = measured_members(domain) if of_members else domain
    if not set(table) <= set(with_levels(domain).names):  # members by other places than those of the coarsest level
        return False
    draws = [draw for draw in plan.draws if (draw.rows_of is not None) == of_members]
    seen = with_levels(domain)
    sizes = {name: size for name in table if (size := seen.sizes[seen.index(name)]) > 1}  # one category leaves nothing to tell
    table = sorted(sizes)
    if not table or prod(sizes.values()) > MOST_CELLS:
        return not table
    if domain.geographies and plan.decomposition in BY_PLACE and (levels := _levels(domain).intersection(table)):
        return _is_counted_by_place([name for name in table if name not in levels], levels, plan, domain)
    drawn = {frozenset(of) for draw in draws for of in draw.tables}
    if not drawn:
        whole = plan.decomposition in ONE_TREE and not (plan.election is not None and plan.election.stop)
        return whole and all(draw.threshold is None for draw in plan.draws)
    wanted = (frozenset(part) for size in range(1, len(table) + 1) for part in combinations(table, size))
    # Of larger tables under ε counts are drawn, which tell of all their parts.
    counted = [set(of) for draw in draws if draw.mechanism in COUNTED for of in draw.tables if len(of) > 2]
    untold = [part for part in wanted if part not in drawn and not any(part <= of for of in counted)]
    space = Space(domain)
    return all(is_settled(space, tuple(sorted(map(domain.index, part)))) for part in untold)


def _levels(domain: Domain) -> frozenset[str]:
    return frozenset((*(each.name for each in with_levels(domain).attributes[len(domain.names) :]), _place(domain)))


def _place(domain: Domain) -> str:
    return domain.names[domain.geographies[0]]


def _is_counted_by_place(others: Sequence[str], levels: frozenset[str], plan: Plan, domain: Domain) -> bool:
    """One level, by two attributes at most: a tree of these has counts of the level, by its place among the levels."""
    if len(levels) > 1 or len(others) > MOST_BY_PLACE:
        return False
    ordered = [*(each.name for each in with_levels(domain).attributes[len(domain.names) :]), _place(domain)]
    tree = " × ".join((_place(domain), *sorted(others, key=domain.index)))
    (level,) = levels
    return any(draw.tree == tree and draw.layer == ordered.index(level) + 1 for draw in plan.draws if draw.of is None)


def _published_problems(
    said: tuple[AnalysisResult, ...], plan: Plan, domain: Domain, files: Sequence[Sequence[Path]]
) -> Iterator[str]:
    sets, persons = [open_table(path, tables.records(domain)) for path in files[0]], list[Everybody]()
    if any(each.rows_of is not None for each in plan.analyses):
        of_sets = (open_table(path, tables.persons(domain)) for path in files[1])
        persons = [Everybody(domain, rows, each) for rows, each in zip(sets, of_sets, strict=True)]
    yield from result_problems(said, plan, domain, sets, persons)


def result_problems(
    said: Sequence[AnalysisResult], plan: Plan, domain: Domain, sets: Sequence[Any], persons: Sequence[Any] = ()
) -> Iterator[str]:
    """The manifest says of every analysis what the sets say."""
    computed = results_of(plan, domain, sets, persons)
    if [each.name for each in said] != [each.name for each in plan.analyses]:
        yield "does not report the analyses that the plan names"
        return
    for told, truth in zip(said, computed, strict=True):
        words = ("measured", "honest", "why", "combining", "expected_width")
        if any(getattr(told, word) != getattr(truth, word) for word in words):
            yield f"analysis {told.name!r}: whether it was measured, or its intervals are honest, is told wrong"
        if not _agree(told, truth):
            yield f"analysis {told.name!r}: the estimates are not those that the sets give"


def _agree(told: AnalysisResult, truth: AnalysisResult) -> bool:
    if [each.name for each in told.estimates] != [each.name for each in truth.estimates]:
        return False
    pairs = [(told.achieved_width, truth.achieved_width, truth.achieved_width or 0.0)]
    for a, b in zip(told.estimates, truth.estimates, strict=True):
        width = (b.high or 0.0) - (b.low or 0.0)
        pairs += [(a.estimate, b.estimate, width), (a.low, b.low, width), (a.high, b.high, width)]
    return all(_near(a, b, width) for a, b, width in pairs)


def _near(told: float | None, truth: float | None, width: float) -> bool:
    if told is None or truth is None:
        return told is truth
    return isclose(told, truth, rel_tol=2e-6, abs_tol=CLOSE * width)
