"""Weights are counted in whole units of a public step: unbiased, within the sensitivity that is paid for, in every method."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import DataInvalid
from schemas.spec.domain import Domain
from schemas.spec.method import method_spec
from schemas.spec.weights import MILLIONTHS, Weighing, Weight
from steps_engine.domain import weights
from steps_engine.domain.counting import Counts
from steps_engine.domain.encoding import PUBLIC_KEY, count_frame
from steps_engine.domain.weights import count_units
from steps_engine.inference.place_tables import is_of_places
from steps_engine.methods.planning import make_plan
from steps_engine.methods.run_in_memory import run
from steps_engine.noise import SeededRandomness
from tests.steps_engine.shapes import PLACED, domain, release
from tests.zcdp_audit import Count, Vector, keeps
from tests.zcdp_witness import met

BOUNDS = (1, 12)
METHODS = {
    "tree": method_spec(decomposition="tree", order=("x0",)),
    "elected": method_spec(decomposition="tree", elect={"layers": 1}),
    "pairs": method_spec(decomposition="pairs"),
    "cascade": method_spec(decomposition="cascade"),
    "privbayes": method_spec(decomposition="privbayes"),
    "places": method_spec(decomposition="places"),
}


def weighted(*sizes: int, rows: int = 1, step: str | int | None = 5, **more) -> Domain:
    weight = {"column": "w", "bounds": BOUNDS, "total": 4000, **({} if step is None else {"step": Decimal(step)}), **more}
    return domain(*sizes, unit={"rows_per_person": rows}, expected_rows=800, weight=weight)


def counted_by(name: str, rows: int = 1, step: str | int = 5) -> Domain:
    """What a method is audited on: three attributes, or places within places beside some."""
    if name != "places":
        return weighted(3, 3, 3, rows=rows, step=step)
    weight = Weight.model_validate({"column": "w", "bounds": BOUNDS, "total": 150_000, "step": Decimal(step)})
    unit = PLACED.unit.model_copy(update={"rows_per_person": rows})
    return PLACED.model_copy(update={"unit": unit, "expected_rows": 30_000, "weight": weight})


def key_of(number: int) -> bytes:
    return number.to_bytes(32, "big")


def surveyed(of: Domain, rows: int = 800, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, size, rows) for size in of.sizes])
    return codes, np.clip(rng.lognormal(1.4, 0.6, rows), *BOUNDS)


def as_dict(counts: Counts) -> dict[tuple[int, ...], int]:
    return dict(zip(map(tuple, counts.codes.tolist()), counts.count.tolist(), strict=True))


# --- the step


def test_the_default_step_counts_the_highest_weight_as_whole_units():
    weighing = weighted(2, step=None).weighing
    assert weighing.step == Fraction(12, 5) and weighing.units_per_row == 5  # mean 5, half of it 2.5
    assert weighted(2).weighing.units_per_row == 3 and weighted(2, rows=4).units_per_person == 12  # ⌈12/5⌉


def test_expected_units_follow_from_the_population():
    assert weighted(2).expected_units == 800 and domain(2, expected_rows=7).expected_units == 7


# --- weighted totals are unbiased


@settings(deadline=None, max_examples=8)
@given(st.lists(st.floats(*BOUNDS), min_size=1, max_size=6))
def test_over_all_lots_a_rounded_count_is_the_sum_of_the_weights_exactly(found):
    """The mean of ⌊(s + u)/10⁶⌋ over all u is s/10⁶, and no u moves it by a whole unit."""
    of = weighted(2)
    total = int(weights.millionths(np.array(found), of.weighing).sum())
    every = (total + np.arange(MILLIONTHS)) // MILLIONTHS
    assert every.sum() == total and every.min() == total // MILLIONTHS and every.max() == -(-total // MILLIONTHS)
    assert total * float(of.weighing.step) / MILLIONTHS == pytest.approx(sum(found), rel=1e-5)


@pytest.mark.whole
def test_weighted_totals_are_unbiased_over_keys_and_noise():
    """Means over many keys and noises of what is measured, in people, against the weighted totals of the records."""
    of = weighted(2, 3)
    codes, weight = surveyed(of)
    plan, step, trials = make_plan(release(of, METHODS["tree"])), float(of.weighing.step), 300
    truth = np.array([weight[(codes == cell).all(axis=1)].sum() for cell in np.ndindex(2, 3)])
    found = np.zeros((trials, 6))
    for trial in range(trials):
        counts = count_units(codes, weight, of, key_of(trial))
        found[trial] = step * run_noise(of, plan, counts, trial)
    error = found.std(axis=0, ddof=1) / np.sqrt(trials)
    assert (np.abs(found.mean(axis=0) - truth) < 4 * error).all()
    raw = np.array([len(codes[(codes == cell).all(axis=1)]) for cell in np.ndindex(2, 3)]) * weight.mean()
    assert (np.abs(raw - truth) > 4 * error).any()  # a count of records, scaled up, is another number


def run_noise(of: Domain, plan, counts: Counts, seed: int) -> np.ndarray:
    """The noisy counts of all cells: the leaves of a tree."""
    from steps_engine.methods.tree.sanitize import sanitize
    from steps_engine.methods.tree.structure import build_tree

    tree = build_tree(of, plan, None, None)
    return sanitize(tree, counts, plan, SeededRandomness(("weights", seed))).layers[-1][0]


def test_synthetic_rows_have_the_weight_and_add_up_to_the_population():
    of = weighted(2, 3)
    made = run(release(of, METHODS["tree"], "50"), count_units(*surveyed(of), of, PUBLIC_KEY), SeededRandomness("rows"))
    (rows,) = made.frames
    assert list(rows.columns) == ["x0", "x1", "w"] and (rows["w"] == 5).all()
    assert rows["w"].sum() == pytest.approx(surveyed(of)[1].sum(), rel=0.02)
    plain = of.self_weighting()
    made = run(release(plain, METHODS["tree"], "50"), count_units(*surveyed(of), of, PUBLIC_KEY), SeededRandomness("rows"))
    assert list(made.frames[0].columns) == ["x0", "x1"]


def test_counts_do_not_depend_on_the_order_of_records():
    of = weighted(3, 3)
    codes, weight = surveyed(of)
    order = np.random.default_rng(9).permutation(len(codes))
    assert as_dict(count_units(codes, weight, of, PUBLIC_KEY)) == as_dict(
        count_units(codes[order], weight[order], of, PUBLIC_KEY)
    )


def test_a_frame_is_counted_by_its_weights():
    of = weighted(2, 3)
    codes, weight = surveyed(of)
    frame = pd.DataFrame({"x0": codes[:, 0], "w": weight, "x1": codes[:, 1]})
    assert as_dict(count_frame(frame, of)) == as_dict(count_units(codes, weight, of, PUBLIC_KEY))
    for bad in (np.nan, -1.0, 12.5, 0.5):
        with pytest.raises(DataInvalid, match="weights"):
            count_frame(frame.assign(w=[bad, *weight[1:]]), of)


# --- what one person changes


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_person_changes_rounded_counts_by_no_more_than_units_per_person(data):
    """Whatever the lots: never down, and in total by at most rows_per_person·⌈high/step⌉."""
    step = data.draw(st.sampled_from(["5", "0.7", "12", "2.4", "1"]))
    of = weighted(2, 2, rows=3, step=step)
    cell = st.tuples(st.integers(0, 1), st.integers(0, 1))
    others = data.draw(st.lists(st.tuples(cell, st.floats(*BOUNDS)), max_size=6))
    mine = data.draw(st.lists(st.tuples(cell, st.floats(*BOUNDS) | st.just(12.0)), min_size=1, max_size=3))
    key = data.draw(st.binary(min_size=32, max_size=32))
    before, after = (counts_of(records, of, key) for records in (others, others + mine))
    change = {at: after.get(at, 0) - before.get(at, 0) for at in {*before, *after}}
    assert all(moved >= 0 for moved in change.values())
    assert sum(change.values()) <= of.units_per_person


def counts_of(records: list, of: Domain, key: bytes) -> dict[tuple[int, ...], int]:
    codes = np.array([at for at, _ in records]).reshape(-1, 2)
    return as_dict(count_units(codes, np.array([weight for _, weight in records], dtype=float), of, key))


def worst(of: Domain, rows: int, heaviest: float, replaced: bool) -> tuple[Counts, Counts]:
    """A person's rows in one cell, all of the highest weight, gone or replaced; by the lots that move counts furthest."""
    codes, weight = surveyed(of)
    last = np.array(of.sizes) - 1
    here = tuple((last // 2).tolist())
    gone, come = np.tile(here, (rows, 1)), np.tile(last, (rows, 1))
    mine = np.full(rows, heaviest)
    tries = []
    for number in range(40):
        key = key_of(number)
        there = count_units(np.vstack([codes, gone]), np.append(weight, mine), of, key)
        other = (np.vstack([codes, come]), np.append(weight, mine)) if replaced else (codes, weight)
        tries.append((there, count_units(*other, of, key)))
    return max(tries, key=lambda pair: as_dict(pair[0])[here] - as_dict(pair[1]).get(here, 0))


def loss_of(evidence) -> float:
    if isinstance(evidence, Count):
        return float(abs(evidence.shift) / evidence.scale)
    if isinstance(evidence, Vector):
        return float(max(map(abs, evidence.shift)) / evidence.scale)
    one, other = evidence.chances()
    return float(np.abs(np.log(one / other)).max())


def lost(of: Domain, plan, heaviest: float = 12.0) -> float:
    """In ε, over the draws that tell the worst pair apart."""
    pair = worst(of, plan.rows_per_person, heaviest, plan.neighbours == "substitute")
    return sum(loss_of(evidence) for each in met(of, plan, *pair, 0) for evidence in each.evidence)


@pytest.mark.whole
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("neighbours", ["add_remove", "substitute"])
def test_weights_cost_no_more_than_is_charged(name, neighbours):
    of = counted_by(name, rows=2)
    plan = make_plan(release(of, METHODS[name], neighbours=neighbours))
    assert lost(of, plan) <= 1 + 1e-9
    if name == "tree":  # and all of it is reached where the step divides the highest weight
        whole = counted_by(name, rows=2, step=4)
        assert lost(whole, make_plan(release(whole, METHODS[name], neighbours=neighbours))) == pytest.approx(1)
    in_rho = make_plan(release(of, METHODS[name], "6", neighbours=neighbours, delta=Decimal("1e-9")))
    pair = worst(of, 2, 12.0, neighbours == "substitute")
    assert keeps([e for each in met(of, in_rho, *pair, 0) for e in each.evidence], Fraction(in_rho.cost))


@pytest.mark.whole
@pytest.mark.parametrize("neighbours", ["add_remove", "substitute"])
def test_every_table_of_places_meets_a_weighted_person_at_its_whole_price(neighbours):
    """Where the step divides the highest weight, all units of both rows lie in one place of every level."""
    of = counted_by("places", rows=2, step=4)
    plan = make_plan(release(of, METHODS["places"], neighbours=neighbours))
    found = met(of, plan, *worst(of, 2, 12.0, neighbours == "substitute"), 0)
    of_places = [each for each in found if is_of_places(each.draw)]
    assert len(of_places) == sum(map(is_of_places, plan.draws)) > 3
    assert all(sum(map(loss_of, each.evidence)) == pytest.approx(float(each.draw.cost)) for each in of_places)


@pytest.mark.whole
@pytest.mark.parametrize("name", ["tree", "places"])
def test_a_row_that_is_paid_for_as_one_unit_is_caught(name, monkeypatch):
    monkeypatch.setattr(Weighing, "units_per_row", 1)
    plan = make_plan(release(counted_by(name, rows=2), METHODS[name]))
    monkeypatch.undo()
    assert lost(counted_by(name, rows=2), plan) > 2


@pytest.mark.whole
@pytest.mark.parametrize("name", ["tree", "places"])
def test_a_weight_that_is_counted_beyond_the_bound_is_caught(name, monkeypatch):
    of = counted_by(name, rows=2)
    plan = make_plan(release(of, METHODS[name]))
    monkeypatch.setattr(
        weights, "millionths", lambda found, weighing: np.floor(found * weighing.per_weight + 0.5).astype(np.int64)
    )
    assert lost(of, plan, heaviest=36.0) > 2


@pytest.mark.whole
def test_as_many_units_as_a_person_may_count_as_can_be_planned_and_drawn():
    of = weighted(3, 3, step="0.0012")
    plans = {name: make_plan(release(of, METHODS[name])) for name in METHODS if name != "places"}
    plans["places"] = make_plan(release(counted_by("places", step="0.0012"), METHODS["places"]))
    assert {plan.units_per_person for plan in plans.values()} == {10_000}
    noisy = run_noise(of, plans["tree"], count_units(*surveyed(of), of, PUBLIC_KEY), 1)
    assert abs(noisy.sum() * 0.0012 / surveyed(of)[1].sum() - 1) < 0.2


# --- intervals of a weighted mean


def test_the_inflation_bounds_sampling_and_rounding():
    """high/step of the weights, and of rounding 1, or a quarter of step/low where that is less."""
    assert weighted(2).weighing.inflation == Fraction(12, 5) + 1
    assert weighted(2, step="1").weighing.inflation == Fraction(12) + Fraction(1, 4)
    assert weighted(2, step="1", design_effect=Decimal("1.5")).weighing.inflation == Fraction(15, 2) + Fraction(1, 4)
    assert domain(2).inflation == 1.0
