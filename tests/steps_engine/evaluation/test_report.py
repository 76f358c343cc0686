"""The evaluation as JSON and as a page."""

from __future__ import annotations

import json
import re

import pytest

from schemas.errors import SpecError
from steps_engine.evaluation.coded import Coded
from steps_engine.evaluation.comparison import compare
from steps_engine.evaluation.measures import Options
from steps_engine.evaluation.regression import MODELS
from steps_engine.evaluation.report import evaluate
from steps_engine.noise import SeededRandomness
from tasks.publishing.evaluation_page import render_evaluation
from tests.steps_engine.evaluation.tables import coded, dependent, shuffled, voters


@pytest.fixture(scope="module")
def evaluation():
    (people, table), (others, other) = voters(2000, 1), voters(1900, 2)
    regression = compare(MODELS["did_voter"], people, [others, people])
    return evaluate(table, [other, table], SeededRandomness(1), Options("logistic", null=2), regression)


@pytest.fixture(scope="module")
def confidential(evaluation) -> str:
    return render_evaluation(evaluation, "A", confidential=True)


@pytest.fixture(scope="module")
def public(evaluation) -> str:
    return render_evaluation(evaluation, "A", confidential=False)


def test_scripts_find_the_keys_they_rely_on(evaluation):
    found = json.loads(json.dumps(evaluation.as_json(), allow_nan=False))
    assert 0 < found["specks"]["ks"] < 1 and found["specks"]["null_ks"] > 0
    assert set(found["tvd"]) == {"1", "2", "3"}
    assert found["tvd"]["1"] < found["tvd"]["2"] < found["tvd"]["3"]
    assert set(found["chi_square"]) == {"0.01", "0.05", "0.1"}
    assert found["rows"] == {"original": 2000, "synthetic": [1900, 2000]}


def test_one_seed_gives_one_evaluation(evaluation):
    (_, table), (_, other) = voters(2000, 1), voters(1900, 2)
    again = evaluate(table, [other, table], SeededRandomness(1), Options("logistic", null=2), evaluation.regression)
    assert again.as_json() == evaluation.as_json()


@pytest.mark.whole
def test_a_confidential_page_says_so_in_its_first_line(confidential, public):
    first = confidential.splitlines()[0]
    assert all(words in first for words in ("confidential records", "without paying", "breaks", "must stay inside"))
    assert '<p class="confidential"' in confidential
    assert "must stay inside" not in public


def test_the_page_fetches_nothing(public):
    assert not re.search(r"<(script|link|img|iframe)\b|@import|url\(\s*['\"]?(?!#)", public)
    assert set(re.findall(r'(?:href|src)="([^#"][^"]*)"', public)) == set()


@pytest.mark.whole
def test_equal_evaluations_give_equal_pages(evaluation, confidential):
    assert render_evaluation(evaluation, "A", confidential=True) == confidential


def test_the_page_holds_all_four_pictures(confidential):
    assert confidential.count("<svg") == 4


def test_hostile_names_are_shown_as_text():
    table = dependent(60, 1)
    names = ("<script>alert(1)</script>", "$x_{", "a & b", "d")
    hostile = Coded(names, table.sizes, table.codes)
    other = Coded(names, table.sizes, shuffled(table, 2).codes)
    page = render_evaluation(evaluate(hostile, [other], SeededRandomness(1), Options(null=0)), "<b>t</b>", confidential=True)
    assert "<script>" not in page and "<b>t</b>" not in page
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize(
    ("original", "synthetic"),
    [
        (coded([[0], [1]], (2,)), coded([[0]], (2,))),
        (coded([[0, 0]], (1, 1)), coded([[0, 0]], (1, 1))),
        (coded([[0, 0]] * 9, (2, 2)), coded([[1, 1]] * 5, (2, 2))),
    ],
    ids=["one attribute", "one cell", "nothing in common"],
)
@pytest.mark.whole
def test_awkward_tables_are_evaluated_and_shown(original, synthetic):
    found = evaluate(original, [synthetic], SeededRandomness(1), Options(null=2))
    json.dumps(found.as_json(), allow_nan=False)
    assert render_evaluation(found, "Awkward", confidential=False).count("<svg") == 3


def test_an_empty_set_is_refused_before_anything_is_computed():
    with pytest.raises(SpecError, match="set 1 has no rows"):
        evaluate(coded([[0]], (2,)), [coded([[0]], (2,), weight=[0])], SeededRandomness(1))
