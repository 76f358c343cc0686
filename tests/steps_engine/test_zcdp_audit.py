"""ρ, tried on the worst neighbours known: honest draws keep every (ε, δ) and every Rényi divergence, lies are caught.

Controls: σ too small by a fifth, elections at twice their rate, k rows paid for as if ρ grew by k instead of k².
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from steps_engine.accounting.mechanisms import COUNTS, ELECTIONS, GAUSSIAN, TWO_SIDED_GEOMETRIC
from steps_engine.noise import SeededRandomness
from tests import zcdp_audit as audit
from tests.steps_engine.test_noise import ACCEPTED, REJECTED
from tests.zcdp_audit import Count, Election, Evidence, breaks, excess, keeps, losses_of

RUNS = 100 * int(os.environ.get("STEPS_AUDIT_TRIALS", 4000))
ONE, HALF, FIFTH_LESS = Fraction(1), Fraction(1, 2), Fraction(4, 5)
SPREAD = Fraction(2)  # of one row


def counted(rho: Fraction, rows: int = 1, replaced: bool = False, mechanism: str = GAUSSIAN.name) -> list[Evidence]:
    """All rows of a person in one node; under substitution they leave it for another."""
    law = COUNTS[mechanism]
    scale = law.prices["zcdp"].scale(law.sensitivity(rows, replaced), rho)
    return [Count(mechanism, scale, rows), Count(mechanism, scale, -rows)][: 1 + replaced]


def elected(
    rho: Fraction, mechanism: str = "exponential", rows: int = 1, replaced: bool = False, at: float = 0.5
) -> list[Evidence]:
    """All rows move one of two scores as far as they can, past the other's: tied with it after a part `at` of the way."""
    sensitivity = (2 if replaced else 1) * rows * SPREAD
    scale = ELECTIONS[mechanism].prices["zcdp"].scale(sensitivity, rho)
    return [
        Election(mechanism, sensitivity, scale, (float(sensitivity), at * float(sensitivity)), (0.0, at * float(sensitivity)))
    ]


def several(rho: Fraction, elections: Fraction = Fraction(1, 10)) -> list[Evidence]:
    """Eight counts and four elections, which have this part of ρ."""
    return counted(rho * (1 - elections) / 8) * 8 + elected(rho * elections / 4) * 4


def less_noise(draws: Sequence[Evidence]) -> list[Evidence]:
    return [audit.with_less_noise(draw, FIFTH_LESS) for draw in draws]


def faster(draws: Sequence[Evidence]) -> list[Evidence]:
    return [audit.with_faster_election(draw, 2) for draw in draws]


def by_k(rho: Fraction, rows: int, replaced: bool = False) -> list[Evidence]:
    """Noise for k rows as if ρ grew by k."""
    return [Count(GAUSSIAN.name, rows * draw.scale, rows * draw.shift) for draw in counted(rho, 1, replaced)]


HONEST = {
    "a Gaussian count": counted,
    "three rows in a count": lambda rho: counted(rho, 3),
    "a count under substitution": lambda rho: counted(rho, 1, True),
    "three rows in a count under substitution": lambda rho: counted(rho, 3, True),
    "an election": elected,
    "an election of an unlikely one": lambda rho: elected(rho, at=1.5),
    "three rows in an election under substitution": lambda rho: elected(rho, rows=3, replaced=True),
    "permute-and-flip": lambda rho: elected(rho, "permute_and_flip", at=1.0),
    "a two-sided geometric count": lambda rho: counted(rho, mechanism=TWO_SIDED_GEOMETRIC.name),
    "eight counts and four elections": several,
    "sixteen elections": lambda rho: elected(rho / 16) * 16,
}
CONTROLS = {
    "σ too small by a fifth": lambda rho: less_noise(counted(rho)),
    "σ too small by a fifth, substitution": lambda rho: less_noise(counted(rho, 3, True)),
    "eight counts with σ too small by a fifth": lambda rho: less_noise(several(rho)),
    "sixteen elections at twice their rate": lambda rho: faster(elected(rho / 16) * 16),
    "k instead of k²": lambda rho: by_k(rho, 3),
    "k instead of k², substitution": lambda rho: by_k(rho, 3, True),
    "sixteen elections priced as for add/remove under substitution": lambda rho: [
        replace(draw, one=(2 * draw.one[0], draw.one[0]), other=(0.0, draw.one[0])) for draw in elected(rho / 16) * 16
    ],
    "a count priced as for add/remove under substitution": lambda rho: [
        Count(d.mechanism, d.scale, shift * d.shift) for d in counted(rho) for shift in (1, -1)
    ],
}


# --- exactly


@pytest.mark.parametrize("rho", [Fraction(1, 100), HALF, Fraction(2)])
@pytest.mark.parametrize("case", HONEST)
def test_every_promise_of_rho_holds_exactly(case, rho):
    assert keeps(HONEST[case](rho), rho)


@pytest.mark.parametrize("rho", [Fraction(1, 100), HALF, Fraction(2)])
@pytest.mark.parametrize("case", CONTROLS)
def test_control_less_than_is_paid_for_is_caught_exactly_at_every_small_delta(case, rho):
    assert breaks(CONTROLS[case](rho), rho, (1e-9, 1e-6, 1e-3))


@pytest.mark.parametrize("rho", [Fraction(1, 100), HALF])
@pytest.mark.parametrize("mechanism", ["exponential", "permute_and_flip"])
def test_control_one_election_at_twice_its_rate_is_caught_by_its_divergence(mechanism, rho):
    """Its loss is bounded, so that no small δ need show it."""
    draws = elected(rho, mechanism, at=0.5 if mechanism == "exponential" else 1.0)
    assert keeps(draws, rho) and not keeps(faster(draws), rho)


@pytest.mark.parametrize("case", [case for case in HONEST if "unlikely" not in case])
def test_the_pairs_lose_nearly_all_that_is_paid_for(case):
    """So that a promise of less would be caught: the factors of k rows and of substitution are reached, 2 and 4."""
    rho = Fraction(1, 1000)
    reached = losses_of(HONEST[case](rho), up=True).divergence(2.0) / (2 * float(rho))
    assert reached > 0.95


def test_permute_and_flip_at_the_price_of_the_exponential_mechanism_is_caught():
    rho = Fraction(1, 100)
    (cheap,) = elected(rho)
    assert not keeps([replace(cheap, mechanism="permute_and_flip", one=(0.0, 0.0), other=(0.0, 2.0))], rho)


# --- sampled from the real mechanisms


def fit(sampled: np.ndarray, law: Evidence) -> float:
    """How well losses of real draws fit what the law of the one side says of them."""
    one, other = law.chances()
    values, place = np.unique(np.round(np.log(one / other), 6), return_inverse=True)
    chance, found = np.bincount(place, weights=one), np.searchsorted(values, np.round(sampled, 6))
    assert (values[np.minimum(found, len(values) - 1)] == np.round(sampled, 6)).all()
    observed, expected = np.bincount(found, minlength=len(values)), chance * len(sampled)
    kept = expected > 5
    both = [np.append(part[kept], part[~kept].sum() + 1) for part in (observed, expected)]
    return float(stats.chisquare(both[0], both[1] * both[0].sum() / both[1].sum()).pvalue)


@pytest.mark.parametrize("case", [case for case in HONEST if len(HONEST[case](ONE)) == 1])
def test_what_is_sampled_has_the_law_that_is_summed_and_not_that_of_the_other_side(case):
    (draw,) = HONEST[case](ONE)
    one, other = draw.sampled(RUNS // 4, SeededRandomness("law"))
    assert fit(one, draw) > ACCEPTED and fit(-other, audit.Reversed(draw)) > ACCEPTED
    assert fit(other, draw) < REJECTED


@pytest.mark.parametrize("case", [case for case in HONEST if "sixteen" not in case])
@pytest.mark.whole
def test_real_draws_show_no_more_than_is_promised(case):
    assert excess(HONEST[case](ONE), ONE, RUNS, case) <= 0


SAMPLED = {case: make for case, make in CONTROLS.items() if "sixteen" not in case} | {
    "an election at twice its rate": lambda rho: faster(elected(rho, at=1.5)),
    "eight counts and four elections, these at twice their rate": lambda rho: faster(several(rho, HALF)),
}


@pytest.mark.parametrize("case", SAMPLED)
@pytest.mark.whole
def test_control_less_than_is_paid_for_shows_in_real_draws(case):
    assert excess(SAMPLED[case](ONE), ONE, RUNS, case) > 0
