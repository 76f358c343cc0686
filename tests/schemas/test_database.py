"""A source in a database, as release.yaml says it: one table or query, an address without a password, paths and periods."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.errors import SpecError
from schemas.identity import spec_hash
from schemas.spec.database import DatabaseSource
from tasks.specs import load_release
from tests.flows.small import DATASET, RELEASE

CANARY = "hoatzin"


def asked(tmp_path: Path, source: str, period: str | None = None):
    (tmp_path / "dataset.yaml").write_text(DATASET)
    text = RELEASE.replace("NAME", "small").replace("EPSILON", "1").replace("records.parquet", source)
    (tmp_path / "release.yaml").write_text(text)
    return load_release(tmp_path / "release.yaml", period)


def test_paths_start_at_the_folder_of_the_release_and_periods_are_filled_in(tmp_path: Path):
    release = asked(tmp_path, "{url: 'sqlite:///data/{year}.db', table: 'people_{quarter}'}", "2026q4")
    assert isinstance(release.source, DatabaseSource)
    assert (release.source.path, release.source.sql) == (f"{tmp_path}/data/2026.db", 'SELECT * FROM "people_4"')
    assert str(release.source) == f"sqlite:///{tmp_path}/data/2026.db (table people_4)"
    whole = asked(tmp_path, "{url: 'duckdb:////data/x.duckdb', query: 'SELECT 1 AS month WHERE {month} = 11;'}", "2026-11")
    assert (whole.source.path, whole.source.sql) == ("/data/x.duckdb", "SELECT 1 AS month WHERE 11 = 11")
    assert asked(tmp_path, "{url: 'postgresql://db/payroll', table: a.b}").source.sql == 'SELECT * FROM "a"."b"'


def test_where_the_records_lie_is_no_part_of_what_was_asked(tmp_path: Path):
    files = asked(tmp_path, "records.parquet")
    assert spec_hash(files) == spec_hash(asked(tmp_path, "{url: 'postgresql://db/payroll', table: people}"))


WITH_PASSWORD = [
    f"postgresql://reader:{CANARY}@db/payroll",
    f"postgresql://:{CANARY}@db/payroll",
    f"postgres://reader:{CANARY}@db/payroll",
    f"postgresql://reader:{CANARY}/x@db/payroll",
    f"postgresql://db/payroll?password={CANARY}",
    f"postgresql://db/payroll?sslpassword={CANARY}",
    f"postgresql://db/payroll?pass%77ord={CANARY}",
    f"postgresql://db/payroll?options=-csomething%3D{CANARY}",
    f"postgresql+psycopg://reader:{CANARY}@db/payroll",
]


@pytest.mark.parametrize("url", WITH_PASSWORD)
def test_a_password_is_refused_at_the_door_and_not_repeated(tmp_path: Path, url: str):
    for source in (f"{{url: '{url}', table: people}}", f"'{url}'", f"{{url: '{url}', tables: people}}"):
        with pytest.raises(SpecError) as refused:
            asked(tmp_path, source)
        assert CANARY not in str(refused.value) and CANARY not in repr(refused.value.__dict__)
    assert refused.value.__cause__ is None


def test_it_says_where_the_password_belongs(tmp_path: Path):
    with pytest.raises(SpecError, match=r"release.yaml, line 4: source.url: the address holds a password.*PGPASSWORD.*pgpass"):
        asked(tmp_path, f"{{url: '{WITH_PASSWORD[0]}', table: people}}")


BAD = {
    "neither": ("{url: 'sqlite:///a.db'}", "a table or a query; found neither"),
    "both": ("{url: 'sqlite:///a.db', table: a, query: SELECT 1}", "found both"),
    "no url": ("{table: a}", "is needed here"),
    "an unknown key": ("{url: 'sqlite:///a.db', tabel: a}", 'did you mean "table"'),
    "another database": ("{url: 'mysql://db/a', table: a}", "write postgresql://host"),
    "a web address": ("{url: 'https://db/a', table: a}", "write postgresql://host"),
    "an address as a path": ("postgresql://db/payroll", "stands under url"),
    "no database": ("{url: 'postgresql://db', table: a}", "names no database"),
    "two servers": ("{url: 'postgresql://db1,db2/payroll', table: a}", "more than one server"),
    "a wrong port": ("{url: 'postgresql://db:99999/payroll', table: a}", "is no address"),
    "another server in the settings": (
        "{url: 'postgresql://db/a?host=elsewhere', table: a}",
        "settings after the question mark",
    ),
    "in memory": ("{url: 'sqlite://', table: a}", "names no file"),
    "settings of a file": ("{url: 'sqlite:///a.db?mode=rw', table: a}", "names no file"),
    "a host of a file": ("{url: 'sqlite://a.db', table: a}", "names no file"),
    "an empty table": ("{url: 'sqlite:///a.db', table: ''}", "is empty"),
    "half a table": ("{url: 'sqlite:///a.db', table: 'a.'}", "survey.people"),
    "a blank query": ("{url: 'sqlite:///a.db', query: ' '}", "is empty"),
    "a number": ("7", "is a text; found 7"),
}


@pytest.mark.parametrize("source, says", BAD.values(), ids=BAD)
def test_what_is_no_source_is_told_with_its_line(tmp_path: Path, source: str, says: str):
    with pytest.raises(SpecError, match=f"release.yaml, line 4: source.*{says}"):
        asked(tmp_path, source)
