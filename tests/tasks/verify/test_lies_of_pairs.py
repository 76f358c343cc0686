"""Planted lies in releases by pairs, in ε and in ρ: plan, manifest, charge and signature agree on each, and it is found."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from schemas.errors import EvidenceBroken
from schemas.manifest import SEEDS_1
from schemas.spec.domain import Domain
from steps_engine.accounting.plans import Allowance
from steps_engine.methods.pairs import draws as pairs_draws
from steps_engine.methods.planning import make_plan
from steps_engine.noise import SeededRandomness
from tasks.publishing.publication import publish
from tasks.verify.recompute import verify_again
from tests.tasks.publishing.making import Made, a_release, edit_table, forge_plan, make, sign_again, some_counts
from tests.tasks.verify.methods import release_of
from tests.tasks.verify.test_bundle import problems_of
from tests.tasks.verify.test_lies import _copy, must_find

Json = dict[str, Any]
MEASURES = {"ε": {"epsilon": "1"}, "ρ": {"rho": "0.05", "delta": "1e-9"}}
either_measure = pytest.mark.parametrize("measure", MEASURES)
CATEGORIES = (2, 2, 4, 2, 2)
FIRST_PAIR = 1 + sum(CATEGORIES)  # rows of the structure before the pairs


@pytest.fixture(scope="module")
def bundles(tmp_path_factory) -> Callable[..., Made]:
    """Honest bundles by name, measure and neighbours, each made when first asked for. Not to be changed."""
    made: dict[tuple[str, str, str], Made] = {}

    def get(name: str, measure: str = "ε", neighbours: str = "add_remove") -> Made:
        key = (name, measure, neighbours)
        if key not in made:
            release = release_of(name, 1, {"count": 2}, neighbours=neighbours, **MEASURES[measure])
            made[key] = make(tmp_path_factory.mktemp("lies") / "home", release, some_counts(release.domain, 4003))
            publish(*made[key].arguments)
        return made[key]

    return get


def paid(draw: Json) -> str:
    return "epsilon" if "epsilon" in draw else "rho"


def times(draw: Json, factor: Fraction, *keys: str) -> None:
    draw.update({key: str(Fraction(draw[key]) * factor) for key in keys})


def of(plan: Json, wanted: Any) -> list[Json]:
    """By the table, or by one of those that a draw measures together."""
    joint = [draw for draw in plan["draws"] if draw["mechanism"] == "max_norm" and wanted in draw["of"]]
    return joint or [draw for draw in plan["draws"] if draw.get("of") == wanted]


def renamed(draw: Json, table: list[str], other: list[str] | None) -> None:
    """The draw says that it is of another table, or of none."""
    if draw["mechanism"] == "max_norm":
        draw["of"] = [other if each == table else each for each in draw["of"] if each != table or other is not None]
    elif other is not None:
        draw["of"] = other
    else:
        del draw["of"]


def given_away(plan: Json, gone: list[Json]) -> None:
    """Leaves draws out and lets every other one have more of the budget, with less noise: the sum stays."""
    total = sum(Fraction(draw[paid(draw)]) for draw in plan["draws"])
    left = 1 - sum(Fraction(draw[paid(draw)]) for draw in gone) / total
    plan["draws"] = [draw for draw in plan["draws"] if draw not in gone]
    for draw in plan["draws"]:
        times(draw, 1 / left, paid(draw))
        # an election in ρ costs the square of its rate: a scale that is no larger is paid for in any case
        times(draw, left if draw["kind"] == "count" else Fraction(1), "scale")


# --- lies of the plan


def a_halved_sensitivity(plan: Json) -> None:
    times(of(plan, ["voted", "age"])[0], Fraction(1, 2), "sensitivity", "scale")


def a_halved_sensitivity_of_a_margin(plan: Json) -> None:
    times(of(plan, ["age"])[0], Fraction(1, 2), "sensitivity", "scale")


def half_the_noise(plan: Json) -> None:
    times(of(plan, ["voted", "age"])[0], Fraction(1, 2), "scale")


def a_pair_called_a_count(plan: Json) -> None:
    for draw in of(plan, ["voted", "age"]):
        renamed(draw, ["voted", "age"], None)


def a_pair_for_free(plan: Json) -> None:
    given_away(plan, of(plan, ["voted", "age"]))


def a_pair_for_free_in_one_set(plan: Json) -> None:
    given_away(plan, [draw for draw in of(plan, ["voted", "age"]) if draw["set"] == 2])


def a_margin_called_another_in_one_set(plan: Json) -> None:
    for draw in (draw for draw in of(plan, ["age"]) if draw["set"] == 2):
        renamed(draw, ["age"], ["voted"])


def a_pair_called_another_in_one_set(plan: Json) -> None:
    for draw in (draw for draw in of(plan, ["voted", "age"]) if draw["set"] == 2):
        renamed(draw, ["voted", "age"], ["registered", "age"])


def the_number_of_rows_for_free_in_one_set(plan: Json) -> None:
    for draw in (draw for draw in of(plan, []) if draw["set"] == 2):
        renamed(draw, [], None) if draw["mechanism"] == "max_norm" else given_away(plan, [draw])


def a_pair_called_another(plan: Json) -> None:
    for draw in of(plan, ["voted", "age"]):
        renamed(draw, ["voted", "age"], ["voted", "wages"])


def a_margin_for_free(plan: Json) -> None:
    given_away(plan, of(plan, ["age"]))


def the_number_of_rows_for_free(plan: Json) -> None:
    for draw in of(plan, []):
        if draw["mechanism"] == "max_norm":
            renamed(draw, [], None)
        else:
            given_away(plan, [draw])


LIES: dict[Callable[[Json], None], str] = {
    a_halved_sensitivity: "one person can change it by 1",
    a_halved_sensitivity_of_a_margin: "one person can change it by 1",
    half_the_noise: "at its scale it costs ρ=|below sensitivity/ε",
    a_pair_called_a_count: "a table was measured that no draw accounts for",
    a_pair_for_free: "a table was measured that no draw accounts for",
    a_pair_for_free_in_one_set: "lies below counts that no draw accounts for",
    a_pair_called_another: "a table was measured that no draw accounts for",
    a_margin_called_another_in_one_set: "age does not have one draw in every measurement",
    a_pair_called_another_in_one_set: "voted × age does not have one draw in every measurement",
    the_number_of_rows_for_free_in_one_set: "the number of rows does not have one draw in every measurement",
    a_margin_for_free: "the margin of age was measured, and no draw accounts for it",
    the_number_of_rows_for_free: "the number of rows is estimated, and no draw accounts for it",
}


def an_election_for_free(plan: Json) -> None:
    given_away(plan, [draw for draw in plan["draws"] if draw["kind"] == "election"][-1:])


def all_elections_for_free(plan: Json) -> None:
    plan["election"] = None
    given_away(plan, [draw for draw in plan["draws"] if draw["kind"] == "election"])


def an_elected_pair_for_free(plan: Json) -> None:
    given_away(plan, [draw for draw in plan["draws"] if draw["tree"] == "pair 4"])


def elected_pairs_called_counts(plan: Json) -> None:
    for draw in of(plan, "elected"):
        del draw["of"]


def a_utility_of_other_things(plan: Json) -> None:
    plan["election"] |= {"utility": "dependence", "what": "groups"}
    for draw in plan["draws"]:
        if draw["kind"] == "election":
            times(draw, Fraction(4), "sensitivity", "scale")


def an_election_of_half_the_spread(plan: Json) -> None:
    times(next(draw for draw in plan["draws"] if draw["kind"] == "election"), Fraction(1, 2), "sensitivity", "scale")


LIES_OF_ELECTIONS: dict[Callable[[Json], None], str] = {
    an_election_for_free: "4 pairs were elected; 3 elections and 4 draws account for as many at most",
    all_elections_for_free: "a table was measured that no draw accounts for",
    an_elected_pair_for_free: "4 pairs were elected; 4 elections and 3 draws account for as many at most",
    elected_pairs_called_counts: "4 pairs were elected; 4 elections and 0 draws account for as many at most",
    a_utility_of_other_things: "pairs are elected by what margins alone misplace",
    an_election_of_half_the_spread: "one person can change it by 1",
}


def must_find_one_of(folder: Path, file: str, words: str) -> None:
    found = problems_of(folder)
    assert any(p.file == file and any(word in p.text for word in words.split("|")) for p in found), [str(p) for p in found]


@either_measure
@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
@pytest.mark.whole
def test_a_lie_about_tables_is_found(bundles, tmp_path, lie, measure):
    made = bundles("pairs", measure)
    folder = _copy(made, tmp_path)
    assert problems_of(folder) == []
    forge_plan(folder, made.home, lie)
    must_find_one_of(folder, "plan.json", LIES[lie])


@either_measure
@pytest.mark.parametrize("lie", LIES_OF_ELECTIONS, ids=lambda lie: lie.__name__)
@pytest.mark.whole
def test_a_lie_about_elections_is_found(bundles, tmp_path, lie, measure):
    made = bundles("pairs, elected", measure)
    folder = _copy(made, tmp_path)
    assert problems_of(folder) == []
    forge_plan(folder, made.home, lie)
    must_find(folder, "plan.json", LIES_OF_ELECTIONS[lie])


@pytest.mark.parametrize("other", [["voted"], ["voted", "registered"], ["registered", "age"]], ids=" × ".join)
@pytest.mark.whole
def test_joint_noise_of_tables_with_other_cells_is_found(bundles, tmp_path, other):
    """A row would change entries of two vectors, and be paid for in one."""
    made = bundles("pairs", "ε")
    folder = _copy(made, tmp_path)

    def lie(plan: Json) -> None:
        for draw in of(plan, ["voted", "age"]):
            renamed(draw, ["voted", "age"], other)

    forge_plan(folder, made.home, lie)
    must_find(folder, "plan.json", "that do not cross the same cells with two categories")


@pytest.mark.parametrize("mechanism", ["two_sided_geometric", "max_norm"])
@pytest.mark.whole
def test_noise_of_counts_on_centred_contrasts_in_rho_is_found(bundles, tmp_path, mechanism):
    """One row changes several entries of a centred contrast, by more than 1: no price of these is known."""
    made = bundles("pairs", "ρ")
    folder = _copy(made, tmp_path)

    def lie(plan: Json) -> None:
        for draw in of(plan, ["voted", "age"]):
            rate = Fraction(draw["rho"]) * 2
            root = Fraction(math.isqrt(rate.numerator * rate.denominator) + 1, rate.denominator)
            table = [draw["of"]] if mechanism == "max_norm" else draw["of"]
            draw.update(mechanism=mechanism, sensitivity="1", scale=str(1 / root), of=table)

    forge_plan(folder, made.home, lie)
    must_find_one_of(
        folder, "plan.json", "of contrasts in ρ this verifier knows Gaussian noise only|max_norm has no price in ρ"
    )


@either_measure
@pytest.mark.whole
def test_contrasts_of_replaced_rows_at_the_price_of_counts_are_found_when_the_planner_believes_in_it(
    bundles, tmp_path, monkeypatch, measure
):
    """Counts of disjoint nodes pay 2k² in ρ; contrasts are signed, and lengths add up: (2k)². In ε both are 2k."""
    made = bundles("pairs", measure, "substitute")
    folder = _copy(made, tmp_path)
    assert problems_of(folder) == []
    right = Allowance.interaction

    def wrong(self, name, cost, **said):
        draw, half = right(self, name, cost, **said), Fraction(1, 2)
        return draw.model_copy(update={"sensitivity": draw.sensitivity * half, "scale": draw.scale * half})

    monkeypatch.setattr(Allowance, "interaction", wrong)
    planted = make_plan(made.release, SeededRandomness(7))
    forge_plan(folder, made.home, lambda plan: plan.update(draws=[draw.model_dump(mode="json") for draw in planted.draws]))
    must_find(folder, "plan.json", f"one person can change it by {2 if measure == 'ε' else 4}")


@either_measure
@pytest.mark.whole
def test_a_quarter_of_the_election_noise_is_found_and_cannot_be_published(bundles, tmp_path, monkeypatch, measure):
    made = bundles("pairs, elected", measure)
    folder = _copy(made, tmp_path)
    monkeypatch.setattr(pairs_draws, "SPREAD", Fraction(1, 4))
    planted = make_plan(made.release, SeededRandomness(7))
    forge_plan(folder, made.home, lambda plan: plan.update(draws=[draw.model_dump(mode="json") for draw in planted.draws]))
    must_find(folder, "plan.json", "one person can change it by 1")
    greedy = make(tmp_path / "home", made.release, some_counts(made.release.domain, 400))
    with pytest.raises(EvidenceBroken, match="one person can change it by"):
        publish(*greedy.arguments)


# --- lies of what is measured again

TWICE = Domain.model_validate(
    {
        "name": "ten",
        "population": "town",
        "expected_rows": 3000,
        "attributes": tuple(
            {"name": f"x{j}", "kind": "categorical", "categories": ("a", "b") if j else ("a", "b", "c")} for j in range(9)
        ),
    }
)


@pytest.fixture(scope="module")
def twice(tmp_path_factory) -> Made:
    release = a_release(TWICE, {"decomposition": "pairs"}, rho="0.05", delta="1e-9")
    made = make(tmp_path_factory.mktemp("twice") / "home", release, some_counts(TWICE, 3000))
    publish(*made.arguments, seeds=SEEDS_1)
    return made


def one_again_for_free(plan: Json) -> None:
    given_away(plan, of(plan, "again")[:1])


def all_again_in_one_tree(plan: Json) -> None:
    """Layers of one tree, of which a person would meet the deepest way alone."""
    for layer, draw in enumerate(of(plan, "again"), start=1):
        draw.update(tree="again 1", layer=layer, nodes="leaves")


def half_the_noise_of_one_again(plan: Json) -> None:
    times(of(plan, "again")[0], Fraction(1, 2), "scale")


def a_sensitivity_of_one_again(plan: Json) -> None:
    times(of(plan, "again")[0], Fraction(1, 2), "scale", "sensitivity")


LIES_OF_AGAIN = {
    one_again_for_free: "a table was measured that no draw of the plan accounts for",
    all_again_in_one_tree: "holds several tables, and everybody is in each of them",
    half_the_noise_of_one_again: "at its scale it costs ρ=",
    a_sensitivity_of_one_again: "one person can change it by 1",
}


@pytest.mark.parametrize("lie", LIES_OF_AGAIN, ids=lambda lie: lie.__name__)
@pytest.mark.whole
def test_a_lie_about_what_is_measured_again_is_found(twice, tmp_path, lie):
    folder = _copy(twice, tmp_path)
    forge_plan(folder, twice.home, lie)
    found = [each.text for each in problems_of(folder)]
    assert any(LIES_OF_AGAIN[lie] in text for text in found), found


@pytest.mark.whole
def test_a_pair_chosen_otherwise_is_found_by_recomputing(twice, tmp_path):
    folder = _copy(twice, tmp_path)
    assert [each for each in verify_again(folder).problems if not each.note] == []

    def another(columns: dict[str, list]) -> None:
        """The last pair of two categories that stands twice becomes one that does not."""
        numbers, pairs = columns["table"], max(columns["table"]) + 1
        before = len(numbers) - 1 - numbers[::-1].index(pairs - 1) if numbers[-1] != pairs - 1 else numbers.index(pairs - 1)
        left = sorted(set(range(8, pairs)) - set(numbers[before + 1 :]))
        columns["table"] = numbers[: before + 1] + sorted([*numbers[before + 1 : -1], left[-1]])

    edit_table(folder / "noisy-counts.parquet", another)
    sign_again(folder, twice.home)
    found = [each.text for each in verify_again(folder).problems]
    assert any("not those that the first measurement of all pairs leads to" in text for text in found), found


# --- lies of the tables


def last_pair_again(columns: dict[str, list]) -> None:
    for name in columns:
        columns[name].append(columns[name][-1])
    columns["attributes"][-1] = _another_pair(columns)


def _another_pair(columns: dict[str, list]) -> list[int]:
    return next([a, b] for a in range(5) for b in range(a + 1, 5) if [a, b] not in columns["attributes"])


def the_same_pair_twice(columns: dict[str, list]) -> None:
    columns["attributes"][-1] = columns["attributes"][-2]


def rule_tied_attributes_in_one_group(columns: dict[str, list]) -> None:
    columns["group"][2] = 0  # voted and registered are tied by a rule


def groups_that_are_no_neighbours(columns: dict[str, list]) -> None:
    columns["group"][5:9] = [0, 1, 0, 1]


def a_number_where_nothing_was_measured(columns: dict[str, list]) -> None:
    """The contrast of a binary attribute is one number; in its second place an exact count could be told."""
    columns["noisy_1"][2] = 1234


def a_number_beside_a_pair(columns: dict[str, list]) -> None:
    columns["noisy_2"][FIRST_PAIR] = 1234


def a_number_left_out(columns: dict[str, list]) -> None:
    columns["noisy_1"][5] = None


def a_margin_without_a_category(columns: dict[str, list]) -> None:
    for name in columns:
        del columns[name][5]


TABLE_LIES: dict[Callable[[dict[str, list]], None], str] = {
    the_same_pair_twice: "a table stands twice, or is none",
    rule_tied_attributes_in_one_group: "attributes that rules tie to others, or that analyses need, are grouped",
    groups_that_are_no_neighbours: "groups are not of neighbouring categories",
    a_number_where_nothing_was_measured: "holds something beside groups, pairs and what was measured",
    a_number_beside_a_pair: "holds something beside groups, pairs and what was measured",
    a_number_left_out: "holds something beside groups, pairs and what was measured",
    a_margin_without_a_category: "the margins are not those of the domain",
}


@either_measure
@pytest.mark.parametrize("lie", TABLE_LIES, ids=lambda lie: lie.__name__)
@pytest.mark.whole
def test_a_structure_that_no_measurement_could_have_made_is_found(bundles, tmp_path, lie, measure):
    made = bundles("pairs, elected", measure)
    folder = _copy(made, tmp_path)
    edit_table(folder / "tree.parquet", lie)
    sign_again(folder, made.home)
    must_find(folder, "tree.parquet", TABLE_LIES[lie])


@either_measure
@pytest.mark.whole
def test_a_fifth_pair_of_four_elections_is_found(bundles, tmp_path, measure):
    made = bundles("pairs, elected", measure)
    folder = _copy(made, tmp_path)
    edit_table(folder / "tree.parquet", last_pair_again)
    sign_again(folder, made.home)
    must_find(folder, "plan.json", "5 pairs were elected; 4 elections and 4 draws account for as many at most")


def one_cell_more(columns: dict[str, list]) -> None:
    for name in columns:
        columns[name].append(columns[name][-1])
    columns["cell"][-1] += 1


def one_cell_less(columns: dict[str, list]) -> None:
    for name in columns:
        columns[name].pop()


@pytest.mark.whole
@pytest.mark.parametrize("lie", [one_cell_more, one_cell_less], ids=lambda lie: lie.__name__)
@either_measure
def test_a_contrast_with_another_number_of_cells_is_found(bundles, tmp_path, lie, measure):
    made = bundles("pairs", measure)
    folder = _copy(made, tmp_path)
    edit_table(folder / "noisy-counts.parquet", lie)
    sign_again(folder, made.home)
    must_find(folder, "noisy-counts.parquet", "the entries are not those of the tables, each once and in order")


@pytest.mark.parametrize("column", ["estimate", "standard_error"])
def test_an_estimate_that_does_not_follow_from_what_was_drawn_is_found(bundles, tmp_path, column):
    made = bundles("pairs")
    folder = _copy(made, tmp_path)
    edit_table(folder / "consistent-counts.parquet", lambda columns: columns.update({column: [1.0] * len(columns[column])}))
    sign_again(folder, made.home)
    must_find(folder, "consistent-counts.parquet", f"column {column} does not follow")


def test_cells_of_estimates_that_are_not_those_of_the_draws_are_found(bundles, tmp_path):
    made = bundles("pairs")
    folder = _copy(made, tmp_path)
    edit_table(folder / "consistent-counts.parquet", lambda columns: [columns[name].pop() for name in columns])
    sign_again(folder, made.home)
    must_find(folder, "consistent-counts.parquet", "does not have exactly the cells of the noisy counts")


@pytest.mark.whole
def test_two_exact_numbers_of_rows_are_found(tmp_path):
    release = release_of("pairs", 1, {"count": 2}, total="invariant")
    made = make(tmp_path / "home", release, some_counts(release.domain, 399))
    publish(*made.arguments)
    folder = _copy(made, tmp_path)
    assert problems_of(folder) == []
    edit_table(folder / "tree.parquet", lambda columns: columns["noisy_2"].__setitem__(0, 398))
    sign_again(folder, made.home)
    must_find(folder, "tree.parquet", "there is more than one exact number of rows")
