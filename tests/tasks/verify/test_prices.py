"""Every rule of accounts in ρ by itself: a plan or a charge that breaks just that one, and the one sentence that says so."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from schemas.manifest import ChargeEntry, LedgerProof, Terms
from schemas.plan import Plan
from steps_engine.accounting.mechanisms import COUNTS, ELECTIONS, MAX_NORM
from tasks.verify.accounts import ledger_problems
from tasks.verify.prices import PRICES, owed, price_of
from tasks.verify.sensitivities import COUNTING, ELECTING, NotKnown, least_sensitivity
from tests.tasks.verify.test_accounts import changed, must_say, place_of, plan_of, problems

RHO = {"rho": "0.02", "delta": "1e-9"}


def in_rho(name: str, **privacy: Any) -> Plan:
    return plan_of(name, **RHO, **privacy)


# Prices


@pytest.mark.parametrize(
    ("measure", "mechanism", "price"),
    [
        ("pure", "two_sided_geometric", Fraction(1, 3)),
        ("pure", "permute_and_flip", Fraction(1, 3)),
        ("pure", "exponential", Fraction(1, 3)),
        ("zcdp", "two_sided_geometric", Fraction(1, 18)),
        ("zcdp", "permute_and_flip", Fraction(1, 18)),
        ("zcdp", "exponential", Fraction(1, 72)),
        ("zcdp", "discrete_gaussian", Fraction(1, 6)),
    ],
)
def test_what_a_draw_costs(measure, mechanism, price):
    draw = (
        in_rho("given").draws[0].model_copy(update={"mechanism": mechanism, "sensitivity": Fraction(2), "scale": Fraction(6)})
    )
    assert price_of(draw, measure) == price


def test_the_planner_has_the_prices_of_the_table_and_no_others():
    known = COUNTS | {MAX_NORM.name: MAX_NORM} | ELECTIONS
    assert {(measure, name) for name, mechanism in known.items() for measure in mechanism.prices} == PRICES.keys()
    assert COUNTS.keys() == COUNTING.keys() and ELECTIONS.keys() == ELECTING
    draw = in_rho("given").draws[0]
    for measure, name in PRICES:
        for sensitivity, scale in ((Fraction(3), Fraction(7)), (Fraction(18), Fraction(1, 5))):
            figures = {"mechanism": name, "sensitivity": sensitivity, "scale": scale}
            planned = known[name].prices[measure].cost(sensitivity, scale)
            assert price_of(draw.model_copy(update=figures), measure) == planned


@pytest.mark.parametrize(
    ("measure", "mechanism"), [("pure", "discrete_gaussian"), ("zcdp", "laplace"), ("renyi", "exponential")]
)
def test_what_is_not_in_the_table_has_no_price(measure, mechanism):
    with pytest.raises(NotKnown, match=f"{mechanism} has no price"):
        price_of(in_rho("given").draws[0].model_copy(update={"mechanism": mechanism}), measure)


def test_gaussian_noise_paid_in_epsilon_is_found():
    must_say(changed(plan_of("given"), 0, mechanism="discrete_gaussian"), "discrete_gaussian has no price in ε")


def test_a_measure_that_nobody_knows_is_found():
    plan = plan_of("given").model_copy(update={"measure": "renyi"})
    assert all("has no price in renyi" in text for text in problems(plan)[: len(plan.draws)])


@pytest.mark.parametrize("less", [Fraction(1, 2), Fraction(4, 5), 1 - Fraction(1, 10**15)])
def test_gaussian_noise_below_its_share_is_found(less):
    plan = in_rho("given")
    must_say(changed(plan, 0, scale=less * plan.draws[0].scale), "by discrete_gaussian at its scale it costs ρ=")


def test_the_problem_says_what_was_paid_and_what_it_costs():
    plan = in_rho("given")
    share, scale = plan.draws[0].rho, plan.draws[0].scale
    (text,) = problems(changed(plan, 0, scale=scale / 2))
    paid, found = (float(part.split("ρ=")[1].split(";")[0]) for part in text.split(";"))
    assert paid == pytest.approx(share) and found == pytest.approx(2 * share)


@pytest.mark.parametrize("scale", [0, -1, Fraction(-1, 10**400)])
def test_a_scale_that_is_no_noise_is_found(scale):
    """Squares would make nothing of a sign."""
    plan = in_rho("elected")
    for place in (place_of(plan, kind="election"), place_of(plan, kind="count")):
        must_say(changed(plan, place, scale=Fraction(scale)), "that is no noise")


def test_noise_beyond_what_is_needed_is_welcome_in_rho():
    assert problems(changed(in_rho("given"), 0, scale=Fraction(10**6), sensitivity=Fraction(5))) == []


@pytest.mark.parametrize(("scale", "sound"), [(Fraction(8), True), (Fraction(79, 10), False)])
def test_two_sided_geometric_noise_can_be_paid_in_rho(scale, sound):
    """(1/8)²/2 = 1/128 = 0.0078125; two sets."""
    plan = plan_of("flat", rho="0.015625", delta="1e-9")
    for place in range(len(plan.draws)):
        plan = changed(plan, place, mechanism="two_sided_geometric", scale=scale)
    assert (problems(plan) == []) == sound


# Elections


def test_an_election_at_twice_the_rate_is_found():
    plan = in_rho("elected")
    place = place_of(plan, kind="election")
    must_say(changed(plan, place, scale=plan.draws[place].scale / 2), "by exponential at its scale it costs ρ=")


def test_an_election_by_permute_and_flip_at_the_price_of_the_exponential_mechanism_is_found():
    plan = in_rho("elected")
    flipped = plan.model_copy(update={"election": plan.election.model_copy(update={"mechanism": "permute_and_flip"})})
    elections = [place for place, draw in enumerate(plan.draws) if draw.kind == "election"]
    for place in elections:
        flipped = changed(flipped, place, mechanism="permute_and_flip")
    found = problems(flipped)
    assert len(found) == len(elections) and all("by permute_and_flip at its scale it costs ρ=" in text for text in found)
    for place in elections:
        flipped = changed(flipped, place, scale=2 * plan.draws[place].scale)
    assert problems(flipped) == []


# Sensitivities


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize(("neighbours", "counts", "elections"), [("add_remove", 1, 4), ("substitute", 2, 8)])
def test_counts_are_squared_and_elections_are_not(rows, neighbours, counts, elections):
    plan = in_rho("cascade", neighbours=neighbours).model_copy(update={"rows_per_person": rows})
    needed = {draw.kind: least_sensitivity(draw, plan) for draw in plan.draws}
    assert needed == {"count": counts * rows**2, "election": elections * rows}


@pytest.mark.parametrize("name", ["given", "elected", "cascade"])
@pytest.mark.parametrize("neighbours", ["add_remove", "substitute"])
def test_any_sensitivity_below_the_tables_is_found_in_rho(name, neighbours):
    plan = in_rho(name, neighbours=neighbours)
    for place, draw in enumerate(plan.draws):
        lower = draw.sensitivity - Fraction(1, 1000)
        must_say(changed(plan, place, sensitivity=lower), f"one person can change it by {draw.sensitivity}")


def test_k_rows_at_the_price_of_k_are_found():
    """k in place of k², with the noise that would go with it."""
    plan = in_rho("flat").model_copy(update={"rows_per_person": 3})
    for place, draw in enumerate(plan.draws):
        plan = changed(plan, place, sensitivity=3 * draw.sensitivity, scale=3 * draw.scale)
    found = problems(plan)
    assert len(found) == len(plan.draws) and all("has sensitivity 3; one person can change it by 9" in text for text in found)


# Shares


@pytest.mark.parametrize("measure", ["pure", "zcdp"])
def test_a_share_of_the_other_measure_or_of_both_is_found(measure):
    plan = in_rho("given") if measure == "zcdp" else plan_of("given")
    share = plan.draws[0].cost
    own, other, symbol = ("rho", "epsilon", "ρ") if measure == "zcdp" else ("epsilon", "rho", "ε")
    must_say(changed(plan, 0, **{own: None, other: share}), f"is not paid in {symbol}")
    must_say(changed(plan, 0, **{own: share, other: share}), f"is not paid in {symbol}")


def test_a_share_of_nothing_is_found():
    plan = in_rho("given")
    first, second = plan.draws[0], plan.draws[1]
    less = changed(plan, 0, rho=first.rho - 1, scale=Fraction(10**4))
    must_say(changed(less, 1, rho=second.rho + 1), "has no share of ρ")


def test_shares_that_do_not_sum_to_rho_are_found():
    found = problems(in_rho("given").model_copy(update={"rho": "0.019999999"}))
    assert found == ["the shares on the deepest way sum to 1/50, not to ρ=0.019999999"]


# Charges: the whole proof, made by hand


def charged(plan: Plan, amount: int, measure: str | None) -> list[str]:
    shown = Terms(plan_hash=plan.hash, spec_hash=plan.spec_hash, neighbours=plan.neighbours, unit=plan.unit)
    charge = ChargeEntry(
        seq=2, date="2026-01-01", kind="charge", population=plan.population, release=plan.release, key="charge:x#1",
        amount=amount, granted_after=10**15, charged_after=amount, measure=measure, shown=shown,
    )  # fmt: skip
    loose = LedgerProof(charge=charge, previous="0" * 64, later=(), head_seq=2, head="0" * 64)
    return list(ledger_problems(loose.model_copy(update={"head": loose.leads_to[1]}), plan, plan))


def test_a_release_is_charged_its_rho():
    plan = in_rho("flat")
    assert charged(plan, 20_000_000, "zcdp") == []
    for amount in (0, 19_999_999, 20_000_001, 200_000):
        (text,) = charged(plan, amount, "zcdp")
        assert text.startswith("ρ=") and text.endswith("was charged; the release promises ρ=0.02")


@pytest.mark.parametrize(
    ("epsilon", "amount"), [("1", 500_000_000), ("0.7", 245_000_000), ("0.000000001", 1), ("0.1000003", 5_000_031)]
)
def test_a_pure_release_costs_half_its_square_on_an_account_of_rho(epsilon, amount):
    plan = plan_of("flat", epsilon="1").model_copy(update={"epsilon": epsilon})
    assert owed(plan, "zcdp") == amount and charged(plan, amount, "zcdp") == []
    (text,) = charged(plan, amount - 1, "zcdp")
    assert f"the release promises ε={epsilon}, which costs ρ=" in text
    assert charged(plan, amount + 1, "zcdp")


def test_a_pure_release_costs_its_epsilon_on_an_account_of_epsilon():
    assert charged(plan_of("flat"), 10**9, None) == []
    assert charged(plan_of("flat"), 10**9 - 1, None) == ["ε=0.999999999 was charged; the release promises ε=1"]


def test_a_charge_of_half_the_square_is_no_charge_of_epsilon():
    assert charged(plan_of("flat"), 5 * 10**8, None) == ["ε=0.5 was charged; the release promises ε=1"]


@pytest.mark.parametrize("amount", [20_000_000, 1_163_287_327, 10**12])
def test_rho_charged_in_epsilon_is_found_whatever_the_amount(amount):
    (text,) = charged(in_rho("flat"), amount, None)
    assert "was charged; the release promises ρ=0.02, which no ε without δ can pay for" in text
