"""Every method of the studies makes as many sets and rows as asked, keeps the rules, and repeats itself from its seed."""

from __future__ import annotations

import pytest

from schemas.errors import SpecError
from schemas.identity import canonical
from steps_engine.domain.encoding import encode
from steps_engine.noise import SeededRandomness
from steps_engine.studies.methods import SIMULATION, VOTER, Original, draw_sets, find_methods
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


@pytest.mark.parametrize("name", SIMULATION)
def test_a_simulated_sample_gives_sets_of_its_size_in_its_domain(simulated, name):
    frames = draw_sets(SIMULATION[name], simulated, "2", 3, SeededRandomness(2))
    assert len(frames) == (1 if name == "original" else 3)
    for frame in frames:
        assert encode(frame, simulated.domain).shape == (1_000, 5)
    again = draw_sets(SIMULATION[name], simulated, "2", 3, SeededRandomness(2))
    assert all(one.equals(other) for one, other in zip(frames, again, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", VOTER)
def test_nobody_votes_without_being_registered(voters, name):
    (frame,) = draw_sets(VOTER[name], voters, "1", 1, SeededRandomness(2))
    assert encode(frame, voters.domain).shape == (1_000, 15)  # refuses rows that break the rule


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
