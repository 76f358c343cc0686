"""The stand-in has the printed margins, the structural zero and a sparse cross-tabulation."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from schemas.errors import SpecError
from schemas.spec.domain import load_domain
from steps_engine.evaluation.measures.association import association
from steps_engine.noise import SeededRandomness
from steps_engine.studies.standin import INCOME_PERCENTS, ROWS, TRAITS, youth_voter
from tests.steps_engine.evaluation.tables import voters

EXAMPLE = Path(__file__).parents[3] / "examples" / "youth-voter" / "dataset.yaml"

# Table 1 of Bowen, Liu and Su; of two contradicting percentages the first.
YES = {
    "voted": 34.7, "prereg_state": 10.5, "married": 7.5, "female": 50.7, "college": 3.1, "white": 69.3, "hispanic": 14.6,
    "registered": 52.4, "metro": 77.9, "business_farm": 12.6, "in_person": 36.7, "dmv_registration": 12.7,
}  # fmt: skip
AGES = {18: 20.5, 19: 19.7, 20: 20.0, 21: 20.0, 22: 19.8}
RESIDENCE = {
    "<1 month": 2.7, "1-6 months": 20.0, "7-11 months": 6.9, "1-2 years": 15.0, "3-4 years": 9.8, ">=5 years": 45.6,
}  # fmt: skip


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return youth_voter(ROWS, SeededRandomness(1))


def test_the_margins_are_the_printed_ones_to_a_tenth_of_a_point(people):
    assert people.shape == (44_821, 15)
    for name, percent in YES.items():
        assert abs(100 * (people[name] == "yes").mean() - percent) < 0.1
    for name, printed in (("age", AGES), ("residence", RESIDENCE)):
        shares = 100 * people[name].value_counts(normalize=True)
        assert all(abs(shares[category] - percent) < 0.1 for category, percent in printed.items())
    income = 100 * people["family_income"].value_counts(normalize=True)
    assert len(income) == 14
    assert (income.min(), income.median(), income.max()) == pytest.approx((3.1, 5.9, 26.5), abs=0.1)
    assert sum(INCOME_PERCENTS) == pytest.approx(100)


def test_nobody_voted_without_being_registered(people):
    assert not ((people["voted"] == "yes") & (people["registered"] == "no")).any()


def test_about_98_percent_of_the_cells_are_empty(people):
    assert 0.978 < 1 - len(people.drop_duplicates()) / 1_290_240 < 0.988


def test_most_pairs_of_attributes_depend_on_each_other():
    _, table = voters(ROWS, 1)
    p_values = association(table, [table]).original
    assert 70 <= sum(p <= 0.01 for p in p_values) <= 95  # 89 of 105 in the paper


def test_graduates_and_older_people_register_and_vote_more(people):
    registered = (people["registered"] == "yes").groupby(people["age"]).mean()
    assert registered.is_monotonic_increasing
    voted = (people["voted"] == "yes").groupby(people["college"]).mean()
    assert voted["yes"] > voted["no"] + 0.2


def test_one_seed_gives_one_file_and_another_seed_another(people):
    assert people.equals(youth_voter(ROWS, SeededRandomness(1)))
    assert not people.equals(youth_voter(ROWS, SeededRandomness(2)))


@pytest.mark.parametrize("rows", [1, 2, 100])
def test_any_number_of_rows_can_be_asked_for(rows):
    frame = youth_voter(rows, SeededRandomness(3))
    assert len(frame) == rows
    assert not ((frame["voted"] == "yes") & (frame["registered"] == "no")).any()


def test_no_rows_at_all_are_refused():
    with pytest.raises(SpecError, match="at least 1"):
        youth_voter(0, SeededRandomness(1))


def test_the_example_domain_describes_the_stand_in(people):
    domain = load_domain(EXAMPLE)
    assert domain.names == tuple(people.columns)
    assert domain.all_cells == 1_720_320
    categories = {trait.name: tuple(map(str, trait.categories)) for trait in TRAITS}
    assert all(attribute.labels == categories[attribute.name] for attribute in domain.attributes)
