"""How pairs would do under `auto`, predicted from public inputs.

The two-way distance that its plan expects, and a three-way distance of that and of what chance puts beyond pairs, as far as it
is not measured.
"""

from __future__ import annotations

from schemas.spec.release import Release
from steps_engine.accounting.plans import allowance_of
from steps_engine.cube import MOST_DIMENSIONS
from steps_engine.methods.pairs.balance import balanced
from steps_engine.methods.pairs.division import candidates, division
from steps_engine.methods.pairs.plan import paying
from steps_engine.methods.pairs.spec import PairsSpec
from steps_engine.methods.pairs.triples import distances
from steps_engine.methods.protocol import Candidate, of_small_margins
from steps_engine.scores import MOST_ROWS


def candidate(release: Release) -> Candidate | None:
    """None where there is no pair to measure."""
    spec, domain = PairsSpec(sets=release.spec.method.sets), release.domain
    possible = len(candidates(domain))
    if not possible:
        return None
    if possible > MOST_DIMENSIONS:
        return Candidate(spec, 1.0, f"{possible:,} pairs are more than can be measured together")
    if (domain.expected_units or 0) > MOST_ROWS:
        return Candidate(spec, 1.0, "more rows than its elections are exact for")
    allowance = allowance_of(release.asking(spec))
    divided = balanced(domain, allowance, division(domain, allowance, None), None, ())
    third = paying(domain, allowance, divided, None, ())
    what = f"{divided.elected} elected pairs" if divided.elected else f"all {possible} pairs"
    what += f" and {len(third.tables)} triples" if third.tables else ""
    return Candidate(spec, of_small_margins(*distances(domain, allowance, divided, third)), f"noise of margins and {what}")
