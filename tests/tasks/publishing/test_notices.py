"""What is public is taken back by a signed notice: the bundle's own bytes stay, verify says so, the charge stays."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from schemas.errors import EvidenceBroken, SpecError
from tasks.publishing import notices, publication
from tasks.publishing.publication import publish
from tasks.stages.audit import check_bundle, check_ledger
from tasks.stages.take_back import supersede, withdraw
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tasks.stores.public_chain import public_chain
from tasks.stores.rotation import replace as replace_keys
from tasks.stores.rotation import rotate
from tasks.verify.bundle import holds, verify_bundle
from tests.tasks.publishing.making import GIVEN, POLL, a_release, make, some_counts
from tests.tasks.publishing.test_consent import Killed, kill_at

NAME, SECOND = "poll-2026", "poll-2027"


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two releases in one home, both public. Not to be changed."""
    folder = tmp_path_factory.mktemp("two") / "home"
    for name in (NAME, SECOND):
        made = make(folder, a_release(POLL, GIVEN, name=name), some_counts(POLL, 500))
        publish(*made.arguments)
    return made


@pytest.fixture
def made(two, tmp_path):
    home = Home(shutil.copytree(two.home.path, tmp_path / "home"))
    return replace(two, home=home, ledger=open_ledger(home))


def notes_of(folder: Path, key: Path | None) -> list[str]:
    found = verify_bundle(folder, key)
    assert holds(found), found
    return [problem.text for problem in found]


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name not in ("notice.json", "notice.html")}


@pytest.mark.whole
def test_a_withdrawn_bundle_stays_verifies_and_says_so(made):
    folder, key = made.home.public / NAME, made.home.keys / "signing-key.pub"
    before, spent = bytes_of(folder), made.ledger.account("town").charged
    why = "Weights of the third wave <b>were wrong</b>."
    notice = withdraw(made.home, NAME, why)
    assert bytes_of(folder) == before and made.ledger.account("town").charged == spent
    assert made.ledger.state(NAME) == "withdrawn" and made.ledger.state(SECOND) == "published"
    (said,) = notes_of(folder, key)
    assert said == f"was withdrawn on {notice.withdrawn.date}: {why}" and notes_of(made.home.public / SECOND, key) == []
    page = (folder / "notice.html").read_text()
    assert "&lt;b&gt;were wrong" in page and "<b>" not in page
    assert check_ledger(made.home) == [] == check_bundle(made.home, folder)
    assert why not in json.dumps([entry.content for entry in public_chain(made.ledger.entries())])


def test_saying_it_again_changes_nothing_and_the_first_reason_stands(made):
    first = withdraw(made.home, NAME, "wrong weights")
    before, files = made.ledger.entries(), {path: path.read_bytes() for path in (made.home.public / NAME).iterdir()}
    assert withdraw(made.home, NAME, "another reason") == first
    assert (
        made.ledger.entries() == before and {path: path.read_bytes() for path in (made.home.public / NAME).iterdir()} == files
    )


def test_a_notice_verifies_whichever_version_wrote_its_page(made, monkeypatch):
    monkeypatch.setattr(notices, "_page", lambda *_: b"<!doctype html><h1>withdrawn</h1>")  # as an earlier version had it
    withdraw(made.home, NAME, "wrong weights")
    assert "withdrawn" in notes_of(made.home.public / NAME, made.home.keys / "signing-key.pub")[0]
    monkeypatch.undo()
    withdraw(made.home, NAME, "wrong weights")
    assert b"--teal" in (made.home.public / NAME / "notice.html").read_bytes(), "said again, it has the style of all pages"
    assert "withdrawn" in notes_of(made.home.public / NAME, made.home.keys / "signing-key.pub")[0]


def test_a_withdrawal_cut_short_before_its_notice_is_finished_by_the_same_command(made, monkeypatch):
    from tasks.stages import take_back

    with monkeypatch.context() as patch:
        kill_at(patch, take_back, "write_notice")
        with pytest.raises(Killed):
            withdraw(made.home, NAME, "wrong weights")
    assert made.ledger.state(NAME) == "withdrawn" and notes_of(made.home.public / NAME, None)[0].startswith(
        "is self-consistent"
    )
    withdraw(made.home, NAME, "wrong weights")
    assert any("withdrawn" in note for note in notes_of(made.home.public / NAME, None))


def test_a_superseded_bundle_names_its_successor_and_may_still_be_withdrawn(made):
    supersede(made.home, NAME, SECOND)
    key = made.home.keys / "signing-key.pub"
    assert made.ledger.state(NAME) == "superseded" and f'by "{SECOND}"' in notes_of(made.home.public / NAME, key)[0]
    withdraw(made.home, NAME, "wrong weights")
    assert made.ledger.state(NAME) == "withdrawn"
    assert "withdrawn" in (said := notes_of(made.home.public / NAME, key)[0]) and "superseded" in said
    assert f'href="../{SECOND}/index.html"' in (made.home.public / NAME / "notice.html").read_text()


@pytest.mark.parametrize(
    ("say", "why"),
    [
        (lambda home: withdraw(home, "poll-1999", "no"), "has not been charged"),
        (lambda home: withdraw(home, NAME, " "), "needs a reason"),
        (lambda home: supersede(home, NAME, NAME), "is the same one"),
        (lambda home: supersede(home, NAME, "poll-1999"), "has not been charged"),
        (lambda home: withdraw(home, "../poll", "no"), "is not a name"),
    ],
)
def test_what_cannot_be_taken_back_is_refused(made, say, why):
    before = made.ledger.entries()
    with pytest.raises(SpecError, match=why):
        say(made.home)
    assert made.ledger.entries() == before and not list(made.home.public.rglob("notice*"))


def test_a_successor_is_public_and_not_withdrawn(made):
    withdraw(made.home, SECOND, "wrong too")
    with pytest.raises(SpecError, match=f'"{SECOND}" is withdrawn'):
        supersede(made.home, NAME, SECOND)


def test_what_is_not_yet_in_its_place_is_run_again_first(made, monkeypatch):
    shutil.move(made.home.public / NAME, made.home.path / "elsewhere")
    with pytest.raises(EvidenceBroken, match="Run it again"):
        withdraw(made.home, NAME, "wrong weights")
    assert made.ledger.state(NAME) == "published"


def spoil(folder: Path, change: str) -> None:
    notice = json.loads((folder / "notice.json").read_bytes())
    if change == "reason":
        notice["withdrawn"]["why"] = "Nothing is wrong."
    elif change == "page":
        (folder / "notice.html").write_text("<p>All is well")
    elif change == "no page":
        (folder / "notice.html").unlink()
    elif change == "other bundle":
        shutil.copy(folder.parent / NAME / "notice.json", folder.parent / SECOND / "notice.json")
        shutil.copy(folder.parent / NAME / "notice.html", folder.parent / SECOND / "notice.html")
    if change == "reason":
        (folder / "notice.json").write_text(json.dumps(notice))


@pytest.mark.parametrize("change", ["reason", "page", "no page", "other bundle"])
def test_a_notice_that_the_publisher_did_not_sign_is_found_out(made, change):
    withdraw(made.home, NAME, "wrong weights")
    spoil(made.home.public / NAME, change)
    folder = made.home.public / (SECOND if change == "other bundle" else NAME)
    problems = [problem for problem in verify_bundle(folder, made.home.keys / "signing-key.pub") if not problem.note]
    assert [problem.file for problem in problems] == ["notice.json"], problems


# Keys


@pytest.fixture
def old_key(made, tmp_path) -> Path:
    return Path(shutil.copy(made.home.keys / "signing-key.pub", tmp_path / "old.pub"))


def third(made, name: str = "poll-2028"):
    again = make(made.home.path, a_release(POLL, GIVEN, name=name), some_counts(POLL, 500))
    return publish(*again.arguments).folder


@pytest.mark.whole
def test_after_a_rotation_either_key_verifies_what_both_signed(made, old_key, tmp_path):
    link = rotate(made.home, made.ledger, "every year")
    assert link.kind == "rotated" and (made.home.keys / "signing-key.pub").read_bytes() != old_key.read_bytes()
    new, before, after = made.home.keys / "signing-key.pub", made.home.public / NAME, third(made)
    vouched = "is signed by another key of the publisher whose key was given: its history of keys vouches for it"
    assert [notes_of(folder, key) for folder in (before, after) for key in (old_key, new)] == [[], [vouched], [vouched], []]
    alone = Path(shutil.copytree(after, tmp_path / "alone" / after.name))
    assert notes_of(alone, old_key) == [vouched], "a bundle carries the history with it"
    withdraw(made.home, NAME, "wrong weights")
    assert "withdrawn" in notes_of(before, old_key)[0] and check_ledger(made.home) == [] == check_bundle(made.home, before)


def test_a_history_that_was_made_up_vouches_for_nobody(made, old_key, tmp_path):
    """The control: whoever has no old key can write a link, but not sign it."""
    rotate(made.home, made.ledger, "every year")
    folder, history = third(made), made.home.public / "key-history.json"
    said = json.loads(history.read_bytes())
    said["links"][0]["by_previous"] = said["links"][0]["by_key"]
    for path in (history, folder / "key-history.json"):
        path.write_text(json.dumps(said))
    assert any("is not the key that was given" in str(problem) for problem in verify_bundle(folder, old_key))


@pytest.mark.parametrize("part", ["date", "previous", "by_key"])
@pytest.mark.parametrize("revoke", [False, True])
@pytest.mark.whole
def test_a_history_of_which_one_letter_is_wrong_is_a_problem_and_not_passed_over(made, part, revoke):
    """A revocation whose signature was blurred would else be no revocation."""
    rotate(made.home, made.ledger, "every year", revoke=revoke)
    folder, history = third(made), made.home.public / "key-history.json"
    said = json.loads(history.read_bytes())
    text = said["links"][0][part]
    said["links"][0][part] = text[:5] + ("1" if text[5] != "1" else "2") + text[6:]
    for path in (history, folder / "key-history.json"):
        path.write_text(json.dumps(said))
    found = verify_bundle(folder, made.home.keys / "signing-key.pub")
    assert [problem.file for problem in found if not problem.note] == ["key-history.json"], found


@pytest.mark.whole
def test_what_a_revoked_key_signed_does_not_verify_any_more(made, old_key):
    rotate(made.home, made.ledger, "a laptop was stolen", revoke=True)
    new = made.home.keys / "signing-key.pub"
    for key in (old_key, new, None):
        assert any("revoked on" in str(problem) for problem in verify_bundle(made.home.public / NAME, key))
    assert notes_of(third(made), new) == [] and not holds(verify_bundle(third(made), old_key))


@pytest.mark.parametrize("when", ["register_home", "_place"])
@pytest.mark.whole
def test_a_rotation_cut_short_is_finished_by_the_same_command_and_signs_nothing_meanwhile(made, old_key, monkeypatch, when):
    from tasks.stores import rotation

    with monkeypatch.context() as patch:
        kill_at(patch, rotation, when)
        with pytest.raises(Killed):
            rotate(made.home, made.ledger, "every year")
    if when == "_place":
        with pytest.raises(EvidenceBroken, match="rotation of the signing key was cut short.*steps keys rotate"):
            third(made)
    rotate(made.home, made.ledger, "every year")
    assert (made.home.keys / "signing-key.pub").read_bytes() != old_key.read_bytes() and holds(
        verify_bundle(third(made), old_key)
    )
    assert len([entry for entry in made.ledger.entries() if "link" in entry.details]) == 1


@pytest.mark.parametrize("lost", ["signing-key.pem", "all"])
@pytest.mark.whole
def test_lost_keys_are_replaced_only_when_a_person_says_so(made, old_key, lost):
    rotate(made.home, made.ledger, "every year")
    before = Path(shutil.copy(made.home.keys / "signing-key.pub", old_key.with_name("before.pub")))
    with pytest.raises(SpecError, match="no key is missing"):
        replace_keys(made.home, made.ledger, "in vain")
    for path in list(made.home.keys.iterdir()) if lost == "all" else [made.home.keys / lost]:
        path.unlink()
    with pytest.raises(EvidenceBroken, match="steps keys replace"):
        publication.publish(*made.arguments)
    assert "signing-key.pem" in replace_keys(made.home, made.ledger, "no backup was made")
    new = made.home.keys / "signing-key.pub"
    assert holds(verify_bundle(made.home.public / NAME, new)), "the new key vouches for the old ones"
    assert not holds(verify_bundle(third(made), before)), "and a lost one for none that came later"


def test_another_homes_keys_do_not_become_this_ones(made):
    rotate(made.home, made.ledger, "every year")
    (made.home.keys / "artifacts.key").write_bytes(b"k" * 32)
    with pytest.raises(EvidenceBroken, match="another home's"):
        replace_keys(made.home, made.ledger, "an attempt")
