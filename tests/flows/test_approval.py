from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tests.flows.conftest import steps_in
from tests.flows.small import Small, make_small

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("prefect_server")]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory, prefect_server) -> Small:
    """A release that was drawn and waits for a person. Not to be changed."""
    small = make_small(tmp_path_factory.mktemp("drawn"), rows=2_003)
    small.write(more="approval: required\n")
    steps = steps_in(small)
    assert steps("budget", "grant", "small-people", "1", "--why", "a test").code == 0
    said = steps("run", small.release, "--json")
    assert said.code == 6 and said.json["exit_code"] == 6 and "steps approve small-1" in said.json["error"]
    return small


@pytest.fixture
def waiting(drawn: Small, small: Small) -> Small:
    """The release that waits, with all it left, in a place of its own."""
    shutil.copytree(drawn.folder, small.folder, dirs_exist_ok=True)
    return small


def test_while_a_release_waits_nothing_is_published_and_nothing_is_evaluated(waiting: Small, steps):
    assert list((waiting.home / "public").glob("*")) == []
    assert list((waiting.home / "confidential").rglob("evaluation*")) == []
    assert steps("show", "small-1", "--json").json["state"] == "waiting"
    assert steps("run", waiting.release).code == 6


def test_the_person_is_shown_only_what_would_be_published(waiting: Small, steps):
    shown = {path.name for path in (waiting.home / "staging" / "small-1.preview").iterdir()}
    assert shown == {"index.html", "plan.json", "domain.json", "manifest.json"}
    message = steps("run", waiting.release).err
    assert "index.html" in message and "confidential" not in message


def test_an_approved_release_is_published_when_it_is_run_again(waiting: Small, steps):
    assert steps("approve", "small-1", "--why", "looks right", "--json").json["state"] == "approved"
    said = steps("run", waiting.release, "--json").json
    assert not said["charged"] and Path(said["folder"], "manifest.json").exists()
    decision = open_ledger(Home(waiting.home)).decision("small-1")
    assert decision.kind == "approve" and decision.details["why"] == "looks right" and decision.details["who"]
    assert steps("show", "small-1", "--json").json["approver"] == decision.details["who"]
    assert steps("reject", "small-1").code == 2


@pytest.mark.parametrize(("verdict", "state"), [("reject", "rejected"), ("abandon", "abandoned")])
def test_what_is_rejected_or_abandoned_stays_charged_and_is_never_published(waiting: Small, steps, verdict: str, state: str):
    assert list((waiting.home / "confidential").rglob("cells/*.parquet"))
    assert steps(verdict, "small-1", "--json").json["state"] == state
    assert list((waiting.home / "confidential").rglob("cells/*.parquet")) == []
    said = steps("run", waiting.release)
    assert said.code == 2 and state in said.err
    (waiting.folder / "records.parquet").write_bytes(b"no table")
    assert steps("run", waiting.release).err == said.err, "refused whatever the source holds"
    assert steps("approve", "small-1").code == 2
    assert list((waiting.home / "public").glob("*")) == []
    assert list((waiting.home / "confidential").rglob("cells/*.parquet")) == []
    assert steps("budget", "show", "small-people", "--json").json["charged"] == "0.5"


def test_a_release_that_needs_no_approval_waits_for_nobody(small: Small, steps):
    steps("budget", "grant", "small-people", "1", "--why", "a test")
    assert steps("run", small.release).code == 0
    assert open_ledger(Home(small.home)).decision("small-1") is None
