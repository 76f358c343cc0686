"""How pairs would do under `auto`, predicted from public inputs.

The two-way distance that its plan expects, and what three or more attributes have in common beyond their pairs, which is not
measured.
"""

from __future__ import annotations

from schemas.spec.release import Release
from steps_engine.accounting.plans import allowance_of
from steps_engine.cube import MOST_DIMENSIONS
from steps_engine.methods.pairs.division import candidates, division
from steps_engine.methods.pairs.spec import PairsSpec
from steps_engine.methods.protocol import Candidate
from steps_engine.scores import MOST_ROWS

BEYOND = 0.018  # the part of the rows that this moves in a small margin, times the attributes: the more, the less it is


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
    divided = division(domain, allowance_of(release.asking(spec)), None)
    what = f"{divided.elected} elected pairs" if divided.elected else f"all {possible} pairs"
    return Candidate(spec, float(f"{min(divided.error + BEYOND / len(domain.sizes), 1.0):.3g}"), f"noise of margins and {what}")
