"""A release from a database, whole: planned, run, verified; and a password that is found in the environment and nowhere else."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pyarrow.parquet as pq
import pytest

from tests.flows.small import Small, leaks
from tests.flows.test_confidentiality import stored_by_prefect
from tests.postgres import running_server
from tests.prefect_server import PrefectServer

PASSWORD = "hoatzin-7c1e55"


def move_into_sqlite(small: Small) -> Path:
    path, frame = small.folder / "records.db", pq.read_table(small.folder / "records.parquet").to_pandas()
    with sqlite3.connect(path) as connection:
        frame.to_sql("people", connection, index=False)
    (small.folder / "records.parquet").unlink()
    return path


def ask(small: Small, source: str, name: str = "small-1") -> None:
    small.write(name)
    small.release.write_text(small.release.read_text().replace("records.parquet", source))


@pytest.mark.whole
def test_a_release_from_sqlite_is_planned_run_and_verified(small: Small, steps, prefect_server: PrefectServer):
    move_into_sqlite(small)
    ask(small, "{url: 'sqlite:///records.db', query: 'SELECT region, working, age, person FROM people'}")
    steps("budget", "grant", "small-people", "2", "--why", "a test")
    planned = steps("plan", small.release, "--json")
    assert planned.json["source"] == {"files": 0, "words": "a query of SQLite", "problems": []}
    run = steps("run", small.release)
    assert run.code == 0 and "reads a query of SQLite" in run.err
    assert steps("verify", small.home / "public" / "small-1").code == 0
    assert leaks(*stored_by_prefect(prefect_server), small.home) == []
    ask(small, "{url: 'sqlite:///records.db', query: 'SELECT region, working, age AS years, person FROM people'}", "small-2")
    refused = steps("run", small.release)
    assert refused.code == 4 and "lacks the column age" in refused.err and "years" not in refused.err


def test_a_database_that_is_down_leaves_a_plan_and_stops_a_run_before_anything_is_charged(small: Small, steps):
    ask(small, "{url: 'postgresql://127.0.0.1:9/none', table: people}")
    steps("budget", "grant", "small-people", "2", "--why", "a test")
    planned = steps("plan", small.release, "--json")
    assert planned.code == 0 and "cannot be read now" in planned.json["source"]["problems"][0]
    run = steps("run", small.release)
    assert run.code == 1 and "PGPASSWORD" in run.err and "Then run again" in run.err
    assert [entry["kind"] for entry in steps("budget", "log", "--json").json["entries"]] == ["grant"]


@pytest.fixture(scope="module")
def locked_server() -> Iterator[str]:
    """A server that lets `reader` in by password alone."""
    with running_server() as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'")
        [(file,)] = connection.execute("SHOW hba_file").fetchall()
        hba = Path(file)
        hba.write_text("host all reader 127.0.0.1/32 scram-sha-256\n" + hba.read_text())
        connection.execute("SELECT pg_reload_conf()")
        yield url


@pytest.mark.slow
@pytest.mark.postgres
def test_the_password_is_found_in_the_environment_and_nowhere_else(
    small: Small, steps, locked_server: str, prefect_server: PrefectServer, caplog, monkeypatch: pytest.MonkeyPatch
):
    caplog.set_level(logging.DEBUG)
    fill(locked_server, small)
    url = locked_server.replace("steps@", "")
    ask(small, f"{{url: '{url}', table: people}}")
    steps("budget", "grant", "small-people", "2", "--why", "a test")
    monkeypatch.setenv("PGUSER", "reader")
    said = [steps("run", small.release)]
    assert said[0].code == 1 and "no password supplied" in said[0].err and "PGPASSWORD" in said[0].err
    monkeypatch.setenv("PGPASSWORD", PASSWORD + "-wrong")
    said.append(steps("run", small.release))
    assert said[1].code == 1 and "authentication failed" in said[1].err
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    said += [steps("plan", small.release), steps("run", small.release)]
    assert said[3].code == 0 and "reads the table people of PostgreSQL" in said[3].err
    said.append(steps("verify", small.home / "public" / "small-1"))
    assert said[4].code == 0
    ask(small, f"{{url: '{url}', query: 'SELECT voted FROM people'}}", "small-2")
    said.append(steps("run", small.release))
    assert said[5].code == 2 and 'column "voted" does not exist' in said[5].err
    ask(small, f"{{url: 'postgresql://reader:{PASSWORD}@{url.partition('//')[2]}', table: people}}", "small-3")
    said.append(steps("run", small.release))
    small.release.unlink()  # the one place where it was written
    assert said[6].code == 2 and "holds a password" in said[6].err
    printed = "".join(each.out + each.err for each in said) + caplog.text
    assert PASSWORD not in printed and holding(PASSWORD, small.folder, *stored_by_prefect(prefect_server)) == []
    (small.folder / "control").write_text(PASSWORD)
    assert len(holding(PASSWORD, small.folder)) == 1 and os.environ["PGPASSWORD"] == PASSWORD, "the control: it would be found"


@pytest.mark.slow
@pytest.mark.postgres
def test_the_password_is_found_in_a_password_file_and_nowhere_else(
    small: Small, steps, locked_server: str, prefect_server: PrefectServer, tmp_path_factory, caplog, monkeypatch
):
    """libpq reads PGPASSFILE, or ~/.pgpass, by itself; one that others may read it passes over."""
    caplog.set_level(logging.DEBUG)
    fill(locked_server, small, "survey")
    url = locked_server.replace("steps@", "")
    ask(small, f"{{url: '{url}', table: survey}}")
    steps("budget", "grant", "small-people", "2", "--why", "a test")
    account = tmp_path_factory.mktemp("account")  # whose home it is
    file = account / ".pgpass"
    file.write_text(f"127.0.0.1:*:*:reader:{PASSWORD}\n")
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGUSER", "reader")
    monkeypatch.setenv("PGPASSFILE", str(file))
    file.chmod(0o644)
    said = [steps("run", small.release)]
    assert said[0].code == 1 and "no password supplied" in said[0].err and "pgpass" in said[0].err
    file.chmod(0o600)
    said += [steps("plan", small.release), steps("run", small.release)]
    assert said[2].code == 0 and "reads the table survey of PostgreSQL" in said[2].err
    said.append(steps("verify", small.home / "public" / "small-1"))
    assert said[3].code == 0
    printed = "".join(each.out + each.err for each in said) + caplog.text
    assert PASSWORD not in printed and holding(PASSWORD, small.folder, *stored_by_prefect(prefect_server)) == []
    assert holding(PASSWORD, account) == [file], "the control: it would be found"


def fill(url: str, small: Small, table: str = "people") -> None:
    frame = pq.read_table(small.folder / "records.parquet").to_pandas()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {table} (region text, working text, age integer, person bigint)")
        connection.execute(f"GRANT SELECT ON {table} TO reader")
        with connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN (FORMAT csv)") as copy:
            copy.write(frame.to_csv(index=False, header=False))


def holding(secret: str, *places: Path) -> list[Path]:
    """Every file in which it stands, confidential ones included."""
    files = [path for place in places for path in ([place] if place.is_file() else place.rglob("*"))]
    return [path for path in files if path.is_file() and secret.encode() in path.read_bytes()]
