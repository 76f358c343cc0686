"""Counting shared out over files: the same bytes as one pass, and nothing of it is left behind."""

from __future__ import annotations

import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors import DataInvalid
from schemas.spec.domain import Domain
from schemas.spec.release import Release
from tasks.reading import counting
from tasks.reading.encoding_sql import words
from tasks.reading.partial_counts import MOST_PARTS, count_part, room_for_parts, shares_of_source
from tasks.stages.discretize import discretize, discretize_parts
from tasks.stores.artifacts import Reference
from tasks.stores.home import Home
from tests.tasks.reading.records import good_frame, make_domain, make_release

WIDE = tuple({"name": f"a{j}", "kind": "integer", "bounds": (0, 99)} for j in range(12))


def many_rows(domain: Domain, rows: int = 3_000) -> pd.DataFrame:
    seeded = np.random.default_rng(7)
    if domain.names[0] == "a0":
        return pd.DataFrame({name: seeded.integers(0, 3, rows) for name in domain.names})
    return good_frame().iloc[seeded.integers(0, 4, rows)].reset_index(drop=True)


def write_files(folder: Path, frame: pd.DataFrame, cuts: list[int], suffix: str) -> Path:
    """The rows in files, cut at these rows; two equal cuts leave a file without rows."""
    folder.mkdir()
    for number, (first, last) in enumerate(zip([0, *cuts], [*cuts, len(frame)], strict=True)):
        if suffix == "csv":
            frame.iloc[first:last].to_csv(folder / f"{number}.csv", index=False)
        else:
            whole = pa.Table.from_pandas(frame, preserve_index=False)
            pq.write_table(whole.slice(first, last - first), folder / f"{number}.parquet")
    return folder


def counted_in_shares(home: Home, release: Release) -> Reference:
    shares = shares_of_source(release)
    with room_for_parts(home, release, len(shares)) as parts:
        for files, part in zip(shares, parts, strict=True):
            count_part(home, release, files, part)
        assert {Path(part).stat().st_mode & 0o777 for part in parts} == {0o600}
        assert Path(parts[0]).parent.stat().st_mode & 0o777 == 0o700
        return discretize_parts(home, release, parts)


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("attributes", [None, WIDE], ids=["small", "wide"])
@pytest.mark.whole
def test_shares_add_up_to_the_very_bytes_of_one_pass(tmp_path, attributes, suffix):
    domain = make_domain(attributes) if attributes else make_domain()
    assert len(words(domain)) == (2 if attributes else 1)
    source = write_files(tmp_path / "records", many_rows(domain), [700, 700, 701, 2_000], suffix)
    home, release = Home(tmp_path / "home"), make_release(source, domain)
    assert len(shares_of_source(release)) == 5
    # Confidential artifacts are named by a keyed hash of their content: the same reference, the same bytes.
    assert counted_in_shares(home, release) == discretize(home, release)
    assert sorted(path.name for path in (home.confidential / "small").iterdir()) == ["cells"]


@pytest.mark.parametrize("attributes", [None, WIDE], ids=["small", "wide"])
def test_a_part_is_written_in_blocks_and_no_more_than_two_are_held(tmp_path, monkeypatch, attributes):
    """The one that is written, and the one that is made meanwhile: however many cells the files have."""
    domain, held = make_domain(attributes) if attributes else make_domain(), Held()
    source = write_files(tmp_path / "records", many_rows(domain), [2_000], "parquet")
    home, release = Home(tmp_path / "home"), make_release(source, domain)
    block = 500 if attributes else 1
    monkeypatch.setattr(counting, "BLOCK", block)
    monkeypatch.setattr(counting, "query_in_blocks", held.counting(counting.query_in_blocks))
    part = tmp_path / "part"
    count_part(home, release, shares_of_source(release)[0], str(part))
    written = pq.read_metadata(part)
    groups = [written.row_group(i).num_rows for i in range(written.num_row_groups)]
    assert len(groups) == held.made > 2 and max(groups) == block and held.most <= 2
    control = Held()
    kept = list(control.counting(lambda: (pa.table({"n": [i]}) for i in range(len(groups))))())
    assert control.most == len(kept) > 2  # whoever keeps them all is seen to
    monkeypatch.undo()
    assert counted_in_shares(home, release) == discretize(home, release)


@dataclass
class Held:
    """How many of the blocks that were made are there at once, at most."""

    made: int = 0
    most: int = 0

    def counting(self, blocks: Callable[..., Iterator[pa.Table]]) -> Callable[..., Iterator[pa.Table]]:
        def counted(*arguments: object) -> Iterator[pa.Table]:
            seen = []
            for block in blocks(*arguments):
                seen.append(weakref.ref(block))
                self.made, self.most = self.made + 1, max(self.most, sum(each() is not None for each in seen))
                yield block
                del block

        return counted


def test_a_share_without_rows_is_a_part_without_cells(tmp_path):
    source = write_files(tmp_path / "records", many_rows(make_domain()), [0], "parquet")
    home, release = Home(tmp_path / "home"), make_release(source)
    count_part(home, release, (str(source / "0.parquet"),), str(tmp_path / "part"))
    assert pq.read_table(tmp_path / "part").shape == (0, 2)
    assert counted_in_shares(home, release) == discretize(home, release)


def test_the_reference_tells_other_counts_apart(tmp_path):
    home, domain = Home(tmp_path / "home"), make_domain()
    source = write_files(tmp_path / "records", many_rows(domain), [700], "parquet")
    whole = counted_in_shares(home, make_release(source, domain))
    (source / "1.parquet").unlink()
    assert counted_in_shares(home, make_release(source, domain)) != whole


def test_where_a_column_names_the_person_there_is_one_share(tmp_path):
    frame = many_rows(make_domain()).assign(person=np.arange(3_000) % 900)
    source = write_files(tmp_path / "records", frame, [1_000, 2_000], "parquet")
    unit = {"column": "person", "rows_per_person": 2}
    dropping, forbidding = make_release(source, make_domain(**unit, excess="drop")), make_release(source, make_domain(**unit))
    assert [len(files) for files in shares_of_source(dropping)] == [3]
    assert [len(files) for files in shares_of_source(forbidding)] == [3], "a person's rows may lie in any file"
    home = Home(tmp_path / "home")
    assert counted_in_shares(home, dropping) == discretize(home, dropping)
    with pytest.raises(DataInvalid, match="changed since"):
        counted_in_shares(home, forbidding)


def test_many_files_make_no_more_parts_than_are_worth_a_task(tmp_path):
    source = write_files(tmp_path / "records", many_rows(make_domain(), 200), list(range(1, 150)), "csv")
    shares = shares_of_source(make_release(source))
    assert len(shares) == MOST_PARTS and sorted(sum(shares, ())) == sorted(map(str, source.iterdir()))


def test_records_that_changed_since_validation_are_refused_wherever_they_are_counted(tmp_path):
    frame = many_rows(make_domain())
    home, release = Home(tmp_path / "home"), make_release(write_files(tmp_path / "records", frame, [10], "parquet"))
    (tmp_path / "records" / "1.parquet").unlink()
    frame.assign(voted="perhaps").to_parquet(tmp_path / "records" / "1.parquet", index=False)
    with pytest.raises(DataInvalid, match="changed since"):
        counted_in_shares(home, release)
    frame.drop(columns="age").to_parquet(tmp_path / "records" / "1.parquet", index=False)
    with pytest.raises(DataInvalid, match="changed since"):
        count_part(home, release, (str(tmp_path / "records" / "1.parquet"),), str(tmp_path / "part"))
    assert not list((home.confidential / "small").glob("parts-*")) and not (tmp_path / "part").exists()


@pytest.mark.whole
def test_parts_of_a_killed_run_stay_only_until_the_next_count(tmp_path):
    source = write_files(tmp_path / "records", many_rows(make_domain()), [10], "parquet")
    program = (
        "import sys; from tests.tasks.reading.test_partial_counts import *\n"
        "home, release = Home(sys.argv[1]), make_release(sys.argv[2])\n"
        "with room_for_parts(home, release, 2) as parts:\n"
        "    count_part(home, release, shares_of_source(release)[0], parts[0])\n"
        "    print('counted', flush=True); sys.stdin.read()"
    )
    home, release = Home(tmp_path / "home"), make_release(source)
    command = [sys.executable, "-c", program, str(home.path), str(source)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3])
    try:
        assert child.stdout.readline() == b"counted\n"
        discretize(home, release)
        left = list((home.confidential / "small").glob("parts-*/*.parquet"))
        assert len(left) == 1, "those of a live run are not ours to remove"
    finally:
        child.kill()
        child.communicate()
    discretize(home, release)
    assert list((home.confidential / "small").glob("parts-*")) == []
