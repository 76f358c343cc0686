"""Pairs are shrunk towards what louder ones imply of them."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from schemas.spec.domain import Domain
from schemas.spec.method import method_spec
from steps_engine.domain.counting import count_codes
from steps_engine.methods.pairs.estimate import estimate
from steps_engine.methods.pairs.implied import estimated, implied
from steps_engine.methods.pairs.measure import build, sanitize
from steps_engine.methods.pairs.structure import Structure
from steps_engine.methods.planning import make_plan
from steps_engine.noise import SeededRandomness
from tests.steps_engine.shapes import release

SIZE, ROWS, NAMES = 6, 4000, "abcd"
CHAIN = Domain.model_validate(
    {
        "name": "chain",
        "population": "simulated",
        "expected_rows": ROWS,
        "attributes": tuple(
            {"name": name, "kind": "categorical", "categories": tuple(str(k) for k in range(SIZE))} for name in NAMES
        ),
    }
)


def chain(follows: float, seed: int) -> np.ndarray:
    """Each attribute is the one before it with this probability, and any otherwise: a and d go together through b and c."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, SIZE, (ROWS, len(NAMES)))
    for j in range(1, len(NAMES)):
        kept = rng.random(ROWS) < follows
        codes[kept, j] = codes[kept, j - 1]
    return codes


def measured(codes: np.ndarray, seed: int, epsilon: str = "1", sets: dict | None = None) -> tuple[Structure, list[np.ndarray]]:
    method = method_spec(decomposition="pairs", pairs="all", **({"sets": sets} if sets else {}))
    plan = make_plan(release(CHAIN, method, epsilon, delta=Decimal("1e-9")))
    counts, randomness = count_codes(codes), SeededRandomness(seed)
    structure = build(CHAIN, plan, counts, randomness)
    return sanitize(structure, counts, randomness)


def share(codes: np.ndarray, pair: tuple[int, int], structure: Structure) -> np.ndarray:
    grouped = [structure.group[j][codes[:, j]] for j in pair]
    shape = structure.shape(pair)
    return np.bincount(grouped[0] * shape[1] + grouped[1], minlength=shape[0] * shape[1]).reshape(shape) / len(codes)


@pytest.mark.whole
def test_ends_of_a_chain_are_known_better_by_what_it_implies():
    """The control is the estimate that shrinks towards independence."""
    with_, without = [], []
    for seed in range(6):
        codes = chain(0.75, seed)
        structure, noisy = measured(codes, seed)
        for found, errors in (
            (estimated(structure, noisy, 1, SeededRandomness(seed)), with_),
            (estimate(structure, noisy, 0, None), without),
        ):
            errors.append(np.abs(found.pairs[0, 3] - share(codes, (0, 3), structure)).sum() / 2)
    assert np.mean(with_) < 0.8 * np.mean(without)


def test_a_tie_of_its_own_is_not_taken_for_implied():
    """Beside a chain, a and d agree in every second row: no chain implies that."""
    codes = chain(0.5, 1)
    codes[::2, 3] = codes[::2, 0]
    structure, noisy = measured(codes, 1, epsilon="5")
    assert (0, 3) not in implied(structure, noisy, 0, SeededRandomness(1))
    found = estimated(structure, noisy, 1, SeededRandomness(1))
    assert np.abs(found.pairs[0, 3] - share(codes, (0, 3), structure)).sum() / 2 < 0.03


def test_attributes_that_go_with_nothing_imply_independence():
    codes = chain(0.0, 2)
    structure, noisy = measured(codes, 2)
    quiet = implied(structure, noisy, 0, SeededRandomness(2))
    assert len(quiet) == 3, "all that are not in the tree"
    for pair, table in quiet.items():
        independent = np.outer(*(share(codes, pair, structure).sum(axis=1 - axis) for axis in (0, 1)))
        assert np.abs(table - independent).sum() / 2 < 0.08


def test_sets_that_share_a_measurement_are_draws_as_before():
    structure, noisy = measured(chain(0.75, 3), 3, sets={"count": 3, "budget": "shared"})
    one = estimated(structure, noisy, 1, SeededRandomness(9))
    other = estimate(structure, noisy, 0, SeededRandomness(9))
    assert all(np.array_equal(a, b) for a, b in zip(one.tables, other.tables, strict=True))


@pytest.mark.parametrize("which_set", [1, 2])
def test_split_sets_follow_their_own_measurement(which_set):
    structure, noisy = measured(chain(0.75, 4), 4, sets={"count": 2, "budget": "split"})
    found = estimated(structure, noisy, which_set, SeededRandomness(5))
    assert found.total == estimate(structure, noisy, which_set - 1, None).total
