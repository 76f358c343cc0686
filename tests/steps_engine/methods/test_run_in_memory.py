"""The documented example runs as it stands, and gives what the text beside it says."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest

from steps_engine.accounting.composition import composition_of

DOCUMENT = Path(__file__).parents[3] / "docs" / "engine.md"


@pytest.fixture(scope="module")
def example() -> dict:
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL):
        exec(compile(block, str(DOCUMENT), "exec"), names)
    return names


def test_the_documented_example_gives_frames_counts_and_draws(example):
    result, frame = example["result"], example["frame"]
    assert list(result.frames[0].columns) == list(frame.columns) and len(result.frames) == 2
    counts = result.counts(1).set_index("member")
    truth = frame["member"].value_counts()
    assert all(abs(counts.estimate[m] - truth[m]) < 12 * counts.standard_error[m] for m in ("no", "yes"))
    assert not result.frames[0].query("member == 'yes'")["wage"].isna().any()
    assert {draw.kind for draw in result.plan.draws} == {"count"}


def test_a_users_utility_is_in_the_plan(example):
    [election] = [draw for draw in example["elected"].plan.draws if draw.kind == "election"]
    assert election.sensitivity == 1


def test_with_a_delta_the_documented_example_is_paid_in_rho(example):
    plan = example["in_rho"].plan
    assert (plan.measure, plan.epsilon, plan.delta) == ("zcdp", "1", "1e-9")
    assert composition_of(plan).total == Fraction(plan.rho) and plan.rho == "0.014973057"


def test_every_method_of_the_table_can_be_built(example):
    rows = re.findall(r"\| `(method_spec\(.*?\))` \|", DOCUMENT.read_text())
    assert len(rows) == 9
    for row in rows:
        eval(row, {"method_spec": example["method_spec"]})  # the document's own text


@pytest.mark.parametrize("name", ["cascade", "privbayes", "flat", "auto"])
@pytest.mark.whole
def test_a_frame_is_synthesized_by_the_method_that_was_asked_for(example, name):
    method = example["method_spec"](name)
    result = example["synthesize_frame"](example["frame"], example["domain"], 1, method)
    assert result.plan.decomposition == name or (name == "auto" and result.plan.considered)
    per_attribute = result.plan.decomposition in ("cascade", "privbayes")
    assert ("attribute" in result.tables["tree"].column_names) == per_attribute
    assert list(result.frames[0].columns) == list(example["frame"].columns)


def test_a_utility_of_ones_own_needs_a_tree(example):
    with pytest.raises(TypeError, match="needs decomposition: tree"):
        example["synthesize_frame"](
            example["frame"], example["domain"], 1, example["method_spec"]("cascade"), utility=example["fullest"]
        )
