"""Households in places within places: what is measured by which place, levels that add up, persons that agree everywhere."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError

from schemas.errors import SpecError
from schemas.plan import Plan
from schemas.spec.domain import Domain
from schemas.tables import SYNTHETIC
from steps_engine.domain import blocks as domain_blocks
from steps_engine.domain.columns import column_of
from steps_engine.domain.counting import Counts
from steps_engine.domain.linked import measured_parts
from steps_engine.domain.linked_records import are_households, link_problems, member_table
from steps_engine.domain.places import places_of
from steps_engine.domain.records import codes_of
from steps_engine.domain.rules import breaking
from steps_engine.inference.place_tables import is_of_places
from steps_engine.methods.after_noise import Drawn
from steps_engine.methods.households import synthesize
from steps_engine.methods.households.parts import parts_of
from steps_engine.methods.planning import make_plan
from steps_engine.methods.registry import method_of
from steps_engine.methods.run_in_memory import Synthetic, run
from steps_engine.methods.tabulated import Asked, Tabulated
from steps_engine.noise import SeededRandomness
from tasks.verify.accounts import domain_problems, plan_problems
from tasks.verify.analyses import planned_problems
from tests.steps_engine.methods.households.census import TABLE, TENURE, census, counted_in, some_placed
from tests.steps_engine.methods.households.small import AT_MOST, domain, plan, release

OF = census()
HOMES = some_placed(1_500)
ASKED = (("region", "n_person"), ("region", "grade"), ("county", "tenure"), ("relation", "sex"))
CHILDREN = {"always": "grade < reference_grade", "when": {"relation": "child"}}


@pytest.fixture(scope="module")
def made() -> Synthetic:
    return run(release(OF, ASKED, epsilon=8), counted_in(OF, HOMES), SeededRandomness(3))


def by_place(codes: np.ndarray, of: Domain, level: int) -> np.ndarray:
    places = places_of(of)
    return np.bincount(places.at(level)[codes[:, places.attribute]], minlength=places.sizes[level])


def table_of(made: Synthetic, of: Domain, *names: str) -> Tabulated:
    return told_of(made.plan, made.tables, of, *names)


def told_of(paid: Plan, tables: dict[str, pa.Table], of: Domain, *names: str) -> Tabulated:
    columns = [column_of(name, of) for name in names]
    asked = Asked(tuple(each.source for each in columns), {}, {each.source: tuple(each.codes.tolist()) for each in columns})
    found = method_of(paid).tabulate(of, paid, tables, asked)
    assert isinstance(found, Tabulated), found
    return found


# --- the plan


@pytest.mark.parametrize("privacy", [{}, {"delta": Decimal("1e-9")}], ids=["pure", "zcdp"])
def test_households_are_counted_by_place_at_every_level_and_members_by_the_coarsest(privacy):
    paid = plan(OF, epsilon=Decimal(4), **privacy)
    by_level = {(draw.tree, draw.layer) for draw in paid.draws if is_of_places(draw)}
    assert {("tract", 1), ("tract", 2), ("tract", 3), ("tract × n_person", 1)} <= by_level
    assert all(draw.rows_of is None for draw in paid.draws if is_of_places(draw))
    of_members = {of for draw in paid.draws if draw.rows_of for of in draw.tables}
    assert ("region", "grade") in of_members and not any({"county", "tract"}.intersection(of) for of in of_members)
    assert sum((draw.cost for draw in paid.draws), Fraction()) == Fraction(paid.cost)
    sensitivity = {(draw.rows_of, draw.is_joint): draw.sensitivity for draw in paid.draws if draw.of or draw.rows_of is None}
    k = AT_MOST - 1
    assert {sensitivity[None, each] for each in (True, False) if (None, each) in sensitivity} == {1}
    assert sensitivity["person", False] == (k if not privacy else k**2)
    assert not list(plan_problems(paid, None)) and not list(domain_problems(paid, OF))


def test_each_part_is_done_by_its_method():
    household, person = parts_of(OF, plan(OF, epsilon=Decimal(4)))
    assert (household.done_by, person.done_by) == ("places", "pairs")
    assert person.domain.names[1] == "region" and household.domain.names[1] == "tract"
    alone, others = parts_of(domain(), plan(domain()))
    assert (alone.done_by, others.done_by) == ("pairs", "pairs")


def test_the_sketch_has_a_line_for_every_draw():
    paid = plan(OF, ASKED, epsilon=Decimal(8))
    shown = method_of(paid).sketch(paid)
    assert {draw.name for draw in paid.draws} == set(shown.draws)
    assert [row.number for row in shown.rows] == list(range(1, len(paid.layers) + 1))
    said = [row.what for row in shown.rows]
    assert "n_person × region" in said and any(each.startswith("person: ") for each in said)
    assert sum(layer.share for layer in paid.layers) == 1


def test_analyses_by_place_are_measured_and_the_verifier_knows_it():
    paid = plan(OF, ASKED, epsilon=Decimal(8))
    needs = {each.name: [table.of for table in each.needs] for each in paid.analyses}
    assert needs["region × grade"] == [("reference_grade", "region"), ("region", "grade")]
    assert all(each.measured and each.expected_width for each in paid.analyses)
    assert not list(planned_problems(paid, OF))
    for tree, of in (("tract × reference_grade", None), (None, ("region", "grade"))):
        kept = tuple(draw for draw in paid.draws if (tree is None or draw.tree != tree) and of not in draw.tables)
        assert len(kept) < len(paid.draws)
        assert "is not measured, and the plan says it is" in " ".join(
            planned_problems(paid.model_copy(update={"draws": kept}), OF)
        )


def test_members_are_counted_by_the_coarsest_level_that_tells_places_apart():
    table = tuple(("all", *row) for row in TABLE)
    country = {"levels": ("country", "region", "county", "tract"), "table": table}
    of = census(home={"attributes": (TENURE, {"name": "tract", "kind": "categorical", "geography": country})})
    assert of.coarsest == 2 and parts_of(of, plan(of, epsilon=Decimal(4)))[1].domain.names[1] == "region"
    alone = {"levels": ("country", "tract"), "table": tuple((row[0], row[-1]) for row in table)}
    of = census(home={"attributes": (TENURE, {"name": "tract", "kind": "categorical", "geography": alone})})
    found = run(release(of, epsilon=8), counted_in(of, HOMES[:300]), SeededRandomness(1))
    assert of.coarsest == 1 and parts_of(of, found.plan)[1].domain.sizes[1] == 1
    assert not method_of(found.plan).check(of, found.plan, found.tables).findings
    assert method_of(found.plan).view(of, found.plan, found.tables).levels


@pytest.mark.parametrize("finer", ["county", "tract"])
def test_persons_by_a_finer_place_are_refused_in_words(finer):
    with pytest.raises(SpecError, match=f"names {finer} and grade, of a person; members are counted by region alone"):
        plan(OF, ((finer, "grade"),), epsilon=Decimal(8))


@pytest.mark.parametrize(
    "rule",
    [
        {"never": {"tract": "t1", "grade": 2}},
        {"never": {"county": "c1", "relation": "child"}},
        {"always": "grade < reference_grade", "when": {"region": "r1"}},
    ],
)
def test_rules_of_persons_that_name_a_place_are_refused_in_words(rule):
    with pytest.raises(ValidationError, match="a place; rules of persons name none"):
        census(rules=(rule,))


def test_importance_of_places_is_refused_in_words():
    asked = release(OF, epsilon=Decimal(4))
    method = asked.spec.method.model_copy(update={"importance": {"tract": Fraction(2)}})
    with pytest.raises(SpecError, match="importance names 'tract'"):
        make_plan(asked.asking(method))


# --- what comes out


def test_persons_agree_with_their_households_in_every_place(made):
    rows, household, person = (made.tables[f"{kind}-1"] for kind in (SYNTHETIC, "household", "person"))
    assert household.column_names == ["household", "tenure", "tract", "region", "county"]
    assert are_households(OF, rows, household) and not list(link_problems(OF, rows, person))
    frame, people = rows.to_pandas(), household.to_pandas().merge(person.to_pandas(), on="household")
    for level in ("region", "county", "tract"):
        told = frame.groupby(level, observed=True)["n_person"].sum().to_dict()
        assert people.groupby(level, observed=True).size().to_dict() == told
        children = people[people["relation"] == "child"].groupby(level, observed=True).size()
        assert children.reindex(told, fill_value=0).to_dict() == frame.groupby(level, observed=True)["n_child"].sum().to_dict()


def test_sums_over_levels_are_the_levels_above(made):
    finest, county, region = (table_of(made, OF, level).estimate for level in ("tract", "county", "region"))
    places = places_of(OF)
    assert np.allclose(np.bincount(places.within(3, 2), finest), county)
    assert np.allclose(np.bincount(places.within(2, 1), county), region)
    sizes = table_of(made, OF, "region", "n_person").estimate.reshape(2, AT_MOST)
    assert np.allclose(sizes.sum(axis=1), region)


@pytest.mark.whole
def test_a_large_budget_gives_every_place_its_households_and_every_region_its_members():
    found = run(
        release(OF, (("county", "n_person"), ("region", "grade")), epsilon=2000), counted_in(OF, HOMES), SeededRandomness(5)
    )
    households, members = measured_parts(OF, counted_in(OF, HOMES))
    codes = codes_of(found.tables["synthetic-1"], OF)
    exact = np.repeat(households.codes, households.count, axis=0)
    for level in (1, 2, 3):
        assert np.abs(by_place(codes, OF, level) - by_place(exact, OF, level)).max() <= 1
        assert np.abs(table_of(found, OF, OF.levels[level - 1]).estimate - by_place(exact, OF, level)).max() < 1
    told = table_of(found, OF, "county", "n_person").estimate
    size = OF.sizes[OF.index("n_person")]
    cell = places_of(OF).at(2)[exact[:, 1]] * size + exact[:, OF.index("n_person")]
    assert np.abs(told - np.bincount(cell, minlength=len(told))).max() < 1
    flat = parts_of(OF, found.plan)[1].domain
    drawn = member_table(OF, found.tables["synthetic-1"], found.tables["person-1"])
    mine, theirs = codes_of(drawn, flat), np.repeat(members.codes, members.count, axis=0)
    for names in (("region", "grade"), ("relation", "grade")):
        at = [flat.index(name) for name in names]
        shape = [flat.sizes[j] for j in at]
        one, other = (
            np.bincount(np.ravel_multi_index(each[:, at].T, shape), minlength=np.prod(shape)) / len(each)
            for each in (mine, theirs)
        )
        assert np.abs(one - other).sum() / 2 < 0.04, names


@pytest.mark.whole
def test_intervals_hold_the_truth_at_every_level():
    """Over twenty runs: of places of every level, and of household sizes by region."""
    asked, counts = release(OF, (("region", "n_person"),), epsilon=8), counted_in(OF, HOMES)
    households, _ = measured_parts(OF, counts)
    exact = np.repeat(households.codes, households.count, axis=0)
    size = OF.sizes[OF.index("n_person")]
    truth = {(level,): by_place(exact, OF, number) for number, level in enumerate(OF.levels, start=1)}
    cell = places_of(OF).at(1)[exact[:, 1]] * size + exact[:, OF.index("n_person")]
    truth["region", "n_person"] = np.bincount(cell, minlength=2 * size)
    paid, held = make_plan(asked), {names: list[bool]() for names in truth}
    method = method_of(paid)
    for seed in range(20):
        randomness = SeededRandomness(seed)
        tree = method.build(OF, paid, counts, randomness)
        noisy = method.sanitize(OF, paid, counts, tree, randomness)
        tables = {"tree": tree, "noisy-counts": noisy, "consistent-counts": method.correct(OF, paid, tree, noisy, randomness)}
        for names, counted in truth.items():
            told = told_of(paid, tables, OF, *names)
            held[names] += (np.abs(told.estimate - counted) <= told.half).tolist()
    for names, each in held.items():
        assert np.mean(each) > 0.85, names


@pytest.mark.whole
def test_rules_of_places_and_rules_within_households_hold_together():
    of = census(home={"rules": ({"never": {"county": "c1", "tenure": "rent"}},)}, rules=(CHILDREN,), missing="category")
    homes = []
    for tract, (tenure, sex, grade, others) in some_placed(1_200, places=13):  # tract 12 is not known
        head = max(grade, 1)
        members = [(kind, s, min(g, head - 1) if kind == 0 else g) for kind, s, g in others]
        homes.append((tract, (0 if tract // 3 == 1 else tenure, sex, head, members)))
    found = run(release(of, epsilon=8), counted_in(of, homes), SeededRandomness(2))
    rows, person = found.tables["synthetic-1"], found.tables["person-1"]
    codes = codes_of(rows, of)
    assert not any(breaking(zero, codes).any() for zero in of.zeros) and (codes[:, 1] == 12).any()
    members = codes_of(member_table(of, rows, person), of.counted)
    assert len(members) > 200 and not any(breaking(zero, members).any() for zero in of.counted.zeros)
    assert not method_of(found.plan).check(of, found.plan, found.tables).findings


@pytest.mark.whole
def test_a_household_follows_its_region_where_members_do(made):
    """Members of r1 are of a higher grade: synthetic ones are too, and not because their households' other columns say so."""
    asked = run(release(OF, (("region", "grade"),), epsilon=40), counted_in(OF, HOMES), SeededRandomness(1))
    people = asked.tables["household-1"].to_pandas().merge(asked.tables["person-1"].to_pandas(), on="household")
    others = people[people["person"] > 1]
    lowest = others.groupby("region", observed=True)["grade"].apply(lambda grade: (grade == 0).mean())
    assert lowest["r0"] > 0.2 > 0.1 > lowest["r1"]


@pytest.mark.whole
@pytest.mark.parametrize("sets", [{"count": 2, "budget": "shared"}, {"count": 2, "budget": "split"}], ids=["shared", "split"])
def test_several_sets_are_checked_and_shown(sets):
    asked = release(OF, epsilon=8)
    asked = asked.asking(type(asked.spec.method).model_validate({"decomposition": "households", "sets": sets}))
    found = run(asked, counted_in(OF, HOMES[:600]), SeededRandomness(4))
    method = method_of(found.plan)
    checked = method.check(OF, found.plan, found.tables)
    assert not checked.findings and not checked.noise.problems and not list(plan_problems(found.plan, checked.ends))
    shown = method.view(OF, found.plan, found.tables)
    assert [level.level for level in shown.levels] == list(OF.levels)
    assert [margin.attribute for margin in shown.margins] == [*OF.names, *OF.own.names]
    assert "by region and no finer place" in shown.text
    first = method.counts(OF, found.plan, found.tables, 1)
    assert list(first)[0] == "tenure" and len(first) == 2
    last = method.counts(OF, found.plan, found.tables, len(found.plan.layers) + 1)
    assert len(last) > 1


@pytest.mark.whole
def test_sets_of_several_blocks_are_whole_and_the_same_again(made, monkeypatch):
    monkeypatch.setattr(domain_blocks, "BLOCK", 300)
    monkeypatch.setattr(synthesize, "AT_A_TIME", 200)
    drawn = Drawn(OF, made.plan, made.tables["tree"], made.tables["noisy-counts"])

    def parts() -> list[dict[str, pa.Table]]:
        consistent = made.tables["consistent-counts"]
        return list(drawn.linked(made.method, consistent, drawn.blocks(made.method, consistent, 1), 1))

    first, again = parts(), parts()
    rows, household, person = (pa.concat_tables(part[kind] for part in first) for kind in (SYNTHETIC, "household", "person"))
    assert len(first) > 5 and not list(link_problems(OF, rows, person)) and are_households(OF, rows, household)
    assert all(one[kind].equals(other[kind]) for one, other in zip(first, again, strict=True) for kind in one)
    at_once = made.tables["synthetic-1"]
    for level in (1, 2, 3):  # places have their rows, in however many blocks
        in_blocks, alone = (by_place(codes_of(each, OF), OF, level) for each in (rows, at_once))
        assert np.abs(in_blocks - alone).max() <= 1  # whole numbers, rounded by chance


def test_nobody_anywhere_is_noise_on_noughts():
    none = Counts(np.zeros((0, len(OF.counted.sizes)), dtype=np.int64), np.zeros(0, dtype=np.int64))
    found = run(release(OF, epsilon=8), none, SeededRandomness(3))
    assert not method_of(found.plan).check(OF, found.plan, found.tables).findings


# --- lies


def findings(made: Synthetic, tables: dict[str, pa.Table], paid=None) -> list[tuple[str, str]]:
    return list(method_of(made.plan).check(OF, paid or made.plan, made.tables | tables).findings)


def changed(table: pa.Table, column: str, row: int, value: object) -> pa.Table:
    place = table.column_names.index(column)
    values = table[column].to_pylist()
    values[row] = value
    return table.set_column(place, table.schema.field(place), pa.array(values, table.schema.field(place).type))


def test_an_honest_release_is_found_so(made):
    assert not findings(made, {})


def test_a_lie_in_counts_of_places_is_found(made):
    noisy, told = made.tables["noisy-counts"], made.tables["consistent-counts"]
    of_places = next(i for i, level in enumerate(told["level"].to_pylist()) if level == 3)
    said = findings(made, {"consistent-counts": changed(told, "estimate", of_places, told["estimate"][of_places].as_py() + 5)})
    assert ("consistent-counts", "column estimate does not follow from the noisy counts and the plan") in said
    last = noisy["rows_of"].to_pylist().index("person") - 1
    assert findings(made, {"noisy-counts": changed(noisy, "noisy_1", last, noisy["noisy_1"][last].as_py() + 500)})
    assert findings(made, {"noisy-counts": changed(noisy, "rows_of", last, "person")})


def test_a_place_said_of_members_is_found(made):
    told = made.tables["consistent-counts"]
    first = told["rows_of"].to_pylist().index("person")
    said = findings(made, {"consistent-counts": changed(told, "place", first, 3)})
    assert any("tells of members by place, who were not counted so" in text for _, text in said)


def test_a_household_in_another_place_than_its_row_is_found(made):
    rows, household = made.tables["synthetic-1"], made.tables["household-1"]
    there = household["tract"][0].as_py()
    assert not are_households(OF, rows, changed(household, "tract", 0, "t3" if there != "t3" else "t4"))
    assert not are_households(OF, rows, changed(household, "county", 0, None))


def test_plans_that_charge_places_otherwise_are_found(made):
    """Counts of places said to be of members; a level that nobody pays for; too little noise for the price of a household."""
    paid = made.plan

    def with_places(**update) -> list[str]:
        draws = tuple(draw.model_copy(update=update) if is_of_places(draw) else draw for draw in paid.draws)
        lie = paid.model_copy(update={"draws": draws})
        return [*(text for _, text in findings(made, {}, lie)), *plan_problems(lie, None)]

    assert any("places within places are counted where households have them" in text for text in with_places(rows_of="person"))
    assert any("one household can change it by 3" in text for text in with_places(rows_of="person"))
    assert any("one household can change it by 1" in text for text in with_places(sensitivity=Fraction(1, 2)))
    fewer = paid.model_copy(update={"draws": tuple(d for d in paid.draws if (d.tree, d.layer) != ("tract", 2))})
    assert any("places are counted at every level" in text for _, text in findings(made, {}, fewer))
    assert any("sum to" in text for text in plan_problems(fewer, None))
    without = paid.model_copy(update={"draws": tuple(d for d in paid.draws if not is_of_places(d))})
    assert any("where households have them" in text for _, text in findings(made, {}, without))


def test_a_plan_of_places_for_households_without_any_is_found(made):
    paid = plan(domain())
    more = next(draw for draw in made.plan.draws if is_of_places(draw))
    lie = paid.model_copy(update={"draws": (*paid.draws, more)})
    said = method_of(paid).check(domain(), lie, {}).findings
    assert any("and nowhere else" in text for _, text in said)
