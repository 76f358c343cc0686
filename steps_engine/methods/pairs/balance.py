"""What margins get under ε where few pairs can be afforded: more than if noise could leave ever more wrong.

division.py has errors grow as 1/part. They do not: of a dependence D noise x leaves D·x/(D + x) wrong, at most D, and margins
misplace at most half of the rows. The part with the least error of this kind is right if dependence is no stronger than the
plan assumes; that of division.py if it has no bound. Data are in between, and so is the part: half way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from schemas.spec.domain import Domain
from steps_engine.accounting.measures import PURE
from steps_engine.accounting.plans import Allowance
from steps_engine.methods.pairs.division import DECAY, STRONGEST, Division, candidates, elected_alone, left, margin_errors
from steps_engine.methods.pairs.structure import Table

PARTS = tuple(Fraction(part, 20) for part in range(1, 20))


def balanced(domain: Domain, allowance: Allowance, divided: Division, declared: Sequence[Table]) -> Division:
    """From public inputs. Plans with declared tables, whose intervals were measured as they are, stay; so do those under ρ and
    those of all pairs, where a few percent at most are predicted to be gained.
    """
    if allowance.measure is not PURE or declared or not divided.elected:
        return divided
    least = min(PARTS, key=lambda part: predicted(domain, allowance, divided.elected, float(part)))
    return replace(divided, margins=(divided.margins + least) / 2)


def predicted(domain: Domain, allowance: Allowance, elected: int, part: float) -> float:
    """The part of a pair's rows that is misplaced, where margins have so much under ε: by their noise, by that of the elected
    pairs, which are the strongest, and by what is not measured.
    """
    cost, chosen = float(allowance.total) / len(allowance.served), elected / len(candidates(domain))
    first = float(margin_errors(domain, allowance, cost * part).mean())
    noise = np.array(elected * elected_alone(domain, allowance, cost * (1 - part)))
    unmeasured = STRONGEST / DECAY * (math.exp(-DECAY * chosen) - math.exp(-DECAY))
    return first + float(left(noise, 0.0, chosen)) + unmeasured
