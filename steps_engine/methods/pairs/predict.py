"""How pairs would do under `auto`, predicted from public inputs.

The two-way distance that its plan expects, and what three or more attributes have in common beyond their pairs, which is not
measured.
"""

from __future__ import annotations

from schemas.spec.release import Release
from steps_engine.accounting.plans import allowance_of
from steps_engine.methods.pairs.plan import division
from steps_engine.methods.pairs.spec import PairsSpec
from steps_engine.methods.protocol import Candidate
from steps_engine.scores import MOST_ROWS

BEYOND = 0.002  # the part of the rows that this moves in a small margin, as a rule of thumb


def candidate(release: Release) -> Candidate:
    spec, domain = PairsSpec(sets=release.spec.method.sets), release.domain
    if (domain.expected_rows or 0) > MOST_ROWS:
        return Candidate(spec, 1.0, "more rows than its elections are exact for")
    asked = release.asking(spec)
    divided = division(asked, allowance_of(asked))
    what = f"{divided.pairs} elected pairs" if divided.elected else f"all {divided.pairs} pairs"
    return Candidate(spec, float(f"{divided.error + BEYOND:.3g}"), f"noise of margins and {what}")
