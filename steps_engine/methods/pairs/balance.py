"""What margins get under ε where few pairs can be afforded, and how many are elected: what leaves least wrong, taken together.

division.py has errors grow as 1/part. They do not: of a dependence D noise x leaves D·x/(D + x) wrong, at most D, and margins
misplace at most half of the rows. So where noise drowns most pairs, a few of them and more for margins leave less wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from schemas.spec.domain import Domain
from steps_engine.accounting.measures import PURE
from steps_engine.accounting.plans import Allowance
from steps_engine.methods.pairs.division import DECAY, STRONGEST, Division, candidates, elected_alone, left, margin_errors
from steps_engine.methods.pairs.structure import Table

PARTS = tuple(Fraction(part, 20) for part in range(1, 20))


def balanced(
    domain: Domain, allowance: Allowance, divided: Division, asked: int | str | None, declared: Sequence[Table]
) -> Division:
    """From public inputs. Plans under ρ and those of all pairs stay, where a few percent at most are predicted to be gained; so
    does a number that was asked for. What declared tables get is taken out before, in plan.py: with them all stays as it is.
    """
    if allowance.measure is not PURE or declared or not divided.elected:
        return divided
    numbers = np.arange(1, len(candidates(domain))) if asked is None else np.array([divided.elected])
    wrong = np.array([predicted(domain, allowance, numbers, float(part)) for part in PARTS])
    part, which = np.unravel_index(np.argmin(wrong), wrong.shape)
    return Division(PARTS[part], int(numbers[which]), float(wrong[part, which]))


def predicted(domain: Domain, allowance: Allowance, elected: np.ndarray, part: float) -> np.ndarray:
    """The part of a pair's rows that is misplaced, for each number of elected pairs, where margins have so much under ε: by
    their noise, by that of the elected pairs, which are the strongest, and by what is not measured.
    """
    cost, chosen = float(allowance.total) / len(allowance.served), elected / len(candidates(domain))
    first = float(margin_errors(domain, allowance, cost * part).mean())
    noise = elected * elected_alone(domain, allowance, cost * (1 - part))
    unmeasured = STRONGEST / DECAY * (np.exp(-DECAY * chosen) - np.exp(-DECAY))
    wrong: np.ndarray = first + left(noise, 0.0, chosen) + unmeasured
    return wrong
