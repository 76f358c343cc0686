"""What was written before accounts had a second measure still verifies, resumes and migrates; nothing of it changes."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from schemas.errors import BudgetRefused
from tasks.publishing.publication import published_heads
from tasks.stages.decide import decide
from tasks.stages.validate import silent_gx
from tasks.stores.database import SCHEMA_VERSION
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tasks.stores.public_chain import public_chain
from tasks.verify.bundle import verify_bundle
from tests import test_frozen
from tests.flows.without_prefect import run_stages
from tests.test_frozen import charges, draws, entries, must_verify

FROZEN = Path(__file__).parent / "frozen" / "0.2.0.dev0-pure"
unpacked = partial(test_frozen.unpacked, frozen=FROZEN)
BUNDLES = sorted(key.stem for key in (FROZEN / "bundles").glob("*.pub"))
HOMES = {
    "two-populations": ("first.yaml", "second.yaml"),
    "charged": ("release.yaml",),
    "drawn": ("release.yaml",),
    "waiting": ("release.yaml",),
    "approved": ("release.yaml",),
}


@pytest.fixture(scope="module", autouse=True)
def _silent() -> None:
    silent_gx()


def version_of(home: Home) -> int:
    with closing(sqlite3.connect(home.ledger_file)) as raw:
        return int(raw.execute("SELECT schema_version FROM meta").fetchone()[0])


@pytest.mark.parametrize("name", BUNDLES)
def test_a_bundle_of_format_2_still_verifies_and_a_changed_one_is_found_out(name: str, tmp_path: Path):
    folder, key = unpacked(name, tmp_path, "bundles"), FROZEN / "bundles" / f"{name}.pub"
    manifest = (folder / "manifest.json").read_text()
    assert json.loads(manifest)["format"] == "steps-release/2" and verify_bundle(folder, key) == []
    (folder / "manifest.json").write_text(manifest.replace('"amount":', '"amount":1', 1))
    assert verify_bundle(folder, key)


def test_there_are_bundles_of_several_kinds():
    assert BUNDLES == ["cascade-shared", "privbayes", "substitute-household", "tree-elected"]


@pytest.mark.parametrize("name", HOMES)
@pytest.mark.whole
def test_a_home_verifies_and_resumes_and_its_ledger_is_migrated_on_the_way(name: str, tmp_path: Path):
    folder = unpacked(name, tmp_path)
    home = Home(folder / "home")
    must_verify(home)
    assert version_of(home) == 2
    before, paid, drawn = entries(home), charges(home), draws(home)
    public = [entry.head for entry in public_chain(before)]
    if name == "waiting":
        assert decide(home, "poll-1", "approve", "a person", "looks right") == "approved"
    for spec in HOMES[name]:
        assert run_stages(home, folder / spec) is False  # an earlier run paid
    assert entries(home)[: len(before)] == before and charges(home) == paid
    assert [entry.head for entry in public_chain(entries(home))][: len(public)] == public
    assert draws(home).items() >= drawn.items()
    assert version_of(home) == (2 if name == "two-populations" else SCHEMA_VERSION)  # what was finished wrote nothing
    must_verify(home)


@pytest.mark.parametrize("name", HOMES)
@pytest.mark.whole
def test_a_home_goes_on_with_its_next_release_in_epsilon(name: str, tmp_path: Path):
    folder = unpacked(name, tmp_path)
    home = Home(folder / "home")
    before, paid = entries(home), charges(home)
    assert run_stages(home, folder / "next.yaml") is True
    assert entries(home)[: len(before)] == before and charges(home) == [*paid, "poll-next"]
    assert {entry.measure for entry in entries(home)} == {None} and version_of(home) == SCHEMA_VERSION
    manifest = json.loads((home.public / "poll-next" / "manifest.json").read_bytes())
    assert (manifest["format"], manifest["seeds"]) == ("steps-release/3", "steps-seeds/1")
    assert "measure" not in manifest["ledger"]["charge"]
    must_verify(home)


@pytest.mark.whole
def test_a_budget_in_rho_beside_the_old_ones_leaves_heads_and_refusals_as_they_were(tmp_path: Path):
    folder = unpacked("two-populations", tmp_path)
    home = Home(folder / "home")
    ledger = open_ledger(home)
    before = ledger.entries()
    ledger.grant("elsewhere", 10**8, "pilot", measure="zcdp")
    assert ledger.entries()[:-1] == before and ledger.verify(ledger.anchor, published_heads(home)) == []
    with pytest.raises(BudgetRefused, match="poll-3"):
        run_stages(home, folder / "third.yaml")
    accounts = {
        each.population: (each.granted, each.charged, each.neighbours, each.unit, each.measure) for each in ledger.accounts()
    }
    assert accounts["village"] == (2 * 10**9, 10**9, "substitute", "household", "pure")
    assert accounts["town"] == (1_100_000_000, 500_000_000, "add_remove", "person", "pure")
    must_verify(home)
