"""A whole release of places of more rows than a block: no stage holds more than one, and whoever recomputes it need not."""

from __future__ import annotations

import shutil
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.spec.domain import Domain
from schemas.spec.release import Release, ReleaseSpec
from steps_engine.domain.places import places_of
from steps_engine.methods.places import rows_in_blocks
from tasks.stages.synthesize import join_parts, make_part, parts_of, room_for_sets
from tasks.stores.home import Home
from tasks.verify.recompute import verify_again
from tests.tasks.publishing.making import sign_again
from tests.tasks.stages.test_in_blocks import ROWS, SMALL, Released, _released, small_blocks

TABLE = tuple((f"r{t // 8}", f"c{t // 4}", f"t{t}") for t in range(24))
PLACED = Domain.model_validate(
    {
        "name": "many",
        "population": "many",
        "expected_rows": ROWS,
        "attributes": (
            {"name": "tract", "kind": "categorical", "geography": {"levels": ("region", "county", "tract"), "table": TABLE}},
            {"name": "sex", "kind": "categorical", "categories": ("f", "m")},
            {"name": "age", "kind": "integer", "bounds": (0, 99), "bins": 10},
            {"name": "trade", "kind": "integer", "bounds": (0, 9)},
        ),
        "rules": ({"never": {"county": "c1", "trade": 3}},),
    }
)


@pytest.fixture(scope="module")
def released(tmp_path_factory) -> Released:
    folder, rng = tmp_path_factory.mktemp("many"), np.random.default_rng(1)
    tract, age = rng.integers(0, 23, ROWS), rng.integers(0, 100, ROWS)  # the last one is empty
    trade = (age // 20 + tract // 8 + rng.integers(0, 5, ROWS)) % 10
    trade[(tract // 4 == 1) & (trade == 3)] = 4
    columns = {"tract": [f"t{t}" for t in tract], "sex": np.where(rng.random(ROWS) < 0.5, "f", "m"), "age": age, "trade": trade}
    pq.write_table(pa.table(columns), folder / "many.parquet")
    asked = {"name": "many", "dataset": "d", "source": str(folder / "many.parquet"), "privacy": {"epsilon": Decimal(10)},
             "analyses": (("county", "age"),),
             "method": {"decomposition": "places", "sets": {"count": 2, "budget": "shared"}}}  # fmt: skip
    release = Release(spec=ReleaseSpec.model_validate(asked), domain=PLACED, folder=str(folder))
    with pytest.MonkeyPatch.context() as patch:
        small_blocks(patch)
        return _released(Home(folder / "home"), release, patch)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch)


@pytest.mark.whole
def test_no_stage_holds_more_than_a_block(released: Released):
    assert max(released.written) <= SMALL and len([each for each in released.written if each]) > 20
    for number in (1, 2):
        rows = pq.read_metadata(released.folder / f"synthetic-{number}.parquet")
        assert rows.num_row_groups == -(-rows.num_rows // SMALL) and abs(rows.num_rows - ROWS) < 500


@pytest.mark.whole
def test_the_bundle_verifies_and_recomputes_block_by_block(released: Released):
    found = verify_again(released.folder, released.home.keys / "signing-key.pub")
    assert found.problems == () and found.recomputed is not None and all(found.recomputed.same.values())


@pytest.mark.whole
def test_somebody_moved_to_another_tract_of_the_last_block_is_found_by_recomputing(released: Released, tmp_path: Path):
    copy = shutil.copytree(released.folder, tmp_path / "copy")
    path = copy / "synthetic-2.parquet"
    records = pq.read_table(path)
    tract = records["tract"].to_pylist()
    tract[-1] = next(row[2] for row in TABLE if row[1] == records["county"][-1].as_py() and row[2] != tract[-1])
    moved = records.set_column(0, records.schema.field("tract"), pa.array(tract).dictionary_encode())
    pq.write_table(moved.cast(records.schema), path, compression="zstd")
    sign_again(copy, released.home)
    problems = [str(problem) for problem in verify_again(copy, released.home.keys / "signing-key.pub").problems]
    assert any(f"1 of {len(records):,} rows differ, the first is row {len(records):,} (tract)" in each for each in problems)


@pytest.mark.whole
def test_blocks_that_have_other_rows_of_places_are_found_by_recomputing(released: Released, monkeypatch: pytest.MonkeyPatch):
    """Whoever deals rows of places to blocks in another way has other rows."""
    turned = rows_in_blocks.dealt
    monkeypatch.setattr(rows_in_blocks, "dealt", lambda rows, ends, block: turned(rows[::-1], ends, block)[::-1])
    found = verify_again(released.folder, released.home.keys / "signing-key.pub")
    assert found.recomputed is not None and not any(found.recomputed.same[f"synthetic-{i}.parquet"] for i in (1, 2))


@pytest.mark.whole
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
    assert sealed.read_bytes() == content


@pytest.mark.whole
def test_blocks_have_their_part_of_every_county_and_keep_the_rule(released: Released):
    places = places_of(PLACED)
    file = pq.ParquetFile(released.folder / "synthetic-1.parquet")
    groups = [file.read_row_group(i) for i in range(file.num_row_groups)]
    counties = [np.bincount(group["county"].combine_chunks().indices, minlength=places.sizes[2]) for group in groups]
    assert np.abs(np.array(counties) - np.mean(counties, axis=0)).max() <= 1
    whole = pa.concat_tables(groups).to_pandas()
    assert not ((whole["county"] == "c1") & (whole["trade"] == 3)).any()
