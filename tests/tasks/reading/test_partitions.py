"""Folders called key=value are columns where the domain wants them: the same counts as from one file that has the columns."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from schemas.errors import DataInvalid, SpecError
from tasks.reading.fitting import look_at
from tasks.reading.partial_counts import shares_of_source
from tasks.reading.partitions import NOTHING
from tasks.reading.sources import open_source
from tasks.stages.discretize import discretize, discretize_parts
from tasks.stages.validate import validate_records
from tests.tasks.reading.records import count_cells, make_domain, make_release

ATTRIBUTES = (
    {"name": "voted", "kind": "categorical", "categories": ("no", "yes")},
    {"name": "year", "kind": "integer", "bounds": (2024, 2026)},
    {"name": "region", "kind": "categorical", "categories": ("a/b", "ç d", "it's"), "missing": "category"},
)
FRAME = pd.DataFrame(
    {
        "voted": ["no", "yes", "no", "yes", "no", "no"],
        "year": [2024, 2024, 2025, 2025, 2026, 2026],
        "region": ["a/b", "ç d", "it's", "it's", None, "a/b"],
    }
)
FOLDERS = {"a/b": "a%2Fb", "ç d": "%C3%A7 d", "it's": "it's", None: NOTHING}


def write(folder: Path, kind: str = "parquet", keys: tuple[str, ...] = ("year", "region")) -> Path:
    for number, (_, row) in enumerate(FRAME.iterrows()):
        named = {"year": row["year"], "region": FOLDERS[row["region"] if isinstance(row["region"], str) else None]}
        place = folder.joinpath(*(f"{key}={named[key]}" for key in keys))
        place.mkdir(parents=True, exist_ok=True)
        rest = FRAME.iloc[[number]].drop(columns=list(keys))
        path = place / f"part-{number}.{kind}"
        rest.to_parquet(path, index=False) if kind == "parquet" else rest.to_csv(path, index=False)
    return folder


@pytest.fixture
def domain():
    return make_domain(ATTRIBUTES)


def counted(source: object, domain, confidential: Path) -> dict:
    return count_cells(make_release(str(source), domain), confidential).to_table(domain).to_pydict()


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.whole
def test_partitions_count_as_one_file_does(tmp_path: Path, domain, confidential: Path, kind: str):
    FRAME.to_parquet(tmp_path / "whole.parquet")
    expected = counted(tmp_path / "whole.parquet", domain, confidential)
    data = write(tmp_path / "data", kind)
    for source in (data, data / "**" / f"*.{kind}", data / "*" / "*" / "part-*"):
        validate_records(make_release(str(source), domain), confidential)
        assert counted(source, domain, confidential) == expected
    seen = look_at(str(data), domain)
    assert seen.problems == () and len(seen.files) == 6


def test_a_part_of_the_folders_is_a_part_of_the_records(tmp_path: Path, domain, confidential: Path):
    data = write(tmp_path / "data")
    found = counted(data / "year=2025" / "**" / "*.parquet", domain, confidential)
    assert (found["voted"], found["year"], found["region"]) == ([0, 1], [1, 1], [2, 2])


@pytest.mark.whole
def test_shares_of_workers_add_up_to_the_same(tmp_path: Path, domain):
    from tasks.reading.partial_counts import count_part, room_for_parts
    from tasks.stores.artifacts import Store
    from tasks.stores.home import Home

    release, home = make_release(str(write(tmp_path / "data")), domain), Home(tmp_path / "home")
    shares = shares_of_source(release)
    assert len(shares) == 6
    with room_for_parts(home, release, len(shares)) as parts:
        for files, part in zip(shares, parts, strict=True):
            count_part(home, release, files, part)
        together = Store(home).read(discretize_parts(home, release, parts)).to_pydict()
    assert together == Store(home).read(discretize(home, release)).to_pydict()


@pytest.mark.whole
def test_renamed_keys_and_people_in_folders_are_columns_too(tmp_path: Path, confidential: Path):
    data = write(tmp_path / "data", keys=("year", "region"))
    attributes = ({**ATTRIBUTES[0]}, {**ATTRIBUTES[1], "name": "when"})
    domain = make_domain(attributes, column="region", rows_per_person=3)
    domain = domain.model_copy(update={"rename": {"year": "when"}})
    with pytest.raises(DataInvalid):
        validate_records(make_release(str(data), domain), confidential)  # somebody has no region
    (data / "year=2026" / f"region={NOTHING}" / "part-4.parquet").unlink()
    assert count_cells(make_release(str(data), domain), confidential).count.sum() == 5


def test_a_key_that_the_domain_does_not_want_or_the_files_have_changes_nothing(tmp_path: Path, confidential: Path):
    small = make_domain(ATTRIBUTES[:1])
    data = write(tmp_path / "data")
    assert open_source(data, small).names == ("voted",) and open_source(data).names == ("voted",)
    within = tmp_path / "year=1999"
    within.mkdir()
    FRAME.to_parquet(within / "whole.parquet")
    found = counted(within / "whole.parquet", make_domain(ATTRIBUTES), confidential)
    assert sorted(set(found["year"])) == [0, 1, 2], "the file's own column, as before"


def test_a_value_outside_the_domain_is_told_on_the_confidential_page_alone(tmp_path: Path, domain, confidential: Path):
    data = write(tmp_path / "data")
    (data / "year=2026").rename(data / "year=quetzal")
    with pytest.raises(DataInvalid) as caught:
        validate_records(make_release(str(data), domain), confidential)
    assert "quetzal" not in str(caught.value) and "quetzal" in (confidential / "validation.html").read_text()


def test_files_whose_folders_have_other_keys_are_refused(tmp_path: Path, domain):
    data = write(tmp_path / "data")
    other = data / "year=2026"
    FRAME[["voted"]].to_parquet(other / "part-9.parquet")
    with pytest.raises(SpecError, match="the folders of part-9.parquet say region=… not, those of other files once"):
        open_source(data, domain)
    (other / "part-9.parquet").unlink()
    (other / "region=it's" / "year=2026").mkdir(parents=True)
    FRAME[["voted"]].to_parquet(other / "region=it's" / "year=2026" / "part-9.parquet")
    with pytest.raises(SpecError, match="say year=… twice"):
        open_source(data, domain)


def test_a_folder_of_partitions_beside_other_files_stays_ambiguous(tmp_path: Path, domain):
    data = write(tmp_path / "data")
    (data / "_SUCCESS").touch()
    (data / "_log").mkdir()
    (data / "_log" / "0.json").write_text("{}")
    assert len(open_source(data, domain).files) == 6, "what programs leave beside data is no file of it"
    FRAME.to_parquet(data / "whole.parquet")
    with pytest.raises(SpecError, match="a folder whose sub folders hold files too"):
        open_source(data, domain)


@pytest.mark.whole
def test_many_partitions_are_read_and_too_many_refused(tmp_path: Path, confidential: Path, monkeypatch):
    domain = make_domain(({**ATTRIBUTES[0]}, {"name": "code", "kind": "integer", "bounds": (0, 299)}))
    for number in range(300):
        (tmp_path / "data" / f"code={number}").mkdir(parents=True)
        FRAME[["voted"]].to_parquet(tmp_path / "data" / f"code={number}" / "x.parquet")
    assert counted(tmp_path / "data", domain, confidential)["code"] == [n for _ in range(2) for n in range(300)]
    monkeypatch.setattr("tasks.reading.partitions.MOST_PARTITIONS", 299)
    with pytest.raises(SpecError, match="more than 299 partitions"):
        open_source(tmp_path / "data", domain)
