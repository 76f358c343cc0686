"""Every method of the studies makes as many sets and rows as asked, keeps the rules, and repeats itself from its seed."""

from __future__ import annotations

from fractions import Fraction

import pandas as pd
import pytest

from schemas.errors import SpecError
from schemas.identity import canonical
from steps_engine.accounting.plans import allowance_of
from steps_engine.domain.encoding import encode
from steps_engine.noise import SeededRandomness
from steps_engine.studies.methods import (
    SIMULATION,
    VOTER,
    Original,
    asked_release,
    draw_sets,
    find_method,
    find_methods,
    under_zcdp,
)
from steps_engine.studies.simulation import TRUTHS, simulate
from steps_engine.studies.standin import youth_voter
from steps_engine.studies.voter import voter_domain

METHODS = [*VOTER.values(), *SIMULATION.values()]


@pytest.fixture(scope="module")
def simulated() -> Original:
    return Original(TRUTHS[1].domain, simulate(TRUTHS[1], 1_000, SeededRandomness(1)))


@pytest.fixture(scope="module")
def voters() -> Original:
    return Original(voter_domain(), youth_voter(1_000, SeededRandomness(1)))


@pytest.fixture(scope="module")
def few_answers(voters) -> Original:
    """The rule's attributes, those that trees name, and a few: hundreds of cells instead of millions, under the same rule."""
    kept = ["voted", "prereg_state", "age", "female", "college", "registered"]
    attributes = tuple(each for each in voters.domain.attributes if each.name in kept)
    return Original(voters.domain.model_copy(update={"attributes": attributes}), voters.frame[kept])


@pytest.mark.parametrize("name", SIMULATION)
@pytest.mark.whole
def test_a_simulated_sample_gives_sets_of_its_size_in_its_domain(simulated, name):
    frames = draw_sets(SIMULATION[name], simulated, "2", 3, SeededRandomness(2))
    assert len(frames) == (1 if name == "original" else 3)
    for frame in frames:
        assert encode(frame, simulated.domain).shape == (1_000, 5)
    again = draw_sets(SIMULATION[name], simulated, "2", 3, SeededRandomness(2))
    assert all(one.equals(other) for one, other in zip(frames, again, strict=True))


@pytest.mark.whole
@pytest.mark.parametrize("name", VOTER)
def test_nobody_votes_without_being_registered(few_answers, name):
    (frame,) = draw_sets(VOTER[name], few_answers, "1", 1, SeededRandomness(2))
    assert encode(frame, few_answers.domain).shape == (1_000, 6)  # refuses rows that break the rule


@pytest.mark.slow
def test_nobody_does_among_all_fifteen_attributes(voters):
    (frame,) = draw_sets(VOTER["steps-2"], voters, "1", 1, SeededRandomness(2))
    assert encode(frame, voters.domain).shape == (1_000, 15)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_what_defines_a_method_can_be_hashed(method):
    assert canonical(method.definition)


def test_different_methods_of_a_study_are_defined_differently():
    for registry in (VOTER, SIMULATION):
        assert len({canonical(method.definition) for method in registry.values()}) == len(registry)


def test_methods_are_found_in_the_registry_s_order_and_unknown_ones_are_named():
    assert [m.name for m in find_methods(VOTER, ("steps-2", "flat"))] == ["flat", "steps-2"]
    with pytest.raises(SpecError, match="'steps-9'.*steps-2"):
        find_methods(VOTER, ("steps-9",))


# --- under zero-concentrated privacy

PAID = [method for method in METHODS if method.has_currencies]


@pytest.mark.parametrize("name", [name for name, method in SIMULATION.items() if method.has_currencies])
@pytest.mark.whole
def test_a_method_under_zcdp_gives_sets_too_and_others_than_under_epsilon_alone(simulated, name):
    method = under_zcdp(SIMULATION[name], "1e-9")
    frames = draw_sets(method, simulated, "2", 3, SeededRandomness(2))
    assert [encode(frame, simulated.domain).shape for frame in frames] == [(1_000, 5)] * 3
    assert not any(map(pd.DataFrame.equals, frames, draw_sets(SIMULATION[name], simulated, "2", 3, SeededRandomness(2))))


@pytest.mark.whole
@pytest.mark.parametrize("name", [name for name, method in VOTER.items() if method.has_currencies])
def test_nobody_votes_without_being_registered_under_zcdp(few_answers, name):
    (frame,) = draw_sets(under_zcdp(VOTER[name], "1e-9"), few_answers, "1", 1, SeededRandomness(2))
    assert encode(frame, few_answers.domain).shape == (1_000, 6)


@pytest.mark.parametrize("method", PAID, ids=lambda method: method.name)
def test_a_method_under_zcdp_asks_for_rho_that_promises_its_epsilon_at_delta(simulated, voters, method):
    original = simulated if method.name in SIMULATION and method.name not in VOTER else voters
    paid = allowance_of(asked_release(under_zcdp(method, "1e-9"), original, "1", 2))
    assert (paid.measure.name, paid.total) == ("zcdp", Fraction("0.014973057"))
    assert allowance_of(asked_release(method, original, "1", 2)).measure.name == "pure"


def test_a_method_s_name_and_definition_say_its_delta_and_only_then():
    pure, paid, other = (find_method(VOTER, f"cascade{rest}") for rest in ("", "-zcdp-1e-9", "-zcdp-1e-12"))
    assert "delta" not in pure.definition and paid.definition["delta"] == "1e-9" != other.definition["delta"]
    assert (paid.name, paid.base, paid.title) == ("cascade-zcdp-1e-9", "cascade", "cascade, zCDP at δ = 1e-9")


def test_each_method_stands_before_itself_under_zcdp():
    found = find_methods(VOTER, ("cascade", "flat-printed", "flat", "bootstrap"), ("1e-9", "1e-12"))
    assert [method.name for method in found] == [
        "flat", "flat-zcdp-1e-12", "flat-zcdp-1e-9", "flat-printed", "cascade", "cascade-zcdp-1e-12", "cascade-zcdp-1e-9",
        "bootstrap"]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "said"),
    [("flat-printed-zcdp-1e-9", "Ask for flat-printed"), ("flat-zcdp-2", "below 1"), ("flat-zcdp-", "plain number")],
)
def test_what_cannot_be_drawn_under_zcdp_is_refused(name, said):
    with pytest.raises(SpecError, match=said):
        find_method(VOTER, name)
