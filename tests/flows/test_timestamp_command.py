"""`steps budget timestamp` against a real authority: what it vouches for is this head, and a ledger that lacks it is told."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tasks.stages.audit import check_ledger
from tasks.stages.restore import restore
from tasks.stores.backup import back_up
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tests.authority import Authority, make_authority, openssl

pytestmark = [
    pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the command openssl, as a timestamp authority"),
]
pytest.importorskip("rfc3161_client", reason="needs rfc3161-client (the extra pipeline)")


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("tsa") / "one")


@pytest.fixture(scope="module")
def another(tmp_path_factory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("tsa") / "two")


@pytest.fixture
def granted(small, steps):
    steps("budget", "grant", "small-people", "4", "--why", "a test")
    return Home(small.home)


@pytest.fixture
def stamped(granted, steps, authority, tmp_path) -> Path:
    """The home's ledger has one entry, which the authority has seen; the answer's file."""
    steps("budget", "timestamp", "--request", tmp_path / "head.tsq")
    answer = authority.answer(tmp_path / "head.tsq", tmp_path / "head.tsr")
    said = steps("budget", "timestamp", "--response", answer, "--chain", authority.root, "--json")
    assert said.code == 0, said.err
    return answer


def stamp_file(home: Home) -> Path:
    (file,) = (home.path / "timestamps").iterdir()
    return file


def test_what_the_authority_says_is_kept_and_told(granted, stamped, steps, authority):
    (found,) = steps("budget", "timestamp", "--json").json["timestamps"]
    assert (found["entry"], found["head"]) == open_ledger(granted).head() and found["authority"] == "CN=Clock of one"
    assert abs(datetime.fromisoformat(found["at"]) - datetime.now(UTC)) < timedelta(minutes=5)
    verified = steps("budget", "verify")
    assert verified.code == 0 and "entry 1 existed at" in verified.out and "everything holds" in verified.out
    file = stamp_file(granted)
    assert file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o777 == 0o700


def test_the_same_head_is_asked_for_with_the_same_bytes_and_the_request_hides_it(granted, steps, tmp_path):
    first, second = tmp_path / "1.tsq", tmp_path / "2.tsq"
    for out in (first, second):
        assert steps("budget", "timestamp", "--request", out).code == 0
    assert first.read_bytes() == second.read_bytes()
    assert bytes.fromhex(open_ledger(granted).head()[1]) not in first.read_bytes()
    assert "asked for, not answered" in steps("budget", "timestamp").out and steps("budget", "verify").code == 0
    steps("budget", "grant", "others", "1", "--why", "another head")
    steps("budget", "timestamp", "--request", second)
    assert first.read_bytes() != second.read_bytes()


def test_later_answers_are_checked_by_the_certificates_of_the_last(granted, stamped, steps, authority, tmp_path):
    steps("budget", "grant", "others", "1", "--why", "another head")
    steps("budget", "timestamp", "--request", tmp_path / "2.tsq")
    said = steps("budget", "timestamp", "--response", authority.answer(tmp_path / "2.tsq", tmp_path / "2.tsr"), "--json")
    assert said.json["entry"] == 2 and len(steps("budget", "timestamp", "--json").json["timestamps"]) == 2
    assert steps("budget", "timestamp", "--response", stamped).code == 0, "said again, it is found"


def test_a_ledger_that_was_rewritten_or_set_back_is_told_loudly(granted, stamped, small, steps, tmp_path):
    for file in small.home.glob("ledger.db*"):
        file.unlink()
    (small.home / "anchor.log").unlink()
    lost = steps("budget", "verify")
    assert lost.code == 5 and "was lost: ledger.db is missing, and" in lost.err and not (small.home / "ledger.db").exists()
    open_ledger(granted)
    empty = steps("budget", "verify")
    assert (
        empty.code == 5
        and "the timestamp of entry 1 knows entry 1; this ledger ends at entry 0: it is an old copy" in empty.out
    )
    refused = steps("budget", "grant", "small-people", "1000", "--why", "instead")
    assert refused.code == 5 and "the timestamp of entry 1" in refused.err
    elsewhere = Home(tmp_path / "rewritten")
    open_ledger(elsewhere).grant("small-people", 1000 * 10**9, "instead")
    for name in ("ledger.db", "anchor.log"):
        shutil.copy(elsewhere.path / name, small.home / name)
    rewritten = steps("budget", "verify")
    assert rewritten.code == 5 and "the timestamp of entry 1 knows another entry 1 than this ledger holds" in rewritten.out


def test_an_answer_of_another_authority_is_not_believed(granted, steps, authority, another, tmp_path):
    steps("budget", "timestamp", "--request", tmp_path / "head.tsq")
    answer = another.answer(tmp_path / "head.tsq", tmp_path / "head.tsr")
    refused = steps("budget", "timestamp", "--response", answer, "--chain", authority.root)
    assert refused.code == 5 and "does not verify" in refused.err
    assert steps("budget", "timestamp", "--response", answer).code == 2, "nobody's certificates are trusted unasked"
    assert steps("budget", "timestamp", "--json").json["unanswered"] == [1]
    assert steps("budget", "timestamp", "--response", answer, "--chain", another.root).code == 0, "the control"


@pytest.mark.parametrize("at", [30, 200, -40])
def test_one_changed_byte_of_the_answer_is_found(granted, stamped, steps, at):
    file = stamp_file(granted)
    said = json.loads(file.read_text())
    response = bytearray.fromhex(said["response"])
    response[at] ^= 1
    file.write_text(json.dumps(said | {"response": response.hex()}))
    found = steps("budget", "verify")
    assert found.code == 5 and "the timestamp of entry 1" in found.out


@pytest.mark.parametrize("lie", [{"head": "0" * 64}, {"seq": 2}, {"secret": "0" * 64}])
def test_a_stamp_is_of_one_head_alone(granted, stamped, steps, lie):
    file = stamp_file(granted)
    said = json.loads(file.read_text()) | lie
    file.unlink()
    file.with_name(f"{said['seq']:08d}-{said['head'][:16]}.json").write_text(json.dumps(said))
    found = steps("budget", "verify")
    assert found.code == 5 and "does not verify: Mismatch between messages" in found.out


def test_what_is_no_answer_of_ours_is_refused_in_words(granted, steps, authority, tmp_path):
    nonsense, foreign = tmp_path / "x.tsr", tmp_path / "foreign"
    nonsense.write_bytes(b"not at all")
    refused = steps("budget", "timestamp", "--response", nonsense, "--chain", authority.root)
    assert refused.code == 2 and "is no timestamp response" in refused.err
    foreign.write_text("something else")
    openssl("ts", "-query", "-data", foreign, "-sha256", "-cert", "-out", tmp_path / "f.tsq")
    authority.answer(tmp_path / "f.tsq", tmp_path / "f.tsr")
    refused = steps("budget", "timestamp", "--response", tmp_path / "f.tsr", "--chain", authority.root)
    assert refused.code == 2 and "answers no request of this home" in refused.err
    assert steps("budget", "timestamp", "--request", foreign).code == 2 and foreign.read_text() == "something else"
    assert steps("budget", "timestamp", "--chain", authority.root).code == 2


def test_there_is_nothing_to_stamp_before_the_first_entry(small, steps, tmp_path):
    open_ledger(Home(small.home))
    refused = steps("budget", "timestamp", "--request", tmp_path / "head.tsq")
    assert refused.code == 2 and "no entry yet" in refused.err and not (tmp_path / "head.tsq").exists()


def test_a_backup_keeps_them(granted, stamped, tmp_path):
    (granted.keys / "artifacts.key").write_bytes(b"k" * 32)
    back_up(granted, tmp_path / "backup.tar", "correct horse battery")
    other = Home(tmp_path / "elsewhere")
    restore(other, tmp_path / "backup.tar", "correct horse battery")
    assert stamp_file(other).read_bytes() == stamp_file(granted).read_bytes() and check_ledger(other) == []
