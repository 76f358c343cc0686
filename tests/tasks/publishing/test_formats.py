"""Formats of a bundle: each holds the rows of the sealed table, one that is unknown is refused unpaid, a new one is one file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from schemas.errors import SpecError
from tasks.publishing import bundle
from tasks.publishing.formats import FORMATS
from tasks.publishing.publication import publish
from tasks.stages.plan import plan
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tasks.verify.bundle import verify_bundle
from tests.tasks.publishing.making import GIVEN, POLL, Made, a_release, edit_table, make, sign_again, some_counts
from tests.toys import added


@pytest.fixture
def new_format(monkeypatch: pytest.MonkeyPatch) -> None:
    added(monkeypatch, "tasks.publishing.formats", "bundle_formats")


@pytest.mark.parametrize("name", ["parquet", "csv", "jsonl"])
def test_every_format_holds_the_records_it_was_made_from_and_no_others(new_format, given: Made, tmp_path: Path, name: str):
    path = Path(shutil.copy(given.home.public / given.release.name / "synthetic-1.parquet", tmp_path))
    sealed, records, form = path.read_bytes(), pq.read_table(path), FORMATS.named(name)
    assert form.holds(form.write(sealed), records)
    edit_table(path, lambda columns: columns["wage"].reverse())
    assert not form.holds(form.write(path.read_bytes()), records)


@pytest.mark.whole
def test_a_new_format_is_published_listed_and_verified(new_format, tmp_path: Path):
    made = make(tmp_path / "home", a_release(POLL, GIVEN, formats=("parquet", "jsonl")), some_counts(POLL, 4003))
    folder = publish(*made.arguments).folder
    assert {path.name for path in folder.iterdir()} == bundle.file_names(2, ("parquet", "jsonl"))
    lines = (folder / "synthetic-1.jsonl").read_text().splitlines()
    assert len(lines) == pq.read_metadata(folder / "synthetic-1.parquet").num_rows and json.loads(lines[0]).keys() == set(
        POLL.names
    )
    assert verify_bundle(folder, made.home.keys / "signing-key.pub") == []

    (folder / "synthetic-2.jsonl").write_text("\n".join(reversed(lines)))
    sign_again(folder, made.home)
    assert [str(p) for p in verify_bundle(folder) if not p.note] == [
        "synthetic-2.jsonl: does not hold the rows of the Parquet file"
    ]


def test_a_file_of_a_format_that_nobody_knows_does_not_belong_to_a_bundle(given: Made, given_copy: Path):
    (given_copy / "synthetic-1.jsonl").write_text("{}")
    sign_again(given_copy, given.home)
    assert "synthetic-1.jsonl: does not belong to a bundle" in [str(problem) for problem in verify_bundle(given_copy)]


def test_an_unknown_format_is_refused_before_there_is_a_plan_to_pay_for(tmp_path: Path):
    home = Home(tmp_path / "home")
    with pytest.raises(SpecError, match="formats names 'xlsx'; known are parquet, csv"):
        plan(home, a_release(POLL, GIVEN, formats=("parquet", "xlsx")))
    assert open_ledger(home).entries() == []
