"""The commands that look after a home and take back what is public: their answers, for people and for programs."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from flows.output.keeping import show_status
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


def test_counts_of_a_release_that_waits_for_a_decision_are_not_called_leftovers(capsys):
    waits = {"release": "a", "state": "waiting", "since": "2026-11-18T02:18", "next": "steps approve a"}
    counts = [{"release": name, "running": False} for name in ("a", "b")]
    answer = {"home": "h", "ledger": {"name": "l", "entries": 1, "head": "f"}, "anchor": {"path": "p", "heads": 1, "torn": 0}}
    rest = {"registered": 1, "public": 0, "running": [], "stopped": [], "errors": 0, "problems": [], "notes": [], "ok": True}
    show_status(answer | rest | {"waiting": [waits], "exact_counts": counts})
    shown = capsys.readouterr().out
    assert "exact counts of a are kept for its evaluation" in shown and "exact counts of b lie about" in shown


@pytest.mark.whole
def test_status_and_forget(steps):
    said = steps("status", "--json").json
    assert said["ok"] and said["public"] == 1 and [each["release"] for each in said["exact_counts"]] == ["poll-2027"]
    shown = steps("status").out
    assert "stopped  poll-2027 (drawn since" in shown and "steps forget poll-2027" in shown and "everything holds" in shown
    assert "published since" in shown and shown.count("stopped") == 2
    assert steps("forget", "poll-2027").out == "poll-2027: exact counts deleted\n"
    assert steps("forget").out == "no exact counts lie about\n" and steps("status", "--json").json["exact_counts"] == []


def everything_in(folder: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


def test_a_name_that_there_is_not_is_told_and_not_answered_with_an_empty_list(steps):
    """Somebody who mistyped would else think that the counts are gone."""
    said = steps("forget", "poll-2o27")
    assert said.code == 2 and 'there is no release "poll-2o27"' in said.err and said.out == ""
    assert [each["release"] for each in steps("status", "--json").json["exact_counts"]] == ["poll-2027"]
    said = steps("budget", "log", "nobody")
    assert said.code == 2 and 'the ledger has no entry of population "nobody"' in said.err
    known = steps("budget", "log", "--json").json["entries"][0]["population"]
    assert steps("budget", "log", known).code == 0


def test_status_where_there_is_no_home_says_so_and_makes_none(steps, tmp_path: Path):
    said = steps("status", "--home", tmp_path / "typo")
    assert said.code == 2 and f"there is no home in {tmp_path / 'typo'}" in said.err and not (tmp_path / "typo").exists()
    (mount := tmp_path / "mount").mkdir()
    said = steps("status", "--home", mount, "--json")
    assert said.json["exit_code"] == 2 and "ledger.db is missing" in said.json["error"] and everything_in(mount) == {}
    open_ledger(Home(mount))
    assert steps("status", "--home", mount).code == 0, "the control"


LOOKS = ("budget show", "budget show people", "budget log", "budget verify", "budget timestamp", "releases", "show poll-2026")
LOOKS += ("people list", "keys show", "catalogue site", "forget", "approve poll-2026", "withdraw poll-2026 --why x")
LOOKS += ("burn poll-2026 --why x", "budget migrate", "budget anchor --why x", "keys rotate --why x")


@pytest.mark.parametrize("look", LOOKS)
def test_no_look_and_no_decision_makes_a_home(steps, tmp_path: Path, look: str):
    """An empty answer of an empty folder would pass for a good one: a disk may not be mounted."""
    (mount := tmp_path / "mount").mkdir()
    for place in (tmp_path / "typo", mount):
        said = steps(*look.split(), "--home", place)
        assert said.code == 2 and f"there is no home in {place}" in said.err, said
    assert everything_in(mount) == {} and not (tmp_path / "typo").exists()


@pytest.mark.parametrize("look", ["budget verify", "status", "releases"])
def test_a_ledger_that_was_lost_is_told_by_what_is_left_and_none_is_made(steps, tmp_path: Path, look: str):
    home = tmp_path / "copy" / "home"
    for file in home.glob("ledger.db*"):
        file.unlink()
    before = everything_in(home)
    said = steps(*look.split())
    assert said.code == 5 and "was lost: ledger.db is missing" in said.err and "restore FILE" in said.err
    assert everything_in(home) == before


def test_status_changes_nothing(steps, tmp_path: Path):
    home = tmp_path / "copy" / "home"
    before = everything_in(home)
    assert steps("status").code == 0 and everything_in(home) == before
    open_ledger(Home(tmp_path / "new"))
    before = everything_in(tmp_path / "new")
    assert steps("status", "--home", tmp_path / "new").code == 0 and everything_in(tmp_path / "new") == before
    before = everything_in(home)
    assert steps("forget", "poll-2027").code == 0 and everything_in(home) != before, "the control"


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


class Listening(BaseHTTPRequestHandler):
    """Takes what is posted to it, as Prefect's server takes events."""

    heard: ClassVar[list[tuple[str, Any]]] = []

    def do_POST(self) -> None:
        self.heard.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
        self.send_response(204)
        self.end_headers()

    def do_GET(self) -> None:
        self.send_response(404)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@contextmanager
def configured(monkeypatch: pytest.MonkeyPatch, port: int) -> Iterator[None]:
    """As a shell with PREFECT_API_URL has it; Prefect has read its settings already in this process."""
    from prefect.settings import PREFECT_API_URL, temporary_settings

    monkeypatch.setenv("PREFECT_API_URL", f"http://127.0.0.1:{port}/api")
    with temporary_settings({PREFECT_API_URL: f"http://127.0.0.1:{port}/api"}):
        yield


def test_a_configured_server_hears_of_a_withdrawal_once(steps, monkeypatch: pytest.MonkeyPatch):
    server = HTTPServer(("127.0.0.1", 0), Listening)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Listening.heard.clear()
    with configured(monkeypatch, server.server_port):
        assert steps("withdraw", "nobody", "--why", "in vain").code == 2 and Listening.heard == []
        for _ in range(2):
            said = steps("withdraw", "poll-2026", "--why", "wrong weights")
            assert said.code == 0 and said.err == ""
    server.shutdown()
    server.server_close()
    ((path, (event,)),) = Listening.heard
    assert path == "/api/events" and event["event"] == "steps.release.withdrawn"
    assert event["resource"]["prefect.resource.id"] == "steps.release.poll-2026"
    assert event["payload"] == {"text": "poll-2026 is withdrawn. See: steps show poll-2026"}


def test_a_superseded_release_is_told_as_withdrawn_and_other_entries_are_not(published: Path):
    from flows.output.events import tell_entry

    entry = open_ledger(Home(published / "home")).entries(release="poll-2026")[0]
    told: list[tuple[str, ...]] = []
    for kind in ("supersede", "seal"):
        tell_entry(replace(entry, kind=kind), "", by=lambda *words: told.append(words))
    ((event, about, name, text),) = told
    assert (event, about, name) == ("release.withdrawn", "release", "poll-2026") and "is superseded" in text


@pytest.mark.whole
def test_a_server_out_of_reach_keeps_nobody_from_withdrawing(steps, monkeypatch: pytest.MonkeyPatch):
    with configured(monkeypatch, 9):
        said = steps("withdraw", "poll-2026", "--why", "wrong weights", "--json")
    assert said.code == 0 and said.json["withdrawn"]["why"] == "wrong weights"
    assert "this is done; Prefect's server could not be told" in said.err
    assert steps("show", "poll-2026", "--json").json["state"] == "withdrawn"


def test_what_is_not_lost_is_not_burnt(steps):
    said = steps("burn", "poll-2027", "--why", "in vain")
    assert said.code == 2 and "nothing that was paid for is lost" in said.err


def test_the_key_is_shown_as_verify_tells_it(steps, tmp_path: Path):
    told = steps("verify", tmp_path / "copy" / "home" / "public" / "poll-2026", "--json").json["bundle"]["key"]
    assert steps("keys", "show", "--json").json["fingerprint"] == told and told in steps("keys", "show").out


def test_keys_are_rotated_and_their_history_shown(steps):
    before = steps("keys", "show", "--json").json
    said = steps("keys", "rotate", "--why", "every year", "--json").json
    assert before["history"] == [] and said["history"][0]["previous"] == before["key"] and said["key"] != before["key"]
    assert "rotated by" in steps("keys", "show").out
    assert steps("keys", "replace", "--why", "in vain").code == 2
    assert steps("budget", "verify").code == 0


def test_a_rotation_said_again_changes_nothing_and_says_so(steps, tmp_path: Path, monkeypatch):
    from tasks.stores import rotation

    first = steps("keys", "rotate", "--why", "every year", "--json").json
    before = everything_in(tmp_path / "copy" / "home")
    again = steps("keys", "rotate", "--why", "every year", "--json").json
    assert again["key"] == first["key"] and again["history"] == first["history"] and "found" not in first
    assert again["found"]["key"] == first["key"] and everything_in(tmp_path / "copy" / "home") == before
    shown = steps("keys", "rotate", "--why", "every year").out
    assert "nothing was changed: the key was rotated on" in shown and "--key" in shown
    named = [steps("keys", "rotate", "--why", "every year", "--key", "2026b", "--json").json for _ in range(2)]
    assert named[0]["key"] == named[1]["key"] != first["key"] and len(named[1]["history"]) == 2
    other = steps("keys", "rotate", "--why", "stolen", "--revoke", "--key", "2026b")
    assert other.code == 2 and 'a rotation named "2026b" was made on' in other.err
    monkeypatch.setattr(rotation, "_today", lambda: "2031-01-02")
    assert len(steps("keys", "rotate", "--why", "every year", "--json").json["history"]) == 3, "the next year's is another"
    assert steps("budget", "verify").code == 0 == steps("status").code


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


@pytest.mark.whole
def test_a_backup_that_cannot_be_is_refused_before_anybody_types_a_passphrase(steps, tmp_path: Path):
    said = steps("backup", tmp_path / "missing" / "b.tar")
    assert said.code == 2 and "the folder of" in said.err and "Passphrase" not in said.err
    said = steps("backup", tmp_path / "b.tar")  # nobody to ask
    assert said.code == 2 and "no passphrase was given, so nothing was written" in said.err
    assert not (tmp_path / "b.tar").exists()


def test_a_backup_is_restored_elsewhere(steps, tmp_path: Path):
    (secret := tmp_path / "passphrase").write_text("correct horse battery\nnot this line\n")
    words = ("--passphrase-file", secret)
    assert steps("backup", tmp_path / "b.tar", *words, "--json").json["entries"] > 0
    assert "overwrites nothing" in steps("backup", tmp_path / "b.tar", *words).err
    other = Home(tmp_path / "other")
    said = steps("restore", tmp_path / "b.tar", *words, "--home", other.path)
    assert said.code == 0 and "end that one" in said.out and open_ledger(other).state("poll-2026") == "published"
    assert steps("status", "--home", other.path).code == 0
