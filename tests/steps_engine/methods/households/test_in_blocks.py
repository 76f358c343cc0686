"""Households in blocks: keys go on, rules and numbers hold, what was measured is kept, and no more than some are held."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from schemas.tables import SYNTHETIC
from steps_engine.domain import blocks as domain_blocks
from steps_engine.domain.linked_records import link_problems, member_table
from steps_engine.domain.records import codes_of
from steps_engine.methods.after_noise import Drawn
from steps_engine.methods.households import synthesize
from steps_engine.methods.households.synthesize import some_members
from steps_engine.methods.run_in_memory import Synthetic, run
from steps_engine.noise import SeededRandomness
from tasks.verify.records import record_problems
from tests.steps_engine.methods.households.small import counted, domain, release
from tests.steps_engine.methods.households.test_households import RULES, lawful

OF = domain(rules=RULES)
BLOCK, MEMBERS = 150, 100


@pytest.fixture(scope="module")
def made() -> Synthetic:
    return run(release(OF, epsilon=50), counted(OF, lawful(600)), SeededRandomness(3))


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domain_blocks, "BLOCK", BLOCK)
    monkeypatch.setattr(synthesize, "AT_A_TIME", MEMBERS)


def parts_of(made: Synthetic) -> list[dict[str, pa.Table]]:
    drawn, consistent = Drawn(OF, made.plan, made.tables["tree"], made.tables["noisy-counts"]), made.tables["consistent-counts"]
    return list(drawn.linked(made.method, consistent, drawn.blocks(made.method, consistent, 1), 1))


@pytest.mark.whole
def test_sets_of_several_blocks_are_whole_and_the_same_again(made, small_blocks):
    parts = parts_of(made)
    rows, household, person = (pa.concat_tables(part[kind] for part in parts) for kind in (SYNTHETIC, "household", "person"))
    assert len(parts) > len(rows) / BLOCK and max(len(part[SYNTHETIC]) for part in parts) <= BLOCK
    assert max(len(part["person"]) - len(part[SYNTHETIC]) for part in parts) <= MEMBERS + 3  # a household stays together
    assert household["household"].to_pylist() == list(range(1, len(rows) + 1)) and not list(link_problems(OF, rows, person))
    assert not list(record_problems(OF.counted, member_table(OF, rows, person), None, OF.member_conditionals))
    again = parts_of(made)
    assert all(one[kind].equals(other[kind]) for one, other in zip(parts, again, strict=True) for kind in one)
    assert not rows.equals(made.tables["synthetic-1"])  # other rows than those of one block, as by pairs


@pytest.mark.whole
def test_blocks_keep_what_was_measured_of_members_as_one_does(made, small_blocks):
    """Each part agrees up to chance: all of them together are about as near to the tables as a set that is made at once."""
    sizes, places = OF.counted.sizes, [OF.counted.index(name) for name in ("reference_grade", "relation", "grade")]
    shape = [sizes[j] for j in places]

    def shares(rows: pa.Table, person: pa.Table) -> np.ndarray:
        codes = codes_of(member_table(OF, rows, person), OF.counted)[:, places]
        return np.bincount(np.ravel_multi_index(codes.T, shape), minlength=np.prod(shape)) / len(codes)

    parts = parts_of(made)
    in_blocks = shares(*(pa.concat_tables(part[kind] for part in parts) for kind in (SYNTHETIC, "person")))
    at_once = shares(made.tables["synthetic-1"], made.tables["person-1"])
    assert np.abs(in_blocks - at_once).sum() / 2 < 0.04


def test_members_are_taken_some_at_a_time_and_households_stay_whole(monkeypatch):
    monkeypatch.setattr(synthesize, "AT_A_TIME", 5)
    rows = pa.table({"n_person": [4, 1, 3, 4, 2, 1, 1, 4]})  # 12 other members
    parts = list(some_members(OF, rows))
    assert pa.concat_tables(parts).equals(rows) and [len(part) for part in parts] == [2, 2, 4]
    alone = pa.table({"n_person": [1, 1, 1]})
    assert [len(part) for part in some_members(OF, alone)] == [3]
