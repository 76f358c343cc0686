"""Some pairs are measured twice: which, the first noisy tables say; what was kept back for it, the plan."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from schemas.spec.analyses import TableAnalysis
from schemas.spec.domain import Domain
from schemas.spec.method import method_spec
from steps_engine.domain.counting import Counts, count_codes
from steps_engine.methods.pairs import measure
from steps_engine.methods.pairs.again import choice_problems, chosen
from steps_engine.methods.pairs.check import check
from steps_engine.methods.pairs.estimate import evidence
from steps_engine.methods.pairs.kept_back import FOR_EACH, predicted
from steps_engine.methods.pairs.tables import noisy_table, read_measured
from steps_engine.methods.planning import make_plan, plan_with_analyses
from steps_engine.methods.run_in_memory import Synthetic, run
from steps_engine.noise import SeededRandomness
from tests.steps_engine.shapes import domain, release
from tests.zcdp_audit import keeps
from tests.zcdp_witness import met

ATTRIBUTES, ROWS = 10, 3000
RHO = {"delta": Decimal("1e-9")}
TEN = domain(*[3] * ATTRIBUTES, expected_rows=ROWS)
TIES = ((0, 1), (2, 3), (4, 5))


def rows_of(seed: int, rows: int = ROWS) -> np.ndarray:
    """Independent attributes, but for three pairs that agree in most rows."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, (rows, ATTRIBUTES))
    for a, b in TIES:
        same = rng.random(rows) < 0.8
        codes[same, b] = codes[same, a]
    return codes


def asked(of: Domain = TEN, epsilon: str = "3", privacy: dict | None = None, **method):
    return release(of, method_spec(decomposition="pairs", **method), epsilon, **(RHO if privacy is None else privacy))


def made(seed: int = 0, **method) -> Synthetic:
    return run(asked(**method), count_codes(rows_of(seed)), SeededRandomness(("again", seed)))


def draws(plan) -> list:
    return [draw for draw in plan.draws if draw.of == "again"]


# --- the plan


def test_a_part_waits_for_twice_as_many_pairs_as_a_tree_has_and_the_sum_is_what_is_charged():
    plan = make_plan(asked())
    assert len(draws(plan)) == FOR_EACH * (ATTRIBUTES - 1) and len({draw.cost for draw in draws(plan)}) == 1
    assert sum(draw.cost for draw in plan.draws) == Fraction(plan.cost)
    named = sum(draw.cost for draw in plan.draws if draw.tables and len(draw.tables[0]) == 2)
    waits = sum(draw.cost for draw in draws(plan))
    assert waits / (waits + named) in [Fraction(part, 10) for part in (1, 2, 3, 4, 5)]


@pytest.mark.parametrize(
    "other",
    [
        {"privacy": {}},
        {"pairs": "all"},
        {"of": domain(*[3] * 6, expected_rows=ROWS)},
        {"of": domain(*[3] * ATTRIBUTES, expected_rows=10**7)},
    ],
    ids=["under ε", "all asked for", "few attributes", "hardly any noise"],
)
def test_nothing_waits_where_it_would_not_pay_or_was_not_left_to_the_plan(other):
    assert not draws(make_plan(asked(**other)))


def test_nothing_waits_where_analyses_need_their_tables():
    wanted = asked()
    spec = wanted.spec.model_copy(update={"analyses": (TableAnalysis(table=("x0", "x1")),)})
    assert not draws(plan_with_analyses(wanted.model_copy(update={"spec": spec})))


def test_the_prediction_is_that_of_one_measurement_where_all_pairs_share_what_waited():
    """And it is a gain only where noise drowns the weak pairs."""
    assert predicted(0.1, 1.0, 0.3) == pytest.approx(predicted(0.1, 0.5, 1e-9), rel=1e-4)
    assert predicted(0.1, 0.2, 0.3) < 0.95 * predicted(0.1, 0.2, 1e-9)
    assert predicted(1e-4, 0.2, 0.3) > predicted(1e-4, 0.2, 1e-9)


# --- what is measured


@pytest.mark.whole
def test_strong_pairs_are_measured_twice_and_both_say_the_same_but_for_noise():
    released = made()
    structure, noisy = read_measured(TEN, released.plan, released.tables)
    assert set(TIES) <= set(structure.again) and list(structure.again) == sorted(structure.again)
    assert len(noisy) == len(structure.tables) + len(structure.again)
    assert noisy_table(structure, noisy).equals(released.tables["noisy-counts"])
    for i, table in enumerate(structure.again, start=len(structure.tables)):
        apart = noisy[i] - noisy[structure.tables.index(table)]
        error = np.sqrt(structure.variances[i] + structure.variances[structure.tables.index(table)])
        assert 0 < np.abs(apart).max() < 6 * error


@pytest.mark.whole
def test_both_measurements_are_joined_by_precision():
    released = made()
    structure, noisy = read_measured(TEN, released.plan, released.tables)
    said, pair = evidence(structure, noisy, 0), structure.again[0]
    first, second = structure.tables.index(pair), len(structure.tables)
    v1, v2 = structure.variances[first], structure.variances[second]
    mean = (noisy[first][0] / v1 + noisy[second][0] / v2) / (1 / v1 + 1 / v2)
    centred = (mean - mean.mean(axis=0) - mean.mean(axis=1, keepdims=True) + mean.mean()) / 9
    assert said[pair].value == pytest.approx(centred) and said[pair].variance == pytest.approx(1 / (1 / v1 + 1 / v2) / 81)
    table = released.tables["consistent-counts"].to_pandas()
    mine = table[table["attributes"].map(tuple) == pair]
    assert mine["estimate"].to_numpy() == pytest.approx(said[pair].value.ravel())
    assert mine["standard_error"].to_numpy() == pytest.approx(np.sqrt(said[pair].variance * 4 / 9))


@pytest.mark.whole
def test_pairs_that_are_measured_twice_are_nearer_to_the_records_than_without():
    """The control spends the same in one measurement of all pairs."""
    with_, without = [], []
    for seed in range(4):
        codes = rows_of(seed)
        exact = {pair: np.bincount(codes[:, pair[0]] * 3 + codes[:, pair[1]], minlength=9).reshape(3, 3) for pair in TIES}
        for errors, method in ((with_, {}), (without, {"pairs": "all"})):
            released = made(seed, **method)
            said = evidence(*read_measured(TEN, released.plan, released.tables), 0)
            for pair, table in exact.items():
                part = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
                errors.append(((said[pair].value - part) ** 2).sum())
    assert np.mean(with_) < 0.8 * np.mean(without)


@pytest.mark.whole
@pytest.mark.parametrize("sets", [{"count": 3, "budget": "split"}, {"count": 3, "budget": "shared"}], ids=str)
def test_sets_that_split_the_budget_measure_the_same_pairs_again(sets):
    released = made(epsilon="6", sets=sets)
    structure, noisy = read_measured(TEN, released.plan, released.tables)
    assert structure.again and {len(each) for each in noisy} == {released.plan.measurements}
    assert len(released.records) == 3 and not check(TEN, released.plan, released.tables).findings


@pytest.mark.whole
def test_the_choice_follows_from_noisy_tables_alone(monkeypatch):
    """Also where records say something else."""
    seen = []
    monkeypatch.setattr(measure, "chosen", lambda *given: seen.append(given) or chosen(*given))
    made(3)
    ((structure, noisy, number),) = seen
    assert not structure.again and chosen(structure, noisy[: len(structure.tables)], number) == chosen(*seen[0])


# --- what is published


def forged(released: Synthetic, change) -> list[str]:
    tables = dict(released.tables)
    tables["noisy-counts"] = change(tables["noisy-counts"])
    found = check(TEN, released.plan, tables)
    return [*(sentence for _, sentence in found.findings), *choice_problems(TEN, released.plan, tables)]


def with_tables(table: pa.Table, numbers: np.ndarray) -> pa.Table:
    return table.set_column(0, table.schema.field("table"), pa.array(numbers.astype(np.int32)))


def test_what_was_published_is_found_sound_and_lies_are_not():
    released = made()
    structure, noisy = read_measured(TEN, released.plan, released.tables)
    table, before = released.tables["noisy-counts"], sum(each[0].size for each in noisy[: len(structure.tables)])
    numbers = table["table"].to_numpy().copy()
    assert forged(released, lambda table: table) == []

    others = [i for i, pair in enumerate(structure.tables) if pair not in structure.again]
    moved = numbers.copy()
    moved[before:] = np.sort(np.where(numbers[before:] == numbers[-1], others[-1], numbers[before:]), kind="stable")
    assert any("not those that the first measurement" in each for each in forged(released, lambda t: with_tables(t, moved)))

    backwards = numbers.copy()
    backwards[before:] = np.sort(numbers[before:])[::-1]
    for lie, said in (
        (with_tables(table, backwards), "in their order"),
        (table.slice(0, before + 5), "not those of the tables"),
    ):
        with pytest.raises(ValueError, match=said):
            forged(released, lambda _, lie=lie: lie)
        assert any(
            said in sentence for _, sentence in check(TEN, released.plan, {**released.tables, "noisy-counts": lie}).findings
        )

    def without_noise(table: pa.Table) -> pa.Table:
        """The second is the first: nothing was drawn for it."""
        values = table["noisy_1"].to_numpy().copy()
        for i, pair in enumerate(structure.again):
            first = 9 * structure.tables.index(pair)
            values[before + 9 * i : before + 9 * (i + 1)] = values[first : first + 9]
        return table.set_column(2, table.schema.field("noisy_1"), pa.array(values))

    assert any("noise" in each for each in forged(released, without_noise))


def test_a_plan_of_fewer_draws_than_pairs_were_measured_again_is_found():
    released = made()
    fewer = tuple(draw for draw in released.plan.draws if draw.of != "again" or draw.tree != "again 1")
    found = check(TEN, released.plan.model_copy(update={"draws": fewer}), released.tables).findings
    assert any("no draw of the plan accounts for" in sentence for _, sentence in found)


# --- what it costs

SMALL = domain(3, *[2] * 8, expected_rows=300)


def some(cell: int, number: int) -> Counts:
    """A hundred rows here and there, and so many of one cell."""
    codes = np.random.default_rng(5).integers(0, 2, (6, 9))
    codes[cell, 0] = 2
    counts = np.full(6, 50)
    counts[cell] = number
    return Counts(np.unique(codes, axis=0), counts)


@pytest.mark.parametrize("neighbours", ["add_remove", "substitute"])
def test_a_row_costs_no_more_than_is_charged(neighbours):
    plan = make_plan(asked(SMALL, "3", {**RHO, "neighbours": neighbours}))
    found = met(SMALL, plan, some(2, 8), some(2, 7), 0)
    again = [each for each in found if each.draw.of == "again"]
    assert len(again) == len(draws(plan)) and all(keeps(each.evidence, each.draw.cost) for each in found)


@pytest.mark.whole
def test_control_a_choice_by_exact_counts_is_caught(monkeypatch):
    plan, exact, honest = make_plan(asked(SMALL, "3")), [], measure.exact_tables

    def remembered(structure, counts, tables):
        exact[:] = honest(structure, counts, tables)
        return exact

    def by_exact_counts(structure, noisy, number):
        order = np.argsort([-float(table.flat[0]) for table in exact], kind="stable")[:number]
        return tuple(structure.tables[i] for i in sorted(order))

    monkeypatch.setattr(measure, "exact_tables", remembered)
    monkeypatch.setattr("tests.zcdp_witness.CHOSEN", by_exact_counts)
    with pytest.raises(AssertionError, match="different draws|without noise|differs"):
        for number in range(1, 60):  # somewhere two tables change places
            met(SMALL, plan, some(2, number + 1), some(2, number), 0)
