"""Records in a database are read as records in a file are: the same counts, the same refusals, and nothing is changed there."""

from __future__ import annotations

import datetime
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors import DataInvalid, InfrastructureFault, SpecError
from schemas.spec.database import DatabaseSource
from schemas.spec.release import Release
from tasks.reading import databases
from tasks.reading.databases import postgresql, sqlite
from tasks.reading.fitting import look_at
from tasks.reading.partial_counts import shares_of_source
from tasks.reading.sources import ReadingFailed, connect, open_source, query
from tasks.stages.validate import validate_records
from tests.postgres import running_server
from tests.tasks.reading.records import count_cells, good_frame, make_domain, make_release

NAMES = ("voted", "age", "wage", "born")
CREATE = "CREATE TABLE people (voted {text}, age {whole}, wage {number}, born {day})"
TYPES = {
    "sqlite": {"text": "TEXT", "whole": "INTEGER", "number": "REAL", "day": "DATE"},
    "duckdb": {"text": "VARCHAR", "whole": "INTEGER", "number": "DOUBLE", "day": "DATE"},
    "postgresql": {"text": "text", "whole": "integer", "number": "double precision", "day": "date"},
}


@dataclass(frozen=True)
class Made:
    """A database with a table of people, and how to run statements in it."""

    kind: str
    url: str
    run: Callable[..., list[tuple[Any, ...]]]

    def asked(self, **what: str) -> DatabaseSource:
        return DatabaseSource(url=self.url, **(what or {"table": "people"}))

    def release(self, domain=None, **what: str) -> Release:
        made = make_release("unused", domain)
        return made.model_copy(update={"spec": made.spec.model_copy(update={"source": self.asked(**what)})})


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    with running_server() as url:
        yield url


def run_in_file(module: Any, path: Path) -> Callable[..., list[tuple[Any, ...]]]:
    def run(sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        connection = module.connect(str(path))
        try:
            found = connection.execute(sql, values).fetchall()
            connection.commit()
            return found
        finally:
            connection.close()

    return run


def run_on_server(url: str) -> Callable[..., list[tuple[Any, ...]]]:
    def run(sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        with psycopg.connect(url, autocommit=True) as connection:
            cursor = connection.execute(sql.replace("?", "%s"), values or None)
            return cursor.fetchall() if cursor.description else []

    return run


@pytest.fixture(params=["sqlite", "duckdb", pytest.param("postgresql", marks=pytest.mark.postgres)])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Made:
    kind = request.param
    if kind == "postgresql":
        url = request.getfixturevalue("server")
        found = Made(kind, url, run_on_server(url))
        found.run("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    else:
        path = tmp_path / "it's a 100% file.db"
        run = run_in_file(sqlite3 if kind == "sqlite" else duckdb, path)
        found = Made(kind, f"{kind}:///{path}", run if kind == "sqlite" else lambda sql, v=(): run(sql, v))
    found.run(CREATE.format(**TYPES[kind]))
    for row in good_frame().itertuples(index=False):
        values = [each.isoformat() if isinstance(each, datetime.date) else each for each in row]
        found.run("INSERT INTO people VALUES (?, ?, ?, ?)", values)
    return found


def in_parquet(tmp_path: Path) -> Release:
    good_frame().to_parquet(tmp_path / "records.parquet")
    return make_release(tmp_path / "records.parquet")


@pytest.mark.whole
def test_a_table_and_a_query_count_as_a_file_does(made: Made, tmp_path: Path, confidential: Path):
    expected = count_cells(in_parquet(tmp_path), confidential).to_table(make_domain()).to_pydict()
    for what in ({"table": "people"}, {"query": "SELECT * FROM people -- all of them;"}, {"query": "SELECT * FROM people ;\n"}):
        release = made.release(**what)
        validate_records(release, confidential)
        assert count_cells(release, confidential).to_table(release.domain).to_pydict() == expected
    older = made.release(query="WITH older AS (SELECT * FROM people WHERE age > 18) SELECT voted, age, wage, born FROM older")
    assert count_cells(older, confidential).count.sum() == 2
    assert [each.name for each in confidential.iterdir()] == ["validation.html"], "what was unpacked is gone"


def test_the_door_knows_the_columns_and_says_what_is_read(made: Made):
    seen = look_at(made.asked(), make_domain())
    assert seen.words == f"the table people of {made.asked().title}" and seen.problems == () and seen.files == ()
    assert look_at(made.asked(query="SELECT * FROM people"), make_domain()).words.startswith("a query of ")
    lacking = look_at(made.asked(query="SELECT voted, age, wage, 1 AS quetzal FROM people"), make_domain())
    assert lacking.problems[0] == "lacks the column born" and "quetzal" not in "".join(lacking.problems)
    assert shares_of_source(made.release()) == [], "one reader asks a database once"


BAD = {
    "no such table": {"table": "persons"},
    "no such column": {"query": "SELECT quetzals FROM people"},
    "no SQL": {"query": "SELEC voted FROM people"},
    "no bracket": {"query": "SELECT 1) AS x; DROP TABLE people; SELECT (1"},
    "two statements": {"query": "SELECT * FROM people; SELECT * FROM people"},
    "a change": {"query": "DELETE FROM people"},
    "a change that answers": {"query": "INSERT INTO people VALUES ('no', 18, 0, '1980-01-01') RETURNING *"},
    "a second one behind a comment": {"query": "SELECT * FROM people /* */; DROP TABLE people"},
    "an open comment": {"query": "SELECT * FROM people /*"},
    "a change before the answer": {"query": "WITH gone AS (DELETE FROM people RETURNING *) SELECT * FROM gone"},
    "a parameter": {"query": "SELECT * FROM people WHERE age > $1"},
}


@pytest.mark.parametrize("what", BAD.values(), ids=BAD)
def test_what_cannot_be_asked_is_refused_before_a_record_is_read(made: Made, what: dict[str, str], monkeypatch):
    monkeypatch.setattr("tasks.reading.sources.connect", None)
    with pytest.raises(SpecError, match=r"source .*(No record was read|must be one SELECT)") as caught:
        open_source(made.asked(**what))
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    assert "1980" not in str(caught.value) and "Did you mean" not in str(caught.value)
    assert made.run("SELECT count(*) FROM people") == [(4,)]


def test_nothing_can_be_changed_even_by_a_function(made: Made, confidential: Path):
    if made.kind != "postgresql":
        pytest.skip("functions that write are PostgreSQL's")
    made.run("CREATE FUNCTION forget() RETURNS int LANGUAGE sql AS 'DELETE FROM people; SELECT 1'")
    source = open_source(made.asked(query="SELECT forget() AS voted"))
    with pytest.raises(ReadingFailed) as caught, connect(source, confidential):
        pass
    assert "read-only" in caught.value.confidential
    assert made.run("SELECT count(*) FROM people") == [(4,)] and made.run("SELECT forget()") == [(1,)]  # the control: it does


TYPED = {
    "sqlite": """CREATE TABLE typed AS SELECT 9007199254740993 AS whole, 0.1 + 0.2 AS number, 2.0 AS round, 'it''s, "so"
' AS word, '' AS blank, 1 AS truth, '2020-02-29' AS day, '2020-02-29 23:59:59.25' AS moment, x'6162' AS bytes, 1e300*1e10 AS vast""",
    "duckdb": """CREATE TABLE typed AS SELECT 9007199254740993 AS whole, 0.1::DOUBLE + 0.2::DOUBLE AS number, 2.5::DECIMAL(9,2) AS round,
'it''s, "so"
' AS word, '' AS blank, true AS truth, DATE '2020-02-29' AS day, TIMESTAMPTZ '2020-02-29 23:59:59.25+00' AS moment,
[1] AS bytes, 170141183460469231731687303715884105727::HUGEINT AS vast""",
    "postgresql": """CREATE TABLE typed AS SELECT 9007199254740993 AS whole, 0.1::float8 + 0.2::float8 AS number, 2.50::numeric(9,2) AS round,
E'it''s, "so"\n'::text AS word, ''::text AS blank, true AS truth, DATE '2020-02-29' AS day,
TIMESTAMPTZ '2020-02-29 23:59:59.25+00' AS moment, 'ab'::bytea AS bytes, 170141183460469231731687303715884105727 AS vast""",
}
HELD = {
    "sqlite": dict.fromkeys(
        ("whole", "number", "round", "word", "blank", "truth", "day", "moment", "bytes", "vast"), "text as written"
    ),
    "duckdb": {"round": "numbers", "bytes": "INTEGER[]", "vast": "text as written"},
    "postgresql": {"round": "text as written", "bytes": "bytea", "vast": "text as written"},
}
USUAL = {
    **{"whole": "whole numbers", "number": "numbers", "word": "text", "blank": "text", "truth": "true or false"},
    **{"day": "dates", "moment": "times"},
}
READ = {
    "whole": "9007199254740993",
    "number": "0.30000000000000004",
    "round": {"sqlite": "2", "duckdb": "2.50", "postgresql": "2.5"},
    "word": 'it\'s, "so"\n',
    "blank": "",
    "truth": {"sqlite": "1", "duckdb": "true", "postgresql": "true"},
    "day": "2020-02-29",
    "moment": "2020-02-29 23:59:59.25",
    "bytes": {"sqlite": "6162", "duckdb": None, "postgresql": None},  # ignored: never read
    "vast": {
        "sqlite": "Inf",
        "duckdb": "170141183460469231731687303715884105727",
        "postgresql": "170141183460469231731687303715884105727",
    },
}


def test_every_type_is_read_to_the_last_digit_and_nulls_stay_nulls(made: Made, confidential: Path):
    made.run(TYPED[made.kind])
    made.run("INSERT INTO typed (whole) VALUES (NULL)")
    domain = make_domain().model_copy(update={"ignore": ("bytes",) if made.kind != "sqlite" else ()})
    source = open_source(made.asked(table="typed"), domain)
    assert dict(source.columns) == USUAL | HELD[made.kind]
    with connect(source, confidential) as connection:
        texts = ", ".join(f"CAST(c{i} AS VARCHAR) AS {name}" for i, name in enumerate(source.names))
        rows = query(connection, f"SELECT {texts} FROM {source.relation()} ORDER BY c0 NULLS LAST").to_pylist()
    assert rows[0] == {name: each[made.kind] if isinstance(each, dict) else each for name, each in READ.items()}
    assert set(rows[1].values()) == {None}


@pytest.mark.postgres
def test_names_enums_and_padded_texts_of_postgresql_are_text(server: str, confidential: Path):
    run = run_on_server(server)
    run("DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE TYPE mood AS ENUM ('fine')")
    person = uuid.UUID(int=7)
    run(
        f"CREATE TABLE odd AS SELECT 'fine'::mood AS a, 'x'::char(5) AS b, '{person}'::uuid AS c, 'y'::varchar(3) AS d, 'NaN'::float8 AS e"
    )
    source = open_source(DatabaseSource(url=server, table="public.odd"))
    assert [holds for _, holds in source.columns] == ["text"] * 4 + ["numbers"]
    with connect(source, confidential) as connection:
        [row] = query(connection, f"SELECT c0, c1, c2, c3, isnan(c4) AS nan FROM {source.relation()}").to_pylist()
    assert row == {"c0": "fine", "c1": "x", "c2": str(person), "c3": "y", "nan": True}


def test_rows_come_in_batches_and_none_is_lost_between_two(made: Made, confidential: Path, monkeypatch):
    """One column whose NULLs are empty lines, as an export would write them."""
    monkeypatch.setattr(sqlite, "VALUES_PER_BATCH", 7)
    monkeypatch.setattr(postgresql, "BLOCK", 50)
    numbers = "SELECT {} AS n FROM ({}) AS many(i)"
    every = {
        "sqlite": "WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < 999) SELECT nullif(i % 3, 0) AS n FROM c",
        "duckdb": numbers.format("nullif(i % 3, 0)", "SELECT * FROM range(1000)"),
        "postgresql": numbers.format("nullif(i % 3, 0)", "SELECT * FROM generate_series(0, 999)"),
    }
    with connect(source := open_source(made.asked(query=every[made.kind])), confidential) as connection:
        found = query(connection, f"SELECT c0::INTEGER AS n, count(*) AS often FROM {source.relation()} GROUP BY 1")
    assert {row["n"]: row["often"] for row in found.to_pylist()} == {None: 334, 1: 333, 2: 333}


@pytest.mark.whole
def test_an_unfit_record_fails_validation_and_is_told_on_the_confidential_page_alone(made: Made, confidential: Path):
    made.run("INSERT INTO people VALUES ('quetzalcoatlus', 18, 0, '1980-01-01')")
    with pytest.raises(DataInvalid) as caught:
        validate_records(made.release(), confidential)
    assert "quetzal" not in str(caught.value) and "quetzalcoatlus" in (confidential / "validation.html").read_text()


@pytest.mark.whole
def test_a_query_that_fails_while_it_is_read_quotes_no_record(made: Made, confidential: Path):
    made.run("INSERT INTO people VALUES ('987650', 18, 0, '1980-01-01')")
    broken = {
        "sqlite": "SELECT json(voted || '{') AS voted, age, wage, born FROM people",
        "duckdb": "SELECT CAST(voted AS INTEGER)::VARCHAR AS voted, age, wage, born FROM people",
        "postgresql": "SELECT CAST(voted AS integer)::text AS voted, age, wage, born FROM people",
    }
    release = made.release(query=broken[made.kind])
    with pytest.raises(DataInvalid) as caught:
        validate_records(release, confidential)
    with pytest.raises(DataInvalid, match="changed since") as counted:
        count_cells(release, confidential)
    for error in (caught.value, counted.value):
        assert error.__context__ is None and error.__cause__ is None and "no" not in str(error).split()


def test_columns_that_changed_since_they_were_described_are_not_read(made: Made, confidential: Path):
    source = open_source(made.asked())
    made.run("DROP TABLE people")
    with pytest.raises((ReadingFailed, SpecError)), connect(source, confidential):
        pass


def test_a_file_that_is_missing_or_none_of_its_kind_is_refused(tmp_path: Path):
    (tmp_path / "notes.txt").write_text("no database " * 1000)
    for kind in ("sqlite", "duckdb"):
        with pytest.raises(SpecError, match="there is no such file"):
            open_source(DatabaseSource(url=f"{kind}:///{tmp_path}/none.db", table="people"))
        assert not (tmp_path / "none.db").exists()
        with pytest.raises(SpecError, match="the file is no"):
            open_source(DatabaseSource(url=f"{kind}:///{tmp_path}/notes.txt", table="people"))


def test_a_database_that_does_not_answer_or_is_busy_is_a_fault_worth_a_retry(tmp_path: Path, monkeypatch):
    with pytest.raises(InfrastructureFault, match="cannot be read now .* PGPASSWORD .* run again"):
        open_source(DatabaseSource(url="postgresql://127.0.0.1:9/none", table="people"))
    monkeypatch.setattr(sqlite, "PATIENCE", 0.1)
    path = tmp_path / "busy.db"
    with sqlite3.connect(path, isolation_level=None) as connection:
        connection.execute("CREATE TABLE people (a)")
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InfrastructureFault, match="locked"):
            open_source(DatabaseSource(url=f"sqlite:///{path}", table="people"))
        connection.execute("COMMIT")
    assert open_source(DatabaseSource(url=f"sqlite:///{path}", table="people")).names == ("a",)


def test_a_duckdb_file_reaches_no_other_file(tmp_path: Path, confidential: Path):
    duckdb.connect(str(tmp_path / "a.duckdb")).close()
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    url = f"duckdb:///{tmp_path}/a.duckdb"
    with pytest.raises(SpecError, match="Permission|disabled"):
        open_source(DatabaseSource(url=url, query=f"SELECT * FROM read_parquet('{tmp_path}/other.parquet')"))
    with pytest.raises(SpecError):
        open_source(DatabaseSource(url=url, query=f"SELECT * FROM '{tmp_path}/other.parquet'"))


def test_every_kind_of_address_has_a_reader():
    from schemas.spec.database import TITLES

    assert [each.name for each in databases.DATABASES.entries()] == list(TITLES)
