"""How places would do under `auto`: taken where a domain has a geography, since no other method tells of its levels."""

from __future__ import annotations

from dataclasses import replace

from schemas.errors import SpecError
from schemas.spec.release import Release
from steps_engine.accounting.plans import allowance_of
from steps_engine.domain.places import places_of
from steps_engine.methods.pairs.division import ASSUMED_ROWS, MEAN_SIZE, division
from steps_engine.methods.places.plan import must_be_possible
from steps_engine.methods.places.shares import parts
from steps_engine.methods.places.spec import PlacesSpec
from steps_engine.methods.protocol import Candidate


def candidate(release: Release) -> Candidate | None:
    """None without a geography, or where its levels cannot be measured."""
    if not release.domain.geographies:
        return None
    spec, places = PlacesSpec(sets=release.spec.method.sets), places_of(release.domain)
    try:
        must_be_possible(places)
    except SpecError:
        return None
    allowance = allowance_of(release.asking(spec))
    divided = parts(places, allowance, {})
    nation = division(places.nation, replace(allowance, total=divided.nation * allowance.total), None).error
    each = float(divided.places * allowance.total) / len(allowance.served) / places.finest
    times = (2 if allowance.replaced else 1) * allowance.rows
    noise = times / each if allowance.measure.name == "pure" else times / (2 * each) ** 0.5
    rows = release.domain.expected_units or ASSUMED_ROWS
    error = min(nation + MEAN_SIZE * noise * places.sizes[-1] / rows, 1.0)
    return Candidate(spec, float(f"{error:.3g}"), f"the levels of {places.name} are measured, which no other method does")
