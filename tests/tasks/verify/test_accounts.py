"""Every rule of the accounts by itself: a plan that breaks just that one, and the one sentence that says so."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from schemas.plan import Plan
from steps_engine.methods.planning import make_plan
from steps_engine.noise import SeededRandomness
from tasks.verify.accounts import plan_problems
from tasks.verify.sensitivities import ELECTIONS, NotKnown, least_sensitivity
from tasks.verify.ways import ways_of, written_cost
from tests.tasks.publishing.making import POLL, a_release
from tests.tasks.verify.methods import release_of, room_for


def plan_of(name: str, **privacy: Any) -> Plan:
    with room_for(name):
        return make_plan(release_of(name, 1, {"count": 2}, **privacy), SeededRandomness(1))


def problems(plan: Plan, published: dict[str | None, frozenset[int]] | None = None) -> list[str]:
    return list(plan_problems(plan, published))


def changed(plan: Plan, place: int, **change: Any) -> Plan:
    draws = list(plan.draws)
    draws[place] = draws[place].model_copy(update=change)
    return plan.model_copy(update={"draws": tuple(draws)})


def place_of(plan: Plan, **wanted: Any) -> int:
    return next(i for i, draw in enumerate(plan.draws) if all(getattr(draw, key) == value for key, value in wanted.items()))


def must_say(plan: Plan, words: str, published: dict[str | None, frozenset[int]] | None = None) -> None:
    """One problem and no other: the rule is not covered for by another one."""
    found = problems(plan, published)
    assert len(found) == 1 and words in found[0], found


def test_layers_that_are_not_numbered_are_found():
    plan = plan_of("given")
    must_say(plan.model_copy(update={"layers": plan.layers[::-1]}), "not numbered")
    must_say(plan.model_copy(update={"layers": ()}), "not numbered")


def test_a_negative_share_is_found_even_when_the_sum_is_right():
    """Two draws of one set, +1 and −1 more: the longest way still sums to ε."""
    plan = plan_of("given")
    first, second = plan.draws[0], plan.draws[1]
    less = changed(plan, 0, epsilon=first.epsilon - 1, scale=Fraction(100))
    must_say(changed(less, 1, epsilon=second.epsilon + 1), "has no share of ε")


def test_a_scale_below_its_share_is_found():
    must_say(changed(plan_of("given"), 0, scale=Fraction(1)), "below sensitivity/ε")


def test_noise_beyond_what_is_needed_is_welcome():
    assert problems(changed(plan_of("given"), 0, scale=Fraction(10**6), sensitivity=Fraction(5))) == []


def test_a_draw_above_the_root_is_found():
    plan = plan_of("elected")
    must_say(changed(plan, place_of(plan, kind="election"), layer=-1), "no election or count of this plan")


def test_an_election_for_one_set_is_found():
    plan = plan_of("elected")
    must_say(changed(plan, place_of(plan, kind="election"), set=1), "no election or count of this plan")


def test_an_election_by_another_mechanism_than_the_plans_is_found():
    plan = plan_of("elected")
    must_say(changed(plan, place_of(plan, kind="election"), mechanism="exponential"), "no election or count of this plan")


@pytest.mark.parametrize(("kind", "mechanism"), [("count", "exponential"), ("election", "two_sided_geometric")])
def test_a_mechanism_that_does_not_do_this_is_found(kind, mechanism):
    plan = plan_of("elected")
    found = problems(changed(plan, place_of(plan, kind=kind), mechanism=mechanism))
    assert any(f"that this verifier knows ({kind} by {mechanism})" in text for text in found)


def test_an_election_in_a_plan_that_elects_nothing_is_found():
    plan = plan_of("elected").model_copy(update={"election": None})
    assert len(problems(plan)) == 2 and all("this verifier knows (election" in text for text in problems(plan))


@pytest.mark.parametrize(
    ("update", "words"), [({"utility": "calm"}, "'calm' is not known"), ({"what": "order"}, "for electing order")]
)
def test_an_election_that_is_not_in_the_table_is_found(update, words):
    plan = plan_of("elected")
    found = problems(plan.model_copy(update={"election": plan.election.model_copy(update=update)}))
    assert len(found) == 2 and all(words in text for text in found)


def test_neighbours_that_are_not_in_the_table_are_found():
    found = problems(plan_of("given").model_copy(update={"neighbours": "bounded"}))
    assert found and all("neighbouring relation 'bounded' is not known" in text for text in found)


@pytest.mark.parametrize("name", ["given", "elected", "cascade"])
@pytest.mark.parametrize("neighbours", ["add_remove", "substitute"])
def test_any_sensitivity_below_the_tables_is_found(name, neighbours):
    plan = plan_of(name, neighbours=neighbours)
    for place, draw in enumerate(plan.draws):
        lower = draw.sensitivity - Fraction(1, 1000)
        must_say(changed(plan, place, sensitivity=lower), f"one person can change it by {draw.sensitivity}")


@pytest.mark.parametrize(("utility", "what"), [key for key in ELECTIONS if key[0] not in ("dependence", "misfit")])
@pytest.mark.parametrize(("neighbours", "factor"), [("add_remove", 1), ("substitute", 2)])
def test_the_table_has_the_sensitivity_that_the_planner_pays_for(utility, what, neighbours, factor):
    elect = {"layers": 2, "utility": utility, "what": what}
    plan = make_plan(a_release(POLL, {"decomposition": "tree", "elect": elect}, neighbours=neighbours))
    needed = {draw.sensitivity for draw in plan.draws if draw.kind == "election"}
    assert needed == {least_sensitivity(plan.draws[0], plan)} == {factor * {"attributes": 2, "groups": 4}[what]}


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize(("neighbours", "factor"), [("add_remove", 1), ("substitute", 2)])
def test_a_persons_rows_and_their_replacement_count(rows, neighbours, factor):
    plan = make_plan(release_of("cascade", rows, neighbours=neighbours))
    needed = {draw.kind: least_sensitivity(draw, plan) for draw in plan.draws}
    assert needed == {"count": rows * factor, "election": 4 * rows * factor}


def test_what_is_not_known_has_no_sensitivity():
    plan = plan_of("elected").model_copy(update={"election": None})
    with pytest.raises(NotKnown):
        least_sensitivity(plan.draws[0], plan)


def test_a_draw_listed_twice_is_found():
    """Without a share it would change no sum."""
    plan = plan_of("given")
    found = problems(plan.model_copy(update={"draws": (*plan.draws, plan.draws[0])}))
    assert "a draw is listed twice" in found


def test_a_draw_of_no_tree_for_one_set_is_found():
    plan = plan_of("cascade, rows not public")
    must_say(changed(plan, place_of(plan, name="total"), set=1), "serves one set only")


@pytest.mark.parametrize("published", [{"voted": frozenset({0})}, {None: frozenset({3})}, {}])
def test_trees_that_are_not_the_published_ones_are_found(published):
    must_say(plan_of("cascade"), "draws for trees that are not there", published)


def test_a_published_end_that_no_count_reaches_is_found():
    """The structure is published: a leaf there was measured, whatever the plan lists."""
    found = problems(plan_of("given"), {None: frozenset({2, 3})})
    assert any("a leaf in layer 2 lies below counts that no draw accounts for" in text for text in found)


@pytest.mark.parametrize("name", ["stopping", "cascade"])
def test_every_planned_end_is_looked_at_even_where_no_branch_ends(name):
    plan = plan_of(name)
    deepest = {tree.tree: frozenset({tree.deepest}) for tree in ways_of(plan).trees}
    place = next(i for i, draw in enumerate(plan.draws) if draw.nodes == "leaves" and draw.layer < max(deepest[draw.tree]))
    draw = plan.draws[place]
    dearer = changed(plan, place, epsilon=2 * draw.epsilon, scale=draw.scale / 2)
    must_say(dearer, f"the way to a leaf in layer {draw.layer}", deepest)


def test_an_election_below_every_leaf_is_found():
    plan = plan_of("elected")
    extra = plan.draws[0].model_copy(update={"layer": 7})
    found = problems(plan.model_copy(update={"draws": (*plan.draws, extra)}))
    assert any("nobody would pay for it" in text for text in found)


def test_a_count_for_a_set_that_is_not_there_is_found():
    plan = plan_of("given")
    extra = plan.draws[0].model_copy(update={"set": 3})
    found = problems(plan.model_copy(update={"draws": (*plan.draws, extra)}))
    assert any("serves none of the plan's measurements" in text for text in found)


def test_shares_that_do_not_sum_to_epsilon_are_found():
    must_say(plan_of("given").model_copy(update={"epsilon": "0.999999999"}), "sum to 1, not to ε=0.999999999")


@pytest.mark.parametrize(("where", "threshold"), [(-1, None), (-1, 0)])
def test_a_threshold_in_some_measurements_only_is_found(where, threshold):
    must_say(changed(plan_of("sampled"), where, threshold=threshold), "in some measurements only, or one below 1")


@pytest.mark.parametrize(("name", "place"), [("sampled", 0), ("cascade, rows not public", 0)])
def test_a_threshold_elsewhere_is_found(name, place):
    must_say(changed(plan_of(name), place, threshold=4), "not of the cells has a threshold")


@pytest.mark.parametrize("sets", [0, -1, 101, 10**15])
def test_a_number_of_sets_that_nobody_could_check_is_refused_and_never_counted_up(sets):
    with pytest.raises(ValueError, match="1 to 100 sets"):
        problems(plan_of("given").model_copy(update={"sets": sets}))


def test_shares_that_nobody_could_add_up_are_refused_and_never_added_up():
    """Three thousand denominators of 500 digits, no two of them with a common factor to speak of."""
    plan = plan_of("given")
    shares = (Fraction(1, 10**499 + 2 * i + 1) for i in range(3000))
    many = tuple(plan.draws[0].model_copy(update={"epsilon": share, "name": str(share)[-9:]}) for share in shares)
    with pytest.raises(ValueError, match="no common denominator"):
        problems(plan.model_copy(update={"draws": plan.draws + many}))


def test_a_layer_beyond_all_bounds_is_a_problem_and_never_counted_up():
    plan = plan_of("given")
    assert problems(changed(plan, len(plan.draws) - 1, layer=10**15))


@pytest.mark.parametrize(
    ("text", "value"), [("1", 1), ("0.3", Fraction(3, 10)), ("12.000000001", Fraction(12000000001, 10**9))]
)
def test_epsilon_is_read_from_its_digits(text, value):
    assert written_cost(plan_of("given").model_copy(update={"epsilon": text})) == value


@pytest.mark.parametrize("text", ["1e0", " 1", "1/1", "٣", "1." + "0" * 12, "", "-1", ".5", "1.", "nan"])
def test_an_epsilon_that_is_not_written_in_digits_is_refused(text):
    with pytest.raises(ValueError, match="decimal digits"):
        written_cost(plan_of("given").model_copy(update={"epsilon": text}))
