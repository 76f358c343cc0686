"""`steps budget` in both measures: what it answers, what it prints, and what it refuses before anything is written."""

from __future__ import annotations

from fractions import Fraction

import pytest

from schemas.budget import as_fraction, parse_nanos
from steps_engine.accounting.conversion import epsilon_of
from tasks.stores.charging import ChargeRequest
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tests.flows.small import Small

REASON = ("--why", "a test")
PURE_KEYS = ["population", "granted", "charged", "balance", "neighbours", "unit", "measure"]


def test_a_budget_in_epsilon_answers_as_before_and_says_its_measure(steps):
    said = steps("budget", "grant", "small-people", "4", *REASON, "--json").json
    assert list(said) == PURE_KEYS and (said["granted"], said["measure"]) == ("4", "pure")
    (entry,) = steps("budget", "log", "--json").json["entries"]
    assert (entry["measure"], entry["epsilon"], entry["rho"]) == ("pure", "4", None)


def test_a_budget_in_rho_answers_rho_and_the_epsilon_that_it_is_at_the_grants_delta(small: Small, steps):
    steps("budget", "grant", "small-people", "--rho", "0.1", "--delta", "0.000001", *REASON)
    request = ChargeRequest("paid", "small-people", 10**8, "add_remove", "person", "plan", "spec", "data")
    open_ledger(Home(small.home)).charge(request)  # ε = 0.1 costs ρ = 0.005
    said = steps("budget", "show", "small-people", "--json").json
    assert list(said) == [*PURE_KEYS, "delta", "granted_epsilon", "charged_epsilon", "balance_epsilon"]
    assert (said["measure"], said["delta"], said["neighbours"]) == ("zcdp", "1e-6", "add_remove")
    for name, rho in (("granted", "0.1"), ("charged", "0.005"), ("balance", "0.095")):
        assert said[name] == rho
        assert as_fraction(parse_nanos(said[f"{name}_epsilon"])) == epsilon_of(Fraction(rho), 1e-6).value
    parts = [Fraction(said[f"{name}_epsilon"]) for name in ("charged", "balance", "granted")]
    assert parts[0] + parts[1] > parts[2]  # ε is no sum: only ρ adds up
    grant, charge = steps("budget", "log", "--json").json["entries"]
    assert (grant["measure"], grant["epsilon"], grant["rho"], grant["details"]["delta"]) == ("zcdp", None, "0.1", "1e-6")
    assert (charge["rho"], charge["balance_after"]) == ("0.005", "0.095")
    (release,) = steps("releases", "--json").json["releases"]
    assert (release["measure"], release["epsilon"], release["rho"], release["charged"]) == ("zcdp", None, "0.005", "0.005")


def test_people_are_shown_which_measure_an_amount_is_in(small: Small, steps):
    steps("budget", "grant", "others", "4", *REASON)
    steps("budget", "grant", "small-people", "--rho", "0.1", *REASON)
    request = ChargeRequest("paid", "small-people", 10**8, "add_remove", "person", "plan", "spec", "data")
    open_ledger(Home(small.home)).charge(request)
    shown = steps("budget", "show").out
    assert "0.1 (ε 2.716)" in shown and "ρ (ε at δ = 1e-9)" in shown and "ε" in shown.splitlines()[1]
    assert [line.split()[-2] for line in steps("budget", "log").out.splitlines()[1:]] == ["ε", "ρ", "ρ"]
    assert (
        "ρ = 0.005" in steps("releases").out
        and "paid: charged, ρ = 0.005 for each person of small-people" in steps("show", "paid").out
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no amount was asked. Write EPSILON for a budget in ε, or --rho RHO"),
        (("4", "--rho", "0.1"), "epsilon 4 and rho 0.1 were both asked"),
        (("4", "--delta", "1e-9"), "delta 1e-9 was asked without rho"),
        (("--delta", "1e-9"), "delta 1e-9 was asked without rho"),
        (("--rho", "0"), "rho must be a positive number, not 0"),
        (("--rho", "-0.1"), "rho must be a positive number, not -0.1"),
        (("--rho", "0.0000000001"), "rho 0.0000000001 has more than 9 decimals"),
        (("--rho", "1e9"), "rho 1e9 is larger than 1000000"),
        (("--rho", "some"), "rho must be a plain number"),
        (("--rho", "0.1", "--delta", "0"), "delta must be above 0, not 0"),
        (("--rho", "0.1", "--delta", "1"), "delta must be below 1, not 1"),
        (("--rho", "0.1", "--delta", "1e-301"), "delta must be at least 1E-300"),
    ],
)
def test_a_grant_that_cannot_be_is_refused_and_writes_nothing(small: Small, steps, words: tuple[str, ...], said: str):
    answer = steps("budget", "grant", "small-people", *words, *REASON)
    assert answer.code == 2 and said in answer.err and "epsilon must" not in answer.err
    assert not small.home.exists()


@pytest.mark.parametrize(("first", "second"), [(("4",), ("--rho", "0.1")), (("--rho", "0.1"), ("4",))])
def test_a_mixed_grant_is_refused_and_writes_nothing(steps, first: tuple[str, ...], second: tuple[str, ...]):
    steps("budget", "grant", "small-people", *first, *REASON)
    answer = steps("budget", "grant", "small-people", *second, *REASON)
    assert answer.code == 2 and "was asked for population" in answer.err and "cannot change" in answer.err
    assert len(steps("budget", "log", "--json").json["entries"]) == 1
