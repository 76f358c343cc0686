"""Planted lies about analyses: manifest and signature agree on each, and it is found by computing it again from the sets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tasks.publishing.making import Made, edit_table, forge_plan, sign_again
from tests.tasks.publishing.test_analyses import ASKED, CASCADE, PAIRS, published
from tests.tasks.verify.test_bundle import problems_of
from tests.tasks.verify.test_lies import _copy, must_find

Json = dict[str, Any]


@pytest.fixture(scope="module")
def asked(tmp_path_factory) -> Made:
    return published(tmp_path_factory.mktemp("asked") / "home", PAIRS, ASKED)


@pytest.fixture(scope="module")
def unmeasured(tmp_path_factory) -> Made:
    return published(tmp_path_factory.mktemp("unmeasured") / "home", CASCADE, ASKED[:1])


@pytest.fixture
def folder(asked, tmp_path) -> Path:
    return _copy(asked, tmp_path)


def narrower(analyses: list[Json]) -> None:
    cell = analyses[0]["estimates"][0]
    middle = (cell["low"] + cell["high"]) / 2
    cell |= {"low": 0.9 * cell["low"] + 0.1 * middle, "high": 0.9 * cell["high"] + 0.1 * middle}


def another_estimate(analyses: list[Json]) -> None:
    analyses[1]["estimates"][1]["estimate"] *= 1.1


def a_narrower_width(analyses: list[Json]) -> None:
    analyses[0]["achieved_width"] *= 0.9


def a_number_where_the_sets_determine_none(analyses: list[Json]) -> None:
    analyses[2]["estimates"][1] |= {"estimate": 1.0, "low": 0.5, "high": 1.5}


def a_cell_left_out(analyses: list[Json]) -> None:
    analyses[0]["estimates"].pop()


def honest_though_the_sets_do_not_determine_it(analyses: list[Json]) -> None:
    analyses[2]["honest"] = True


def an_expectation_made_up_afterwards(analyses: list[Json]) -> None:
    analyses[0]["expected_width"] *= 2


def an_analysis_left_out(analyses: list[Json]) -> None:
    analyses.pop(1)


LIES: dict[Callable[[list[Json]], None], str] = {
    narrower: "the estimates are not those that the sets give",
    another_estimate: "the estimates are not those that the sets give",
    a_narrower_width: "the estimates are not those that the sets give",
    a_number_where_the_sets_determine_none: "the estimates are not those that the sets give",
    a_cell_left_out: "the estimates are not those that the sets give",
    honest_though_the_sets_do_not_determine_it: "is told wrong",
    an_expectation_made_up_afterwards: "is told wrong",
    an_analysis_left_out: "does not report the analyses",
}


@pytest.mark.whole
def test_what_was_published_holds(folder):
    assert problems_of(folder) == []


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
@pytest.mark.whole
def test_a_lie_about_an_analysis_is_found(asked, folder, lie):
    sign_again(folder, asked.home, lambda manifest: lie(manifest["analyses"]))
    must_find(folder, "manifest.json", LIES[lie])


@pytest.mark.whole
def test_saying_it_in_other_digits_is_no_lie(asked, folder):
    """What two machines may differ by."""

    def shift(manifest: Json) -> None:
        for each in manifest["analyses"][1]["estimates"]:
            each["estimate"] *= 1 + 1e-6

    sign_again(folder, asked.home, shift)
    assert problems_of(folder) == []


@pytest.mark.whole
def test_other_rows_do_not_say_the_same(asked, folder):
    """A set in which everybody voted; that its cells differ from its counts is found besides."""

    def all_vote(columns: dict[str, list]) -> None:
        columns["voted"] = ["yes"] * len(columns["voted"])

    edit_table(folder / "synthetic-1.parquet", all_vote)
    sign_again(folder, asked.home)
    must_find(folder, "manifest.json", "the estimates are not those that the sets give")


def measured_in_the_plan(plan: Json) -> None:
    plan["analyses"][0] |= {"needs": [{"of": ["voted", "age"], "measured": True}], "measured": True}


def fewer_tables_needed(plan: Json) -> None:
    plan["analyses"][0] |= {"needs": [{"of": ["voted"], "measured": False}]}


def called_measured(plan: Json) -> None:
    plan["analyses"][0]["measured"] = True


def under_another_name(plan: Json) -> None:
    plan["analyses"][0]["name"] = "voted × wage"


PLANNED = {
    under_another_name: "is called by another name than what it asks",
    measured_in_the_plan: "is not measured, and the plan says it is",
    fewer_tables_needed: "does not name the tables that it needs",
    called_measured: "not all of its tables are",
}


@pytest.mark.parametrize("lie", PLANNED, ids=lambda lie: lie.__name__)
@pytest.mark.whole
def test_a_plan_that_claims_to_measure_what_it_does_not_is_found(unmeasured, tmp_path, lie):
    folder = _copy(unmeasured, tmp_path)
    forge_plan(folder, unmeasured.home, lie)
    must_find(folder, "plan.json", PLANNED[lie])


@pytest.mark.parametrize("key", ["honest", "measured"])
def test_a_manifest_that_claims_what_its_plan_does_not_is_found(unmeasured, tmp_path, key):
    folder = _copy(unmeasured, tmp_path)
    assert problems_of(folder) == []
    sign_again(folder, unmeasured.home, lambda manifest: manifest["analyses"][0].update({key: True}))
    must_find(folder, "manifest.json", "is told wrong")


def test_a_strangers_formula_is_neither_run_nor_unfolded(asked, folder):
    def foreign(plan: Json) -> None:
        plan["analyses"][1]["formula"] = "wage ~ __import__('os').system('true')"
        plan["analyses"][2]["formula"] = "voted ~ " + " * ".join(["wage"] * 40)

    forge_plan(folder, asked.home, foreign)
    must_find(folder, "plan.json", "formula")
