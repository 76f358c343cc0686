"""Linked tables in the engine: keys, compositions, rules, sets that follow, and what a check finds."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pydantic import ValidationError

from schemas import tables as shapes
from schemas.errors import SpecError
from schemas.spec.domain import Domain
from steps_engine.answers import sample
from steps_engine.answers.sample import Sampling
from steps_engine.domain.columns import with_derived
from steps_engine.domain.linked import joined, parted
from steps_engine.domain.linked_records import everybody, everybody_table, link_problems, member_table, members_of
from steps_engine.domain.records import codes_of
from steps_engine.domain.rules import breaking
from steps_engine.methods.after_noise import Drawn
from steps_engine.methods.cascade.synthesize import restrict
from steps_engine.methods.households.parts import parts_of
from steps_engine.methods.households.plan import planned_share, within_household
from steps_engine.methods.households.spec import HouseholdsSpec
from steps_engine.methods.pairs import check as pairs
from steps_engine.methods.planning import make_plan
from steps_engine.methods.run_in_memory import Synthetic, run
from steps_engine.noise import SeededRandomness
from tests.steps_engine.methods.households.small import counted, domain, plan, release, some_homes, tables

RULES = ({"always": "grade < reference_grade", "when": {"relation": "child"}}, {"never": {"relation": "head", "grade": 0}})

PAYS = {"name": "pays", "from": "tenure", "by": {"own": "no", "rent": "yes"}}
DERIVED = (
    {"name": "kin", "from": "relation", "by": {"head": "yes", "child": "yes", "other": "no"}},
    {"name": "band", "from": "grade", "by": {"0": "low", "1": "high", "2": "high"}},
)


def lawful(number: int) -> list:
    """Households in which children have a lower grade than the head, and no head the lowest."""
    kept = []
    for tenure, sex, grade, others in some_homes(number):
        head = max(grade, 1)
        kept.append((tenure, sex, head, [(kind, s, min(g, head - 1) if kind == 0 else g) for kind, s, g in others]))
    return kept


@pytest.fixture(scope="module")
def of() -> Domain:
    return domain(home={"derived": (PAYS,)}, rules=RULES, derived=DERIVED)


@pytest.fixture(scope="module")
def made(of) -> Synthetic:
    return run(release(of, epsilon=8), counted(of, lawful(400)), SeededRandomness(3))


def test_households_and_persons_have_keys_and_numbers_that_agree(of, made):
    rows, household, person = (made.tables[f"{name}-1"] for name in ("synthetic", "household", "person"))
    assert household.schema == shapes.households(of) and person.schema == shapes.persons(of)
    assert household["household"].to_pylist() == list(range(1, len(rows) + 1))
    assert set(person["household"].to_pylist()) == set(range(1, len(rows) + 1))
    assert not list(link_problems(of, rows, person))
    size = np.bincount(person["household"].to_numpy())[1:]
    assert size.tolist() == rows["n_person"].to_pylist() and size.max() <= 4


def test_no_member_breaks_a_rule_of_its_household(of, made):
    members = codes_of(member_table(of, made.tables["synthetic-1"], made.tables["person-1"]), of.counted)
    assert len(members) > 200 and not any(breaking(zero, members).any() for zero in of.counted.zeros)
    child = pc.equal(made.tables["person-1"]["relation"].cast(pa.string()), "child")
    assert pc.sum(child).as_py() > 50  # so that the rule had something to hold for


def test_a_household_that_could_have_no_such_member_has_none(of):
    """A head of grade 1 leaves a child the lowest; a head of the lowest grade could have none, and there is a rule of it."""
    said = [rule.words for rule in of.rules]
    assert "never n_child = 1 or 2 or 3 with reference_grade from 0 and below 1" in said
    assert "never reference_grade = 0" in said


def test_what_is_derived_follows_in_either_table_and_can_be_asked_of_persons(of, made):
    rows, household, person = (made.tables[f"{name}-1"].to_pandas() for name in ("synthetic", "household", "person"))
    assert (rows.pays == rows.tenure.map({"own": "no", "rent": "yes"})).all() and rows.pays.equals(household.pays)
    assert (rows.reference_band == rows.reference_grade.map({0: "low", 1: "high", 2: "high"})).all()
    assert (person.band == person.grade.map({0: "low", 1: "high", 2: "high"})).all()
    assert ((person.kin == "yes") == (person.relation != "other")).all()
    everyone = everybody_table(of, made.tables["synthetic-1"], made.tables["person-1"])
    assert set(with_derived(everybody(of)).names) == set(everyone.column_names) >= {"pays", "reference_band", "band", "kin"}


def test_sets_follow_from_what_was_drawn(of, made):
    drawn = Drawn(of, made.plan, made.tables["tree"], made.tables["noisy-counts"])
    consistent = made.tables["consistent-counts"]
    [again] = drawn.linked(made.method, consistent, drawn.blocks(made.method, consistent, 1), 1)
    assert again["person"].equals(made.tables["person-1"]) and again["household"].equals(made.tables["household-1"])


@pytest.mark.whole
def test_more_households_have_their_persons_and_keys_that_go_on(of, made, monkeypatch):
    """In blocks of any size, under a condition on households; the same seed makes the same ones."""
    monkeypatch.setattr(sample, "BLOCK", 64)
    tenure = {of.index("tenure"): (1,)}
    asked = Sampling(of, made.plan, made.tables, tenure, 5)
    blocks = list(asked.linked(1, 150))
    assert len(blocks) > 1
    rows, household, person = (pa.concat_tables(block[kind] for block in blocks) for kind in ("sample", "household", "person"))
    assert len(rows) == 150 and set(rows["tenure"].to_pylist()) == {"rent"}
    assert household["household"].to_pylist() == list(range(1, 151)) and not list(link_problems(of, rows, person))
    members = codes_of(member_table(of, rows, person), of.counted)
    assert len(members) and not any(breaking(zero, members).any() for zero in of.counted.zeros)
    assert pa.concat_tables(block["person"] for block in asked.linked(1, 150)).equals(person)
    assert pa.concat_tables(asked.blocks(1, 150)).equals(rows)


@pytest.mark.whole
def test_close_to_the_records_where_the_budget_is_large(of):
    homes = lawful(400)
    found = run(release(of, epsilon=2000), counted(of, homes), SeededRandomness(5))
    members = codes_of(member_table(of, found.tables["synthetic-1"], found.tables["person-1"]), of.counted)
    _, exact = parted(of, counted(of, homes))
    for names in (("relation", "grade"), ("reference_grade", "relation", "grade"), ("reference_sex", "relation", "sex")):
        places, sizes = [of.counted.index(name) for name in names], of.counted.sizes
        shape = [sizes[j] for j in places]
        one = np.bincount(np.ravel_multi_index(exact.codes[:, places].T, shape), exact.count, np.prod(shape))
        other = np.bincount(np.ravel_multi_index(members[:, places].T, shape), minlength=np.prod(shape))
        assert np.abs(one / one.sum() - other / other.sum()).sum() / 2 < 0.06, names


def test_the_check_finds_nothing_and_then_what_is_wrong(of, made):
    method, plan_ = made.method, made.plan
    assert not method.check(of, plan_, made.tables).findings
    noisy = made.tables["noisy-counts"]
    turned = made.tables | {"noisy-counts": noisy.take(pa.array(np.arange(len(noisy))[::-1]))}
    assert any("first" in sentence for _, sentence in method.check(of, plan_, turned).findings)
    lacking = made.tables | {"noisy-counts": noisy.slice(0, len(noisy) - 1)}
    assert any(sentence.startswith("person: ") for _, sentence in method.check(of, plan_, lacking).findings)


def test_the_noise_of_both_parts_is_tested(of, made):
    both = made.method.check(of, made.plan, made.tables).noise
    alone = [pairs.check(part.domain, part.plan, part.of(made.tables)).noise for part in parts_of(of, made.plan)]
    assert alone[1].contrasts > 0 and both.contrasts == alone[0].contrasts + alone[1].contrasts
    assert both.untested == (*alone[0].untested, *(f"person: {name}" for name in alone[1].untested))


def changed(persons: pa.Table, name: str, row: int, value: object) -> pa.Table:
    place = persons.column_names.index(name)
    values = persons[name].to_pylist()
    values[row] = value
    kind = persons.schema.field(name).type
    plain = pa.array(values, pa.string()).dictionary_encode() if pa.types.is_dictionary(kind) else pa.array(values, kind)
    return persons.set_column(place, persons.schema.field(name), plain)


def test_every_lie_between_the_tables_is_found(of, made):
    rows, persons = made.tables["synthetic-1"], made.tables["person-1"]
    member = persons["person"].to_pylist().index(2)
    relation = persons["relation"][member].as_py()
    lies = {
        "whose kin does not follow": changed(
            persons, "kin", member, "no" if persons["kin"][member].as_py() == "yes" else "yes"
        ),
        "as many persons": changed(persons, "household", member, persons["household"][member].as_py() + 1),
        "numbered 1, 2": changed(persons, "person", member, 3),
        "exactly one head": changed(persons, "relation", member, "head"),
        "reference person whose sex": changed(persons, "sex", 0, {"f": "m", "m": "f"}[persons["sex"][0].as_py()]),
        "of kind child": changed(persons, "relation", member, {"child": "other", "other": "child"}[relation]),
        "in every household": persons.slice(0, len(persons) - 1),
    }
    for words, lie in lies.items():
        assert any(words in problem for problem in link_problems(of, rows, lie)), words


def test_members_come_in_the_kinds_that_their_households_say():
    of = domain()
    codes = np.array([[0, 3, 1, 0, 0], [1, 0, 0, 1, 1], [0, 1, 1, 0, 2]])
    home, kind = members_of(of, codes)
    assert home.tolist() == [0, 0, 0, 2] and kind.tolist() == [0, 1, 1, 0]
    assert members_of(domain(kinds=None), codes[:, [0, 1, 3, 4]])[1] is None


def test_counts_of_both_tables_come_apart_as_they_were_put_together():
    of, homes = domain(), some_homes(50)
    households, members = parted(of, counted(of, homes))
    assert households.count.sum() == 50 and members.count.sum() == sum(len(others) for *_, others in homes)
    again = joined(of, households, members)
    assert np.array_equal(again.codes, counted(of, homes).codes)


def test_costs_of_both_parts_are_the_whole_and_members_rows_are_bounded():
    paid = plan(domain(), epsilon=1)
    assert sum(draw.cost for draw in paid.draws) == 1
    of_members = [draw for draw in paid.draws if draw.rows_of == "person"]
    assert of_members and {draw.sensitivity for draw in of_members} == {3}
    assert {draw.sensitivity for draw in paid.draws if draw.rows_of is None} == {1}
    own = {"relation", "sex", "grade"}
    assert all(own.intersection(table) for draw in of_members for table in draw.tables if len(table) > 1)


def test_the_share_of_households_is_planned_or_given():
    asked = release(domain(), epsilon=1)
    given = asked.asking(asked.spec.method.model_copy(update={"share": 0.25}))
    spent = sum(draw.cost for draw in make_plan(given).draws if draw.rows_of is None)
    assert spent == 0.25
    from steps_engine.accounting.plans import allowance_of

    assert 0.1 <= planned_share(domain(), allowance_of(asked)) < 0.5  # members have three rows to a household's one


@pytest.mark.parametrize("privacy", [{}, {"delta": Decimal("1e-9")}], ids=["pure", "zcdp"])
def test_members_rows_are_spent_on_their_own_attributes_first(privacy):
    """What a household's columns have in common with each other is told by household rows, with a seventh of the noise."""
    paid = {table: draw.cost for draw in plan(domain(), **privacy).draws if draw.rows_of for table in draw.tables}
    assert paid["grade",] > paid["reference_grade",]
    assert not privacy or paid["sex", "grade"] > paid["reference_sex", "grade"]  # under ε one draw measures both


def many_bins(bins: int) -> Domain:
    """Children are younger than the head, and grades go with age: one chain of rules over everything."""
    age = {"name": "age", "kind": "integer", "bounds": (0, 99), "bins": bins}
    attributes = (*tables()["person"]["attributes"], age)
    younger = {"always": "age < reference_age", "when": {"relation": "child"}}
    rules = (younger, {"never": {"age": {"below": 10}, "grade": 2, "sex": "f"}})
    return domain(attributes=attributes, rules=rules)


def test_rules_that_members_rows_cannot_keep_are_refused_by_the_plan():
    """Under ε nothing looked at the rules of members' rows before the charge."""
    assert plan(many_bins(10)).draws
    with pytest.raises(SpecError, match=r"rows of other members.* 11,520,000 combinations, at most 10,000,000"):
        plan(many_bins(100))
    nobody = ({"never": {"relation": ("child", "other"), "grade": (0, 1, 2)}},)
    with pytest.raises(SpecError, match=r"rows of other members.* no allowed combination"):
        plan(domain(rules=nobody, kinds=None))


def test_importance_that_no_budget_could_follow_is_refused():
    with pytest.raises(ValidationError, match="from a millionth to a million"):
        HouseholdsSpec.model_validate({"importance": {"sex": Fraction(10**7)}})


def test_how_people_of_a_household_go_together_is_measured_where_rows_can_fill_it():
    assert ("reference_grade", "relation", "grade") in within_household(domain())
    assert not within_household(domain(expected_rows=410))


@pytest.mark.whole
def test_without_kinds_members_are_drawn_with_their_relation():
    of = domain(kinds=None)
    rows = [[tenure, len(others), sex, grade] for tenure, sex, grade, others in some_homes(200)]
    members = [[tenure, len(others), sex, grade, *each] for tenure, sex, grade, others in some_homes(200) for each in others]
    from steps_engine.domain.counting import count_codes

    counts = joined(of, count_codes(np.array(rows)), count_codes(np.array(members)))
    found = run(release(of, epsilon=4), counts, SeededRandomness(1))
    assert not list(link_problems(of, found.tables["synthetic-1"], found.tables["person-1"]))


@pytest.mark.whole
@pytest.mark.parametrize("sets", [{"count": 2, "budget": "split"}, {"count": 2, "budget": "shared"}])
def test_sets_are_split_or_shared(sets):
    of = domain()
    asked = release(of, epsilon=4)
    several = asked.asking(type(asked.spec.method).model_validate({"sets": sets}))
    found = run(several, counted(of, some_homes(200)), SeededRandomness(1))
    for number in (1, 2):
        assert not list(link_problems(of, found.tables[f"synthetic-{number}"], found.tables[f"person-{number}"]))
    assert not found.tables["person-1"].equals(found.tables["person-2"])
    assert not found.method.check(of, found.plan, found.tables).findings


OF_ALL_KINDS = (
    {
        "name": "relation",
        "kind": "categorical",
        "categories": ("head", "child", "other"),
        "expected": {"head": Decimal("0.4"), "child": Decimal("0.3")},
    },
    {"name": "since", "kind": "date", "bounds": ("2000-01-01", "2001-12-31"), "bins": 2},
    {
        "name": "income",
        "kind": "numeric",
        "bounds": (Decimal("0.5"), Decimal("20.5")),
        "bins": 2,
        "at": (Decimal("1.5"),),
        "above": {"shape": "exponential", "mean": 30},
    },
)


@pytest.mark.whole
def test_persons_have_numbers_dates_spikes_and_open_ends():
    of = domain(attributes=OF_ALL_KINDS)
    assert of.own.attributes[0].expected_shares == pytest.approx((0.5, 0.5))  # of other members
    found = run(release(of, epsilon=8), counted(of, some_homes(100)), SeededRandomness(4))
    assert not found.method.check(of, found.plan, found.tables).findings
    rows, person = found.tables["synthetic-1"], found.tables["person-1"]
    assert not list(link_problems(of, rows, person))
    assert pa.types.is_date(person["since"].type) and pa.types.is_floating(rows["reference_income"].type)


@pytest.mark.whole
def test_nobody_lives_with_others():
    """Households of one person each: there are members' tables, of noise alone, and nothing breaks."""
    of = domain()
    alone = [(tenure, sex, grade, []) for tenure, sex, grade, _ in some_homes(100)]
    found = run(release(of, epsilon=1), counted(of, alone), SeededRandomness(2))
    assert not list(link_problems(of, found.tables["synthetic-1"], found.tables["person-1"]))


def test_rules_that_tie_many_categories_hold_for_narrow_codes():
    """The number of a combination outgrows the type of a code: 3 · 100 + 7 is not 51."""
    possible = np.ones((100, 2), dtype=bool)
    possible[7] = [True, False]
    group, shares = restrict(np.array([3, 3], dtype=np.uint8), np.full((4, 2), 0.5), np.array([7, 8]), possible)
    assert shares[group].tolist() == [[1.0, 0.0], [0.5, 0.5]]
