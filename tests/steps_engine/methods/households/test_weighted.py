"""Households with survey weights on worst neighbours, in ε and ρ; weighted totals and what rounding adds to them."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from schemas.spec.domain import Domain
from schemas.spec.weights import Weighing
from steps_engine.domain.counting import Counts
from steps_engine.domain.linked import measured_parts
from steps_engine.domain.linked_records import are_households, everybody, link_problems
from steps_engine.methods.households import plan as planning
from steps_engine.methods.households.parts import parts_of
from steps_engine.methods.pairs.method import PAIRS
from steps_engine.methods.registry import method_of
from steps_engine.methods.run_in_memory import run
from steps_engine.methods.tabulated import Asked
from steps_engine.methods.weighted import in_people, rounding_variance, table_in_people
from steps_engine.noise import SeededRandomness
from tasks.verify.accounts import domain_problems, plan_problems
from tests.steps_engine.methods.households.census import census, counted_in, some_placed
from tests.steps_engine.methods.households.small import AT_MOST, Household, counted, plan, release, some_homes
from tests.steps_engine.methods.households.surveyed import UNITS, WEIGHT, as_units, surveyed, units_of, weights_of
from tests.steps_engine.methods.households.test_audit import (
    ALIKE,
    LARGE,
    OTHERWISE,
    both_measures,
    both_neighbours,
    lost,
    price,
)
from tests.steps_engine.methods.households.test_census_audit import EMPTY, HERE
from tests.zcdp_audit import keeps
from tests.zcdp_witness import met

OF = surveyed()  # at a step of 4 the highest weight, 12, is three units
HOMES = some_homes(60)


def with_home(home: Household, units: int = UNITS) -> Counts:
    return counted(OF, [*HOMES, *[home] * units])


def total(found: dict, paid) -> float:
    return sum(price(part, paid) for part in found.values())


# --- what one household of the highest weight loses


@both_measures
@both_neighbours
@pytest.mark.parametrize("home", [ALIKE, (1, 1, 2, []), (0, 1, 1, [(0, 0, 1), (1, 1, 2)])])
@pytest.mark.whole
def test_a_household_of_the_highest_weight_loses_no_more_than_is_charged(privacy, neighbours, home):
    paid = plan(OF, neighbours=neighbours, **privacy)
    other = with_home(OTHERWISE) if neighbours == "substitute" else counted(OF, HOMES)
    found = lost(OF, paid, with_home(home), other)
    for each in (each for part in found.values() for each in part):
        assert price([each], paid) <= float(each.draw.cost) * (1 + 1e-12)
    assert 0 < total(found, paid) <= float(paid.cost) * (1 + 1e-12)
    if privacy and home is ALIKE:
        assert keeps([e for part in found.values() for each in part for e in each.evidence], Fraction(paid.cost))


@both_measures
def test_members_who_are_all_alike_cost_all_that_their_units_are_paid(privacy):
    """(at_most − 1)·U units in one cell: the bound is no larger than it must be."""
    paid = plan(OF, **privacy)
    household, person = parts_of(OF, paid)
    assert (household.plan.units_per_person, person.plan.units_per_person) == (UNITS, (AT_MOST - 1) * UNITS)
    found = lost(OF, paid, with_home(ALIKE), counted(OF, HOMES))
    assert {name: len(part) for name, part in found.items()} == {
        "household": sum(draw.rows_of is None for draw in paid.draws),
        "person": sum(draw.rows_of is not None for draw in paid.draws),
    }
    assert all(price([each], paid) == pytest.approx(float(each.draw.cost)) for part in found.values() for each in part)


@both_measures
@both_neighbours
@pytest.mark.whole
def test_a_weighted_household_in_a_place_loses_no_more_than_is_charged(privacy, neighbours):
    of = census(missing="category", home={"weight": {**WEIGHT, "total": 4000, "step": Decimal(4)}})
    paid = plan(of, neighbours=neighbours, epsilon=Decimal(8), **privacy)
    for home in (HERE, EMPTY):
        elsewhere = [(6, OTHERWISE)] * UNITS if neighbours == "substitute" else []
        one, other = (counted_in(of, [*some_placed(60), *more]) for more in ([home] * UNITS, elsewhere))
        found = {}
        for part, mine, theirs in zip(parts_of(of, paid), measured_parts(of, one), measured_parts(of, other), strict=True):
            by = part.plan.model_copy(update={"decomposition": part.done_by})
            found[part.name] = met(part.domain, by, mine, theirs, 0)
        assert total(found, paid) <= float(paid.cost) * (1 + 1e-12)
        if neighbours == "add_remove":
            assert total(found, paid) == pytest.approx(float(paid.cost))


# --- controls


@both_measures
def test_control_a_household_of_the_highest_weight_with_one_person_too_many_is_caught(privacy):
    paid = plan(OF, **privacy)
    found = lost(OF, paid, with_home(LARGE), counted(OF, HOMES))
    over = [each for each in found["person"] if price([each], paid) > float(each.draw.cost) * (1 + 1e-9)]
    assert over and len(over) == len(found["person"]) and total(found, paid) > float(paid.cost)


@both_measures
def test_control_weights_without_bound_are_caught(privacy):
    """One unit too many moves both parts further than was paid for."""
    paid = plan(OF, **privacy)
    found = lost(OF, paid, with_home(ALIKE, UNITS + 1), counted(OF, HOMES))
    assert all(price([each], paid) > float(each.draw.cost) * 1.2 for part in found.values() for each in part)


@both_measures
def test_control_members_who_are_paid_for_without_their_weight_are_caught(privacy, monkeypatch):
    """A planner that takes a member's row for one unit: the audit sees it, and so does the verifier."""
    right = planning.outline_pairs

    def forgetting(asked, allowance, own=frozenset()):
        return right(asked, replace(allowance, rows=allowance.rows // UNITS) if own else allowance, own)

    monkeypatch.setattr(planning, "outline_pairs", forgetting)
    paid = plan(OF, **privacy)
    monkeypatch.undo()
    found = lost(OF, paid, with_home(ALIKE), counted(OF, HOMES))
    assert all(price([each], paid) > 2 * float(each.draw.cost) for each in found["person"])
    assert all(price([each], paid) == pytest.approx(float(each.draw.cost)) for each in found["household"])
    said = [problem for problem in plan_problems(paid, None) if "one household can change it by" in problem]
    assert len(said) == sum(draw.rows_of is not None for draw in paid.draws)
    right_plan = plan(OF, **privacy)
    assert not [*plan_problems(right_plan, None), *domain_problems(right_plan, OF)]


@both_measures
def test_control_households_that_are_paid_for_as_one_unit_are_caught(privacy, monkeypatch):
    monkeypatch.setattr(Weighing, "units_per_row", 1)
    paid = plan(OF, **privacy)
    monkeypatch.undo()
    found = lost(OF, paid, with_home(ALIKE), counted(OF, HOMES))
    assert all(price([each], paid) > 2 * float(each.draw.cost) for part in found.values() for each in part)
    assert any("makes up to 3 units of 4; the plan says 1" in problem for problem in domain_problems(paid, OF))


# --- weighted totals


def told(of: Domain, made_plan, counts: Counts, trial: int) -> tuple[np.ndarray, np.ndarray]:
    """Households by tenure, and other members by relation, of the population: what is measured, without rows."""
    method, noise = method_of(made_plan), SeededRandomness(("weighted homes", trial))
    tree = method.build(of, made_plan, counts, noise)
    noisy = method.sanitize(of, made_plan, counts, tree, noise)
    tables = {"tree": tree, "noisy-counts": noisy}
    asked = Asked((0,), {}, {0: (0, 1)})
    households = table_in_people(method.tabulate(of, made_plan, tables, asked), asked, of)
    person, flat = parts_of(of, made_plan)[1], of.counted
    kind = flat.index("relation")
    of_members = Asked((kind,), {}, {kind: (0, 1)})
    found = PAIRS.tabulate(person.domain, person.plan, person.of(tables), of_members)
    return households.estimate, table_in_people(found, of_members, person.domain).estimate


@pytest.mark.whole
def test_weighted_totals_of_households_and_persons_are_unbiased_over_lots_and_noise():
    of, homes, trials = surveyed(5), some_homes(300, 1), 150
    weight = np.round(weights_of(300) * np.array([0.4 if home[0] else 1.0 for home in homes]), 3).clip(1, 12)
    paid = plan(of, epsilon=Decimal(8))
    found = []
    for trial in range(trials):
        units = units_of(weight, of, trial.to_bytes(32, "big"))
        found.append(np.concatenate(told(of, paid, counted(of, as_units(homes, units)), trial)))
    exact = [sum(w for home, w in zip(homes, weight, strict=True) if home[0] == tenure) for tenure in (0, 1)]
    exact += [sum(w * sum(k == kind for k, _, _ in home[3]) for home, w in zip(homes, weight, strict=True)) for kind in (0, 1)]
    error = np.std(found, axis=0, ddof=1) / np.sqrt(trials)
    assert (np.abs(np.mean(found, axis=0) - exact) < 4.5 * error).all()
    records = weight.mean() * np.array([sum(home[0] == tenure for home in homes) for tenure in (0, 1)])
    assert (np.abs(records - exact[:2]) > 4.5 * error[:2]).all()  # control: households, each of the mean weight


# --- what rounding adds


def test_rounding_moves_counts_of_persons_by_as_much_as_their_bound_says_and_no_more():
    """Worst where every household is half a unit and all its members are in one cell: lots of cells would add far less."""
    of, number, members = surveyed(2, {"bounds": (1, 12)}), 200, AT_MOST - 1
    moved = [members * sum(units_of([1.0] * number, of, key.to_bytes(32, "big"))) for key in range(400)]
    found, half = np.array([members * number / 2]), np.array([0.0])
    bound = float(of.counted.weighing.rounding) * found[0]
    assert bound == members * number * members / 4  # N·m²·¼
    assert 0.75 * bound < np.var(moved) < 1.25 * bound
    assert rounding_variance(found, half, 1, of.counted)[0] >= bound  # whatever cells there are: households have the lots
    assert np.var(moved) > 2 * float(of.weighing.rounding) * found[0]  # control: as if each person had its own


def test_variances_of_persons_are_inflated_by_their_number_times_what_weights_do():
    of = surveyed()
    assert of.weighing.rounding == 1 and of.weighing.inflation == 3 + 1
    assert everybody(of).weighing.inflation == AT_MOST * 4 and of.counted.weighing.inflation == (AT_MOST - 1) * 4
    assert everybody(of).weighing.step == of.counted.weighing.step == of.weighing.step == 4
    assert surveyed(1).weighing.inflation == 12 + Fraction(1, 4) and everybody(surveyed(1)).inflation == AT_MOST * 12.25
    assert surveyed(weight={"rows": "replicated"}).counted.published_weight == ()


@pytest.mark.whole
def test_shares_of_persons_vary_over_samples_by_no_more_than_their_inflation_allows():
    """Households of persons who are all alike, heavier where they say yes. Controls: rows for people, households or records."""
    rng, of, shares, inside = np.random.default_rng(5), surveyed(4), [], {"all": [], "no weights": [], "no households": []}
    for trial in range(400):
        size, yes = rng.integers(1, AT_MOST + 1, 300), rng.random(300) < 0.3
        weight = np.where(rng.random(300) < 0.1, 12.0, 1.0)
        units = np.array(units_of(weight, of, trial.to_bytes(32, "big"), 1000 * trial))
        persons = (units * size).sum()
        shares.append((units * size * yes).sum() / persons)
        independent = shares[-1] * (1 - shares[-1]) / persons
        for name, factor in zip(inside, (everybody(of).inflation, AT_MOST, of.weighing.inflation), strict=True):
            inside[name].append(factor * independent)
    variance = np.var(shares)
    assert variance < np.mean(inside["all"])
    assert variance > np.mean(inside["no households"])


# --- what is shown, and made


@pytest.fixture(scope="module")
def made():
    homes = some_homes(400)
    units = units_of(weights_of(400), OF, bytes(32))
    return run(release(OF, epsilon=Decimal(8)), counted(OF, as_units(homes, units)), SeededRandomness(4)), homes, units


def test_what_is_shown_is_of_the_population(made):
    synthetic, homes, units = made
    in_units = synthetic.method.view(OF, synthetic.plan, synthetic.tables)
    shown = in_people(in_units, OF)
    assert shown.total.estimate == pytest.approx(4 * in_units.total.estimate)
    margins = {margin.attribute: (margin, plain) for margin, plain in zip(shown.margins, in_units.margins, strict=True)}
    for name in ("tenure", "n_person", "relation", "grade"):
        margin, plain = margins[name]
        assert margin.estimate == pytest.approx(4 * plain.estimate) and (margin.half > 4 * plain.half).all()
        assert margin.synthetic == pytest.approx(4 * plain.synthetic)
    assert any("stands for 4 households of the population" in remark for remark in shown.remarks)
    (remark,) = [each for each in shown.remarks if "counts of members tell of" in each]
    members = 4 * synthetic.tables["person-1"].num_rows - 4 * synthetic.records[0].num_rows
    assert f"the sets have {members:,}" in remark
    said = 4 * sum(len(home[3]) * number for home, number in zip(homes, units, strict=True))
    assert abs(members - said) < 0.5 * said


def test_synthetic_households_and_everybody_in_them_stand_for_the_step(made):
    synthetic, _, units = made
    tables = synthetic.tables
    for name in ("synthetic-1", "household-1", "person-1"):
        assert tables[name].column_names[-1] == "w" and set(tables[name]["w"].to_pylist()) == {4.0}, name
    assert tables["household-1"].num_rows == pytest.approx(sum(units), rel=0.4)
    assert synthetic.method.check(OF, synthetic.plan, tables).findings == ()
    plain = surveyed(weight={"rows": "replicated"})
    homes = as_units(some_homes(400), units)
    other = run(release(plain, epsilon=Decimal(8)), counted(plain, homes), SeededRandomness(4))
    for name in ("synthetic-1", "household-1", "person-1"):
        assert other.tables[name].column_names == tables[name].column_names[:-1]


def test_a_synthetic_household_or_person_of_another_weight_is_found(made):
    rows, households, persons = (made[0].tables[f"{name}-1"] for name in ("synthetic", "household", "person"))
    assert list(link_problems(OF, rows, persons)) == [] and are_households(OF, rows, households)
    said = ["has a person whose w is not the step of the domain's weights"]
    assert list(link_problems(OF, rows, heavier(persons))) == said
    assert not are_households(OF, rows, heavier(households))


def heavier(table: pa.Table) -> pa.Table:
    """The last of them stands for twice as many."""
    weight = [*table["w"].to_pylist()[:-1], 8.0]
    return table.set_column(table.num_columns - 1, table.schema.field("w"), pa.array(weight))


def test_more_units_are_made_of_the_same_survey_by_a_finer_step():
    steps = [surveyed(step).expected_units for step in (12, 4, 1)]
    assert all(one < other for one, other in pairwise(steps)) and steps[1] == 500
    assert surveyed(4).counted.expected_units == 625  # 900 persons of 400 households: 500 other members, at 5 people each
