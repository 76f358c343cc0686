"""A mistake in a spec is told as its author reads it: line, attribute, what is asked for, what was found, the nearest name."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.errors import SpecError
from tasks.specs import load_release, refusals_naming

DATASET = """name: wages
population: payroll
expected_rows: 1000
attributes:
  - {name: sector, kind: categorical, categories: [public, private]}
  - {name: grade, kind: ordinal, categories: [junior, senior, head]}
  - {name: age, kind: integer, bounds: [18, 70], bins: 10, outside: clamp}
  - {name: tract, geography: {levels: [county, tract], table: places.csv}}
derived:
  - {name: top, from: grade, by: {junior: "no", senior: "no", head: "yes"}}
rules:
  - never: {sector: public, grade: head}
"""
RELEASE = """name: wages-2026
dataset: dataset.yaml
source: wages.csv
privacy: {epsilon: 1.0}
method:
  decomposition: tree
  order: [sector, grade]
  sets: {count: 5, budget: shared}
approval: none
formats: [parquet]
"""
PLACES = "county,tract\na,t1\na,t2\nb,t3\n"

# (what is written, what is written in its place, what is told of it)
MISTAKES = {
    "a kind that is not there": (
        ("kind: categorical", "kind: category"),
        "dataset.yaml, line 5: attributes.sector: kind is categorical, ordinal, integer, numeric, date, time; "
        "found 'category', did you mean 'categorical'?",
    ),
    "no kind": (("kind: ordinal, ", ""), "dataset.yaml, line 6: attributes.grade: kind is needed here"),
    "a word for a number": (("bins: 10", "bins: ten"), "line 7: attributes.age.bins: is a whole number; found 'ten'"),
    "a number that is not whole": (("bins: 10", "bins: 2.5"), "line 7: attributes.age.bins: is a whole number; found 2.5"),
    "edges for a number of bins": (
        ("bins: 10", "bins: [18, 30, 70]"),
        "line 7: attributes.age.bins: is a whole number; found a list. Bins of your own are written edges: [a, b, c]",
    ),
    "half of the bounds": (("[18, 70]", "[18]"), "line 7: attributes.age.bounds: has too few values"),
    "bounds the wrong way round": (("[18, 70]", "[70, 18]"), "line 7: attributes.age: bounds must be [low, high]"),
    "a misspelt key of an attribute": (
        ("outside: clamp", "outsid: clamp"),
        'line 7: attributes.age: unknown key "outsid"; did you mean "outside"?',
    ),
    "an attribute that a rule misspells": (
        ("{sector: public", "{sectr: public"),
        "line 12: rules.0: there is no attribute 'sectr'; did you mean 'sector'?",
    ),
    "a category that a rule misspells": (
        ("grade: head}", "grade: haed}"),
        "line 12: rules.0: grade has no category 'haed'; did you mean 'head'?",
    ),
    "an attribute that nothing derives from": (
        ("from: grade", "from: grad"),
        "line 10: derived.top: there is no attribute 'grad'; did you mean 'grade'?",
    ),
    "a category that a table misspells": (
        ('head: "yes"', 'haed: "yes"'),
        "line 10: derived.top: grade has no category 'haed'; did you mean 'head'?",
    ),
    "a file of places that is not there": (
        ("places.csv", "plces.csv"),
        "dataset.yaml, line 8: cannot read FOLDER/plces.csv: No such file or directory",
    ),
    "a place without its county": (
        ("a,t2", ",t2"),
        "dataset.yaml, line 8: FOLDER/places.csv, line 3: 1 of 2 values; a line has one for each level.",
    ),
    "a level that is misspelt": (
        ("levels: [county", "levels: [conty"),
        "dataset.yaml, line 8: FOLDER/places.csv: its columns are county, tract; write one for each level: conty, tract. "
        "There is no 'conty'; did you mean 'county'?",
    ),
    "a method that is misspelt": (
        ("decomposition: tree", "decomposition: tre"),
        "release.yaml, line 6: method.decomposition: there is no decomposition 'tre'; did you mean 'tree'?",
    ),
    "no sets": (("count: 5", "count: 0"), "release.yaml, line 8: method.sets.count: must be at least 1; found 0"),
    "a word that is none of the choices": (
        ("budget: shared", "budget: share"),
        "release.yaml, line 8: method.sets.budget: is split or shared; found 'share'. Did you mean 'shared'?",
    ),
    "a word where keys could stand too": (
        ("approval: none", "approval: require"),
        "release.yaml, line 9: approval: is none or required; found 'require'. Did you mean 'required'?",
    ),
    "an attribute that an order misspells": (
        ("[sector, grade]", "[sectr]"),
        "release.yaml, line 7: order names 'sectr'; did you mean 'sector'?",
    ),
    "a format that is not there": (
        ("[parquet]", "[parquet, cvs]"),
        "release.yaml, line 10: formats names 'cvs'; did you mean 'csv'?",
    ),
    "a dataset that is not there": (
        ("dataset: dataset.yaml", "dataset: datset.yaml"),
        "release.yaml, line 2: cannot read FOLDER/datset.yaml: No such file or directory. Give the path of a YAML file.",
    ),
}


@pytest.mark.parametrize(("change", "told"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_on_one_line_with_what_to_write(tmp_path: Path, change: tuple[str, str], told: str):
    written = {"dataset.yaml": DATASET, "release.yaml": RELEASE, "places.csv": PLACES}
    assert sum(change[0] in text for text in written.values()), "the mistake has its place"
    for name, text in written.items():
        (tmp_path / name).write_text(text.replace(*change, 1))
    with pytest.raises(SpecError) as refused:
        load_release(tmp_path / "release.yaml")
    said = str(refused.value).replace(f"{tmp_path}/dataset", "dataset").replace(f"{tmp_path}/release", "release")
    assert told in said.replace(str(tmp_path), "FOLDER") and said.count("\n") == 0


def test_what_is_written_without_a_mistake_is_read(tmp_path: Path):
    for name, text in (("dataset.yaml", DATASET), ("release.yaml", RELEASE), ("places.csv", PLACES)):
        (tmp_path / name).write_text(text)
    assert load_release(tmp_path / "release.yaml").name == "wages-2026"


def test_an_analysis_that_cannot_be_had_is_told_with_its_line(tmp_path: Path):
    from steps_engine.methods.planning import make_plan

    asked = RELEASE + "analyses:\n  - [sector]\n  - {table: [sector, grade], within: 0.1%}\n"
    for name, text in (("dataset.yaml", DATASET), ("release.yaml", asked), ("places.csv", PLACES)):
        (tmp_path / name).write_text(text)
    release = load_release(tmp_path / "release.yaml")
    with (
        pytest.raises(SpecError, match="release.yaml, line 13: release .* is asked"),
        refusals_naming(tmp_path / "release.yaml"),
    ):
        make_plan(release)
