"""The commands that look after a home and take back what is public: their answers, for people and for programs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tasks.publishing.publication import publish
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tests.flows.conftest import steps_in
from tests.flows.small import Small
from tests.tasks.publishing.making import GIVEN, POLL, a_release, make, some_counts


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Path:
    """A home with one public release, one that was drawn, and exact counts. Not to be changed."""
    folder = tmp_path_factory.mktemp("published")
    publish(*make(folder / "home", a_release(POLL, GIVEN), some_counts(POLL, 400)).arguments)
    make(folder / "home", a_release(POLL, GIVEN, name="poll-2027"), some_counts(POLL, 400))
    (folder / "home" / "confidential" / "poll-2027" / "cells").mkdir(parents=True)
    (folder / "home" / "confidential" / "poll-2027" / "cells" / "left.parquet").write_bytes(b"counts")
    return folder


@pytest.fixture
def steps(published: Path, tmp_path: Path):
    return steps_in(Small(Path(shutil.copytree(published, tmp_path / "copy"))))


def test_status_and_forget(steps):
    said = steps("status", "--json").json
    assert said["ok"] and said["public"] == 1 and [each["release"] for each in said["exact_counts"]] == ["poll-2027"]
    shown = steps("status").out
    assert "stopped  poll-2027 (drawn since" in shown and "steps forget poll-2027" in shown and "everything holds" in shown
    assert "published since" in shown and shown.count("stopped") == 2
    assert steps("forget", "poll-2027").out == "poll-2027: exact counts deleted\n"
    assert steps("forget").out == "no exact counts lie about\n" and steps("status", "--json").json["exact_counts"] == []


def test_a_withdrawn_release_is_said_to_be_so_everywhere(steps, tmp_path: Path):
    assert steps("withdraw", "poll-2026").code == 2, "a reason is needed"
    said = steps("withdraw", "poll-2026", "--why", "wrong weights", "--json")
    assert said.code == 0 and said.json["withdrawn"]["why"] == "wrong weights"
    assert steps("withdraw", "poll-2026", "--why", "wrong weights", "--json").json == said.json
    assert "withdrawn" in steps("releases").out and "withdrawn on" in steps("show", "poll-2026").out
    assert steps("show", "poll-2026", "--json").json["notices"][0].endswith("wrong weights")
    verified = steps("verify", tmp_path / "copy" / "home" / "public" / "poll-2026", "--json")
    assert verified.code == 0 and any("was withdrawn on" in note for note in verified.json["notes"])
    key = tmp_path / "copy" / "home" / "keys" / "signing-key.pub"
    shown = steps("verify", tmp_path / "copy" / "home" / "public" / "poll-2026", "--key", key).out
    assert "was withdrawn on" in shown and "not established" not in shown, "a notice takes nothing from the signer's name"
    assert steps("supersede", "poll-2026", "poll-2027").code == 2, "what is not public takes nobody's place"
    refused = steps("abandon", "poll-2026")
    assert refused.code == 2 and "steps withdraw poll-2026" in refused.err


def test_a_notice_that_is_gone_is_missed_and_said_again(steps, tmp_path: Path):
    folder = tmp_path / "copy" / "home" / "public" / "poll-2026"
    steps("withdraw", "poll-2026", "--why", "wrong weights")
    assert steps("status").code == 0, "the control"
    for name in ("notice.json", "notice.html"):
        (folder / name).unlink()
    said = steps("status", "--json")
    assert said.code == 5 and "steps withdraw poll-2026" in said.json["problems"][0]
    assert steps("withdraw", "poll-2026", "--why", "wrong weights").code == 0 == steps("status").code


def test_what_is_not_lost_is_not_burnt(steps):
    said = steps("burn", "poll-2027", "--why", "in vain")
    assert said.code == 2 and "nothing that was paid for is lost" in said.err


def test_keys_are_rotated_and_their_history_shown(steps):
    before = steps("keys", "show", "--json").json
    said = steps("keys", "rotate", "--why", "every year", "--json").json
    assert before["history"] == [] and said["history"][0]["previous"] == before["key"] and said["key"] != before["key"]
    assert "rotated by" in steps("keys", "show").out
    assert steps("keys", "replace", "--why", "in vain").code == 2
    assert steps("budget", "verify").code == 0


def test_where_people_are_registered_a_change_of_the_signing_key_is_signed(steps, tmp_path: Path):
    key, home = tmp_path / "ada.pem", tmp_path / "copy" / "home"
    steps("keys", "new", key)
    assert steps("people", "add", "ada", "--role", "approver", "--key", f"{key}.pub", "--as", key).code == 0
    before = sorted((home / "keys").iterdir())
    refused = steps("keys", "rotate", "--why", "every year")
    assert refused.code == 2 and "needs the signature" in refused.err and sorted((home / "keys").iterdir()) == before
    assert steps("keys", "rotate", "--why", "every year", "--as", key).code == 0 == steps("budget", "verify").code
    assert open_ledger(Home(home)).entries()[-1].said["signed"]["by"] == "ada"
    assert steps("keys", "show", "--json").json["history"][0]["actor"] == "ada"


def test_a_backup_is_restored_elsewhere(steps, tmp_path: Path):
    (secret := tmp_path / "passphrase").write_text("correct horse battery\nnot this line\n")
    words = ("--passphrase-file", secret)
    assert steps("backup", tmp_path / "b.tar", *words, "--json").json["entries"] > 0
    assert "overwrites nothing" in steps("backup", tmp_path / "b.tar", *words).err
    other = Home(tmp_path / "other")
    said = steps("restore", tmp_path / "b.tar", *words, "--home", other.path)
    assert said.code == 0 and "end that one" in said.out and open_ledger(other).state("poll-2026") == "published"
    assert steps("status", "--home", other.path).code == 0
