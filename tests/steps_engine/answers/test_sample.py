"""More rows from what was published: the same for one seed, of any number, under conditions, and honest where these are rare."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from schemas.errors import SpecError
from steps_engine.answers import sample
from steps_engine.answers.sample import Sampling
from steps_engine.domain.cells import Space
from steps_engine.domain.counting import Counts
from steps_engine.domain.records import codes_of
from steps_engine.methods.run_in_memory import Synthetic, run
from steps_engine.noise import SeededRandomness
from tests.tasks.publishing.making import POLL, a_release, some_counts

METHODS = {
    "tree": {"decomposition": "tree", "order": ("voted", "age")},
    "pairs": {"decomposition": "pairs"},
    "cascade": {"decomposition": "cascade"},
    "privbayes": {"decomposition": "privbayes"},
}


@pytest.fixture(scope="module", params=["tree", "pairs", "cascade", "privbayes"])
def made(request) -> Synthetic:
    release = a_release(POLL, {**METHODS[request.param], "sets": {"count": 2, "budget": "shared"}}, epsilon="5")
    return run(release, some_counts(POLL, 2000), SeededRandomness(3))


def sampling(made: Synthetic, kept=None, seed: int = 0) -> Sampling:
    return Sampling(made.domain, made.plan, made.tables, kept or {}, seed)


def records(asked: Sampling, rows: int, number: int = 1) -> pa.Table:
    return pa.concat_tables(asked.blocks(number, rows))


def test_rows_are_as_many_as_asked_keep_the_rules_and_follow_the_counts(made: Synthetic):
    for rows in (10, 5000):
        codes = codes_of(records(sampling(made), rows), POLL)
        assert len(codes) == rows and (codes >= 0).all()
        assert np.isin(Space(POLL).cells(codes), Space(POLL).allowed()).all()
    published = codes_of(made.tables["synthetic-1"], POLL)
    for j, size in enumerate(POLL.sizes):
        shares = [np.bincount(each[:, j], minlength=size) / len(each) for each in (codes, published)]
        assert np.abs(shares[0] - shares[1]).max() < 0.06


def test_one_seed_makes_the_same_rows_and_another_others(made: Synthetic):
    first = records(sampling(made, seed=1), 300)
    assert first.equals(records(sampling(made, seed=1), 300))
    assert not first.equals(records(sampling(made, seed=2), 300))
    assert not first.equals(records(sampling(made, seed=1), 300, number=2))


def test_conditional_rows_all_fulfil_the_condition(made: Synthetic, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sample, "FIRST", 256)
    codes = codes_of(records(sampling(made, {0: (1,), 2: (0, 2)}), 700), POLL)
    assert len(codes) == 700 and (codes[:, 0] == 1).all() and np.isin(codes[:, 2], (0, 2)).all()


def test_more_sets_than_were_published_differ(made: Synthetic):
    sets = [codes_of(records(sampling(made), 400, number), POLL) for number in (1, 2, 3, 7)]
    assert len({each.tobytes() for each in sets}) == 4


def test_blocks_stay_small_however_many_rows_are_asked(made: Synthetic, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sample, "BLOCK", 256)
    sizes = [len(block) for block in sampling(made).blocks(1, 1000)]
    assert sizes == [250] * 4


def test_a_rare_condition_is_told_with_how_rare_it_is(monkeypatch: pytest.MonkeyPatch):
    release = a_release(POLL, {"decomposition": "pairs", "sets": {"count": 2, "budget": "shared"}}, epsilon="5")
    made = run(release, some_counts(POLL, 2000), SeededRandomness(3))
    for name, value in (("FIRST", 256), ("BLOCK", 1024), ("MOST_DRAWN", 4096), ("TIMES", 1)):
        monkeypatch.setattr(sample, name, value)
    with pytest.raises(SpecError, match=r"of 256 rows of set 1 fulfil the condition: 100,000 such rows would take too long"):
        records(sampling(made, {0: (1,)}), 100_000)
    nobody = sampling(made, {1: (0,), 0: (1,)})  # which the rule excludes, so that no row ever does
    with pytest.raises(SpecError, match="nothing fulfils the condition among"):
        records(nobody, 10)


def test_a_tree_says_that_no_row_of_its_table_fulfils_a_condition():
    release = a_release(POLL, {**METHODS["tree"], "sets": {"count": 2, "budget": "shared"}}, epsilon="5")
    made = run(release, some_counts(POLL, 2000), SeededRandomness(3))
    with pytest.raises(SpecError, match="nothing fulfils the condition in set 1"):
        records(sampling(made, {1: (0,), 0: (1,)}), 10)


def test_a_set_without_rows_is_not_told_of_a_condition_that_nobody_asked():
    nobody = Counts(np.zeros((0, len(POLL.sizes)), dtype=np.int32), np.zeros(0, dtype=np.int64))
    asked = a_release(POLL, {"decomposition": "flat", "sets": {"count": 1}}, epsilon="1000")
    made = run(asked, nobody, SeededRandomness(1))
    assert made.records[0].num_rows == 0
    with pytest.raises(SpecError, match="set 1 of the release has no row at all"):
        list(Sampling(POLL, made.plan, made.tables, {}, 0).blocks(1, 5))


@pytest.mark.parametrize("name", ["tree", "pairs", "cascade"])
@pytest.mark.whole
def test_what_one_published_set_hides_further_sets_show(name: str):
    """One measurement: its further sets differ by about the noise that the estimate has, as plausible tables do."""
    release = a_release(POLL, {**METHODS[name], "sets": {"count": 1}}, epsilon="0.5")
    made = run(release, some_counts(POLL, 2000), SeededRandomness(3))
    shares = [np.mean(codes_of(records(sampling(made), 2000, number), POLL)[:, 0]) for number in range(1, 9)]
    assert np.std(shares) > 0.001


def test_split_sets_beyond_the_published_ones_begin_with_the_first_measurement_again():
    release = a_release(POLL, {**METHODS["tree"], "sets": {"count": 2, "budget": "split"}}, epsilon="0.2")
    made = run(release, some_counts(POLL, 2000), SeededRandomness(3))
    first, second, third = (np.bincount(codes_of(records(sampling(made), 4000, n), POLL)[:, 2], minlength=4) for n in (1, 2, 3))
    assert np.abs(first - third).sum() < np.abs(first - second).sum()
