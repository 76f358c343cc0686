"""Rows of several blocks: few sweeps from angles in common, and no further from the tables than a block that was fitted alone."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from schemas.spec.method import method_spec
from steps_engine.domain.blocks import BLOCK
from steps_engine.domain.counting import count_codes
from steps_engine.inference.reweighting import tables_of
from steps_engine.methods.pairs import rows_in_blocks, synthesize
from steps_engine.methods.pairs.estimate import estimate
from steps_engine.methods.pairs.plan import _seconds
from steps_engine.methods.pairs.rows_in_blocks import InCommon
from steps_engine.methods.pairs.synthesize import codes_of
from steps_engine.methods.pairs.tables import read_measured
from steps_engine.methods.run_in_memory import run
from steps_engine.noise import SeededRandomness
from tests.steps_engine.shapes import domain, release

ROWS, BLOCKS = 4096, 6
COMMON = partial(SeededRandomness, 4)


@pytest.fixture(scope="module")
def measured():
    """Attributes that depend on several others, which no spanning tree has, and hardly any noise."""
    of, drawn = domain(*[4] * 10, expected_rows=ROWS * BLOCKS), np.random.default_rng(3)
    codes = drawn.integers(0, 4, (ROWS * BLOCKS, 10))
    for j in range(3, 10):
        for back in (1, 2, 3):
            copied = drawn.random(len(codes)) < 0.3
            codes[copied, j] = codes[copied, j - back]
    asked = release(of, method_spec(decomposition="pairs", pairs="all"), "1000")
    released = run(asked, count_codes(codes), SeededRandomness(0))
    structure, noisy = read_measured(of, released.plan, released.tables)
    return structure, estimate(structure, noisy, 0, None)


@pytest.fixture(autouse=True)
def _a_base_is_as_large_as_a_block(monkeypatch):
    monkeypatch.setattr(synthesize, "LARGEST_BASE", ROWS)


def off(structure, found, codes: np.ndarray) -> float:
    made = tables_of(np.asfortranarray(codes), structure.sizes, structure.tables, np.ones(len(codes)))
    return float(np.mean([np.abs(a - b).sum() / 2 for a, b in zip(made, found.tables, strict=True)]))


@pytest.mark.whole
def test_blocks_from_angles_in_common_keep_the_tables_as_blocks_that_are_fitted_alone_do(measured):
    structure, found = measured
    shared = InCommon(structure, found, COMMON, ROWS)
    together, alone = (
        off(structure, found, np.concatenate([make(ROWS, SeededRandomness(i)) for i in range(BLOCKS)]))
        for make in (shared.agreeing, lambda rows, more: codes_of(structure, found, rows, more))
    )
    assert together < 1.15 * alone


def test_without_the_angles_so_few_sweeps_are_not_enough(measured, monkeypatch):
    """The control of the test above, of what the base's weights bring alone: nothing is weighed again."""
    structure, found = measured
    for name, sweeps in (("BEGUN", 1), ("AGAIN", 0), ("BACK", ())):
        monkeypatch.setattr(rows_in_blocks, name, sweeps)
    shared, cold = (InCommon(structure, found, COMMON, ROWS) for _ in range(2))
    vars(cold)["angles"] = [np.zeros(table.shape) for table in found.tables]
    warm, without = (
        off(structure, found, np.concatenate([each.agreeing(ROWS, SeededRandomness(i)) for i in range(BLOCKS)]))
        for each in (shared, cold)
    )
    assert warm < 0.7 * without


def test_a_block_follows_from_its_stream_and_the_seed_in_common(measured):
    structure, found = measured
    first, second = (InCommon(structure, found, COMMON, ROWS) for _ in range(2))
    second.agreeing(ROWS, SeededRandomness(9))  # whoever made another block before
    rows = first.agreeing(ROWS, SeededRandomness(1))
    assert (rows == second.agreeing(ROWS, SeededRandomness(1))).all()
    assert (rows != replace(first, stream=partial(SeededRandomness, 5)).agreeing(ROWS, SeededRandomness(1))).any()  # control


def test_a_plan_tells_that_blocks_after_the_first_are_cheaper():
    one, ten = (_seconds(number * BLOCK, (4,) * 100, 4950, 1) for number in (1, 10))
    assert ten < 0.6 * 10 * one  # sweeps, not drawing and writing, are most of it
    few, many = (_seconds(number * BLOCK, (4,) * 100, 0, 1) - 3 for number in (1, 10))
    assert many > 0.6 * 10 * few  # control: where there are no tables
