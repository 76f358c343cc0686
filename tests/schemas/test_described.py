"""What the two files say in words: kept as said, refused with the line where it cannot be shown, absent where not given."""

from __future__ import annotations

import pytest

from schemas.errors import SpecError
from schemas.identity import spec_hash
from schemas.spec.domain import load_domain
from schemas.spec.release import Release
from tasks.publishing import bundle
from tasks.specs import load_release

DATASET = """\
name: wages
population: payroll
title: Wages
licence: CC-BY-4.0
publisher: Office
contact: data@example.org
attributes:
  - name: sex
    kind: categorical
    categories: [1, 2]
    labels: {1: male, 2: female}
    description: >
      Which sex is in
      the register?
  - {name: age, kind: integer, bounds: [0, 9], bins: 2, missing: category, labels: {0–4: small, (missing): silent}, why: ten}
rules:
  - never: {sex: 1, age: null}
    why: everybody was asked
"""
RELEASE = """\
name: wages-{year}
dataset: dataset.yaml
source: wages.csv
title: Wages of {year}
description: In the {quarter}th quarter.
privacy: {epsilon: 1}
"""


@pytest.fixture
def loaded(tmp_path):
    def load(dataset: str = DATASET, release: str = RELEASE) -> Release:
        (tmp_path / "dataset.yaml").write_text(dataset, encoding="utf-8")
        (tmp_path / "release.yaml").write_text(release)
        return load_release(tmp_path / "release.yaml", "2026q4")

    return load


def test_words_are_kept_on_one_line_and_a_period_is_filled_in(loaded):
    release = loaded()
    sex, age = release.domain.attributes
    assert (release.spec.title, release.spec.description) == ("Wages of 2026", "In the 4th quarter.")
    assert sex.description == "Which sex is in the register?" and sex.shown_labels == ("1 · male", "2 · female")
    assert age.meanings == ("small", "", "silent") and age.labels == ("0–4", "5–9", "(missing)")
    assert release.domain.rules[0].why == "everybody was asked"
    assert bundle.read_domain(bundle.domain_bytes(release.domain)) == release.domain


def test_whoever_says_nothing_has_the_document_and_the_hash_of_before(loaded):
    words = ("title", "description", "publisher", "contact", "licence", "labels", "source", "why")
    said = loaded(
        "name: wages\npopulation: payroll\nattributes:\n  - {name: sex, kind: categorical, categories: [1, 2]}\n",
        "name: wages\ndataset: dataset.yaml\nsource: wages.csv\nprivacy: {epsilon: 1}\n",
    )
    document = said.model_dump(mode="json")
    parts = [document["domain"], *document["domain"]["attributes"]]
    assert not [key for part in parts for key in part if key in words] and "title" not in document["spec"]
    assert spec_hash(said) == "94defff1353f3e9edcacb1d11b79c0416f7ec9757b43d29eb3e0e5040dde3463"


def test_words_are_part_of_what_was_asked(loaded):
    first = loaded()
    others = [
        DATASET.replace("title: Wages", "title: Pay"),
        DATASET.replace("male, 2", "man, 2"),
        DATASET.replace("ten", "two"),
    ]
    hashes = {spec_hash(first), *(spec_hash(loaded(other)) for other in others)}
    assert len(hashes | {spec_hash(loaded(DATASET, RELEASE.replace("title: Wages of", "title: Pay of")))}) == 5


BAD = {
    "a label of no category": (
        ("{1: male", "{3: male"),
        r"line 11: attributes.sex.labels.3: sex has no category '3'; it has 1, 2",
    ),
    "a label beside a category": (("{0–4: small", "{0–5: small"), "line 15.*has no category '0–5'; did you mean '0–4'?"),
    "an empty title": (("title: Wages", 'title: ""'), "line 3: title: is empty; say it, or leave the key out"),
    "a number for a title": (("title: Wages", "title: 2026"), 'line 3: title: is a text; write "2026" in quotes'),
    "a title that is written from right to left": (
        ("title: Wages", 'title: "a\u202eb"'),
        r"line 3.*cannot be seen \(U\+202E\)",
    ),
    "a byte order mark in a reason": (("why: ten", 'why: "a\ufeffb"'), r"line 15.*why: holds a character.*U\+FEFF"),
    "a control character in a label": (("{1: male", '{1: "\\a"'), r"line 11.*the label of '1' holds a character.*U\+0007"),
    "an empty label": (("{1: male", '{1: ""'), "line 11.*the label of '1' is empty"),
    "labels in a list": (("{1: male, 2: female}", "[male, female]"), "line 11.*write {category:"),
    "a title as long as a description": (
        ("title: Wages", f"title: {'x' * 201}"),
        "line 3: title: has 201 characters; at most 200",
    ),
    "a description without end": (
        ("publisher: Office", f"description: {'x' * 4001}"),
        "line 5.*4,001 characters; at most 4,000",
    ),
    "a licence that runs": (
        ("CC-BY-4.0", "javascript:alert(1)"),
        "line 4: licence: .*SPDX identifier, such as CC-BY-4.0, or its",
    ),
    "a licence in prose": (("CC-BY-4.0", "free for all"), "line 4: licence: 'free for all' is no licence"),
    "a reason that is a list": (("why: everybody was asked", "why: [a]"), "line 18: rules.0.why: is a text"),
}


@pytest.mark.parametrize("change, says", BAD.values(), ids=BAD)
def test_words_that_cannot_be_shown_are_refused_with_their_line(loaded, change, says):
    assert change[0] in DATASET
    with pytest.raises(SpecError, match=says):
        loaded(DATASET.replace(*change))


def test_an_address_is_a_licence(tmp_path):
    (tmp_path / "d.yaml").write_text(DATASET.replace("CC-BY-4.0", "https://example.org/licence?v=1"), encoding="utf-8")
    assert load_domain(tmp_path / "d.yaml").licence == "https://example.org/licence?v=1"


def test_a_rule_names_a_category_that_is_a_number_as_it_is_written(loaded):
    assert loaded().domain.forbidden == ({0: (0,), 1: (2,)},)
