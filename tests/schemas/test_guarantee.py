"""What a manifest promises where the exact number of rows is published, against the exact law of the noise."""

from __future__ import annotations

import itertools
import math

import pytest

from schemas.manifest import guarantee_of
from schemas.plan import Plan
from schemas.spec.method import method_spec
from steps_engine.methods.planning import make_plan
from tests.steps_engine.shapes import domain, release

FLAT = method_spec(decomposition="flat")


def plan_of(rows: int = 1, epsilon: str = "1", **privacy: str) -> Plan:
    return make_plan(release(domain(2, unit={"rows_per_person": rows}), FLAT, epsilon, **privacy))


def largest_log_ratio(plan: Plan, one: tuple[int, int], other: tuple[int, int]) -> float:
    """Over noisy counts around both tables, the largest |log P(noisy | one) − log P(noisy | other)|."""
    [draw] = plan.draws
    values = range(min(one + other) - 5, max(one + other) + 6)
    loss = lambda counts, noisy: sum(abs(z - n) for z, n in zip(noisy, counts, strict=True)) / float(draw.scale)  # noqa: E731
    return max(abs(loss(one, noisy) - loss(other, noisy)) for noisy in itertools.product(values, repeat=2))


def test_given_the_number_of_rows_a_replacement_costs_twice_epsilon_under_add_remove_and_the_sentence_says_so():
    plan = plan_of(total="invariant")
    reached = largest_log_ratio(plan, (50, 50), (49, 51))  # the same number of rows, one person replaced
    assert reached == pytest.approx(2.0) and reached > 1.5, "e^ε, which was promised once, is exceeded"
    sentence = guarantee_of(plan).sentence
    assert f"at most {math.ceil(100 * math.e**2) / 100:.2f} (2ε = 2, " in sentence and "2.72" not in sentence
    assert "exact number of rows is published" in sentence and "replaced by anybody else's, with" in sentence


def test_where_substitution_was_asked_for_a_replacement_costs_epsilon():
    plan = plan_of(total="invariant", neighbours="substitute")
    assert largest_log_ratio(plan, (50, 50), (49, 51)) == pytest.approx(1.0)
    assert "at most 2.72 (ε = 1)" in guarantee_of(plan).sentence


@pytest.mark.parametrize("neighbours, cost", [("add_remove", 2.0), ("substitute", 1.0)])
def test_with_several_rows_per_person_only_a_replacement_by_as_many_rows_is_covered(neighbours, cost):
    plan = plan_of(3, total="invariant", neighbours=neighbours)
    assert largest_log_ratio(plan, (50, 50), (47, 53)) == pytest.approx(cost)
    said = guarantee_of(plan)
    assert "(all of at most 3 rows) been replaced by anybody else's of as many rows" in said.sentence
    assert any("whether that person is in the data, and with how many rows" in text for text in said.unprotected)


def test_a_presence_that_the_number_of_rows_gives_away_is_said_to_be_unprotected():
    [first, *_] = guarantee_of(plan_of(total="invariant")).unprotected
    assert "exact number of rows" in first and first.endswith("whether that person is in the data")


def test_without_an_invariant_total_nothing_is_said_anew():
    """Manifests made before hold these very sentences."""
    for privacy in ({}, {"neighbours": "substitute"}, {"neighbours": "substitute", "total": "public"}):
        said = guarantee_of(plan_of(epsilon="0.2", **privacy))
        change = "been left out" if not privacy else "been replaced by anybody else's"
        assert said.sentence == (
            "For every person in the data: whatever can be seen in this release, or concluded from it, would have been about as "
            f"likely had that person's data (one row) {change}, with probabilities that differ by a factor of at most 1.23 "
            "(ε = 0.2); this holds whatever anyone knows already, and whatever is done with the release later."
        )
        assert not any("exact number" in text for text in said.unprotected)


def test_the_largest_epsilon_has_a_sentence_too():
    assert "e^2000000 (2ε = 2000000" in guarantee_of(plan_of(epsilon="1000000", total="invariant")).sentence
