"""Rows in blocks: none is larger than a block, each is the same whoever makes it, and together they keep what was measured."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from schemas.contents import content_hash
from steps_engine.domain import blocks as domain_blocks
from steps_engine.domain.blocks import blocks_of, ends_of_blocks, one_way_counts
from steps_engine.domain.counting import Counts
from steps_engine.domain.records import codes_of
from steps_engine.methods.after_noise import Drawn
from steps_engine.methods.blocks import in_blocks, stream_of, together
from steps_engine.methods.pairs import measure
from steps_engine.methods.planning import make_plan
from steps_engine.methods.registry import method_of
from steps_engine.noise import Randomness, SeededRandomness, uniform
from tests.tasks.publishing.making import POLL, some_counts
from tests.tasks.verify.methods import release_of, tables_of

ROWS = 4003


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(domain_blocks, "BLOCK", 500)
    return 500


def drawn_of(name: str = "pairs", epsilon: str = "100") -> Drawn:
    release = release_of(name, sets={"count": 2, "budget": "shared"}, epsilon=epsilon)
    plan = make_plan(release, SeededRandomness(1))
    made = tables_of(release.domain, plan, some_counts(release.domain, ROWS))
    return Drawn(release.domain, plan, made["tree"], made["noisy-counts"])


def some(part: slice, randomness: Randomness) -> pa.Table:
    return pa.table({"x": uniform(part.stop - part.start, randomness)})


def test_one_block_is_the_sets_own_stream_and_several_are_not_it_cut():
    whole = together(in_blocks(some, 40, SeededRandomness(1)))
    assert whole == some(slice(0, 40), SeededRandomness(1))
    with pytest.MonkeyPatch.context() as small:
        small.setattr(domain_blocks, "BLOCK", 10)
        parts = in_blocks(some, 40, SeededRandomness(1))
    assert [block.rows for block in parts] == [10] * 4
    assert len({content_hash(block.make()) for block in parts}) == 4
    assert together(parts) != whole


@pytest.mark.whole
def test_blocks_can_be_made_in_any_order_and_twice(small_blocks):
    drawn = drawn_of()
    method = method_of(drawn.plan)
    consistent = drawn.correct(method)
    forth, back = drawn.blocks(method, consistent, 1), drawn.blocks(method, consistent, 1)
    backwards = [block.make() for block in reversed(back)][::-1]
    assert pa.concat_tables(backwards) == together(forth) == drawn.synthesize(method, consistent, 1)
    assert len(forth) > 5 and max(block.rows for block in forth) <= small_blocks
    assert all(block.make().num_rows == block.rows for block in forth[:2])


@pytest.mark.whole
def test_sets_of_several_blocks_keep_margins_far_better_than_as_many_independent_rows_would(small_blocks):
    """Each block leaves about a row in a cell to chance, so all of them √B; independent rows leave √(n·p·(1 − p))."""
    drawn = drawn_of()
    method = method_of(drawn.plan)
    consistent = drawn.correct(method)
    apart = [one_way_counts(drawn.synthesize(method, consistent, number), POLL) for number in (1, 2)]
    with pytest.MonkeyPatch.context() as large:
        large.setattr(domain_blocks, "BLOCK", 2**20)
        whole = [one_way_counts(drawn.synthesize(method, consistent, number), POLL) for number in (1, 2)]

    def off(found: list[list[np.ndarray]]) -> float:
        pairs = zip(found, whole, strict=True)
        return float(np.sqrt(np.mean([np.concatenate([(a - b) ** 2 for a, b in zip(*each, strict=True)]) for each in pairs])))

    rng = np.random.default_rng(1)
    chance = [[rng.multinomial(int(counts.sum()), counts / counts.sum()) for counts in each] for each in whole]
    assert off(apart) <= 2 * np.sqrt(len(drawn.blocks(method, consistent, 1)))
    assert off(chance) > 2 * off(apart)  # control


@pytest.mark.parametrize("name", ["given", "cascade", "privbayes"])
def test_every_method_gives_the_rows_that_it_counts_in_blocks(small_blocks, name: str):
    drawn = drawn_of(name)
    method = method_of(drawn.plan)
    found = drawn.blocks(method, drawn.correct(method), 1)
    assert len(found) > 5 and max(block.rows for block in found) <= small_blocks
    with pytest.MonkeyPatch.context() as large:
        large.setattr(domain_blocks, "BLOCK", 2**20)
        whole = drawn.synthesize(method, drawn.correct(method), 1)
    assert (codes_of(together(found), POLL) == codes_of(whole, POLL)).all()  # codes are one draw, values of their bins another


def test_a_method_that_gives_a_whole_table_gives_one_block(small_blocks):
    drawn = drawn_of("given")
    method = method_of(drawn.plan)
    alone = SimpleNamespace(synthesize=method.synthesize)
    (only,) = drawn.blocks(alone, drawn.correct(method), 1)
    assert only.make().num_rows == only.rows > small_blocks


def test_exact_tables_of_blocks_add_up_to_those_of_all_cells():
    counts = some_counts(POLL, ROWS)

    class Apart(Counts):
        def blocks(self):
            yield from (Counts(self.codes[i : i + 7], self.count[i : i + 7]) for i in range(0, len(self.count), 7))

    plan = make_plan(release_of("pairs"), SeededRandomness(1))
    method, apart = method_of(plan), Apart(counts.codes, counts.count)
    made = [method.build(POLL, plan, each, SeededRandomness(2)) for each in (counts, apart)]
    assert made[0] == made[1]
    noisy = [method.sanitize(POLL, plan, each, made[0], SeededRandomness(3)) for each in (counts, apart)]
    assert noisy[0] == noisy[1]
    with pytest.MonkeyPatch.context() as forgetful:  # control: the first block alone counts otherwise
        forgetful.setattr(Apart, "blocks", lambda self: iter([Counts(self.codes[:7], self.count[:7])]))
        assert measure._one_way(apart, POLL.sizes)[0] < measure._one_way(counts, POLL.sizes)[0]


def test_blocks_of_a_table_are_its_rows_in_order(small_blocks):
    table = pa.table({"a": np.arange(1201), "b": np.arange(1201) % 7})
    assert [len(block) for block in blocks_of(table)] == [500, 500, 201]
    assert pa.concat_tables(blocks_of(table, ["b"])) == table.select(["b"])
    assert [len(block) for block in blocks_of(table.slice(0, 0))] == [0]
    assert ends_of_blocks(0) == [0, 0] and ends_of_blocks(501) == [0, 250, 501]


def test_labels_are_looked_up_by_dictionary_as_they_are_by_text(small_blocks):
    drawn = drawn_of("given")
    records = drawn.synthesize(method_of(drawn.plan), drawn.correct(method_of(drawn.plan)), 1)
    texts = records.set_column(0, "voted", records["voted"].cast(pa.string()))
    mixed = pa.concat_tables([records.slice(0, 100), records.slice(100)])
    assert (codes_of(texts, POLL) == codes_of(records, POLL)).all() and (codes_of(mixed, POLL) == codes_of(records, POLL)).all()
    strange = records.set_column(0, "voted", pa.array(["perhaps"] * len(records)).dictionary_encode())
    assert (codes_of(strange, POLL)[:, 0] == -1).all()


def test_a_stream_of_its_own_begins_anew_for_whoever_asks():
    """So that threads which share what blocks have in common take nothing from each other, and what comes after stays the same."""
    source, untouched = SeededRandomness(1), SeededRandomness(1)
    stream = stream_of(source)
    first, second = (stream().words(4, np.uint64) for _ in range(2))
    assert (first == second).all()
    one = stream()  # the control: a stream that was taken from goes on
    assert (one.words(4, np.uint64) != one.words(4, np.uint64)).any()
    stream_of(untouched)
    assert (source.words(4, np.uint64) == untouched.words(4, np.uint64)).all()
