"""What `method:` may hold: every method checks its own options, and says where a mistake stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.errors import SpecError
from schemas.spec.method import METHOD_SPECS, MethodSpec, method_spec, register_spec
from tasks.specs import load_release

DATASET = """name: d
population: p
expected_rows: 1000
attributes:
  - {name: a, kind: integer, bounds: [0, 1]}
  - {name: b, kind: integer, bounds: [0, 2]}
"""
RELEASE = """name: r
dataset: dataset.yaml
source: s.csv
privacy: {epsilon: 1}
method:
  METHOD
"""
REFUSED = {
    "a method that is not there": (
        "decomposition: trie",
        "line 6: method.decomposition: there is no decomposition 'trie'; did you mean 'tree'?",
    ),
    "a mapping for a name": ("decomposition: {a: b}", "line 6: method.decomposition: there is no decomposition {'a': 'b'}"),
    "a number for a name": ("decomposition: 5", "line 6: method.decomposition: there is no decomposition 5"),
    "an option that is needed": ("decomposition: uh", "line 5: method: layers is needed here"),
    "an option of an option that is needed": (
        "{decomposition: tree, elect: {utility: aic}}",
        "method.elect: layers is needed here",
    ),
    "neither order nor elect": ("decomposition: tree", "decomposition: tree takes order or elect; found none"),
    "both": ("{decomposition: tree, order: [a], elect: {layers: 1}}", "takes order or elect; found order and elect"),
    "an option of another method": ("{decomposition: cascade, shares: equal}", 'unknown key "shares"'),
    "a misspelt option": ("{decomposition: tree, ordr: [a]}", 'unknown key "ordr"; did you mean "order"?'),
    "shares that are not positive": ("{decomposition: auto, shares: [0, 3]}", "method.shares: shares are positive numbers"),
    "no shares": ("{decomposition: flat, shares: []}", "method.shares: shares are positive numbers"),
    "an elected order of a tree": ("{decomposition: tree, order: elected}", "needs decomposition: cascade"),
    "a list for a method": ("- tree", "method is written as `key: value` lines"),
}


@pytest.mark.parametrize(("method", "said"), REFUSED.values(), ids=REFUSED)
def test_a_mistake_in_a_method_is_told_with_its_place(tmp_path: Path, method: str, said: str):
    (tmp_path / "dataset.yaml").write_text(DATASET)
    (tmp_path / "release.yaml").write_text(RELEASE.replace("METHOD", method))
    with pytest.raises(SpecError) as refused:
        load_release(tmp_path / "release.yaml")
    assert said in str(refused.value) and "release.yaml, line" in str(refused.value)


SEVERAL = """decomposition: tree
  ordr: [a]
  wild: 1
  shares: [0, 1]
  elect:
    share: 2
    lyers: 1
    stop: 7
  sets: {count: 0}"""
TOLD = {
    7: 'method.ordr: unknown key "ordr"; did you mean "order"?',
    8: 'method.wild: unknown key "wild"; known here: decomposition, elect, order, sets, shares',
    9: "method.shares: shares are positive numbers",
    11: "method.elect.share: share is the part of ε spent on electing",
    12: 'method.elect.lyers: unknown key "lyers"; did you mean "layers"?',
    13: "method.elect.stop: is true or false; found 7",
    14: "method.sets.count: must be at least 1; found 0",
}


def test_all_mistakes_in_a_method_are_told_at_once_each_with_its_line(tmp_path: Path):
    (tmp_path / "release.yaml").write_text(RELEASE.replace("METHOD", SEVERAL))
    with pytest.raises(SpecError) as refused:
        load_release(tmp_path / "release.yaml")
    told = str(refused.value).splitlines()
    assert len(told) == len(TOLD), "a misspelt key that is needed is told once"
    for line, text in TOLD.items():
        assert any(each.startswith(f"{tmp_path / 'release.yaml'}, line {line}: {text}") for each in told), text


def test_a_notebook_is_told_all_mistakes_at_once_too():
    with pytest.raises(ValueError) as refused:
        method_spec("tree", shares=[0], elect={"layers": 0, "wild": 1})
    assert all(text in str(refused.value) for text in ("elect.layers", "elect.wild", "shares are positive numbers"))


def test_lists_of_a_notebook_are_as_good_as_tuples():
    assert method_spec("tree", order=[["a", "b"], "c"], shares=[1, 2]) == method_spec(
        "tree", order=(("a", "b"), "c"), shares=(1, 2)
    )


def test_two_methods_cannot_have_one_name():
    with pytest.raises(ValueError, match="there is a method 'tree' already"):
        register_spec("tree", MethodSpec)
    assert METHOD_SPECS["tree"] is not MethodSpec


def test_null_stands_for_an_option_that_is_not_given():
    assert method_spec("flat", order=None, elect=None, layers=None) == method_spec("flat")
    with pytest.raises(ValueError, match='unknown key "anything"'):
        method_spec("flat", anything=None)
