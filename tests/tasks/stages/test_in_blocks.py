"""A whole release of more rows than a block: no stage holds more than one, and everything holds as for a small one."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tasks.reading.counting
import tasks.stages.cells
import tasks.stages.synthesize
from schemas.spec.domain import Domain
from schemas.spec.release import Release, ReleaseSpec
from steps_engine.domain import blocks
from steps_engine.methods.pairs import rows_in_blocks
from tasks import tables_on_disk
from tasks.progress import listening
from tasks.stages.build import build_tree
from tasks.stages.cells import stored_counts
from tasks.stages.charge import charge
from tasks.stages.correct import correct
from tasks.stages.discretize import discretize, fingerprint
from tasks.stages.evaluate import evaluate, some_original, some_synthetic
from tasks.stages.plan import plan
from tasks.stages.publish import publish_release
from tasks.stages.sanitize import sanitize
from tasks.stages.synthesize import join_parts, make_part, parts_of, room_for_sets, synthesize
from tasks.stores.artifacts import Store
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tasks.tables_on_disk import Stored
from tasks.verify.bundle import verify_bundle
from tasks.verify.recompute import verify_again
from tests.tasks.publishing.making import sign_again

ROWS, SMALL = 9001, 1000
MANY = Domain.model_validate(
    {
        "name": "many",
        "population": "many",
        "expected_rows": ROWS,
        "attributes": (
            {"name": "sex", "kind": "categorical", "categories": ("f", "m")},
            {"name": "age", "kind": "integer", "bounds": (0, 99), "bins": 10},
            {"name": "region", "kind": "integer", "bounds": (0, 19)},
            {"name": "trade", "kind": "integer", "bounds": (0, 29), "missing": "category"},
        ),
    }
)


@dataclass(frozen=True)
class Released:
    home: Home
    release: Release
    before: tuple  # plan, tree, noisy and consistent counts
    cells: object
    sets: tuple
    folder: Path
    written: list[int]
    shares: list[float]
    unpublished: Home


def small_blocks(patch: pytest.MonkeyPatch) -> None:
    for module in (blocks, tasks.reading.counting, tasks.stages.cells, tasks.stages.synthesize):
        patch.setattr(module, "BLOCK", SMALL)
    patch.setattr(tables_on_disk, "VALUES", 4 * SMALL)
    patch.setattr(tables_on_disk, "MOST_ROWS", SMALL)
    patch.setattr(tables_on_disk, "FEWEST_ROWS", 1)


@pytest.fixture(scope="module")
def released(tmp_path_factory) -> Released:
    folder, rng = tmp_path_factory.mktemp("many"), np.random.default_rng(1)
    age = rng.integers(0, 100, ROWS)
    columns = {"sex": np.where(rng.random(ROWS) < 0.5, "f", "m"), "age": age, "region": rng.integers(0, 20, ROWS)}
    pq.write_table(pa.table(columns | {"trade": (age // 4 + rng.integers(0, 5, ROWS)) % 30}), folder / "many.parquet")
    asked = {"name": "many", "dataset": "d", "source": str(folder / "many.parquet"), "formats": ("parquet", "csv"),
             "privacy": {"epsilon": Decimal(10)}, "analyses": (("sex", "age"),),
             "method": {"decomposition": "pairs", "pairs": "all", "sets": {"count": 2, "budget": "shared"}}}  # fmt: skip
    release = Release(spec=ReleaseSpec.model_validate(asked), domain=MANY, folder=str(folder))
    with pytest.MonkeyPatch.context() as patch:
        small_blocks(patch)
        return _released(Home(folder / "home"), release, patch)


def _released(home: Home, release: Release, patch: pytest.MonkeyPatch) -> Released:
    """Every stage, where no set and no table of cells can be read at once, and the size of every table written is noted."""
    written, shares, declare, read = list[int](), list[float](), tables_on_disk._declared, Stored.read

    def noted(table, schema, name):
        written.append(len(table) if "synthetic" in name or "cells" in name else 0)
        return declare(table, schema, name)

    def refused(self, columns=None):
        assert not {"cells"}.intersection(self.path.parts) and "synthetic" not in str(self.path), f"{self.path} is read whole"
        return read(self, columns)

    patch.setattr(tables_on_disk, "_declared", noted)
    patch.setattr(Stored, "read", refused)
    open_ledger(home).grant("many", 10**10, "a test")
    planned = plan(home, release)
    cells = discretize(home, release)
    paid = charge(home, release, planned, cells, {})
    tree = build_tree(home, release, planned, cells, paid)
    noisy = sanitize(home, release, planned, cells, tree, paid)
    consistent = correct(home, release, planned, tree, noisy)
    with listening(shares.append):
        sets = synthesize(home, release, planned, tree, noisy, consistent)
    unpublished = Home(shutil.copytree(home.path, home.path.with_name("unpublished")))
    folder = publish_release(home, release, planned, (tree, noisy, consistent, *sets))
    evaluate(home, release, cells, sets)
    return Released(home, release, (planned, tree, noisy, consistent), cells, sets, folder, written, shares, unpublished)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch)


@pytest.mark.whole
def test_no_stage_holds_more_than_a_block(released: Released):
    assert max(released.written) <= SMALL and len([each for each in released.written if each]) > 20
    assert open_ledger(released.home).state("many") == "evaluated"
    rows = pq.read_metadata(released.folder / "synthetic-1.parquet")
    assert rows.num_row_groups == -(-rows.num_rows // SMALL) and abs(rows.num_rows - ROWS) < 500


@pytest.mark.whole
def test_the_bundle_verifies_and_recomputes_block_by_block(released: Released):
    found = verify_again(released.folder, released.home.keys / "signing-key.pub")
    assert found.problems == () and found.recomputed is not None and all(found.recomputed.same.values())


def changed(released: Released, tmp_path: Path, change) -> list[str]:
    copy = shutil.copytree(released.folder, tmp_path / "copy")
    change(copy)
    sign_again(copy, released.home)
    return [str(problem) for problem in verify_bundle(copy, released.home.keys / "signing-key.pub")]


@pytest.mark.whole
def test_what_is_wrong_in_the_last_block_is_found(released: Released, tmp_path: Path):
    def last_line(copy: Path) -> None:
        lines = (copy / "synthetic-2.csv").read_bytes().splitlines(keepends=True)
        (copy / "synthetic-2.csv").write_bytes(b"".join([*lines[:-1], lines[-1] + lines[-1]]))

    def last_row(copy: Path) -> None:
        path = copy / "synthetic-2.parquet"
        records = pq.read_table(path)
        region = records["region"].to_numpy().copy()
        region[-1] = 20
        wrong = records.set_column(2, records.schema.field("region"), pa.array(region))
        with path.open("wb") as file:
            tables_on_disk.write_blocks(file, [wrong.slice(i, SMALL) for i in range(0, len(wrong), SMALL)], wrong.schema, "t")

    assert changed(released, tmp_path / "a", lambda copy: None) == []  # control
    (csv,) = changed(released, tmp_path / "b", last_line)
    assert csv == "synthetic-2.csv: does not hold the rows of the Parquet file"
    assert "synthetic-2.parquet: has values outside the domain: region" in changed(released, tmp_path / "c", last_row)


@pytest.mark.whole
def test_a_planted_row_in_the_last_block_is_found_by_recomputing(released: Released, tmp_path: Path):
    copy = shutil.copytree(released.folder, tmp_path / "copy")
    path = copy / "synthetic-1.parquet"
    records = pq.read_table(path)
    sex = records["sex"].to_pylist()
    sex[-1] = {"f": "m", "m": "f"}[sex[-1]]
    wrong = records.set_column(0, records.schema.field("sex"), pa.array(sex).dictionary_encode())
    pq.write_table(wrong.cast(records.schema), path, compression="zstd")
    sign_again(copy, released.home)
    problems = [str(problem) for problem in verify_again(copy, released.home.keys / "signing-key.pub").problems]
    assert any(f"1 of {len(records):,} rows differ, the first is row {len(records):,} (sex)" in each for each in problems)


def test_workers_that_share_the_blocks_of_a_set_make_the_same_file(released: Released):
    planned, *drawn = released.before
    assert parts_of(released.home, released.release, planned) == 10
    home, first = released.unpublished, released.sets[0]
    sealed = home.staging / "many" / "synthetic-1" / f"{first.id}.parquet"
    content = sealed.read_bytes()
    sealed.unlink()
    with room_for_sets(home, released.release, 4, [1]) as room:
        for part in reversed(room):
            make_part(home, released.release, planned, *drawn, 4, part)
        assert join_parts(home, released.release, 1, [path for _, _, path in room]) == first
    assert sealed.read_bytes() == content and not list(home.staging.rglob("parts-*"))


def test_a_worker_estimates_once_for_all_parts_of_a_set_that_it_makes(released: Released, monkeypatch):
    planned, *drawn = released.before
    home, made, estimated = released.unpublished, [], rows_in_blocks.estimated
    monkeypatch.setattr(rows_in_blocks, "estimated", lambda *asked: made.append(1) or estimated(*asked))
    monkeypatch.setattr(tasks.stages.synthesize, "_found", lambda *asked: None)
    with room_for_sets(home, released.release, 4, [1, 2]) as room:
        tasks.stages.synthesize._once.cache_clear()
        for part in room[:3]:
            make_part(home, released.release, planned, *drawn, 4, part)
        assert len(made) == 1
        make_part(home, released.release, planned, *drawn, 4, room[4])  # of the other set
        assert len(made) == 2


def test_how_far_synthesis_is_is_told_block_by_block(released: Released):
    first = released.shares[: released.shares.index(1.0) + 1]
    assert released.shares.count(1.0) == 2 and len(first) in (9, 10)  # 9001 rows, up to noise
    np.testing.assert_allclose(first, np.arange(1, len(first) + 1) / len(first), atol=0.01)


def test_counts_in_blocks_have_the_fingerprint_of_all_of_them(released: Released):
    counts = stored_counts(Store(released.home), released.cells, MANY)
    assert len(list(counts.blocks())) > 2
    whole = type(counts).__mro__[1](counts.codes, counts.count)
    assert fingerprint(counts, MANY, b"k") == fingerprint(whole, MANY, b"k")
    mixed = type(whole)(whole.codes[::-1], whole.count[::-1])
    assert fingerprint(mixed, MANY, b"k") == fingerprint(whole, MANY, b"k") != fingerprint(whole, MANY, b"other")
    one_less = type(whole)(whole.codes, whole.count - (np.arange(len(whole.count)) == 5))
    assert fingerprint(one_less, MANY, b"k") != fingerprint(whole, MANY, b"k")  # control


def test_a_sample_for_the_evaluation_is_of_so_many_records_over_all_blocks(released: Released):
    store = Store(released.home)
    counts = stored_counts(store, released.cells, MANY)
    assert some_original(counts, MANY, 10**6).total == ROWS
    some, made = some_original(counts, MANY, 3000), some_synthetic(store.open(released.sets[0]), MANY, 3000)
    assert some.total == made.total == 3000
    sexes = np.bincount(some.codes[:, 0], some.counts) / 3000  # cells are in order: a sample of the first blocks has one sex
    assert abs(sexes[0] - 0.5) < 0.1 and abs(np.bincount(made.codes[:, 0])[0] / 3000 - 0.5) < 0.1
