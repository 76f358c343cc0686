"""At the door: what is not a readable source is refused before a record is read, and DuckDB can reach nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors import InfrastructureFault, SpecError
from tasks.reading import locked_down
from tasks.reading import sources as source
from tasks.reading.formats import csv
from tasks.reading.formats import parquet as footer
from tasks.reading.locked_down import literal
from tasks.reading.sources import connect, open_source, query
from tests.steps_engine.shapes import domain
from tests.tasks.reading.records import count_cells, good_frame, make_release


def write(folder: Path, **contents: bytes) -> Path:
    for name, content in contents.items():
        (folder / name.replace("__", ".")).write_bytes(content)
    return folder


def a_parquet(folder: Path, name: str = "a.parquet", frame: pd.DataFrame | None = None) -> Path:
    (good_frame() if frame is None else frame).to_parquet(folder / name, index=False)
    return folder / name


def absent(folder):
    return folder / "absent.csv"


def looping_link(folder):
    (folder / "a.csv").symlink_to(folder / "a.csv")
    return folder / "a.csv"


def pipe(folder):
    os.mkfifo(folder / "a.csv")
    return folder / "a.csv"


def truncated(folder):
    path = a_parquet(folder)
    path.write_bytes(path.read_bytes()[:-100])
    return path


def broken_footer(folder):
    path = a_parquet(folder)
    content = bytearray(path.read_bytes())
    content[-60:-8] = b"\xff" * 52
    path.write_bytes(content)
    return path


def endless_footer(folder):
    path = a_parquet(folder)
    path.write_bytes(path.read_bytes()[:-8] + (2**31 - 1).to_bytes(4, "little") + b"PAR1")
    return path


def nested(folder):
    pq.write_table(pa.table({"a": [{"b": 1, "c": 2}]}), folder / "a.parquet")
    return folder / "a.parquet"


def different_columns(folder):
    a_parquet(folder, "b.parquet", good_frame().drop(columns="age"))
    return a_parquet(folder).parent


def different_types(folder):
    a_parquet(folder, "b.parquet", good_frame().astype({"age": str}))
    return a_parquet(folder).parent


def bomb(folder):
    """A small file whose footer declares 10^13 rows: compact Thrift, field 3 of the footer is the number of rows."""
    pq.write_table(pa.table({"a": pa.array([1] * 77_777, pa.int8())}), folder / "a.parquet")
    content = (folder / "a.parquet").read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    pages, metadata = content[: -8 - length], content[-8 - length : -8]
    marked = b"\x16" + varint(77_777) + b"\x19"
    assert metadata.count(marked) == 1
    metadata = metadata.replace(marked, b"\x16" + varint(10**13) + b"\x19")
    (folder / "a.parquet").write_bytes(
        b"PAR1" + bytes(len(pages) - 4) + metadata + len(metadata).to_bytes(4, "little") + b"PAR1"
    )
    return folder / "a.parquet"


def varint(number: int) -> bytes:
    number, groups = number * 2, []
    while number:
        groups.append((number & 127) | (128 if number > 127 else 0))
        number >>= 7
    return bytes(groups)


REFUSED = {
    "a missing file": (absent, "no such file"),
    "a link that leads nowhere": (looping_link, "cannot be read"),
    "a pipe": (pipe, "not a regular file"),
    "a folder without files": (lambda f: f, "folder without files"),
    "a glob without matches": (lambda f: f / "*.parquet", "no such file, folder or match"),
    "an empty file": (lambda f: write(f, a__csv=b"") / "a.csv", "is empty"),
    "an empty Parquet file": (lambda f: write(f, a__parquet=b"") / "a.parquet", "is empty"),
    "neither Parquet nor CSV": (
        lambda f: write(f, a__json=b'{"a": 1}') / "a.json",
        "neither Parquet, CSV, SPSS, Stata nor SAS",
    ),
    "a zip named CSV": (lambda f: write(f, a__csv=b"PK\x03\x04\x00\x00\x00\x00") / "a.csv", "not UTF-8"),
    "text named Parquet": (lambda f: write(f, a__parquet=b"a,b\n1,2\n") / "a.parquet", "not a whole Parquet file"),
    "both formats in one folder": (lambda f: a_parquet(write(f, b__csv=b"a\n1\n")).parent, "Parquet and CSV files together"),
    "another file in the folder": (
        lambda f: a_parquet(write(f, b__txt=b"notes")).parent,
        "neither Parquet, CSV, SPSS, Stata nor SAS",
    ),
    "truncated Parquet": (truncated, "not a whole Parquet file"),
    "a broken footer": (broken_footer, "footer is broken"),
    "a footer longer than its file": (endless_footer, "footer is broken"),
    "nested columns": (nested, "nested"),
    "files with different columns": (different_columns, "differ in their columns"),
    "files with different types": (different_types, "differ in their columns"),
    "a Parquet bomb": (bomb, "declares far more"),
    "latin-1": (lambda f: write(f, a__csv="größe\n1\n".encode("latin-1")) / "a.csv", "not UTF-8"),
    "UTF-16 without its mark": (lambda f: write(f, a__csv="a,b\n1,2\n".encode("utf-16-le")) / "a.csv", "not UTF-8"),
    "a first line without an end": (lambda f: write(f, a__csv=b"x" * (csv.HEAD + 1)) / "a.csv", "first line is longer"),
    "too many columns": (lambda f: write(f, a__csv=b"x," * footer.MOST_COLUMNS + b"x\n") / "a.csv", "more than 2,000 columns"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_opened_is_refused_in_words(name, tmp_path):
    make, words = REFUSED[name]
    folder = tmp_path / "source"
    folder.mkdir()
    with pytest.raises(SpecError, match=words) as caught:
        open_source(make(folder))
    assert str(caught.value).startswith("source /") and caught.value.__cause__ is None and caught.value.__context__ is None


def test_a_glob_character_in_a_real_path_is_refused_not_expanded(tmp_path):
    (tmp_path / "a[1].csv").write_bytes(b"a\n1\n")
    with pytest.raises(SpecError, match="rename it"):
        open_source(tmp_path / "a[1].csv")


@pytest.mark.parametrize("limit", ["MOST_ROWS", "MOST_BYTES", "VALUES_PER_BYTE"])
def test_each_limit_of_the_footer_counts_by_itself(limit, tmp_path, monkeypatch):
    path = a_parquet(tmp_path)
    open_source(path)
    monkeypatch.setattr(footer, limit, 0)
    with pytest.raises(SpecError, match="declares far more"):
        open_source(path)


def test_the_refusal_of_too_many_rows_does_not_say_how_many(tmp_path):
    with pytest.raises(SpecError) as caught:
        open_source(bomb(tmp_path))
    assert "10000000000000" not in str(caught.value).replace(",", "") and "77777" not in str(caught.value).replace(",", "")


def test_a_byte_order_mark_quotes_and_line_ends_do_not_change_the_columns(tmp_path):
    contents = ["a,b\n1,2\n", "\ufeffa,b\n1,2\n", 'a,"b"\r\n1,2\r\n', '\ufeff"a",b\r\n1,2\r\n']
    for i, content in enumerate(contents):
        (tmp_path / f"{i}.csv").write_bytes(content.encode())
    found = open_source(tmp_path)
    assert found.names == ("a", "b")
    with connect(found, tmp_path) as connection:
        assert query(connection, f"SELECT DISTINCT * FROM {found.relation()}").to_pylist() == [{"c0": "1", "c1": "2"}]


def test_a_name_in_a_file_never_becomes_part_of_a_query(tmp_path):
    names = ['a"; DROP TABLE x; --', "it's"]
    pq.write_table(pa.table([[1], [2]], names=names), tmp_path / "it's a'.parquet")
    found = open_source(tmp_path / "it's a'.parquet")
    assert found.names == tuple(names)
    with connect(found, tmp_path) as connection:
        assert query(connection, f"SELECT * FROM {found.relation()}").to_pylist() == [{"c0": 1, "c1": 2}]


def test_duckdb_reaches_the_source_and_nothing_else(tmp_path):
    other = a_parquet(tmp_path, "other.parquet")
    found = open_source(a_parquet(tmp_path))
    with connect(found, tmp_path) as connection:
        assert query(connection, f"SELECT count(*) AS n FROM {found.relation()}")["n"].to_pylist() == [4]
        for sql in (
            f"SELECT * FROM read_parquet({literal(str(other))})",
            "SELECT * FROM read_csv('/etc/hostname')",
            "SELECT * FROM read_parquet('http://127.0.0.1:9/a.parquet')",
            f"COPY (SELECT 1) TO {literal(str(tmp_path / 'out.csv'))}",
            f"ATTACH {literal(str(tmp_path / 'out.db'))}",
            "INSTALL httpfs",
            "SET enable_external_access = true",
            "SET memory_limit = '100GB'",
        ):
            with pytest.raises(source.ReadingFailed):
                query(connection, sql)
    with duckdb.connect(":memory:") as control:
        assert control.execute(f"SELECT count(*) FROM read_parquet({literal(str(other))})").fetchone() == (4,)


def spill_folders(folder: Path) -> list[Path]:
    return list(folder.glob("spill-*"))


@pytest.mark.whole
def test_what_spills_is_private_and_gone_afterwards(tmp_path, confidential, monkeypatch):
    monkeypatch.setitem(locked_down.LOCKED_DOWN, "memory_limit", "64MB")
    with pytest.raises(RuntimeError, match="on the way"), connect(open_source(a_parquet(tmp_path)), confidential) as connection:
        query(connection, "CREATE TEMP TABLE big AS SELECT hash(i) AS h FROM range(20_000_000) t(i)")
        [folder] = spill_folders(confidential)
        assert folder.stat().st_mode & 0o777 == 0o700
        assert sum(path.stat().st_size for path in folder.iterdir()) > 10_000_000
        raise RuntimeError("on the way")
    assert list(confidential.iterdir()) == []


def test_a_killed_run_leaves_its_spill_folder_only_until_the_next_one(tmp_path, confidential):
    path = a_parquet(tmp_path)
    program = (
        "import sys, pathlib; from tasks.reading.sources import connect, open_source\n"
        "with connect(open_source(sys.argv[1]), pathlib.Path(sys.argv[2])): print('open', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(path), str(confidential)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(source.__file__).parents[2])
    try:
        assert child.stdout.readline() == b"open\n"
        with connect(open_source(path), confidential):
            assert len(spill_folders(confidential)) == 2
        assert len(spill_folders(confidential)) == 1
    finally:
        child.kill()
        child.communicate()
    assert len(spill_folders(confidential)) == 1
    with connect(open_source(path), confidential):
        assert len(spill_folders(confidential)) == 1
    assert spill_folders(confidential) == []


@pytest.mark.parametrize(("rows", "bytes_"), [(10**5, 2**29), (3 * 10**8, 15 * 10**8)])
def test_more_may_be_held_where_there_is_more_to_count(tmp_path, confidential, rows, bytes_):
    """3·10⁸ rows of which half are cells of their own do not fit half a GiB, spilled or not."""
    many = domain(*[100] * 6, expected_rows=rows)
    with connect(open_source(a_parquet(tmp_path)), confidential, locked_down.memory_for(many)) as connection:
        said = query(connection, "SELECT current_setting('memory_limit') AS held")["held"][0].as_py()
    number, unit = said.split()
    assert float(number) * {"MiB": 2**20, "GiB": 2**30}[unit] == pytest.approx(bytes_, rel=0.1)


@pytest.mark.whole
def test_too_little_memory_is_a_fault_worth_a_retry(tmp_path, confidential, monkeypatch):
    monkeypatch.setitem(locked_down.LOCKED_DOWN, "memory_limit", "10MB")
    with connect(open_source(a_parquet(tmp_path)), confidential) as connection, pytest.raises(InfrastructureFault):
        query(connection, "SELECT count(*) FROM (SELECT hash(i) AS h, count(*) FROM range(20_000_000) t(i) GROUP BY 1)")


def test_a_long_query_can_be_interrupted(tmp_path, confidential):
    with connect(open_source(a_parquet(tmp_path)), confidential) as connection:
        threading.Timer(0.3, connection.interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            query(connection, "SELECT sum(hash(i)) FROM range(1_000_000_000_000) t(i)")
    assert list(confidential.iterdir()) == []


def test_what_duckdb_says_about_a_record_stays_out_of_the_exception(tmp_path, confidential):
    with connect(open_source(a_parquet(tmp_path)), confidential) as connection:
        with pytest.raises(source.ReadingFailed) as caught:
            query(connection, "SELECT CAST('canary-7319' AS INTEGER)")
    error = caught.value
    assert "canary" in error.confidential
    assert "canary" not in str(error) + repr(error) and error.__cause__ is None and error.__context__ is None


@pytest.mark.whole
def test_no_progress_bar_tells_how_much_there_is_to_read(tmp_path, confidential):
    """DuckDB turns its bar on, on standard output, wherever the main module has no file: `python -c` shows both."""
    program = (
        "import sys, pathlib, duckdb; from tasks.reading.sources import connect, open_source\n"
        "bar = lambda connection: connection.execute(\"SELECT current_setting('enable_progress_bar')\").fetchone()[0]\n"
        "with connect(open_source(sys.argv[1]), pathlib.Path(sys.argv[2])) as ours: print(bar(duckdb.connect()), bar(ours))"
    )
    command = [sys.executable, "-c", program, str(a_parquet(tmp_path)), str(confidential)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(source.__file__).parents[2])
    assert run.stdout == "True False\n"


def test_one_file_under_many_names_is_read_once(tmp_path, confidential):
    """A record that is counted three times costs three times ε."""
    deep = tmp_path / "data" / "2026" / "q1"
    deep.mkdir(parents=True)
    a_parquet(deep, "r.parquet")
    for pattern in ("data/**/**/*.parquet", "data/**/**/**/q1/**/*.parquet"):
        assert open_source(tmp_path / pattern).files == (str(deep / "r.parquet"),)
    (deep / "soft.parquet").symlink_to(deep / "r.parquet")
    os.link(deep / "r.parquet", deep / "hard.parquet")
    (tmp_path / "data" / "again").symlink_to(deep)
    assert len(open_source(tmp_path / "data" / "**" / "*.parquet").files) == 1
    assert count_cells(make_release(deep), confidential).count.sum() == 4
    a_parquet(deep, "copy.parquet")  # control: another file is another file
    assert count_cells(make_release(deep), confidential).count.sum() == 8


def test_many_levels_are_walked_once_however_often_a_pattern_says_so(tmp_path):
    deep = tmp_path.joinpath(*["d"] * 40)
    deep.mkdir(parents=True)
    a_parquet(deep, "r.parquet")
    start = time.process_time()
    assert len(open_source(tmp_path / "**/**/**/**/*.parquet").files) == 1
    assert time.process_time() - start < 5  # pairs of levels took 40 s


def test_a_folder_whose_sub_folders_hold_files_is_refused_and_says_what_to_write(tmp_path):
    part = tmp_path / "data" / "year=2026"
    part.mkdir(parents=True)
    a_parquet(part.parent, "a.parquet")
    assert len(open_source(part.parent).files) == 1  # control: an empty sub folder decides nothing
    (part / "_SUCCESS").write_text("")
    (part.parent / ".hidden").mkdir()
    a_parquet(part.parent / ".hidden", "c.parquet")
    assert len(open_source(part.parent).files) == 1
    a_parquet(part, "b.parquet")
    with pytest.raises(SpecError, match=r"sub folders hold files too \(year=2026\)") as caught:
        open_source(part.parent)
    assert f"write {part.parent}/**/*.parquet" in str(caught.value)
    assert len(open_source(part.parent / "**" / "*.parquet").files) == 2
    assert len(open_source(part.parent / "*.parquet").files) == 1


def test_a_path_with_nul_is_refused_in_words():
    with pytest.raises(SpecError, match="NUL"):
        open_source("a\0b.csv")
