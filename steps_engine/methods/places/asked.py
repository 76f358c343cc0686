"""What is asked of the nation and of levels of places, from a release's analyses."""

from __future__ import annotations

from schemas.plan import Table
from schemas.spec.analyses import ModelAnalysis, TableAnalysis
from schemas.spec.release import Release
from steps_engine.analyses.needed import needed_by
from steps_engine.analyses.questions import question_of
from steps_engine.domain.places import Places
from steps_engine.inference.place_tables import MOST_BY_PLACE, Of
from steps_engine.methods.places.spec import PlacesSpec


def nation_release(release: Release, places: Places) -> Release:
    """What is asked of the nation alone: analyses that name no place, and of the others what they need beside places."""
    spec = release.spec
    assert isinstance(spec.method, PlacesSpec)
    asked = tuple(each for each in spec.analyses if not any(map(places.has_level, tables_of(each, places))))
    needed = [of for each in spec.analyses if each not in asked for of in tables_of(each, places)]
    beside = dict.fromkeys(places.without(of) for of in needed if len(of) <= 1 + MOST_BY_PLACE or not places.has_level(of))
    tables = tuple(TableAnalysis(table=of) for of in beside if len(of) > 1)
    named = {each.table for each in asked if isinstance(each, TableAnalysis)}
    update = {"method": spec.method.of_nation(), "analyses": (*asked, *(each for each in tables if each.table not in named))}
    return release.model_copy(update={"spec": spec.model_copy(update=update), "domain": places.nation})


def tables_of(analysis: TableAnalysis | ModelAnalysis, places: Places) -> tuple[Table, ...]:
    """The tables that an analysis needs, by names of attributes and levels."""
    return needed_by(question_of(analysis, places.domain), places.domain)


def wanted_levels(release: Release, places: Places) -> dict[Of, frozenset[int]]:
    """The levels that analyses name: of places by themselves, of attributes by place, and of two together at one level."""
    found: dict[Of, set[int]] = {}
    for table in (table for each in release.spec.analyses for table in tables_of(each, places)):
        levels = {places.levels.index(name) + 1 for name in table if name in places.levels}
        others = tuple(sorted(places.domain.index(name) for name in places.without(table)))
        together = len(others) == MOST_BY_PLACE and len(levels) == 1
        for of in [*((j,) for j in others), *([others] if together else [])] or [()]:
            found.setdefault(of, set()).update(levels)
    return {of: frozenset(levels) for of, levels in found.items()}
