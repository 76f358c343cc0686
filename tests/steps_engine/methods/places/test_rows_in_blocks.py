"""Rows of places in several blocks: all of them add up at every level, each keeps tables and rules, whoever makes it."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from schemas.spec.domain import Domain
from steps_engine.domain import blocks as domain_blocks
from steps_engine.domain.blocks import ends_of_blocks
from steps_engine.domain.counting import Counts, count_codes
from steps_engine.domain.encoding import decode
from steps_engine.domain.places import places_of
from steps_engine.domain.records import codes_of
from steps_engine.methods.after_noise import Drawn
from steps_engine.methods.blocks import together
from steps_engine.methods.places import rows_in_blocks, synthesize
from steps_engine.methods.places.estimate import Measured
from steps_engine.methods.places.nation import NationCounts
from steps_engine.methods.places.rows_in_blocks import blocks, dealt
from steps_engine.methods.places.synthesize import country_of, place_rows
from steps_engine.methods.places.tables import read_measured
from steps_engine.methods.planning import make_plan
from steps_engine.methods.registry import method_named, method_of
from steps_engine.noise import SeededRandomness
from tests.steps_engine.methods.places.test_places import RULES, TRACTS, asked, country, exact, keeping, people

ROWS, BLOCK = 20_000, 2_000
SHARED = {"count": 2, "budget": "shared"}


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domain_blocks, "BLOCK", BLOCK)


def measured(of: Domain, codes: np.ndarray, **more) -> SimpleNamespace:
    """A release without its rows, of hardly any noise."""
    plan, method, counts = make_plan(asked(of, **{"rho": Decimal(1)} | more)), method_named("places"), count_codes(codes)
    tree = method.build(of, plan, counts, SeededRandomness("tree"))
    noisy = method.sanitize(of, plan, counts, tree, SeededRandomness("noisy"))
    drawn = Drawn(of, plan, tree, noisy)
    return SimpleNamespace(drawn=drawn, of=read_measured(of, plan, {"tree": tree, "noisy-counts": noisy}))


@pytest.fixture(scope="module")
def known() -> SimpleNamespace:
    return measured(country(), people(), sets=SHARED)


def wanted(of: Measured, which_set: int, seed: object) -> list[np.ndarray]:
    """The whole numbers of rows of every place of every level, found from the stream that the set's blocks are."""
    stream = SeededRandomness(seed)
    return place_rows(of, *country_of(of, which_set, stream), stream)


def by_level(places, codes: np.ndarray, level: int) -> np.ndarray:
    return np.bincount(places.at(level)[codes[:, places.attribute]], minlength=places.sizes[level])


def parts(of: Measured, which_set: int = 1, seed: object = "set") -> list[np.ndarray]:
    return [codes_of(block.make(), of.places.domain) for block in blocks(of, which_set, SeededRandomness(seed))]


# --- rows of places are dealt to blocks


@pytest.mark.parametrize("rows", [[5, 0, 1, 4], [0, 0, 7], [1] * 12, [100], [13, 2, 0, 0, 900, 1]], ids=str)
@pytest.mark.parametrize("most", [1, 2, 3, 7])
def test_of_any_run_of_places_every_block_has_its_part_up_to_a_row_and_all_together_have_all(rows, most, monkeypatch):
    monkeypatch.setattr(domain_blocks, "BLOCK", most)
    rows = np.array(rows)
    ends = ends_of_blocks(int(rows.sum()))
    own = np.array([dealt(rows, ends, block) for block in range(len(ends) - 1)])
    assert own.min() >= 0 and own.sum(axis=0).tolist() == rows.tolist() and own.sum(axis=1).tolist() == np.diff(ends).tolist()
    for first in range(len(rows)):
        for last in range(first, len(rows)):
            part = rows[first : last + 1].sum() / len(own)
            assert np.abs(own[:, first : last + 1].sum(axis=1) - part).max() < 1


@pytest.mark.parametrize("sets", [1, 2])
def test_rows_of_all_blocks_add_up_at_every_level_to_what_the_places_have(known, sets):
    """And every block has its part of every place, up to one row; tracts that have nobody have nobody in any."""
    of, places = known.of, known.of.places
    found, made = wanted(of, sets, "set"), parts(of, sets)
    assert len(made) == -(-int(found[0][0]) // BLOCK) > 8
    for level in (1, 2, 3):
        each = np.array([by_level(places, codes, level) for codes in made])
        assert each.sum(axis=0).tolist() == found[level].tolist()
        assert np.abs(each - found[level] / len(made)).max() <= 1
        assert np.bincount(places.within(level, level - 1), found[level]).tolist() == found[level - 1].tolist()
    nobody = found[3] == 0
    assert nobody.any() and not each[:, nobody].any()


def test_blocks_that_draw_their_rows_of_places_apart_do_not_add_up(known, monkeypatch):
    """The control of the test above: each is right up to chance, and all of them together are right nowhere."""
    drawn = np.random.default_rng(0)

    def apart(rows: np.ndarray, ends: list[int], block: int) -> np.ndarray:
        return drawn.multinomial(ends[block + 1] - ends[block], rows / rows.sum())

    monkeypatch.setattr(rows_in_blocks, "dealt", apart)
    found, codes = wanted(known.of, 1, "set"), np.concatenate(parts(known.of))
    assert len(codes) == found[0][0]
    for level in (1, 2, 3):
        assert (by_level(known.of.places, codes, level) != found[level]).any()


def test_sets_of_an_exact_number_of_rows_have_it_in_blocks():
    of = measured(country(), people(4_003), total="invariant", measure="pure", epsilon=Decimal(10), rho=None).of
    assert sum(map(len, parts(of))) == 4_003


@pytest.mark.parametrize("missing", ["forbid", "category"])
def test_every_block_keeps_the_rules_of_places_and_the_places_their_rows(missing):
    of = country(rules=RULES, missing=missing)
    codes = keeping(of, people(8_000))
    if missing == "category":
        codes[::10, 1] = TRACTS
    known = measured(of, codes).of
    made, found = parts(known), wanted(known, 1, "set")
    assert all(len(keeping(of, each)) == len(each) for each in made)
    assert by_level(known.places, np.concatenate(made), 3).tolist() == found[3].tolist()


def test_without_its_last_step_a_block_breaks_rules(monkeypatch):
    """The control of the test above."""
    of = country(rules=RULES)
    monkeypatch.setattr(synthesize, "keep_rules", lambda *asked: None)
    made = parts(measured(of, keeping(of, people(8_000))).of)
    assert any(len(keeping(of, each)) < len(each) for each in made)


# --- a block is as good as a set of its own, and all of them better


def off(of: Measured, codes: np.ndarray, true: np.ndarray) -> list[float]:
    """By level, the mean part of rows that tables of attributes by place misplace."""
    tables = [[exact(each, level, j) / len(each) for each in (codes, true)] for level in range(4) for j in (0, 2, 3)]
    apart = np.array([np.abs(a - b).sum() / 2 for a, b in tables])
    return apart.reshape(4, 3).mean(axis=1).tolist()


@pytest.fixture(scope="module")
def alone() -> Measured:
    return measured(country(), people()).of


@pytest.mark.whole
def test_rows_in_blocks_keep_the_tables_of_coarse_levels_as_rows_in_one_do(alone, monkeypatch):
    """Those of tracts, of which a block has a row or two for a cell, up to a row in a cell; the control has them from chance."""
    monkeypatch.setattr(domain_blocks, "BLOCK", ROWS // 4)
    four = np.mean([off(alone, np.concatenate(parts(alone, seed=seed)), people()) for seed in range(3)], axis=0)
    monkeypatch.setattr(rows_in_blocks, "FILLED", ())
    unmended = np.mean([off(alone, np.concatenate(parts(alone, seed=seed)), people()) for seed in range(3)], axis=0)
    monkeypatch.setattr(domain_blocks, "BLOCK", 2**20)
    one = np.mean([off(alone, np.concatenate(parts(alone, seed=seed)), people()) for seed in range(3)], axis=0)
    assert (four[:3] < 1.2 * one[:3] + 0.0002).all() and four[3] < 1.4 * one[3]
    assert unmended[0] > 2 * one[0]  # control: what all blocks have in common does not average out


def test_one_block_is_the_sets_own_stream(alone, monkeypatch):
    monkeypatch.setattr(domain_blocks, "BLOCK", 2**20)
    (only,) = blocks(alone, 1, SeededRandomness("one"))
    stream = SeededRandomness("one")
    made, rows = country_of(alone, 1, stream)
    codes = synthesize.codes_of(alone, made, rows, stream)
    assert only.make() == decode(codes, country(), stream) and only.rows == rows


@pytest.mark.whole
def test_blocks_can_be_made_in_any_order_and_twice_and_sets_differ(known):
    drawn, method = known.drawn, method_of(known.drawn.plan)
    consistent = drawn.correct(method)
    forth, back = drawn.blocks(method, consistent, 1), drawn.blocks(method, consistent, 1)
    backwards = [block.make() for block in reversed(back)][::-1]
    assert pa.concat_tables(backwards) == together(forth) == drawn.synthesize(method, consistent, 1)
    assert max(block.rows for block in forth) <= BLOCK and forth[0].make() == backwards[0]
    assert together(drawn.blocks(method, consistent, 2)) != together(forth)
    assert method.blocks_apart


# --- exact counts, block by block


class Apart(Counts):
    """Seven cells at a time, and never all of them."""

    def blocks(self):
        yield from (Counts(self.codes[i : i + 7], self.count[i : i + 7]) for i in range(0, len(self.count), 7))


def test_exact_tables_of_blocks_add_up_to_those_of_all_cells():
    of, counts = country(), count_codes(people(500))
    plan, method, apart = make_plan(asked(of)), method_named("places"), Apart(counts.codes, counts.count)
    made = [method.build(of, plan, each, SeededRandomness(2)) for each in (counts, apart)]
    assert made[0] == made[1]
    noisy = [method.sanitize(of, plan, each, made[0], SeededRandomness(3)) for each in (counts, apart)]
    assert noisy[0] == noisy[1]
    with pytest.MonkeyPatch.context() as forgetful:  # control: the first block alone counts otherwise
        forgetful.setattr(Apart, "blocks", lambda self: iter([Counts(self.codes[:7], self.count[:7])]))
        assert method.sanitize(of, plan, apart, made[0], SeededRandomness(3)) != noisy[0]


def test_counts_without_places_show_their_shape_alone():
    nation = NationCounts(places_of(country()), Counts(people(5), np.arange(5)))
    assert repr(nation) == "NationCounts(confidential, 3 attributes)" and nation.codes.shape == (5, 3)
    assert nation.count.tolist() == [0, 1, 2, 3, 4]
