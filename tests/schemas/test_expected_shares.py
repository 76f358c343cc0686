"""Shares that a dataset expects of categories: kept where given, evenly divided where not, refused with the line."""

from __future__ import annotations

import pytest

from schemas.errors import SpecError
from schemas.spec.domain import Domain, load_domain

DATASET = """\
name: wages
population: payroll
attributes:
  - name: school
    kind: ordinal
    categories: [none, primary, secondary, college]
    missing: category
    expected: {college: 0.1, (missing): 0.3}
"""


@pytest.fixture
def loaded(tmp_path):
    def load(change: tuple[str, str] = ("", "")) -> Domain:
        (tmp_path / "dataset.yaml").write_text(DATASET.replace(*change))
        return load_domain(tmp_path / "dataset.yaml")

    return load


def test_what_is_left_is_divided_evenly(loaded):
    assert loaded().attributes[0].expected_shares == pytest.approx((0.2, 0.2, 0.2, 0.1, 0.3))


def test_without_them_shares_are_even_and_nothing_is_written_or_hashed(loaded):
    silent = loaded(("    expected: {college: 0.1, (missing): 0.3}\n", ""))
    assert silent.attributes[0].expected_shares == (0.2,) * 5
    assert "expected" not in silent.model_dump(mode="json")["attributes"][0]
    assert loaded().model_dump(mode="json")["attributes"][0]["expected"] == {"college": 0.1, "(missing)": 0.3}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("college: 0.1", "colledge: 0.1"), "line 8.*school has no category 'colledge'; did you mean 'college'?"),
        (("0.1", "0"), "line 8.*a share of the rows lies between 0 and 1, not 0"),
        (("0.1", "10%"), "line 8.*must be a number, not '10%'"),
        (("0.1", "0.7"), "line 8.*shares of 1 leave nothing to the other categories"),
        (("college: 0.1", "college: 0.1, none: 0.1, primary: 0.1, secondary: 0.1"), "line 8.*together 0.7; they make 1"),
    ],
)
def test_what_makes_no_whole_is_refused_with_its_line(loaded, change, said):
    with pytest.raises(SpecError, match=said):
        loaded(change)
