"""The cascade in both measures: how a budget is divided, and what elections cost in noise."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest

from schemas.plan import Plan
from schemas.spec.domain import Domain
from schemas.spec.method import method_spec
from steps_engine.accounting.composition import ways_of
from steps_engine.accounting.mechanisms import PERMUTE_AND_FLIP
from steps_engine.methods.cascade.plan import LAYERS, PARTS
from steps_engine.methods.planning import make_plan
from steps_engine.studies.voter import EPSILONS, voter_domain
from tests.steps_engine.shapes import domain, release

ZCDP = {"delta": Decimal("1e-9")}


def plan_of(of: Domain, epsilon: str = "1", order=None, **privacy) -> Plan:
    return make_plan(release(of, method_spec(decomposition="cascade", order=order), epsilon, **privacy))


def noise_of_elections(plan: Plan, twice: int = 1) -> Fraction:
    return sum((twice * draw.scale for draw in plan.draws if draw.kind == "election"), Fraction(0))


def test_elections_at_a_small_epsilon_have_a_third_of_the_noise_under_zcdp():
    pure, zcdp = (plan_of(voter_domain(), EPSILONS[0], **privacy) for privacy in ({}, ZCDP))
    assert noise_of_elections(zcdp) < noise_of_elections(pure) / 3
    assert {draw.mechanism for draw in zcdp.draws if draw.kind == "election"} == {"exponential"}


def test_control_elections_by_permute_and_flip_would_not():
    pure, zcdp = (plan_of(voter_domain(), EPSILONS[0], **privacy) for privacy in ({}, ZCDP))
    one = next(draw for draw in zcdp.draws if draw.kind == "election")
    flipped = PERMUTE_AND_FLIP.prices["zcdp"].scale(one.sensitivity, one.cost)
    assert flipped / one.scale == pytest.approx(2)
    assert noise_of_elections(zcdp, twice=2) > noise_of_elections(pure) / 2


def least(error) -> float:
    return min(error(part / 1000) for part in range(1, 1000))


@pytest.mark.parametrize("worse", (1, 2), ids=("as good as permute-and-flip", "with twice its noise"))
def test_what_elections_get_of_rho_is_within_a_hundredth_of_the_least_error(worse):
    # The part of ε is best where elections' noise L/x and counts' noise 1/(1−x) weigh A : 1.
    odds = float(PARTS["pure"].elections / (1 - PARTS["pure"].elections))
    weight = odds**2 / LAYERS

    def error(part: float) -> float:
        return weight * worse * math.sqrt(LAYERS / (8 * part)) + math.sqrt(1 / math.pi / (1 - part))

    assert error(float(PARTS["zcdp"].elections)) < 1.01 * least(error)


def test_what_the_total_gets_of_rho_is_within_a_hundredth_of_the_least_error():
    odds = float(PARTS["pure"].total / (1 - PARTS["pure"].total))

    def error(part: float) -> float:
        return odds**2 / math.sqrt(part) + 1 / math.sqrt(1 - part)

    assert error(float(PARTS["zcdp"].total)) < 1.01 * least(error)


@pytest.mark.parametrize("order", (None, "elected"))
@pytest.mark.parametrize("rows", (None, 10_000))
def test_each_measure_has_its_own_parts_and_costs_what_is_charged(order, rows):
    of = domain(2, 3, 4, expected_rows=rows) if rows else domain(2, 3, 4)
    for name, privacy in (("pure", {}), ("zcdp", ZCDP)):
        plan, parts = plan_of(of, order=order, **privacy), PARTS[name]
        total = Fraction(plan.cost)
        assert ways_of(plan.draws).dearest == total
        assert plan.election is not None and plan.election.share == parts.elections
        first = [draw.cost for draw in plan.draws if draw.name == "total"]
        assert first == ([] if rows else [parts.total * total])
        placing = [draw.cost for draw in plan.draws if draw.kind == "election" and draw.tree is None]
        assert sum(placing) == (parts.order * total if order else 0)
