"""Planted lies: each is told by the plan, the manifest, the charge and the signature alike, and is found by the verifier."""

from __future__ import annotations

import dataclasses
import shutil
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from schemas.errors import EvidenceBroken
from schemas.spec.domain import Domain
from schemas.spec.release import Release
from steps_engine.domain.counting import count_codes
from steps_engine.methods.cascade import plan as cascade_planning
from steps_engine.methods.planning import make_plan
from steps_engine.methods.privbayes import plan as privbayes_planning
from steps_engine.methods.tree import check as tree_check
from steps_engine.methods.tree import election as electing
from steps_engine.noise import SeededRandomness
from tasks.publishing.publication import publish
from tests.tasks.publishing.making import (
    Made,
    a_release,
    edit_json,
    edit_table,
    forge_chain,
    forge_plan,
    make,
    sign_again,
    some_counts,
)
from tests.tasks.verify.methods import METHODS, domain_of, release_of, room_for, tables_of
from tests.tasks.verify.test_bundle import problems_of

PlanJson = dict[str, Any]
TWO_SETS = {"count": 2}
PERSONS = {"threefold": ("given", 3), "cascade that splits": ("cascade", 1)}
PAID = {"cascade that splits": {"epsilon": "9"}}


@pytest.fixture(scope="module")
def bundles(tmp_path_factory) -> Callable[[str], Made]:
    """Honest bundles by name, each made when first asked for. Not to be changed."""
    made: dict[str, Made] = {}

    def get(name: str) -> Made:
        if name not in made:
            release = honest_release(name, TWO_SETS)
            with room_for(name):
                made[name] = make(tmp_path_factory.mktemp("lies") / "home", release, some_counts(release.domain, 4003))
                publish(*made[name].arguments)
        return made[name]

    return get


def honest_release(name: str, sets: dict[str, Any]) -> Release:
    """What a lie is told about: by the name of a method, of persons with several rows, or of a case of its own."""
    if name == "ending early":
        return _ending_early()
    method, rows = PERSONS.get(name, (name, 1))
    return release_of(method, rows, sets, **PAID.get(name, {}))


def _ending_early():
    """Where voted is yes the rules leave one cell: its branch ends in the first of three layers."""
    parts = [{"name": name, "kind": "categorical", "categories": ("no", "yes")} for name in ("voted", "age", "x")]
    rules = ({"never": {"voted": "yes", "age": "no"}}, {"never": {"voted": "yes", "x": "yes"}})
    domain = Domain.model_validate({"name": "d", "population": "p", "attributes": tuple(parts), "rules": rules})
    return a_release(domain, {"decomposition": "tree", "order": ("voted", "age"), "sets": TWO_SETS})


def _copy(made: Made, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made.home.public / made.release.name, tmp_path / "copy"))


def must_find(folder: Path, file: str, words: str) -> None:
    found = problems_of(folder)
    assert any(problem.file == file and words in problem.text for problem in found), [str(p) for p in found]


# Ways to change a plan that keep the sum at ε where that is the point


def _drawn(plan: PlanJson, **wanted: Any) -> list[dict[str, Any]]:
    return [draw for draw in plan["draws"] if all(draw[key] == value for key, value in wanted.items())]


def _times(draw: dict[str, Any], factor: Fraction, *keys: str) -> None:
    draw.update({key: str(Fraction(draw[key]) * factor) for key in keys})


def _give(draw: dict[str, Any], epsilon: Fraction) -> None:
    """The share, with the noise that goes with it."""
    draw.update(epsilon=str(epsilon), scale=str(Fraction(draw["sensitivity"]) / epsilon))


def _move(plan: PlanJson, gone: list[dict[str, Any]], to: dict[str, Any]) -> None:
    """Leaves draws out and gives their share to another one: the sum stays."""
    _give(to, Fraction(to["epsilon"]) + sum(Fraction(draw["epsilon"]) for draw in gone))
    plan["draws"] = [draw for draw in plan["draws"] if draw not in gone]


def _leave_out_and_share(plan: PlanJson, gone: list[dict[str, Any]]) -> None:
    """Leaves out draws that everybody meets, and lets every other one have more: the sum stays."""
    left = 1 - sum(Fraction(draw["epsilon"]) for draw in gone)
    plan["draws"] = [draw for draw in plan["draws"] if draw not in gone]
    for draw in plan["draws"]:
        _give(draw, Fraction(draw["epsilon"]) / left)


def half_the_count_noise(plan: PlanJson) -> None:
    _times(_drawn(plan, kind="count")[0], Fraction(1, 2), "scale")


def a_count_dropped_in_one_set(plan: PlanJson) -> None:
    _move(plan, _drawn(plan, kind="count", set=2, layer=1), _drawn(plan, set=2, layer=3)[0])


def a_layer_dropped(plan: PlanJson) -> None:
    for set_ in (1, 2):
        _move(plan, _drawn(plan, set=set_, layer=1), _drawn(plan, set=set_, layer=3)[0])


def all_layers_but_the_last_dropped(plan: PlanJson) -> None:
    for set_ in (1, 2):
        _move(plan, _drawn(plan, set=set_, nodes="inner"), _drawn(plan, set=set_, layer=3)[0])


def a_draw_doubled(plan: PlanJson) -> None:
    plan["draws"].append(plan["draws"][0])


def a_second_draw_out_of_the_way(plan: PlanJson) -> None:
    plan["draws"].append(plan["draws"][0] | {"layer": 9, "name": "a second look"})


def a_leaf_that_costs_too_much(plan: PlanJson) -> None:
    early = _drawn(plan, nodes="leaves", layer=1)[0]
    _give(early, 2 * Fraction(early["epsilon"]))


def a_tree_that_costs_too_much(plan: PlanJson) -> None:
    early = _drawn(plan, nodes="leaves", layer=1, set=1, tree="since")[0]
    _give(early, 2 * Fraction(early["epsilon"]))


def another_sensitivity(plan: PlanJson) -> None:
    _times(_drawn(plan, kind="count")[0], Fraction(1, 2), "sensitivity", "scale")


def nodes_too_few(plan: PlanJson) -> None:
    plan["layers"][1]["nodes"] -= 1


def a_smaller_utility(plan: PlanJson) -> None:
    plan["election"] |= {"utility": "uneven", "what": "attributes"}
    for draw in _drawn(plan, kind="election"):
        _times(draw, Fraction(1, 2), "sensitivity", "scale")


def a_smaller_utility_of_a_network(plan: PlanJson) -> None:
    a_smaller_utility(plan)


def a_utility_that_nobody_knows(plan: PlanJson) -> None:
    plan["election"]["utility"] = "calm"


def a_grouping_called_attributes(plan: PlanJson) -> None:
    plan["election"]["what"] = "attributes"
    for draw in _drawn(plan, kind="election"):
        _times(draw, Fraction(1, 2), "sensitivity", "scale")


def one_row_per_person(plan: PlanJson) -> None:
    plan["rows_per_person"] = 1
    for draw in plan["draws"]:
        _times(draw, Fraction(1, 3), "sensitivity", "scale")


def substitution_at_the_price_of_add_remove(plan: PlanJson) -> None:
    plan["neighbours"] = "substitute"


def the_total_not_listed(plan: PlanJson) -> None:
    _leave_out_and_share(plan, _drawn(plan, name="total"))


def an_order_for_free(plan: PlanJson) -> None:
    _leave_out_and_share(plan, _drawn(plan, kind="election", tree=None))


def a_place_in_the_order_for_free(plan: PlanJson) -> None:
    _move(plan, _drawn(plan, kind="election", tree=None)[:1], _drawn(plan, kind="election", tree=None)[1])


def a_split_for_free(plan: PlanJson) -> None:
    """Every end of the tree spends the share of an election that is not listed."""
    (gone,) = _drawn(plan, kind="election", tree="since", layer=1)
    plan["draws"].remove(gone)
    for count in _drawn(plan, kind="count", tree="since", layer=2):
        _give(count, Fraction(count["epsilon"]) + Fraction(gone["epsilon"]) / 2)


def a_split_for_free_that_nobody_made(plan: PlanJson) -> None:
    """Of a tree that is not split: other records would have had it split, and its plan must pay for these too."""
    a_split_for_free(plan)


def histograms_that_nobody_pays(plan: PlanJson) -> None:
    """All that the leaves of one tree cost is told to be another's."""
    _move(plan, _drawn(plan, kind="count", tree="since"), _drawn(plan, kind="count", tree="wage")[0])


def a_parent_for_free(plan: PlanJson) -> None:
    _move(plan, _drawn(plan, kind="election")[-1:], _drawn(plan, kind="election")[0])


def a_layer_elected_for_free(plan: PlanJson) -> None:
    _move(plan, _drawn(plan, kind="election", layer=1), _drawn(plan, kind="election", layer=0)[0])


def everything_elected_for_free(plan: PlanJson) -> None:
    plan["election"] = None
    _leave_out_and_share(plan, _drawn(plan, kind="election"))


def one_election_fewer_than_layers(plan: PlanJson) -> None:
    plan["election"]["layers"] = 1
    _move(plan, _drawn(plan, kind="election", layer=1), _drawn(plan, kind="election", layer=0)[0])


def a_threshold_below_one(plan: PlanJson) -> None:
    for draw in plan["draws"]:
        draw["threshold"] = 0 if draw["threshold"] is not None else None


def a_threshold_above_the_cells(plan: PlanJson) -> None:
    plan["draws"][0]["threshold"] = 5


def a_threshold_on_the_total(plan: PlanJson) -> None:
    _drawn(plan, name="total")[0]["threshold"] = 5


def one_measurement_for_two_sets(plan: PlanJson) -> None:
    plan["draws"] = _drawn(plan, set=1)
    for draw in plan["draws"]:
        _give(draw, 2 * Fraction(draw["epsilon"]))


def sets_that_say_they_share(plan: PlanJson) -> None:
    plan["budget"] = "shared"


def draws_of_a_tree_that_is_not_there(plan: PlanJson) -> None:
    for draw in _drawn(plan, tree="since"):
        draw["tree"] = "until"


LIES: dict[Callable[[PlanJson], None], tuple[str, str, str]] = {
    half_the_count_noise: ("given", "plan.json", "below sensitivity/ε"),
    a_count_dropped_in_one_set: ("given", "plan.json", "lies below counts that no draw accounts for"),
    a_layer_dropped: ("given", "plan.json", "lies below counts that no draw accounts for"),
    all_layers_but_the_last_dropped: ("given", "plan.json", "layer 1 has counts that no draw accounts for"),
    a_draw_doubled: ("given", "plan.json", "listed twice"),
    a_second_draw_out_of_the_way: ("given", "plan.json", "nobody would pay for it"),
    a_leaf_that_costs_too_much: ("ending early", "plan.json", "the way to a leaf in layer 1 sum to"),
    a_tree_that_costs_too_much: ("cascade", "plan.json", "the way to a leaf in layer 1 of the tree of since sum to"),
    another_sensitivity: ("given", "plan.json", "one person can change it by 1"),
    nodes_too_few: ("given", "tree.parquet", "nodes; the plan says"),
    a_smaller_utility: ("cascade", "plan.json", "elected by their dependence"),
    a_smaller_utility_of_a_network: ("privbayes", "plan.json", "elected by their dependence"),
    a_utility_that_nobody_knows: ("elected", "plan.json", "election utility 'calm' is not known to this verifier"),
    a_grouping_called_attributes: ("groups", "plan.json", "the elections are not those of the plan's layers"),
    one_row_per_person: ("threefold", "domain.json", "rows per person differ"),
    substitution_at_the_price_of_add_remove: ("given", "plan.json", "one person can change it by 2"),
    the_total_not_listed: ("cascade, rows not public", "plan.json", "the number of rows had to be drawn"),
    an_order_for_free: ("cascade, order elected", "plan.json", "no election accounts for another"),
    a_place_in_the_order_for_free: ("cascade, order elected", "plan.json", "one for every place but the last"),
    a_split_for_free: ("cascade that splits", "plan.json", "the ways through the tree of since lack a draw"),
    a_split_for_free_that_nobody_made: ("cascade", "plan.json", "its histograms lie below up to 2 elections"),
    histograms_that_nobody_pays: ("cascade", "plan.json", "that no draw accounts for"),
    a_parent_for_free: ("privbayes", "plan.json", "one for each but the first"),
    a_layer_elected_for_free: ("elected", "plan.json", "the elections are not those of the plan's layers"),
    everything_elected_for_free: ("elected", "plan.json", "elects nothing"),
    one_election_fewer_than_layers: ("elected", "plan.json", "1 layers were elected; the plan has 3"),
    a_threshold_below_one: ("sampled", "plan.json", "one below 1"),
    a_threshold_above_the_cells: ("sampled", "plan.json", "not of the cells has a threshold"),
    a_threshold_on_the_total: ("cascade, rows not public", "plan.json", "not of the cells has a threshold"),
    one_measurement_for_two_sets: ("given", "plan.json", "lies below counts that no draw accounts for"),
    sets_that_say_they_share: ("given", "plan.json", "serves none of the plan's measurements"),
    draws_of_a_tree_that_is_not_there: ("cascade", "plan.json", "draws for trees that are not there"),
}


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
@pytest.mark.whole
def test_a_lie_that_plan_manifest_charge_and_signature_agree_on_is_found(bundles, tmp_path, lie):
    name, file, words = LIES[lie]
    made = bundles(name)
    folder = _copy(made, tmp_path)
    assert problems_of(folder) == []
    forge_plan(folder, made.home, lie)
    with warnings.catch_warnings(record=True, action="always") as warned:
        must_find(folder, file, words)
    assert not warned, [str(each.message) for each in warned]  # a finding, in words; nothing else is printed


# The lie that the verifier of a planner's constants cannot find: they are wrong in the planner itself


def _quarter_of_the_noise(wrong: pytest.MonkeyPatch) -> None:
    """Every election is planned, and would be held, with a quarter of the noise that it needs."""
    for name, utility in electing.UTILITIES.items():
        wrong.setitem(electing.UTILITIES, name, dataclasses.replace(utility, sensitivity=utility.sensitivity / 4))
    for planner in (cascade_planning, privbayes_planning):
        wrong.setattr(planner, "SPREAD", 1)


ELECTING = {"elected": 2, "groups": 4, "stopping": 2, "cascade": 4, "cascade, order elected": 4, "privbayes": 4}


@pytest.mark.parametrize("name", ELECTING)
@pytest.mark.whole
def test_a_quarter_of_the_election_noise_is_found_when_the_planner_believes_in_it(bundles, tmp_path, monkeypatch, name):
    made = bundles(name)
    folder = _copy(made, tmp_path)
    _quarter_of_the_noise(monkeypatch)
    planted = make_plan(made.release, SeededRandomness(7))
    honest = {draw.name: draw.scale for draw in made.plan.draws}
    wider = 1 + Fraction(1, 2**15)  # a spread below 1 is widened by what the grid may add
    for draw in planted.draws:
        quarter = honest[draw.name] / (4 if draw.kind == "election" else 1)
        assert quarter <= draw.scale <= quarter * wider
    forge_plan(folder, made.home, lambda plan: plan.update(draws=[draw.model_dump(mode="json") for draw in planted.draws]))
    must_find(folder, "plan.json", f"one person can change it by {ELECTING[name]}")


@pytest.mark.parametrize("name", ["elected", "cascade"])
@pytest.mark.whole
def test_a_planner_with_a_quarter_of_the_noise_cannot_publish(tmp_path, monkeypatch, name):
    _quarter_of_the_noise(monkeypatch)
    made = make(tmp_path / "home", release_of(name), some_counts(domain_of(name), 400))
    with pytest.raises(EvidenceBroken, match="one person can change it by"):
        publish(*made.arguments)


# Lies of the tables and of the charge


def _overlapping(columns: dict[str, list]) -> None:
    last = [row for row, layer in enumerate(columns["layer"]) if layer == max(columns["layer"])]
    columns["code"][last[1]] = columns["code"][last[0]]


def test_nodes_that_overlap_are_found(bundles, tmp_path):
    made = bundles("given")
    folder = _copy(made, tmp_path)
    edit_table(folder / "tree.parquet", _overlapping)
    sign_again(folder, made.home)
    must_find(folder, "tree.parquet", "nodes would overlap")


def test_a_charge_below_the_cost_is_found(bundles, tmp_path):
    made = bundles("given")
    folder = _copy(made, tmp_path)
    paid = {"amount": 9 * 10**8}
    sign_again(folder, made.home, lambda m: (m["ledger"]["charge"].update(paid), forge_chain(m["ledger"])))
    must_find(folder, "manifest.json", "ε=0.9 was charged; the release promises ε=1")


@pytest.mark.parametrize("figure", ["structure", "measurements", "total", "sets", "sentence"])
@pytest.mark.whole
def test_every_figure_of_the_composition_is_added_up_again(bundles, tmp_path, figure):
    lie = {"structure": "1/4", "measurements": ["1/4", "3/4"], "total": "9/10", "sets": 1, "sentence": "It is free."}[figure]
    made = bundles("elected")
    folder = _copy(made, tmp_path)
    sign_again(folder, made.home, lambda manifest: manifest["composition"].update({figure: lie}))
    must_find(folder, "manifest.json", "the composition is not the one that the plan gives")


def test_a_person_without_rows_is_found(bundles, tmp_path):
    """Nobody can change anything, so that no noise would be too little."""
    made = bundles("given")
    folder = _copy(made, tmp_path)
    edit_json(folder / "domain.json", lambda domain: domain["unit"].update(rows_per_person=0))
    forge_plan(folder, made.home, lambda plan: plan.update(rows_per_person=0))
    must_find(folder, "plan.json", "a person has at least one row")


def test_a_public_number_of_rows_is_found_where_people_may_have_more_or_fewer(tmp_path):
    """One with one row in the place of one with three would change the number that is told without noise."""
    honest = release_of("given", 3, TWO_SETS, neighbours="substitute")
    exactly = honest.domain.unit.model_copy(update={"column": "who", "exactly": True})
    domain = honest.domain.model_copy(update={"unit": exactly})
    release = a_release(domain, METHODS["given"], neighbours="substitute", total="public")
    made = make(tmp_path / "home", release, some_counts(domain, 399))
    publish(*made.arguments)
    folder = _copy(made, tmp_path)
    assert problems_of(folder) == []
    edit_json(folder / "domain.json", lambda said: said["unit"].pop("exactly"))
    sign_again(folder, made.home)
    (found,) = problems_of(folder)
    assert found.file == "domain.json" and "needs everybody's rows to be equally many" in found.text


def test_whose_change_a_sensitivity_must_cover_is_said_in_the_plans_word(bundles, tmp_path):
    made = bundles("given")
    folder = _copy(made, tmp_path)
    forge_plan(folder, made.home, lambda plan: (another_sensitivity(plan), plan.update(unit="household")))
    must_find(folder, "plan.json", "one household can change it by 1")


@pytest.mark.parametrize("epsilon", ["1e0", " 1", "1/1", "٣", "1." + "0" * 12, ""])
def test_an_epsilon_that_is_not_written_in_digits_is_found(bundles, tmp_path, epsilon):
    made = bundles("given")
    folder = _copy(made, tmp_path)
    edit_json(folder / "plan.json", lambda plan: plan.update(epsilon=epsilon))
    sign_again(folder, made.home)
    assert any(problem.file == "plan.json" for problem in problems_of(folder))


def test_a_method_that_the_verifier_does_not_know_is_found(bundles, tmp_path):
    made = bundles("given")
    folder = _copy(made, tmp_path)
    forge_plan(folder, made.home, lambda plan: plan.update(decomposition="oracle"))
    must_find(folder, "plan.json", "decomposition 'oracle' is not known to this verifier")


# Structure that no election paid for


def _three_binary() -> Domain:
    parts = [{"name": name, "kind": "categorical", "categories": ("no", "yes")} for name in "abc"]
    return Domain.model_validate({"name": "d", "population": "p", "attributes": tuple(parts)})


def _in_different_order() -> np.ndarray:
    """Where a is no, b is uneven; where it is yes, c is: nodes of one layer are best split on different attributes."""
    return np.array([[0, 0, i % 2] for i in range(4000)] + [[1, i % 2, 0] for i in range(4000)])


def _tree_findings(domain: Domain, plan, tree: pa.Table) -> list[str]:
    return [sentence for place, sentence in tree_check.check(domain, plan, {"tree": tree}).findings if place == "plan"]


def test_nodes_split_differently_below_one_grouping_are_found():
    domain, counts = _three_binary(), count_codes(_in_different_order())
    elect = {"utility": "uneven", "layers": 3}
    plan = make_plan(a_release(domain, {"decomposition": "tree", "elect": elect}, epsilon="100"))
    first, rest = plan.draws[0], [draw for draw in plan.draws if draw.kind == "count"]
    tree = tables_of(domain, plan, counts)["tree"]
    assert _tree_findings(domain, plan, tree) == []
    election = plan.election.model_copy(update={"what": "groups"})
    forged = plan.model_copy(update={"election": election, "draws": (first, *rest)})
    assert _tree_findings(domain, forged, tree) == [
        "a layer is split on different attributes, though one grouping was elected for all"
    ]


def test_a_rest_that_was_chosen_is_found():
    domain, counts = _three_binary(), count_codes(_in_different_order())
    plan = make_plan(a_release(domain, {"decomposition": "tree", "elect": {"layers": 1}}))
    tree = tables_of(domain, plan, counts)["tree"]
    assert _tree_findings(domain, plan, tree) == []
    columns = tree.to_pydict()
    (split,) = set(columns["split"][2:])
    first = split.split(",")[0] + "]"
    columns["split"][2:] = [first, first, *columns["split"][6:]]
    for name in ("layer", "parent", "leaf"):
        columns[name][2:] = columns[name][4:]
    columns["node"][2:], columns["code"][2:] = list(range(6)), [0, 1, *range(4)]
    assert _tree_findings(domain, plan, pa.table(columns, schema=tree.schema)) == [
        "the layer below the last election does not split every branch on all that is left"
    ]
