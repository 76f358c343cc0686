"""Comparisons and derived attributes as dataset.yaml says them: what they exclude, what follows, and what is refused."""

from __future__ import annotations

import pytest

from schemas.errors import SpecError
from schemas.identity import spec_hash
from schemas.spec.domain import Domain, load_domain
from tasks.publishing import bundle
from tests.tasks.reading.records import make_release

DATASET = """\
name: jobs
population: town
attributes:
  - {name: county, kind: categorical, categories: [Kent, Fife, Skye], missing: category}
  - {name: first, kind: integer, bounds: [10, 39], bins: 3, missing: category}
  - {name: last, kind: integer, bounds: [10, 39], bins: 3}
  - {name: then, kind: ordinal, categories: [low, high]}
  - {name: now, kind: ordinal, categories: [low, high]}
ignore: [region]
derived:
  - {name: region, from: county, by: {Kent: South, Fife: North, Skye: North}, labels: {North: Scotland}}
rules:
  - always: first <= last
    why: one thing after the other
  - always: then == now
"""


@pytest.fixture
def loaded(tmp_path):
    def load(text: str = DATASET, **files: str) -> Domain:
        (tmp_path / "dataset.yaml").write_text(text, encoding="utf-8")
        for name, content in files.items():
            (tmp_path / f"{name}.csv").write_text(content, encoding="utf-8")
        return load_domain(tmp_path / "dataset.yaml")

    return load


def test_comparisons_and_what_follows_are_resolved_and_read_back_from_a_bundle(loaded):
    domain = loaded()
    assert [(each.places, each.relation) for each in domain.comparisons] == [((1, 2), "<="), ((3, 4), "==")]
    (following,) = domain.followings
    assert following.categories == ("South", "North") and following.codes == (0, 1, 1, None)
    assert bundle.read_domain(bundle.domain_bytes(domain)) == domain
    assert domain.rules[0].words == "always first <= last" and domain.as_published().ignore == ("region",)


def test_a_table_in_a_file_is_the_table_written_out(loaded):
    named = DATASET.replace("{Kent: South, Fife: North, Skye: North}", "regions.csv")
    domain = loaded(named, regions="county,region\nKent,South\nFife,North\nSkye,North\n")
    assert domain == loaded() and spec_hash(make_release("x", domain)) == spec_hash(make_release("x", loaded()))
    other = loaded(named, regions="county,region\nKent,South\nFife,North\nSkye,South\n")
    assert spec_hash(make_release("x", other)) != spec_hash(make_release("x", domain))


def test_what_is_missing_may_have_a_line_of_its_own(loaded):
    domain = loaded(DATASET.replace("Skye: North}", "Skye: North, (missing): unknown}"))
    assert domain.followings[0].codes == (0, 1, 1, 2)


BAD = {
    "neither never nor always": (("- always: then == now", "- why: so"), "line 15: rules.1: a rule says never.*one of them"),
    "both": (("- always: then == now", "- {always: then == now, never: {then: low}}"), "line 15.*one of them"),
    "an unknown attribute": (
        ("first <= last", "frist <= last"),
        "line 13: rules.0: always compares two attributes.*'frist <= last'",
    ),
    "an attribute with itself": (("first <= last", "last <= last"), "line 13.*always compares two attributes"),
    "another sign": (("first <= last", "first < last"), "line 13.*as in `a <= b` or `a == b`"),
    "other bins": (
        ("last, kind: integer, bounds: [10, 39], bins: 3", "last, kind: integer, bounds: [10, 49], bins: 4, outside: clamp"),
        "line 13.*need the same bins.*last has 40–49",
    ),
    "another kind": (("first <= last", "first <= now"), "line 13.*first is integer and now is ordinal"),
    "labels without an order": (
        ("- always: then == now", "- always: county <= now"),
        "line 15.*county has no order; say kind: ordinal, or compare by ==",
    ),
    "another order": (
        ("now, kind: ordinal, categories: [low, high]", "now, kind: ordinal, categories: [high, low]"),
        "in the same order",
    ),
    "a circle": (
        ("- always: then == now", "- always: last <= first"),
        "rules say .*: then all of them are equal; write == instead",
    ),
    "a spike inside a bin": (
        ("bounds: [10, 39], bins: 3", "bounds: [10, 39], bins: 3, at: 15"),
        "inside a bin, which cannot be comp",
    ),
    "derived from nothing": (
        ("from: county", "from: conty"),
        "line 11: derived.region: there is no attribute 'conty'; did you mean 'county'",
    ),
    "derived without a line": ((", Skye: North", ""), "line 11: derived.region: nothing is said of 'Skye' of county; add it"),
    "derived from no category": (("Skye: North}", "Skye: North, Wales: West}"), "line 11.*county has no category 'Wales'"),
    "a derived name that is taken": (("name: region", "name: COUNTY"), "line 11: derived.COUNTY: 'county' stands twice"),
    "a derived label of nothing": (("{North: Scotland}", "{East: Scotland}"), "line 11.*region has no category 'East'"),
    "a derived category that cannot be seen": (("Kent: South", 'Kent: "\u202eSouth"'), r"line 11.*cannot be seen"),
    "derived by a number": (("by: {Kent: South, Fife: North, Skye: North}", "by: 3"), "line 11.*is a CSV file of two columns"),
    "derived by a file that is not there": (
        ("by: {Kent: South, Fife: North, Skye: North}", "by: no.csv"),
        r"line 11: cannot read .*no\.csv: No such file.*Give the path of a CSV file",
    ),
}


@pytest.mark.parametrize("change, says", BAD.values(), ids=BAD)
def test_what_cannot_be_is_refused_with_its_line(loaded, change, says):
    assert change[0] in DATASET
    with pytest.raises(SpecError, match=says):
        loaded(DATASET.replace(*change))


def test_a_category_twice_in_a_file_is_refused_with_its_line(loaded):
    named = DATASET.replace("{Kent: South, Fife: North, Skye: North}", "regions.csv")
    with pytest.raises(SpecError, match=r"regions\.csv, line 4: 'Kent' stands twice"):
        loaded(named, regions="county,region\nKent,South\nFife,North\nKent,North\n")


def test_a_circle_through_equals_is_found(loaded):
    rules = "  - always: a == b\n  - always: b <= c\n  - always: c <= a\n"
    three = "".join(f"  - {{name: {name}, kind: integer, bounds: [0, 9], bins: 2}}\n" for name in "abc")
    with pytest.raises(SpecError, match="then all of them are equal"):
        loaded(f"name: d\npopulation: p\nattributes:\n{three}rules:\n{rules}")
