"""Places within places: shares before data, levels that add up, small places that borrow, tables with honest intervals."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from schemas.errors import SpecError
from schemas.spec.analyses import ModelAnalysis, TableAnalysis
from schemas.spec.domain import Domain
from schemas.spec.geography import Geography
from schemas.spec.method import method_spec
from schemas.spec.release import Release, ReleaseSpec
from steps_engine.accounting.composition import ways_of
from steps_engine.accounting.plans import allowance_of
from steps_engine.domain.columns import column_of
from steps_engine.domain.counting import Counts, count_codes
from steps_engine.domain.places import places_of
from steps_engine.domain.records import codes_of
from steps_engine.domain.rules import breaking
from steps_engine.inference.place_tables import depths, is_of_places, of_tree, place_tables
from steps_engine.methods.pairs import tabulate as of_pairs
from steps_engine.methods.places.estimate import Measured, joined, shares_by_place
from steps_engine.methods.places.ruled import keep_rules
from steps_engine.methods.places.shares import depth, least_error
from steps_engine.methods.places.tables import read_measured
from steps_engine.methods.planning import make_plan
from steps_engine.methods.registry import method_named
from steps_engine.methods.run_in_memory import Synthetic, run
from steps_engine.methods.tabulated import Asked, Tabulated
from steps_engine.noise import SeededRandomness
from tasks.verify.analyses import planned_problems
from tasks.verify.records import record_problems

COUNTIES, TRACTS = 12, 96
MEASURES = {"pure": {"epsilon": Decimal(1)}, "zcdp": {"rho": Decimal("0.02"), "delta": Decimal("1e-9")}}
every_measure = pytest.mark.parametrize("measure", MEASURES)


def country(rows: int = 20_000, shares: object = "equal", rules: tuple = (), missing: str = "forbid") -> Domain:
    county = [t * COUNTIES // TRACTS for t in range(TRACTS)]
    table = tuple((f"r{c // 4}", f"c{c}", f"t{t}") for t, c in enumerate(county))
    geography = {"levels": ("region", "county", "tract"), "table": table, "shares": shares}
    others = [("sex", 2), ("age", 4), ("work", 6)]
    attributes = [
        {"name": name, "kind": "categorical", "categories": tuple(f"{name}{k}" for k in range(n))} for name, n in others
    ]
    attributes.insert(1, {"name": "tract", "kind": "categorical", "geography": geography, "missing": missing})
    known = {"name": "country", "population": "people", "expected_rows": rows, "attributes": tuple(attributes), "rules": rules}
    return Domain.model_validate(known)


def people(rows: int = 20_000, seed: int = 0) -> np.ndarray:
    """Counties differ in age, work follows age, and the last tract of every county is empty."""
    rng = np.random.default_rng(seed)
    weight = rng.lognormal(0, 0.5, TRACTS) * (np.arange(TRACTS) % 8 != 7)
    tract = rng.choice(TRACTS, rows, p=weight / weight.sum())
    kind = rng.normal(0, 0.7, COUNTIES)[tract * COUNTIES // TRACTS]
    age = np.clip(np.floor(2 + kind + rng.normal(0, 1, rows)), 0, 3).astype(int)
    work = np.clip(age + rng.integers(0, 3, rows), 0, 5)
    return np.stack([rng.integers(0, 2, rows), tract, age, work], axis=1)


def asked(of: Domain, measure: str = "zcdp", method: str = "places", analyses: tuple = (), sets: dict | None = None, **privacy):
    said = {"name": "r", "dataset": "-", "source": "-", "privacy": {**MEASURES[measure], **privacy}, "analyses": analyses}
    spec = ReleaseSpec.model_validate(said | {"method": method_spec(method, sets=sets or {})})
    return Release(spec=spec, domain=of, folder=".")


def made(
    measure: str = "zcdp", of: Domain | None = None, codes: np.ndarray | None = None, seed: object = 0, **more
) -> Synthetic:
    counts = count_codes(people() if codes is None else codes)
    return run(asked(of or country(), measure, **more), counts, SeededRandomness(("places", str(seed))))


def exact(codes: np.ndarray, level: int, *of: int) -> np.ndarray:
    places = places_of(country())
    sizes = [places.sizes[level], *(places.domain.sizes[j] for j in of)]
    cell = np.ravel_multi_index((places.at(level)[codes[:, 1]], *(codes[:, j] for j in of)), sizes)
    return np.bincount(cell, minlength=int(np.prod(sizes)))


# --- before data


@every_measure
@pytest.mark.parametrize("sets", [{}, {"count": 2}, {"count": 2, "budget": "shared"}], ids=["one", "split", "shared"])
def test_what_is_charged_is_what_all_levels_and_tables_cost_together(measure, sets):
    plan = make_plan(asked(country(), measure, sets=sets))
    assert ways_of(plan.draws).dearest == Fraction(plan.cost) == sum(draw.cost for draw in plan.draws)
    assert sum(layer.share for layer in plan.layers) == 1
    of_places = [draw for draw in plan.draws if is_of_places(draw)]
    assert {draw.tree for draw in of_places} >= {"tract"} and {draw.layer for draw in of_places} == {1, 2, 3}


def test_a_table_that_drowns_in_a_tract_is_measured_in_its_county():
    """With ten times the rows it does not drown; with few rows and hardly any budget all of it does."""
    deepest = lambda rows, **p: depths(place_tables(*_planned(rows, **p)))  # noqa: E731
    assert deepest(20_000) == {(): 3, (0,): 3, (2,): 2, (3,): 2}
    assert deepest(200_000) == {(): 3, (0,): 3, (2,): 3, (3,): 3}
    assert deepest(2_000, rho=Decimal("0.0001")) == {(): 3}


def _planned(rows: int, **privacy):
    of = country(rows)
    return places_of(of), make_plan(asked(of, **privacy))


def test_levels_get_the_shares_that_are_given():
    given = {"region": Fraction(1, 8), "county": Fraction(3, 8), "tract": Fraction(1, 2)}
    plan = make_plan(asked(country(shares=given)))
    cost = {draw.layer: draw.cost for draw in plan.draws if draw.tree == "tract"}
    assert [cost[level] / sum(cost.values()) for level in (1, 2, 3)] == list(given.values())
    equal = {draw.layer: draw.cost for draw in make_plan(asked(country())).draws if draw.tree == "tract"}
    assert len(set(equal.values())) == 1


@pytest.mark.parametrize("named", [1, 2, 3])
def test_least_error_is_for_the_levels_that_analyses_name(named):
    """Fewer rows are misplaced at that level than with equal shares, or those of any other level."""
    levels = ("region", "county", "tract")
    found = {
        level: make_plan(asked(country(shares="least_error"), analyses=(TableAnalysis(table=(level,)),))) for level in levels
    }
    found["equal"] = make_plan(asked(country(), analyses=(TableAnalysis(table=(levels[named - 1],)),)))
    error = {
        key: [layer.expected_error for layer in plan.layers if layer.attributes == (levels[named - 1],)]
        for key, plan in found.items()
    }
    best = error[levels[named - 1]]
    assert best <= min(error.values()) and best < error["equal"]


def test_shares_of_least_error_sum_to_one_and_leave_no_level_out():
    for named in ([], [1], [2], [3], [1, 3], [1, 2, 3]):
        for measure in MEASURES:
            shares = least_error((1, 10, 300, 10_000), named, measure)
            assert sum(shares) == 1 and min(shares) >= Fraction(1, 20)


def test_naming_a_level_does_not_starve_the_others():
    """Where nothing is said, and no level named, most goes to the finest places; with a level named, half and half or so."""
    assert Geography.model_fields["shares"].default == "least_error"
    sizes = (1, 10, 300, 10_000)
    assert [least_error(sizes, named, "zcdp")[2] > Fraction(3, 4) for named in ([], [3], [2])] == [True, True, False]
    county = least_error(sizes, [2], "zcdp")
    assert county[1] > Fraction(1, 2) and county[2] >= Fraction(1, 5)


def test_levels_that_analyses_name_are_measured_and_told():
    analyses = (
        TableAnalysis(table=("region",)),
        TableAnalysis(table=("work", "county")),
        TableAnalysis(table=("work", "tract")),
    )
    plan = make_plan(asked(country(), analyses=analyses))
    assert [each.measured for each in plan.analyses] == [True, True, True]
    assert [each.expected_width is not None for each in plan.analyses] == [True] * 3
    assert depths(place_tables(places_of(country()), plan))[3,] == 3


def test_a_table_of_two_attributes_by_place_is_measured_where_an_analysis_asks_for_it():
    """And paid for: at every level down to the one that is named, beside each of both by place and both in the nation."""
    plan = make_plan(asked(country(), analyses=(TableAnalysis(table=("county", "sex", "age")),)))
    (analysis,) = plan.analyses
    assert analysis.measured and analysis.expected_width is not None and analysis.share > Fraction(1, 10)
    assert depths(place_tables(places_of(country()), plan)) == {(): 3, (0,): 3, (2,): 2, (3,): 2, (0, 2): 2}
    assert {draw.layer for draw in plan.draws if draw.tree == "tract × sex × age"} == {1, 2}
    assert ways_of(plan.draws).dearest == Fraction(plan.cost) == sum(draw.cost for draw in plan.draws)
    assert not any("tract × sex × age" in (draw.tree or "") for draw in make_plan(asked(country())).draws)
    three = make_plan(asked(country(), analyses=(TableAnalysis(table=("region", "sex", "age", "work")),)))
    assert not three.analyses[0].measured and all(len(of) < 3 for draw in three.draws for of in draw.tables)


@pytest.mark.parametrize(
    "tree", ["tract × age × sex", "tract × sex × sex", "sex × age", "tract × sex × age × work", "tract × x", None]
)
def test_a_tree_that_is_no_table_of_places_is_not_taken_for_one(tree):
    assert of_tree(places_of(country()), tree) is None
    assert of_tree(places_of(country()), "tract × sex × age") == (0, 2)


def test_a_model_with_a_level_needs_its_tables_by_place_and_those_of_the_nation():
    plan = make_plan(asked(country(200_000), analyses=(ModelAnalysis(model="sex ~ age + region"),)))
    (analysis,) = plan.analyses
    assert analysis.measured and {table.of for table in analysis.needs} == {
        ("sex", "age"),
        ("sex", "region"),
        ("age", "region"),
    }


YOUNG = {"never": {"age": "age0", "work": "work1"}}
REFUSED = {
    "no geography": (lambda: asked(_flat(country())), "needs an attribute with a geography"),
    "a rule that compares places": (lambda: asked(_born_somewhere()), "a rule compares tract with another attribute"),
    "a place that rules empty": (
        lambda: asked(country(rules=({"never": {"tract": "t1", "sex": "sex0"}}, {"never": {"county": "c0", "sex": "sex1"}}))),
        "rules leave nobody in tract 't1'. Leave its line out",
    ),
    "nobody anywhere": (
        lambda: asked(country(rules=({"never": {"region": ("r0", "r1", "r2"), "work": "work2"}},))),
        "rules leave work = work2 in no tract at all. Say that in a rule of its own",
    ),
    "nobody anywhere, whatever else rules tie": (  # who follows the advice would else be refused for every age
        lambda: asked(country(rules=({"never": {"region": ("r0", "r1", "r2"), "work": "work2"}}, YOUNG))),
        "rules leave work = work2 in no tract at all",
    ),
    "a level of another method": (
        lambda: asked(country(), method="pairs", analyses=(TableAnalysis(table=("county", "age")),)),
        "an analysis names county, a level of places, which decomposition: pairs does not measure",
    ),
    "a level alone, of another method": (
        lambda: asked(country(), method="pairs", analyses=(TableAnalysis(table=("county",)),)),
        "an analysis names county, a level of places, which decomposition: pairs does not measure",
    ),
    "a level of one place, of another method": (  # of one category there is nothing to tell, and so it seemed measured
        lambda: asked(_in_one_region(), method="pairs", analyses=(TableAnalysis(table=("region",)),)),
        "an analysis names region, a level of places, which decomposition: pairs does not measure",
    ),
    "a level that cannot be known so well": (
        lambda: asked(
            country(), analyses=(TableAnalysis(table=("county", "age"), within=Fraction(1, 300)),), rho=Decimal("1e-5")
        ),
        "ρ = 0.[0-9]+ would do",
    ),
    "two attributes by place that drown": (
        lambda: asked(country(), analyses=(TableAnalysis(table=("tract", "age", "work")),), rho=Decimal("0.001")),
        "its intervals would be wider than the average cell is large. ρ = [0-9.]+ would do",
    ),
    "a level that is none": (lambda: asked(country(), analyses=(TableAnalysis(table=("country",)),)), "did you mean"),
}


def _flat(of: Domain) -> Domain:
    plain = tuple(each.model_copy(update={"geography": None}) if each.name == "tract" else each for each in of.attributes)
    return of.model_copy(update={"attributes": plain})


def _in_one_region() -> Domain:
    of = country()
    of_places = of.attributes[1].geography
    assert of_places is not None
    table = tuple(("r0", *row[1:]) for row in of_places.table)
    place = of.attributes[1].model_copy(update={"geography": of_places.model_copy(update={"table": table})})
    return of.model_copy(update={"attributes": (of.attributes[0], place, *of.attributes[2:])})


def _born_somewhere() -> Domain:
    of = country()
    born = {"name": "born", "kind": "categorical", "categories": of.attributes[1].categories}
    said = {"name": "d", "population": "p", "attributes": (*of.attributes, born), "rules": ({"always": "born == tract"},)}
    return Domain.model_validate(said)


@pytest.mark.parametrize(("release", "told"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_measured_is_refused_before_data(release, told):
    with pytest.raises(SpecError, match=told):
        make_plan(release())


def test_auto_takes_places_where_there_are_some():
    assert make_plan(asked(country(), method="auto")).decomposition == "places"
    assert make_plan(asked(_flat(country()), method="auto")).decomposition != "places"


def test_depth_is_at_least_what_is_asked():
    of = country(1_000)
    allowance = allowance_of(asked(of))
    assert [depth(places_of(of), allowance, 3, least) for least in (0, 1, 2, 3)] == [1, 1, 2, 3]


# --- what comes out


@every_measure
@pytest.mark.whole
def test_rows_of_places_add_up_at_every_level_and_follow_the_noisy_counts(measure):
    found, of = made(measure), country()
    places, measured = places_of(of), read_measured(of, found.plan, found.tables)
    rows, drawn = joined(measured, 0).rows, codes_of(found.records[0], of)
    for level in (1, 2, 3):
        below = rows.value[level][:, 0]
        assert np.allclose(np.bincount(places.within(level, level - 1), below), rows.value[level - 1][:, 0])
        apart = np.abs(exact(drawn, level) - np.maximum(below, 0)).sum()
        assert apart <= places.sizes[level] + np.maximum(-below, 0).sum() * 3
    assert len(drawn) == round(float(rows.value[0][0, 0]))
    labels = found.records[0].to_pandas()
    geography = of.attributes[1].geography
    assert (labels["county"] == labels["tract"].map({row[2]: row[1] for row in geography.table})).all()


@every_measure
@pytest.mark.parametrize("sets", [{"count": 2}, {"count": 2, "budget": "shared"}], ids=["split", "shared"])
@pytest.mark.whole
def test_a_large_budget_gives_the_rows_of_every_place_and_its_shares(measure, sets):
    of, codes = country(), people()
    privacy = {"pure": {"epsilon": Decimal(10**4)}, "zcdp": {"rho": Decimal(10**5)}}[measure]
    found = run(asked(of, measure, sets=sets, **privacy), count_codes(codes), SeededRandomness("large"))
    for records in found.records:
        drawn = codes_of(records, of)
        assert np.abs(exact(drawn, 3) - exact(codes, 3)).sum() <= 20
        for attribute in (0, 2, 3):
            assert np.abs(exact(drawn, 2, attribute) - exact(codes, 2, attribute)).sum() <= 0.05 * len(codes)


def measured_only(release: Release, counts: Counts, randomness: SeededRandomness) -> Synthetic:
    """Without rows."""
    plan, method = make_plan(release), method_named("places")
    structure = method.build(release.domain, plan, counts, randomness)
    noisy = method.sanitize(release.domain, plan, counts, structure, randomness)
    return Synthetic(release.domain, method, plan, {"tree": structure, "noisy-counts": noisy})


@every_measure
@pytest.mark.whole
def test_intervals_hold_the_truth_at_every_level(measure):
    codes, of = people(), country()
    counts, held = count_codes(codes), dict[tuple, list[np.ndarray]]()
    for seed in range(12):
        found = measured_only(asked(of, measure), counts, SeededRandomness(("cover", str(seed))))
        for level in (1, 2, 3):
            classes = {1: tuple(places_of(of).at(level).tolist())}
            for attribute in (None, 0, 2, 3):
                told = found.method.tabulate(
                    of, found.plan, found.tables, Asked((1,) if attribute is None else (1, attribute), {}, classes)
                )
                if isinstance(told, Tabulated):
                    inside = (
                        np.abs(told.estimate - exact(codes, level, *((attribute,) if attribute is not None else ())))
                        <= told.half
                    )
                    held.setdefault((level, attribute is None), []).append(inside)
    assert held.keys() >= {(1, True), (2, True), (3, True), (1, False), (2, False)} and counts.count.sum() == len(codes)
    for key, each in held.items():
        share, number = np.concatenate(each).mean(), len(np.concatenate(each))
        assert share > 0.95 - 4 * np.sqrt(0.95 * 0.05 / (number / 6)), key  # cells of a table share noise: some six alike


def test_conditions_sums_and_the_order_of_attributes():
    found, of = made(), country()
    region = {1: tuple(places_of(of).at(1).tolist())}
    ask = lambda *of_table, **more: found.method.tabulate(of, found.plan, found.tables, Asked(of_table, **more))  # noqa: E731
    there, back = ask(1, 2, kept={}, classes=region), ask(2, 1, kept={}, classes=region)
    assert np.allclose(there.estimate.reshape(3, 4), back.estimate.reshape(4, 3).T)
    assert np.allclose(there.variance.reshape(3, 4), back.variance.reshape(4, 3).T)
    rows = ask(1, kept={}, classes=region)
    assert np.allclose(there.estimate.reshape(3, 4).sum(axis=1), rows.estimate) and np.isclose(rows.whole, there.whole)
    some = ask(2, kept={1: tuple(range(32))})
    assert np.allclose(some.estimate, there.estimate.reshape(3, 4)[0]) and np.allclose(
        some.variance, there.variance.reshape(3, 4)[0]
    )
    young = ask(1, kept={2: (0, 1)}, classes=region)
    assert np.allclose(young.estimate, there.estimate.reshape(3, 4)[:, :2].sum(axis=1))
    assert (young.variance < there.variance.reshape(3, 4)[:, :2].sum(axis=1) * 1.2).all()
    assert "drowned further down" in ask(1, 2, kept={}) and "not measured" in ask(0, 1, 2, kept={})
    nation = ask(0, 2, kept={})
    assert isinstance(nation, Tabulated) and len(nation.estimate) == 8
    assert found.method.lacking(of, found.plan, found.tables, [(1,), (0, 1), (1, 3), (0, 2)]) == [(), (), ("tract × work",), ()]


def test_small_places_borrow_from_the_place_above_them():
    """A place whose counts are noise has the shares of its county; one with many rows has its own."""
    of, codes = country(), people()
    codes = np.concatenate([codes, np.tile([0, 0, 3, 5], (3_000, 1))])  # the first tract is large and old
    found = made(of=of, codes=codes)
    measured, places = read_measured(of, found.plan, found.tables), places_of(of)
    told = joined(measured, 0)
    there = [np.maximum(each[:, 0], 0) for each in told.rows.value]
    nation = np.bincount(codes[:, 0], minlength=2) / len(codes)
    shares = shares_by_place(places, told, (0,), there, nation, 3, None)
    noisy = told.contrasts[0,].value[3] / np.maximum(there[3], 1)[:, None] + 0.5
    small = exact(codes, 3) < 100
    above = shares[1][places.within(3, 2)]
    assert np.abs(shares[2] - above)[small].mean() < 0.5 * np.abs(noisy - above)[small].mean()
    true = codes[codes[:, 1] == 0, 0]
    assert abs(shares[2][0, 0] - (true == 0).mean()) < 0.05 < abs(above[1, 0] - shares[2][0, 0])
    below = shares_by_place(places, told, (2,), there, np.bincount(codes[:, 2], minlength=4) / len(codes), 3, None)
    assert np.array_equal(below[2], below[1][places.within(3, 2)])  # age was not counted in tracts


def test_an_empty_country_is_noise_on_zeros():
    found = made(codes=np.zeros((0, 4), dtype=int))
    assert found.method.check(country(), found.plan, found.tables).findings == () and len(found.records[0]) < 500


# --- two attributes by place

TOGETHER = (TableAnalysis(table=("county", "age", "work")),)


def otherwise(rows: int = 20_000) -> np.ndarray:
    """In every second county work falls with age."""
    codes = people(rows)
    falls = codes[:, 1] * COUNTIES // TRACTS % 2 == 1
    codes[falls, 3] = 5 - codes[falls, 3]
    return codes


@every_measure
@pytest.mark.whole
def test_tables_of_two_attributes_by_place_have_the_errors_that_they_say(measure):
    """And their sums are the tables by one attribute, of counties and of regions."""
    codes, of, apart = otherwise(), country(), dict[str, list[np.ndarray]]()
    counts, places = count_codes(codes), places_of(of)
    county, region = ({1: tuple(places.at(level).tolist())} for level in (2, 1))
    for seed in range(12):
        found = measured_only(asked(of, measure, analyses=TOGETHER), counts, SeededRandomness(("two", str(seed))))
        ask = lambda *table, found=found, **more: found.method.tabulate(of, found.plan, found.tables, Asked(table, **more))  # noqa: E731
        for name, level, classes in (("county", 2, county), ("region", 1, region)):
            both, one = ask(1, 2, 3, kept={}, classes=classes), ask(1, 2, kept={}, classes=classes)
            assert np.allclose(both.estimate.reshape(-1, 4, 6).sum(axis=2).ravel(), one.estimate)
            turned = ask(3, 2, 1, kept={}, classes=classes)
            assert np.allclose(both.variance.reshape(-1, 4, 6), turned.variance.reshape(6, 4, -1).T)
            some = ask(1, 2, kept={3: (0, 4)}, classes=classes)
            assert np.allclose(some.estimate, both.estimate.reshape(-1, 4, 6)[:, :, [0, 4]].sum(axis=2).ravel())
            assert "which no analysis asked for" in ask(0, 1, 2, kept={}) and "no analysis asked for more" in ask(
                1, 2, 3, kept={}
            )
            true = exact(codes, level, 2, 3)
            wanted = {"both": (both, true), "one": (one, exact(codes, level, 2))}
            wanted["some"] = some, true.reshape(-1, 4, 6)[:, :, [0, 4]].sum(axis=2).ravel()
            for which, (told, truth) in wanted.items():
                apart.setdefault(f"{which} by {name}", []).append((told.estimate - truth) / np.sqrt(told.variance))
    for which, each in apart.items():
        spread = np.concatenate(each).std()
        assert abs(spread - 1) < 4 / np.sqrt(2 * len(np.concatenate(each)) / 4), (which, spread)


@every_measure
def test_tables_of_the_nation_are_the_sums_of_what_places_are_told_to_have(measure):
    """What levels tell of all places together is no other number than the nation's own table, and errs less than that alone."""
    codes, of, apart = people(), country(), []
    counts, region = count_codes(codes), {1: tuple(places_of(country()).at(1).tolist())}
    for seed in range(12):
        found = measured_only(asked(of, measure, analyses=TOGETHER), counts, SeededRandomness(("nation", str(seed))))
        ask = lambda *table, found=found, **more: found.method.tabulate(of, found.plan, found.tables, Asked(table, **more))  # noqa: E731
        measured = read_measured(of, found.plan, found.tables)
        alone = of_nation_alone(measured, (1, 2), found)
        both, summed = ask(2, 3, kept={}), ask(1, 2, 3, kept={}, classes=region).estimate.reshape(3, -1).sum(axis=0)
        assert np.allclose(both.estimate, summed) and not np.allclose(both.estimate, alone.estimate)  # the control
        assert (both.variance < alone.variance).all()
        apart.append((both.estimate - np.bincount(codes[:, 2] * 6 + codes[:, 3], minlength=24)) / np.sqrt(both.variance))
        for j, told in ((j, ask(j, kept={})) for j in (0, 2, 3)):
            there = ask(1, j, kept={}, classes=region)
            assert isinstance(there, str) or np.allclose(there.estimate.reshape(3, -1).sum(axis=0), told.estimate)
            assert told.whole == pytest.approx(ask(1, kept={}).whole)
    assert abs(np.concatenate(apart).std() - 1) < 4 / np.sqrt(2 * 12 * 24 / 4)


def of_nation_alone(measured: Measured, table: tuple[int, ...], found: Synthetic) -> Tabulated:
    """What the nation's tables say without what places do; attributes numbered without the place."""
    tables = measured.of_nation_in(found.tables)
    told = of_pairs.tabulate(measured.places.nation, measured.nation.margins.plan, tables, Asked(table, {}))
    assert isinstance(told, Tabulated)
    return told


@pytest.mark.whole
def test_rows_follow_what_two_attributes_have_in_common_in_a_place():
    codes = otherwise()
    with_it, without = (
        codes_of(made(codes=codes, analyses=analyses, seed="two", rho=Decimal(1)).records[0], country())
        for analyses in (TOGETHER, TOGETHER[:0])
    )
    true = exact(codes, 2, 2, 3)
    far, near = (np.abs(exact(each, 2, 2, 3) - true).sum() / len(codes) for each in (without, with_it))
    assert near < 0.12 and far > 3 * near, (near, far)


@pytest.mark.parametrize("sets", [{}, {"count": 2, "budget": "shared"}, {"count": 2}], ids=["one", "shared", "split"])
@pytest.mark.whole
def test_two_attributes_by_place_under_rules_are_checked_shown_and_told(sets):
    of = country(rules=RULES, missing="category")
    found = made(of=of, codes=keeping(of, people()), analyses=TOGETHER, sets=sets)
    assert found.method.check(of, found.plan, found.tables).findings == ()
    assert all(len(keeping(of, codes_of(records, of))) == len(records) for records in found.records)
    shown = found.method.view(of, found.plan, found.tables)
    assert [("age × work" in level.counted) for level in shown.levels] == [True, True, False]
    measured = read_measured(of, found.plan, found.tables)
    behind = next(n for n, table in enumerate(measured.tables, start=1) if (table.of, table.level) == ((2, 3), 2))
    frame = found.method.counts(of, found.plan, found.tables, 3 + len(measured.nation.tables) + behind)
    assert list(frame.columns) == ["county", "age", "work", "estimate", "standard_error"] and len(frame) == 13 * 24
    forbidden = frame[(frame["county"] == "c1") & (frame["age"] == 0)]
    assert len(forbidden) == 6 and not forbidden["estimate"].any() and frame["estimate"].any()
    assert list(planned_problems(found.plan, of)) == []
    less = tuple(draw for draw in found.plan.draws if draw.tree != "tract × age × work")
    told = list(planned_problems(found.plan.model_copy(update={"draws": less}), of))
    assert told == ["analysis 'county × age × work': the table of age, work, county is not measured, and the plan says it is"]


def test_two_attributes_by_place_verify_in_whichever_order_the_dataset_has_them():
    """Draws are named in that order, and it need not be the one of the alphabet."""
    of = country()
    turned = of.model_copy(update={"attributes": of.attributes[::-1]})
    plan = make_plan(asked(turned, analyses=TOGETHER))
    assert "tract × work × age" in {draw.tree for draw in plan.draws}
    assert plan.analyses[0].measured and list(planned_problems(plan, turned)) == []


# --- rules that name places, and places that are not known

RULES = (
    {"never": {"tract": ("t0", "t1"), "work": ("work4", "work5")}},
    {"never": {"county": "c1", "age": "age0"}},
    {"never": {"region": "r2", "sex": "sex1", "work": "work0"}},
)


def keeping(of: Domain, codes: np.ndarray) -> np.ndarray:
    """The records without those that break a rule."""
    return codes[~np.any([breaking(zero, codes) for zero in of.zeros], axis=0)]


@every_measure
@pytest.mark.whole
def test_rows_keep_rules_of_places_and_every_place_keeps_its_rows(measure):
    of, free = country(rules=RULES), country()
    codes = keeping(of, people())
    found, without = (made(measure, each, codes) for each in (of, free))
    drawn, loose = (codes_of(each.records[0], of) for each in (found, without))
    assert len(keeping(of, loose)) < len(loose)  # rows without the rules break them
    assert len(keeping(of, drawn)) == len(drawn)
    assert ["has a row that breaks a rule"] == list(record_problems(of, without.records[0], None))
    assert not list(record_problems(of, found.records[0], None))
    rows = joined(read_measured(of, found.plan, found.tables), 0).rows
    assert np.abs(exact(drawn, 2) - np.maximum(rows.value[2][:, 0], 0)).sum() <= COUNTIES
    for attribute in (0, 2, 3):
        apart = [np.abs(exact(each, 1, attribute) - exact(codes, 1, attribute)).sum() for each in (drawn, loose)]
        assert apart[0] < 1.2 * apart[1] + 0.01 * len(codes)
    assert found.plan.draws == without.plan.draws  # rules of places change no draw


def test_cells_that_rules_of_places_forbid_are_nought_wherever_they_are_told():
    of = country(rules=RULES)
    found = made(of=of, codes=keeping(of, people()))
    county = {1: tuple(places_of(of).at(2).tolist())}
    told = found.method.tabulate(of, found.plan, found.tables, Asked((1, 2), {}, county))
    forbidden = 1 * 4 + 0
    assert np.flatnonzero(~told.possible).tolist() == [forbidden]
    assert told.estimate[forbidden] == told.half[forbidden] == 0 < told.half[0]
    frame = found.tables["consistent-counts"].to_pandas()
    mine = frame[(frame["level"] == 2) & (frame["attributes"].map(tuple) == (2,))]
    assert np.allclose(mine["estimate"], told.estimate) and np.allclose(mine["standard_error"] ** 2, told.variance)
    assert found.method.check(of, found.plan, found.tables).findings == ()


def test_who_finds_nobody_to_change_places_with_becomes_like_somebody_else():
    """Everybody is in one place, where half of them may not be; then all of them."""
    of = country(rules=({"never": {"tract": "t0", "sex": "sex0"}},))
    codes = np.tile([1, 0, 2, 3], (100, 1))
    codes[::2, 0] = 0
    keep_rules(places_of(of), codes, SeededRandomness("half"))
    assert (codes == [1, 0, 2, 3]).all()
    codes[:, 0] = 0
    keep_rules(places_of(of), codes, SeededRandomness("all"))
    assert len(keeping(of, codes)) == 100 and (codes[:, 2:] == [2, 3]).all()


def test_places_that_are_not_known_are_counted_at_every_level_as_one_place_more():
    of, codes = country(missing="category"), people()
    codes[::10, 1] = TRACTS
    found = run(asked(of, rho=Decimal(100)), count_codes(codes), SeededRandomness("missing"))
    rows = joined(read_measured(of, found.plan, found.tables), 0).rows
    assert [len(each) for each in rows.value] == [1, 4, 13, 97]
    assert all(abs(each[-1, 0] - 2_000) < 20 for each in rows.value[1:])
    records = found.records[0].to_pandas()
    assert abs(records["tract"].isna().sum() - 2_000) < 20
    assert (records["tract"].isna() == records["county"].isna()).all() and (
        records["region"].isna() == records["county"].isna()
    ).all()
    shown = found.method.view(of, found.plan, found.tables)
    assert [level.labels[-1] for level in shown.levels] == ["(missing)"] * 3
    assert found.method.check(of, found.plan, found.tables).findings == ()


# --- what is published is checked


@every_measure
@pytest.mark.whole
def test_the_page_shows_what_tables_say_at_every_level(measure):
    found = made(measure)
    shown = found.method.view(country(), found.plan, found.tables)
    for margin in (*shown.margins, *shown.derived):
        column = column_of(margin.attribute, country())
        asked_alone = Asked((column.source,), {}, {column.source: tuple(column.codes.tolist())})
        table = found.method.tabulate(country(), found.plan, found.tables, asked_alone)
        assert isinstance(table, Tabulated)
        assert margin.estimate == pytest.approx(table.estimate) and margin.half == pytest.approx(table.half)
    assert [margin.attribute for margin in shown.derived] == ["region", "county"]


def _changed(table: pa.Table, column: str, row: int, by: float) -> pa.Table:
    values = table[column].to_numpy().copy()
    values[row] += by
    place = table.schema.get_field_index(column)
    return table.set_column(place, table.schema.field(column), pa.array(values, table.schema.field(column).type))


LIES = {
    "an estimate": lambda t: {**t, "consistent-counts": _changed(t["consistent-counts"], "estimate", -3, 5.0)},
    "an error": lambda t: {**t, "consistent-counts": _changed(t["consistent-counts"], "standard_error", -3, 1.0)},
    "a noisy count": lambda t: {**t, "noisy-counts": _changed(t["noisy-counts"], "noisy_1", -3, 9)},
    "a cell": lambda t: {**t, "noisy-counts": _changed(t["noisy-counts"], "cell", -3, 1)},
    "a table too few": lambda t: {**t, "noisy-counts": t["noisy-counts"].slice(0, t["noisy-counts"].num_rows - 1)},
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
@pytest.mark.whole
def test_changed_tables_are_found(lie):
    found = made()
    assert found.method.check(country(), found.plan, found.tables).findings == ()
    assert found.method.check(country(), found.plan, lie(found.tables)).findings != ()


PLANS = {
    "a level left out": lambda d: d.tree != "tract" or d.layer != 2,
    "the finest level left out": lambda d: d.tree != "tract" or d.layer != 3,
}


@pytest.mark.parametrize("kept", PLANS.values(), ids=PLANS)
@pytest.mark.whole
def test_a_plan_that_does_not_pay_for_a_level_is_found(kept):
    found = made()
    less = found.plan.model_copy(update={"draws": tuple(filter(kept, found.plan.draws))})
    assert found.method.check(country(), less, found.tables).findings != ()


@every_measure
@pytest.mark.whole
def test_noise_that_is_missing_is_found_and_sound_noise_is_not(measure):
    """Counts of places without their noise: places and those that lie in them agree too well."""
    found, of = made(measure), country()
    checked = found.method.check(of, found.plan, found.tables)
    assert checked.noise.contrasts > 10 and checked.noise.problems == ()
    bare = _without_noise(found, of, people())
    assert any("noise is missing" in problem for problem in found.method.check(of, found.plan, bare).noise.problems)


def _without_noise(found: Synthetic, of: Domain, codes: np.ndarray) -> dict[str, pa.Table]:
    noisy = found.tables["noisy-counts"]
    exact_values = np.concatenate([exact(codes, t.level, *t.of) for t in place_tables(places_of(of), found.plan)])
    values = noisy["noisy_1"].to_numpy().copy()
    values[-len(exact_values) :] = exact_values
    place = noisy.schema.get_field_index("noisy_1")
    return {**found.tables, "noisy-counts": noisy.set_column(place, noisy.schema.field("noisy_1"), pa.array(values))}


@pytest.mark.whole
def test_more_rows_can_be_drawn():
    found, of = made(sets={"count": 2, "budget": "shared"}), country()
    drawn = found.method.source(of, found.plan, found.tables, 3, SeededRandomness("more")).rows(
        5_000, {}, SeededRandomness("r")
    )
    assert drawn.shape == (5_000, 4) and np.abs(exact(drawn, 1) / 5_000 - exact(people(), 1) / 20_000).max() < 0.02


def one_nation(*sizes: int, expected: int = 3000) -> Domain:
    """A level of one place only, three regions and nine tracts, and attributes of so many categories."""
    table = tuple(("nation", f"r{t // 3}", f"t{t}") for t in range(9))
    tract = {"name": "tract", "kind": "categorical", "geography": {"levels": ("nation", "region", "tract"), "table": table}}
    others = ({"name": f"x{j}", "kind": "integer", "bounds": (0, size - 1)} for j, size in enumerate(sizes))
    return Domain.model_validate({"name": "d", "population": "p", "expected_rows": expected, "attributes": (tract, *others)})


@pytest.mark.parametrize("table", [("nation", "region"), ("nation", "x0"), ("nation", "region", "x0"), ("nation",)])
def test_a_level_of_one_place_leaves_nothing_to_tell_and_the_verifier_knows_it(table):
    of = one_nation(2)
    plan = make_plan(asked(of, "pure", analyses=(table,), epsilon=Decimal(8)))
    assert plan.analyses[0].measured and list(planned_problems(plan, of)) == []


def test_places_beside_attributes_without_a_choice_are_refused_before_data():
    of = one_nation(1)
    with pytest.raises(SpecError, match="needs an attribute of two or more categories beside tract"):
        make_plan(asked(of, "pure"))
    assert make_plan(asked(of, "pure", method="auto")).decomposition != "places"


@pytest.mark.parametrize("method", ["places", "pairs"])
@pytest.mark.whole
def test_an_exact_number_of_rows_is_kept_whatever_was_expected(method):
    of = one_nation(2, expected=20)
    codes = np.stack([np.arange(5000) % 9, np.arange(5000) % 2], axis=1)
    found = run(asked(of, "pure", method=method, total="invariant"), count_codes(codes), SeededRandomness("exact"))
    assert len(found.records[0]) == 5000 and found.method.check(of, found.plan, found.tables).findings == ()
