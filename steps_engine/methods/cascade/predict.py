"""How a cascade would do under `auto`, predicted from public inputs.

With c times the cells of its one-way margins, whose noise is x, it errs by c·x and leaves D/c of the dependence
unexplained; elections split until the two meet, at √(D·x).
"""

from __future__ import annotations

import math

from schemas.spec.release import Release
from steps_engine.accounting.mechanisms import noise_of
from steps_engine.accounting.plans import allowance_of
from steps_engine.methods.cascade.plan import outline
from steps_engine.methods.cascade.spec import CascadeSpec
from steps_engine.methods.pairs.triples import below_one, by_chance, three_way
from steps_engine.methods.protocol import Candidate, of_small_margins
from steps_engine.scores import MOST_ROWS

DEPENDENCE = 0.1  # D: the part of the rows that one-way margins alone would misplace, as a rule of thumb


def candidate(release: Release) -> Candidate:
    method, domain = release.spec.method, release.domain
    spec = CascadeSpec(order=method.named_groups() or None, sets=method.sets)
    if (domain.expected_units or 0) > MOST_ROWS:
        return Candidate(spec, 1.0, "more rows than its elections are exact for")
    if domain.expected_units is None:
        return Candidate(spec, DEPENDENCE, "does without expected_rows")
    asked = release.asking(spec)
    widest = {draw.tree: draw for draw in outline(asked, allowance_of(asked)).draws if draw.kind == "count" and draw.tree}
    noise = sum(domain.sizes[domain.index(name)] * noise_of(draw).mean_size for name, draw in widest.items())
    two = min(0.5, math.sqrt(DEPENDENCE * noise / (2 * domain.expected_units)))
    three = three_way(two, below_one(by_chance(domain, domain.sizes)))
    return Candidate(spec, of_small_margins(two, three), f"noise of {len(widest)} trees and dependence beyond them")
