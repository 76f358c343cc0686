"""What a model sees of a set that is not in memory: the same rows, the distinct ones with how often they stand there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from schemas.spec.domain import Domain
from steps_engine.analyses.questions import model_question
from steps_engine.analyses.seen import Seen, seen_of
from steps_engine.evaluation.regression import Model, fit

OF = Domain.model_validate(
    {
        "name": "d",
        "population": "p",
        "attributes": (
            {"name": "voted", "kind": "categorical", "categories": ("no", "yes"), "missing": "category"},
            {"name": "region", "kind": "categorical", "categories": ("n", "s", "empty")},
            {"name": "age", "kind": "integer", "bounds": (18, 29)},
            {"name": "wage", "kind": "numeric", "bounds": (0, 21), "bins": 3},
        ),
    }
)
ROWS = 3000


@dataclass(frozen=True)
class InBlocks:
    """A table that comes so many rows at a time."""

    whole: pa.Table
    each: int

    @property
    def num_rows(self) -> int:
        return len(self.whole)

    def blocks(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        chosen = self.whole if columns is None else self.whole.select(columns)
        return (chosen.slice(first, self.each) for first in range(0, max(1, len(chosen)), self.each))


def people(rows: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(1)
    age, region = rng.integers(18, 30, rows), np.array(["n", "s"])[rng.integers(2, size=rows)]
    voted = np.array(["no", "yes", None])[np.where(rng.random(rows) < 0.05, 2, rng.random(rows) < 0.3 + 0.02 * (age - 18))]
    return pa.table(
        {
            "voted": pa.array(voted, pa.string()).dictionary_encode(),
            "region": pa.array(region).dictionary_encode(),
            "age": age,
            "wage": rng.random(rows) * 21,
        }
    )


def seen(formula: str, kind: Any, records: Any, where: dict[str, tuple[str, ...]] | None = None, **most: int) -> Seen:
    return seen_of(model_question(formula, kind, where or {}, OF), OF, records, **most)


MODELS = [
    ("voted ~ age + region", "logistic", {}),
    ("voted ~ C(age) * region", "logistic", {}),
    ("age ~ region + voted", "linear", {}),
    ("age ~ 1", "linear", {}),
    ("wage ~ age", "linear", {"region": ("n",)}),
]


@pytest.mark.parametrize(("formula", "kind", "where"), MODELS, ids=[formula for formula, *_ in MODELS])
@pytest.mark.parametrize("each", [pytest.param(7, marks=pytest.mark.whole), 1000, ROWS - 1])
def test_a_set_in_blocks_is_fitted_as_one_in_memory(formula, kind, where, each):
    whole, parts = (seen(formula, kind, records, where) for records in (people(), InBlocks(people(), each)))
    assert whole.weight is None and parts.weight is not None and parts.rows == whole.rows == len(whole.frame)
    assert parts.fulfilling == whole.fulfilling and parts.read == whole.read == ROWS
    assert parts.frame.dtypes.equals(whole.frame.dtypes), "every category is a column, whether somebody has it or not"
    one, other = (fit(Model("m", formula, kind), each.frame, each.weight) for each in (whole, parts))
    assert one.names == other.names
    for name in ("value", "variance", "freedom", "separated"):
        np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-8, atol=1e-10)


def test_no_more_is_held_than_rows_that_differ():
    parts = seen("voted ~ age + region", "logistic", InBlocks(people(), 100))
    assert len(parts.frame) == 2 * 2 * 12 and len(parts.frame) == len(parts.frame.drop_duplicates())


def test_where_too_many_differ_the_first_rows_are_taken_and_counted():
    """A number with decimals is another one in every row."""
    found = seen("wage ~ age", "linear", InBlocks(people(), 100), most=550)
    assert found.read == 600 and found.rows == 600 == len(found.frame)
    assert seen("voted ~ age", "logistic", InBlocks(people(), 100), most=550).read == ROWS  # few differ: all are seen


def test_what_is_held_stays_bounded_while_rows_are_read(monkeypatch):
    """Joined before they are more than twice as many as differ, and never more than that."""
    from steps_engine.analyses import seen as module

    joined, real = list[int](), module._distinct
    monkeypatch.setattr(module, "_distinct", lambda frame: joined.append(len(frame)) or real(frame))
    seen("voted ~ age", "logistic", InBlocks(people(), 30), most=100)
    assert max(joined) <= 100 + 30


def test_of_a_set_without_rows_that_fulfil_the_condition_none_are_counted():
    for records in (people(), InBlocks(people(), 500), people(0)):
        assert seen("age ~ voted", "linear", records, {"region": ("empty",)}).fulfilling == 0
