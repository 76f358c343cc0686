"""Conditions as people write them: what they mean, and what is said of those that mean nothing."""

from __future__ import annotations

import pytest

from schemas.errors import SpecError
from schemas.spec.domain import Domain
from steps_engine.answers.conditions import codes_where, labels_where, read_conditions
from tests.tasks.publishing.making import POLL

NUMBERS = Domain.model_validate(
    {
        "name": "numbers",
        "population": "n",
        "attributes": (
            {"name": "age", "kind": "integer", "bounds": (18, 25)},
            {"name": "wage", "kind": "numeric", "bounds": (0, 40), "bins": 4},
            {"name": "day", "kind": "date", "bounds": ("2026-01-01", "2026-01-04"), "missing": "category"},
            {"name": "kind", "kind": "categorical", "categories": ("a", "b, or c", "true")},
            {
                "name": "hours",
                "kind": "numeric",
                "bounds": (0, 40),
                "bins": 2,
                "at": (0,),
                "above": {"shape": "exponential", "mean": 50},
            },
            {"name": "from", "kind": "time", "bounds": ("06:00", "21:59"), "bins": 4},
        ),
    }
)


@pytest.mark.parametrize(
    ("asked", "codes"),
    [
        ({"age": "18"}, {0: (0,)}),
        ({"age": 20}, {0: (2,)}),
        ({"age": [18, "20"]}, {0: (0, 2)}),
        ({"age": "18, 19"}, {0: (0, 1)}),
        ({"age": "20..22"}, {0: (2, 3, 4)}),
        ({"age": "24.."}, {0: (6, 7)}),
        ({"wage": "[10, 20)"}, {1: (1,)}),
        ({"wage": "10..30"}, {1: (1, 2)}),
        ({"wage": "30..40"}, {1: (3,)}),
        ({"day": "2026-01-02..2026-01-03"}, {2: (1, 2)}),
        ({"day": None}, {2: (4,)}),
        ({"day": "(missing)"}, {2: (4,)}),
        ({"kind": "b, or c"}, {3: (1,)}),
        ({"hours": "0"}, {4: (0,)}),
        ({"hours": "0..20"}, {4: (0, 1)}),
        ({"hours": "20.."}, {4: (2, 3)}),
        ({"hours": "> 40"}, {4: (3,)}),
        ({"from": "10:00..17:59"}, {5: (1, 2)}),
        ({"kind": True, "age": "25"}, {3: (2,), 0: (7,)}),
    ],
    ids=str,
)
def test_a_condition_means_categories(asked, codes):
    assert codes_where(asked, NUMBERS) == codes


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"aeg": "18"}, "there is no attribute 'aeg'; did you mean 'age'?"),
        ({"zzz": "18"}, "there is no attribute 'zzz'; the release has age, wage, day, kind, hours, from"),
        ({"age": "17"}, "nothing fulfils age=17: it lies beyond its bounds"),
        ({"age": "old"}, "age: 'old' is not a number; its categories are 18, 19"),
        ({"wage": "12"}, r"wage is counted in bins, and 12 lies in \[10, 20\); ask for wage=\[10, 20\)"),
        ({"wage": "12..20"}, "must begin and end where bins do"),
        ({"wage": "30..10"}, "must begin and end where bins do"),
        ({"day": "May"}, "'May' is not a date such as 2000-01-31"),
        ({"kind": "b, or d"}, "kind has no category 'b'"),
        ({"kind": "tru"}, "kind has no category 'tru'; did you mean 'true'?"),
    ],
    ids=str,
)
def test_a_condition_that_means_nothing_is_told_with_what_there_is(asked, said):
    with pytest.raises(SpecError, match=said):
        codes_where(asked, NUMBERS)


def test_a_condition_that_the_rules_exclude_is_told():
    with pytest.raises(SpecError, match="nothing fulfils voted=yes, registered=no: the rules of this release exclude it"):
        codes_where({"voted": "yes", "registered": "no"}, POLL)
    assert codes_where({"voted": "yes"}, POLL) == {0: (1,)}


@pytest.mark.parametrize("text", ["age", "=18", "age=", ""])
def test_a_condition_is_written_name_equals_value(text: str):
    with pytest.raises(SpecError, match="write name=value"):
        read_conditions([text])


def test_a_name_stands_once_and_a_value_may_hold_an_equals_sign():
    assert read_conditions(["a = b=c"]) == {"a": "b=c"}
    with pytest.raises(SpecError, match="names a twice; write its values with commas: a=1,2"):
        read_conditions(["a=1", "a=2"])


def test_labels_say_what_is_asked():
    assert labels_where({"age": "18, 25", "kind": "b, or c"}, NUMBERS) == {"age": ("18", "25"), "kind": ("b, or c",)}


COUNTIES = Domain.model_validate(
    {
        "name": "counties",
        "population": "n",
        "attributes": (
            {"name": "county", "kind": "categorical", "categories": ("Kent", "Fife", "Devon"), "missing": "category"},
        ),
        "derived": (
            {"name": "region", "from": "county", "by": {"Fife": "Scotland", "Kent": "South", "Devon": "South"}},
            {"name": "coast", "from": "county", "by": {"Kent": "east", "Fife": "east", "Devon": "west", "(missing)": "none"}},
        ),
    }
)


@pytest.mark.parametrize(
    ("asked", "codes"),
    [
        ({"region": "South"}, (0, 2)),
        ({"region": "Scotland,South"}, (0, 1, 2)),
        ({"region": "(missing)"}, (3,)),
        ({"coast": "none"}, (3,)),
        ({"coast": "east", "region": "South"}, (0,)),
        ({"county": "Kent, Fife", "region": ["Scotland", None]}, (1,)),
    ],
    ids=str,
)
def test_a_condition_on_what_follows_is_one_on_what_it_follows_from(asked, codes):
    assert codes_where(asked, COUNTIES) == {0: codes}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"regoin": "South"}, "there is no attribute 'regoin'; did you mean 'region'?"),
        ({"region": "Sout"}, "region has no category 'Sout'; did you mean 'South'?"),
        ({"region": "South", "county": "Fife"}, "nothing fulfils region=South, county=Fife: one part excludes another"),
        ({"coast": "(missing)"}, "coast has no category"),
    ],
    ids=str,
)
def test_a_condition_on_what_follows_is_told_too(asked, said):
    with pytest.raises(SpecError, match=said):
        codes_where(asked, COUNTIES)
