"""Spikes, open ends, shapes within bins, multiples and times of day, as dataset.yaml says them; what cannot be is refused."""

from __future__ import annotations

import pytest

from schemas.errors import SpecError
from schemas.spec.domain import Domain, load_domain
from tasks.publishing import bundle

DATASET = """\
name: wages
population: payroll
attributes:
  - {name: wage, kind: numeric, bounds: [0, 100], edges: [0, 40, 100], at: [0, 60], above: {shape: pareto, alpha: 2.5}}
  - {name: hours, kind: integer, bounds: [0, 60], bins: 3, at: 0, above: {shape: exponential, mean: 70}, multiples_of: 5}
  - {name: rent, kind: numeric, bounds: [0, 30], bins: 3, within: {weights: [[5, 1], [10, 2], [20, 0], [25.5, 1]]}}
  - {name: start, kind: time, bounds: [06:00, 24:00], edges: [06:00, 12:00, 18:00, 24:00], format: "%H.%M"}
rules:
  - never: {wage: 0, hours: {from: 40}}
  - never: {wage: {from: 100}, start: {below: 12:00}}
"""


@pytest.fixture
def loaded(tmp_path):
    def load(text: str = DATASET, **files: str) -> Domain:
        (tmp_path / "dataset.yaml").write_text(text, encoding="utf-8")
        for name, content in files.items():
            (tmp_path / f"{name}.csv").write_text(content, encoding="utf-8")
        return load_domain(tmp_path / "dataset.yaml")

    return load


def test_categories_follow_the_values(loaded):
    wage, hours, rent, start = loaded().attributes
    assert wage.labels == ("0", "(0, 40)", "[40, 100] without 60", "60", "> 100")
    assert hours.labels == ("0", "1–19", "20–39", "40–60", "> 60")
    assert rent.labels == ("[0, 10)", "[10, 20)", "[20, 30]")
    assert start.labels == ("06:00–11:59", "12:00–17:59", "18:00–23:59")


def test_rules_name_spikes_open_ends_and_times(loaded):
    assert loaded().forbidden == ({0: (0,), 1: (3, 4)}, {0: (4,), 3: (0,)})


def test_a_domain_is_read_back_from_its_bundle_and_has_a_format_that_can_say_it(loaded):
    domain = loaded()
    assert bundle.read_domain(bundle.domain_bytes(domain)) == domain
    assert domain.as_published().attributes[0].at == (0.0, 60.0)


def test_weights_are_read_from_a_file_beside_it_and_are_part_of_it_from_then_on(loaded):
    inline = "[[5, 1], [10, 2], [20, 0], [25.5, 1]]"
    named = loaded(DATASET.replace(inline, "rents.csv"), rents="rent,people\n5,1\n10,2\n20,0\n25.5,1\n")
    assert named == loaded()
    assert named == loaded(DATASET.replace(inline, "rents.csv"), rents="\ufeffrent;people\n5;1\n\n10;2\n20;0\n25.5;1\n")


def test_the_last_minute_is_within_bounds_that_end_before_midnight():
    time = {"name": "t", "kind": "time", "bounds": ("08:00", "17:00")}
    (attribute,) = Domain.model_validate({"name": "d", "population": "p", "attributes": (time,)}).attributes
    assert attribute.present == 9 * 60 + 1 and attribute.labels[-1] == "17:00"


BAD = {
    "a spike twice": (("[0, 60]", "[60, 60]"), "line 4: attributes.wage.at: a value stands twice"),
    "a spike outside": (("[0, 60]", "[0, 101]"), "line 4.*101 lies outside the bounds"),
    "a spike that is a word": (("[0, 60]", "zero"), "line 4.*must be a number, not 'zero'"),
    "a whole number's spike with a fraction": (
        ("at: 0,", "at: 0.5,"),
        "line 5: attributes.hours.at: hours holds whole numbers; 0.5 is",
    ),
    "a spike where every number has its category": (
        ("bins: 3, at: 0, above: {shape: exponential, mean: 70}, multiples_of: 5", "at: 3"),
        "line 5.*no other value lies in the bin from 3 to 4; widen it, or leave at out",
    ),
    "a spike among days": (("format:", "at: 08:00, format:"), 'line 7: attributes.start: unknown key "at"'),
    "an open end without a shape": (("{shape: pareto, alpha: 2.5}", "{alpha: 2.5}"), "line 4.*shape.*is needed here"),
    "a pareto by its mean": (("alpha: 2.5", "mean: 300"), "line 4.*shape: pareto needs alpha, and no mean"),
    "a pareto without a mean": (("alpha: 2.5", "alpha: 1"), "line 4: attributes.wage.above.alpha: must be above 1"),
    "a pareto from below zero": (
        ("bounds: [0, 100], edges: [0, 40, 100], at: [0, 60]", "bounds: [-9, 0], bins: 2"),
        "begins above 0",
    ),
    "a mean within the bounds": (("mean: 70", "mean: 60"), "line 5.*mean of values above 60 lies above 61, not at 60"),
    "an unknown shape within": (
        ("{weights: [[5, 1], [10, 2], [20, 0], [25.5, 1]]}", "normal"),
        "line 6.*is one of uniform, triang",
    ),
    "no value in a bin": (("[10, 2], ", ""), "line 6.*no value with a weight lies in the bin from 10 to 20"),
    "a value without weight alone in its bin": (("[25.5, 1]", "[25.5, 0]"), "line 6.*in the bin from 20 to 30; add one"),
    "a weight below zero": (("[10, 2]", "[10, -2]"), "line 6.*a weight is 0 or more"),
    "values out of order": (("[[5, 1], [10, 2]", "[[10, 2], [5, 1]"), "line 6.*values must increase"),
    "a value outside": (("[25.5, 1]", "[25.5, 1], [31, 1]"), "line 6.*31 lies outside the bounds"),
    "multiples of nothing": (("multiples_of: 5", "multiples_of: 0"), "line 5.*multiples_of: must be above 0"),
    "multiples that jump over a bin": (
        ("multiples_of: 5", "multiples_of: 50"),
        "line 5.*no multiple of 50 lies in the bin from 0 to 20",
    ),
    "multiples and weights": (("bins: 3, within", "bins: 3, multiples_of: 5, within"), "line 6.*leave multiples_of out"),
    "a file that is not there": (
        ("[[5, 1], [10, 2], [20, 0], [25.5, 1]]", "no.csv"),
        r"line 6: cannot read .*no\.csv: No such file",
    ),
    "a time that is none": (("[06:00, 12:00,", "[06:00, 12:60,"), "line 7.*must be a time of day written 08:30, not '12:60'"),
    "a time after the day's end": (("bounds: [06:00, 24:00]", "bounds: [06:00, 24:01]"), "line 7.*a time of day"),
    "a form without minutes": (('"%H.%M"', '"%H"'), "line 7.*is no form of a time of day: write %H and %M once each"),
    "a range of times off the edges": (
        ("{below: 12:00}", "{below: 11:00}"),
        "line 10.*begin and end where bins do: 06:00–11:59",
    ),
    "a range of times by a number": (("{below: 12:00}", "{below: 12}"), "line 10.*a time of day written 08:30, not 12"),
}


@pytest.mark.parametrize("change, says", BAD.values(), ids=BAD)
def test_what_cannot_be_is_refused_with_its_line(loaded, change, says):
    assert change[0] in DATASET
    with pytest.raises(SpecError, match=says):
        loaded(DATASET.replace(*change))


BAD_FILES = {
    "a word among weights": ("v,w\n5,1\nten,2\n", r"rents\.csv, line 3: 'ten' is not a number"),
    "not a number": ("v,w\n5,NaN\n", r"line 2: 'NaN' is not a number"),
    "three columns": ("v,w,x\n5,1,2\n", r"line 2: 3 values; a line of this table has two"),
    "a header alone": ("v,w\n", "0 lines behind its header"),
    "an open quote": ('v,w\n"5,1\n', "not readable as CSV"),
}


@pytest.mark.parametrize("content, says", BAD_FILES.values(), ids=BAD_FILES)
def test_a_file_that_is_no_table_is_refused_with_its_line(loaded, content, says):
    with pytest.raises(SpecError, match=says):
        loaded(DATASET.replace("[[5, 1], [10, 2], [20, 0], [25.5, 1]]", "rents.csv"), rents=content)
