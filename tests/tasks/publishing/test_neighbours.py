"""Two neighbouring data sets: whatever is published beside what was paid for is the same, to the byte."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas import tables
from schemas.identity import digest, sha256
from steps_engine.noise import SeededRandomness, SystemRandomness
from tasks.publishing import bundle, publication
from tasks.publishing.page import view_of
from tasks.publishing.statement import STATEMENT, statement_of
from tasks.publishing.telling import told, told_names
from tasks.specs import load_release
from tasks.stages.discretize import discretize
from tasks.stages.validate import silent_gx
from tasks.stores import public_chain, writing
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tests.flows.small import RELEASE, make_small, write_records
from tests.flows.without_prefect import run_stages

ROWS = 601
DAY = "2026-01-02"
GIVEN, ELECTED = "order: [region]", "elect: {layers: 1}"


@pytest.fixture(autouse=True)
def _fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same draws and the same day in every run, whatever the time."""
    silent_gx()
    clock = itertools.count()
    monkeypatch.setattr(writing, "_now", lambda: f"{DAY}T10:00:00.{next(clock):06d}+00:00")
    monkeypatch.setattr(publication, "_today", lambda: DAY)


def released(folder: Path, rows: int, way: str, keys: Path | None = None, repeated: bool = False) -> Path:
    """A release of that many rows, every draw from the same stream; `repeated`: after a run on other data that was not paid."""
    folder.mkdir()
    small = make_small(folder, rows)
    small.write(release=RELEASE.replace("order: [region]", way))
    if keys is not None:
        shutil.copytree(keys, small.home / "keys")
    home, stream = Home(small.home), SeededRandomness(7)
    open_ledger(home).grant("small-people", 10**9, "a test")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SystemRandomness, "words", lambda _, n, dtype: stream.words(n, dtype))
        if repeated:
            write_records(folder / "records.parquet", 17)
            discretize(home, load_release(small.release))
            write_records(folder / "records.parquet", rows)
        run_stages(home, small.release)
    return home.public / "small-1"


def unpaid(folder: Path, way: str) -> dict[str, Any]:
    """All that a bundle says, but for what was paid for and hashes of that; and that the rest is a function of these."""
    manifest = json.loads((folder / bundle.MANIFEST).read_bytes())
    paid = {f"{stage}.parquet" for stage in bundle.table_stages(2)} - ({"tree.parquet"} if way == GIVEN else set())
    paid |= bundle.UNLISTED | told_names()
    must_follow_from_public_bytes(folder, manifest)
    hashes = {name: manifest["files"].pop(name) for name in paid - bundle.UNLISTED}
    assert hashes.keys() | manifest["files"].keys() | bundle.UNLISTED == {path.name for path in folder.iterdir()}
    proof = manifest["ledger"]
    proof["later"], proof["head"] = len(proof["later"]), None
    return {"manifest": manifest} | {name: (folder / name).read_bytes() for name in manifest["files"]}


def sealed_rule(folder: Path, seeds: str) -> str:
    """The hash of the sealed file that says by which rule a release draws after its noise, and nothing else."""
    (path,) = (folder.parents[1] / "staging" / folder.name / "seeds").iterdir()
    assert pq.read_table(path).equals(pa.table({"seeds": [seeds]}, schema=tables.SEEDS))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def must_follow_from_public_bytes(folder: Path, manifest: dict[str, Any]) -> None:
    """Page, listings, describing files, statement and chain hold nothing but the other files: whoever has those can compute all of them again."""
    proof, charge = manifest["ledger"], manifest["ledger"]["charge"]
    tree, noisy, *after = bundle.table_stages(2)
    sealed = {stage: manifest["files"][f"{stage}.parquet"]["sha256"] for stage in bundle.table_stages(2)}
    sealed["seeds"] = sealed_rule(folder, manifest["seeds"])  # not published: it holds the name of the rule
    for place, stage in enumerate((tree, noisy, "seeds", *after), start=1):
        shown = {"stage": stage, "digest": sealed[stage]}
        own = {"seq": charge["seq"] + place, "kind": "seal", "key": f"seal:small-1#1:{stage}", "amount": 0, "shown": shown}
        assert proof["later"][place - 1] == digest(charge | own)
    assert len(proof["later"]) == len(sealed)
    contents = {stage: (folder / f"{stage}.parquet").read_bytes() for stage in bundle.table_stages(2)}
    plan = bundle.read_plan((folder / bundle.PLAN).read_bytes())
    domain = bundle.read_domain((folder / bundle.DOMAIN).read_bytes())
    content = (folder / bundle.MANIFEST).read_bytes()
    made = told(bundle.read_manifest(content), plan, domain, view_of(plan, domain, contents))
    assert made == {name: (folder / name).read_bytes() for name in made} and made.keys() == told_names()
    said = base64.b64decode(json.loads((folder / STATEMENT).read_bytes())["payload"])
    assert said == statement_of(bundle.read_manifest(content), content)


def differ(tmp_path: Path, way: str) -> list[str]:
    """What differs, beside what was paid for, between a data set and the same with one record more."""
    one = released(tmp_path / "one", ROWS, way)
    more = released(tmp_path / "more", ROWS + 1, way, keys=tmp_path / "one" / "home" / "keys", repeated=True)
    noisy = [(folder / "noisy-counts.parquet").read_bytes() for folder in (one, more)]
    assert noisy[0] != noisy[1]  # the record is there: what was paid for does depend on it
    first, second = unpaid(one, way), unpaid(more, way)
    assert first.keys() == second.keys()
    return [name for name in first if first[name] != second[name]]


@pytest.mark.parametrize("way", [GIVEN, ELECTED])
@pytest.mark.whole
def test_what_is_published_unpaid_does_not_depend_on_a_record(tmp_path: Path, way: str):
    assert differ(tmp_path, way) == []


def _fingerprint_in_a_hash(entry: Any, number: int) -> dict[str, Any]:
    content = public_content(entry, number)
    return content | ({"key": f"{entry.key}:{sha256(entry.body)}"} if entry.kind == "charge" else {})


public_content: Callable[..., dict[str, Any]] = public_chain.public_content


@pytest.mark.whole
def test_a_hash_over_the_fingerprint_would_be_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(public_chain, "public_content", _fingerprint_in_a_hash)
    assert differ(tmp_path, GIVEN) == ["manifest"]


@pytest.mark.whole
def test_numbers_that_count_what_happened_to_the_records_would_be_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def with_seals_before_the_draw(entries: Any) -> list[Any]:
        hidden = [entry.kind == "seal" and not is_public(entry) for entry in entries]
        return chain_of([replace(entry, kind="burn") if hide else entry for entry, hide in zip(entries, hidden, strict=True)])

    chain_of, is_public = public_chain.public_chain, public_chain.is_public
    monkeypatch.setattr(publication, "public_chain", with_seals_before_the_draw)
    assert differ(tmp_path, GIVEN) == ["manifest"]


@pytest.mark.whole
def test_a_fingerprint_among_the_terms_of_a_charge_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A manifest has a place for what is public and for nothing else."""
    monkeypatch.setitem(public_chain.SHOWN, "charge", (*public_chain.SHOWN["charge"], "fingerprint"))
    with pytest.raises(ValueError, match="fingerprint"):
        released(tmp_path / "one", ROWS, GIVEN)


@pytest.mark.whole
def test_a_bundle_tells_days_and_no_time_of_day(tmp_path: Path):
    folder = released(tmp_path / "one", ROWS, GIVEN)
    manifest = json.loads((folder / bundle.MANIFEST).read_bytes())
    assert manifest["made_at"] == manifest["ledger"]["charge"]["date"] == DAY
    for path in folder.iterdir():
        assert b"10:00:0" not in path.read_bytes(), path.name
        if path.suffix == ".parquet":
            metadata = pq.read_metadata(path)
            assert set(metadata.metadata or {}) <= {b"ARROW:schema"} and "parquet-cpp" in metadata.created_by
    later = manifest | {"made_at": f"{DAY}T10:00:00+00:00"}
    with pytest.raises(ValueError, match="made_at"):
        bundle.read_manifest(bundle.to_bytes(later))
    assert any("T10:00:00" in entry.at for entry in open_ledger(Home(tmp_path / "one" / "home")).entries())  # inside it is told
