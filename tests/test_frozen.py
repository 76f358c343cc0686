"""What version 0.1.0 wrote still verifies and still resumes: nothing is paid for twice, nothing sealed is drawn again."""

from __future__ import annotations

import json
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from schemas.errors import BudgetRefused, EvidenceBroken, SpecError
from tasks.publishing.publication import published_heads
from tasks.stages.decide import decide
from tasks.stages.validate import silent_gx
from tasks.stores.anchor import Anchor
from tasks.stores.entries import Entry
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tasks.verify.bundle import verify_bundle
from tests.flows.without_prefect import run_stages

FROZEN = Path(__file__).parent / "frozen" / "0.1.0"
BUNDLES = sorted(key.stem for key in (FROZEN / "bundles").glob("*.pub"))
HOMES = {
    "finished": ("first.yaml", "second.yaml"),
    "charged": ("release.yaml",),
    "drawn": ("release.yaml",),
    "waiting": ("release.yaml",),
    "drawn-cascade": ("release.yaml",),
}


@pytest.fixture(scope="module", autouse=True)
def _silent() -> None:
    silent_gx()


def unpacked(name: str, place: Path, kind: str = "homes", frozen: Path = FROZEN) -> Path:
    """A home, or a bundle, as it was frozen."""
    with tarfile.open(frozen / kind / f"{name}.tar.gz") as archive:
        archive.extractall(place, filter="tar")  # "data" would loosen the modes of folders
    return place / name


def steps(*words: object) -> dict[str, Any]:
    """What `steps … --json` answers; it must end with 0."""
    from click.testing import CliRunner

    from flows.cli import main

    said = CliRunner().invoke(main, [*map(str, words), "--json"])
    assert said.exit_code == 0, (words, said.output, said.exception)
    answer: dict[str, Any] = json.loads(said.stdout)
    return answer


def must_verify(home: Home) -> None:
    """`steps budget verify`, and `steps verify` of everything that is published: no problem and no note."""
    assert steps("--home", home.path, "budget", "verify") == {"ok": True, "problems": [], "notes": []}
    for folder in sorted(home.public.iterdir()):
        assert verify_bundle(folder, home.keys / "signing-key.pub") == []


def entries(home: Home) -> list[Entry]:
    return open_ledger(home).entries()


def charges(home: Home) -> list[str | None]:
    return [entry.release for entry in entries(home) if entry.kind == "charge"]


def draws(home: Home) -> dict[tuple[str, str], str]:
    """Every sealed artifact that may be published, by release and stage: there is one of each."""
    said = [(entry.release or "", entry.details) for entry in entries(home) if entry.kind == "seal"]
    public = [(release, seal) for release, seal in said if seal["side"] == "public"]
    found = {(release, seal["stage"]): seal["digest"] for release, seal in public}
    assert len(found) == len(public)
    return found


@pytest.mark.parametrize("name", BUNDLES)
def test_a_bundle_of_an_earlier_version_still_verifies(name: str, tmp_path: Path):
    assert verify_bundle(unpacked(name, tmp_path, "bundles"), FROZEN / "bundles" / f"{name}.pub") == []


def test_there_are_bundles_of_every_kind(tmp_path: Path):
    assert len(BUNDLES) == 16
    plans = (unpacked(name, tmp_path, "bundles") / "plan.json" for name in BUNDLES)
    said = [json.loads(plan.read_bytes())["decomposition"] for plan in plans]
    assert set(said) == {"tree", "flat", "uh", "cascade", "privbayes"}


@pytest.mark.parametrize("name", BUNDLES)
def test_a_bundle_of_an_earlier_version_that_was_changed_is_still_found_out(name: str, tmp_path: Path):
    copy = unpacked(name, tmp_path, "bundles")
    manifest = (copy / "manifest.json").read_text()
    (copy / "manifest.json").write_text(manifest.replace('"hidden":"', '"hidden":"0', 1))
    assert verify_bundle(copy, FROZEN / "bundles" / f"{name}.pub")


@pytest.mark.parametrize("name", HOMES)
@pytest.mark.whole
def test_a_home_of_an_earlier_version_verifies_and_resumes(name: str, tmp_path: Path):
    folder = unpacked(name, tmp_path)
    home = Home(folder / "home")
    must_verify(home)
    before, paid, drawn = entries(home), charges(home), draws(home)
    if name == "waiting":
        assert decide(home, "poll-1", "approve", "a person", "looks right") == "approved"
    for spec in HOMES[name]:
        assert run_stages(home, folder / spec) is False  # an earlier run paid
    assert entries(home)[: len(before)] == before and charges(home) == paid
    assert draws(home).items() >= drawn.items()
    assert not list(folder.rglob("cells/*.parquet"))
    must_verify(home)


@pytest.mark.slow
@pytest.mark.parametrize("name", HOMES)
def test_a_home_of_an_earlier_version_goes_on_with_its_next_release(name: str, tmp_path: Path):
    folder = unpacked(name, tmp_path)
    home = Home(folder / "home")
    before, paid = entries(home), charges(home)
    assert run_stages(home, folder / "next.yaml") is True
    assert entries(home)[: len(before)] == before and charges(home) == [*paid, "poll-next"]
    must_verify(home)


@pytest.mark.whole
def test_a_finished_home_gains_no_entry_and_still_refuses_what_it_cannot_pay(tmp_path: Path):
    folder = unpacked("finished", tmp_path)
    home = Home(folder / "home")
    before = entries(home)
    for spec in HOMES["finished"]:
        run_stages(home, folder / spec)
    assert entries(home) == before
    with pytest.raises(BudgetRefused, match="poll-3"):
        run_stages(home, folder / "third.yaml")
    assert charges(home) == ["poll-1", "poll-2"] and not list(folder.rglob("cells/*.parquet"))
    must_verify(home)


@pytest.mark.whole
def test_a_plan_that_an_earlier_version_sealed_is_paid_for_and_published_as_it_is(tmp_path: Path):
    folder = unpacked("finished", tmp_path)
    home = Home(folder / "home")
    open_ledger(home).grant("town", 10**9, "enough for the third")
    assert run_stages(home, folder / "third.yaml") is True and run_stages(home, folder / "third.yaml") is False
    (charge,) = (entry for entry in entries(home) if entry.kind == "charge" and entry.release == "poll-3")
    manifest = json.loads((home.public / "poll-3" / "manifest.json").read_bytes())
    assert charge.details["plan_format"] == 1 and charge.details["plan_hash"] == manifest["plan_hash"]
    assert (manifest["format"], manifest["seeds"]) == ("steps-release/3", "steps-seeds/1")  # what is drawn now, is by this rule
    assert "format" not in json.loads((home.public / "poll-3" / "plan.json").read_bytes())
    must_verify(home)


@pytest.mark.whole
def test_an_older_copy_of_the_ledger_is_found_by_bundles_of_both_formats(tmp_path: Path):
    folder = unpacked("finished", tmp_path)
    home = Home(folder / "home")
    (copy := tmp_path / "copy.db").write_bytes(home.ledger_file.read_bytes())
    run_stages(home, folder / "next.yaml")
    for path in home.path.glob("ledger.db*"):
        path.unlink()
    home.ledger_file.write_bytes(copy.read_bytes())
    home.anchor_file.write_text("".join(f"{entry.seq} {entry.hash}\n" for entry in entries(home)))  # the anchor is lost too
    with pytest.raises(EvidenceBroken, match='the bundle "poll-next" knows public entry .* it is an old copy'):
        run_stages(home, folder / "first.yaml")
    shorter = Anchor(tmp_path / "anchor.log")
    shorter.append(*entries(home)[0].head)
    with closing(sqlite3.connect(home.ledger_file)) as raw, raw:
        raw.execute("DROP TRIGGER no_delete")
        raw.execute("DELETE FROM entries WHERE seq > 3")
    problems = open_ledger(home).verify(shorter, published_heads(home))
    assert [name for name in ("poll-1", "poll-2", "poll-next") if f'the bundle "{name}"' in "; ".join(problems)] == [
        *("poll-1", "poll-2", "poll-next")
    ]


def test_a_home_of_an_earlier_version_whose_spec_was_changed_is_refused(tmp_path: Path):
    """The control: a charge made by an earlier version is tied to its spec and its plan."""
    folder = unpacked("drawn", tmp_path)
    spec = folder / "release.yaml"
    spec.write_text(spec.read_text(encoding="utf-8").replace("share: 0.2", "share: 0.3"), encoding="utf-8")
    with pytest.raises(SpecError, match="another spec"):
        run_stages(Home(folder / "home"), spec)
