"""A worker's run touches what worker.yaml names, and nothing else. The control: the same release without a worker's eyes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from schemas.errors import NotOwned, SpecError
from tasks.ownership import Owned, owned_by
from tasks.specs import load_release
from tasks.stores.home import Home
from tests.flows.small import make_small

WORKER = """
releases: ../releases
sources: [../data]
populations: [small-people]
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home whose worker owns one folder of releases and one of data."""
    (tmp_path / "releases" / "small").mkdir(parents=True)
    (tmp_path / "data").mkdir()
    small = make_small(tmp_path / "releases" / "small", rows=20)
    (small.folder / "records.parquet").rename(tmp_path / "data" / "records.parquet")
    source = small.release.read_text().replace("records.parquet", "../../data/records.parquet")
    small.release.write_text(source)
    made = Home(tmp_path / "home")
    (made.folder / "worker.yaml").write_text(WORKER)
    return made


@pytest.fixture
def owned(home: Home) -> Owned:
    return owned_by(home)


def asking(owned: Owned, old: str = "", new: str = "", file: str = "release.yaml"):
    """The release that the worker owns, after somebody changed a word in one of its files."""
    path = owned.releases / "small" / file
    path.write_text(path.read_text().replace(old, new))
    return load_release(owned.release_file("small/release.yaml"))


def test_what_is_owned_may_be_released(owned: Owned):
    release = asking(owned)
    owned.must_own(release)
    owned.must_own_files(release)


@pytest.mark.parametrize(
    "name",
    ["", ".", "/etc/passwd", "../home/worker.yaml", "small/../../home/worker.yaml", "small", "none.yaml", "a\0b", "x" * 5_000],
)
def test_no_way_leads_out_of_the_folder_of_releases(owned: Owned, name: str):
    with pytest.raises(NotOwned, match="Nothing was read, nothing charged") as refused:
        owned.release_file(name)
    assert len(str(refused.value)) < 1_000


@pytest.mark.parametrize("is_folder", [False, True], ids=["a file", "a folder"])
def test_a_link_in_the_folder_of_releases_is_refused(owned: Owned, tmp_path: Path, is_folder: bool):
    outside = tmp_path / "outside"
    shutil.copytree(owned.releases / "small", outside)
    link, name = (
        (owned.releases / "l", "l/release.yaml") if is_folder else (owned.releases / "small" / "l.yaml", "small/l.yaml")
    )
    link.symlink_to(outside if is_folder else outside / "release.yaml")
    assert load_release(owned.releases / name), "the control: followed, the link leads to a release"
    with pytest.raises(NotOwned, match="is a link"):
        owned.release_file(name)


@pytest.mark.parametrize(
    ("old", "new", "file", "said"),
    [
        ("small-people", "others", "dataset.yaml", 'population "others"'),
        ("../../data/records.parquet", "/etc/passwd", "release.yaml", "source /etc/passwd"),
        ("../../data/records.parquet", "../../data/../secret/*.parquet", "release.yaml", "secret"),
        ("../../data/records.parquet", "../../data/*/../../secret/x.parquet", "release.yaml", "secret"),
        ("../../data/records.parquet", "../../data-of-others/x.parquet", "release.yaml", "data-of-others"),
    ],
)
def test_another_population_or_source_is_refused(owned: Owned, old: str, new: str, file: str, said: str):
    release = asking(owned, old, new, file)
    with pytest.raises(NotOwned, match="is not this worker's") as refused:
        owned.must_own(release)
    assert said in str(refused.value)


def test_a_domain_from_elsewhere_is_refused(owned: Owned, tmp_path: Path):
    (owned.releases / "small" / "dataset.yaml").rename(tmp_path / "dataset.yaml")
    with pytest.raises(NotOwned, match="put it under"):
        owned.must_own(asking(owned, "dataset: dataset.yaml", "dataset: ../../dataset.yaml"))


def test_expectations_from_elsewhere_are_refused(owned: Owned, tmp_path: Path):
    suite = '{"expectations": [{"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "age"}}]}'
    (tmp_path / "own.json").write_text(suite)
    (owned.releases / "small" / "own.json").write_text(suite)
    owned.must_own(asking(owned, "dataset: dataset.yaml", "dataset: dataset.yaml\nexpectations: own.json"))
    with pytest.raises(NotOwned, match="put them under"):
        owned.must_own(asking(owned, "expectations: own.json", "expectations: ../../own.json"))


def test_links_among_the_records_are_followed_before_they_are_believed(owned: Owned, tmp_path: Path):
    (tmp_path / "secret").mkdir()
    shutil.copy(tmp_path / "data" / "records.parquet", tmp_path / "secret" / "records.parquet")
    (tmp_path / "data" / "more.parquet").symlink_to(tmp_path / "secret" / "records.parquet")
    release = asking(owned, "records.parquet", "*.parquet")
    owned.must_own(release)
    with pytest.raises(NotOwned, match="more.parquet"):
        owned.must_own_files(release)


def test_a_worker_without_a_configuration_or_with_one_that_others_write_owns_nothing(home: Home):
    file = home.folder / "worker.yaml"
    file.chmod(0o666)
    with pytest.raises(SpecError, match="chmod go-w"):
        owned_by(home)
    file.unlink()
    with pytest.raises(SpecError, match="worker.yaml is missing"):
        owned_by(home)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("sources", "source", 'did you mean "sources"'),
        ("[small-people]", "[]", "populations"),
        ("../releases", "nowhere", "no folder"),
    ],
)
def test_mistakes_in_the_configuration_are_told(home: Home, old: str, new: str, said: str):
    (home.folder / "worker.yaml").write_text(WORKER.replace(old, new))
    with pytest.raises(SpecError, match=said):
        owned_by(home)


DATABASES = {
    "postgresql://db.example:5432/payroll": True,
    "postgresql://someone@DB.example:5432/payroll?sslmode=require": True,
    "postgresql://db.example:5432/other": False,
    "postgresql://db.example:5433/payroll": False,
    "postgresql://db.example.org:5432/payroll": False,
    "postgresql:///payroll": False,
    "sqlite:///../../data/records.db": True,
    "duckdb:///../../data/records.duckdb": True,
    "sqlite:///../../data/../secret/records.db": False,
    "sqlite:////etc/passwd": False,
}


@pytest.mark.parametrize("url, owns", DATABASES.items(), ids=DATABASES)
def test_a_database_is_owned_by_its_server_and_name_or_by_its_place(home: Home, url: str, owns: bool):
    (home.folder / "worker.yaml").write_text(WORKER.replace("../data", "../data, postgresql://db.example:5432/payroll"))
    owned = owned_by(home)
    release = asking(owned, "source: ../../data/records.parquet", f"source: {{url: '{url}', table: people}}")
    if owns:
        owned.must_own(release)
        owned.must_own_files(release)
    else:
        with pytest.raises(NotOwned, match="postgresql://db.example:5432/payroll"):
            owned.must_own(release)


def test_links_to_a_database_are_followed_before_they_are_believed(owned: Owned, tmp_path: Path):
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "records.db").touch()
    (tmp_path / "data" / "records.db").symlink_to(tmp_path / "secret" / "records.db")
    release = asking(owned, "../../data/records.parquet", "{url: 'sqlite:///../../data/records.db', table: people}")
    with pytest.raises(NotOwned, match="records.db"):
        owned.must_own(release)


@pytest.mark.parametrize("address", ["postgresql://me:hoatzin@db/payroll", "sqlite:///data.db", "mysql://db/payroll"])
def test_an_address_with_a_password_or_of_a_file_is_refused_in_the_configuration(home: Home, address: str):
    (home.folder / "worker.yaml").write_text(WORKER.replace("../data", address))
    with pytest.raises(SpecError, match="password|write its path|no address") as refused:
        owned_by(home)
    assert "hoatzin" not in str(refused.value)
