"""Four eyes: once people are registered, only signatures of those who may decide anything; a name alone decides nothing."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from schemas.errors import EvidenceBroken, SpecError, StepsError
from tasks.stores.acts import cap, register_home
from tasks.stores.entries import SIGNED, Draft, Entry, Totals, body_of, link
from tasks.stores.home import Home
from tasks.stores.ledger import Ledger, open_ledger
from tasks.stores.people import Change
from tasks.stores.public_chain import public_chain
from tasks.stores.signatures import new_key, read_public, read_signer
from tasks.stores.soundness import people_problems
from tasks.stores.trust import change_people

ONE = 10**9
BOARD = {"approval": {"required": 2, "from": ["board"]}}

As = Callable[[str], Ledger]


@pytest.fixture
def acting(any_home: Home, tmp_path: Path) -> As:
    """The ledger in the hands of somebody, whose key is made when first needed."""

    def by(name: str) -> Ledger:
        key = tmp_path / f"{name}.pem"
        if not key.exists():
            new_key(key, None)
        return open_ledger(dataclasses.replace(any_home, key_file=key))

    return by


def change(acting: As, act: str, name: str, *roles: str) -> Change:
    path = acting(name).key_file
    return Change(act, name, tuple(sorted(roles)), read_signer(path).public)


def add(acting: As, by: str, name: str, *roles: str) -> Entry:
    return change_people(acting(by), change(acting, "add", name, *roles), "a test")


@pytest.fixture
def board(acting: As) -> As:
    """Ada, Bo and Cy approve and are the board; Ola runs."""
    add(acting, "ada", "ada", "approver", "board")
    add(acting, "ada", "bo", "approver", "board")
    for name, roles in (("cy", ("approver", "board")), ("ola", ("operator",))):
        for by in ("ada", "bo"):
            add(acting, by, name, *roles)
    assert set(acting("ada").people().active) == {"ada", "bo", "cy", "ola"}
    return acting


def drawn(board: As, ask, context: dict, by: str = "ola") -> Ledger:
    board("ada").grant("youth", ONE, "pilot")
    ledger = board(by)
    ledger.charge(ask(context=context))
    ledger.seal("voter-1", "noisy", "public", "0" * 32, "f" * 64, 10)
    assert ledger.state("voter-1") == "waiting"
    return ledger


def test_what_people_sign_verifies_and_says_who(board: As, ask):
    ledger = drawn(board, ask, BOARD)
    board("ada").decide("voter-1", "approve", "whoever", "fine")
    assert ledger.state("voter-1") == "waiting" and ledger.decision("voter-1") is None
    board("bo").decide("voter-1", "approve", "whoever", "fine")
    assert ledger.state("voter-1") == "approved" and ledger.releases()[0].approver == "ada, bo"
    assert ledger.publish("voter-1", "manifest").kind == "publish"
    assert ledger.verify(ledger.anchor) == []
    assert [entry.said[SIGNED]["by"] for entry in ledger.entries() if entry.kind in ("grant", "charge")] == ["ada", "ola"]


def test_an_approver_signs_a_lifetime_cap_and_nobody_else(board: As, any_home: Home):
    board("ada").grant("youth", ONE, "pilot")
    with pytest.raises(SpecError, match='cap for population "youth" was refused: "ola" is operator, not approver'):
        cap(board("ola"), "youth", ONE, "pure", "why")
    with pytest.raises(SpecError, match="needs the signature of an approver"):
        cap(open_ledger(any_home), "youth", ONE, "pure", "why")
    entry, _ = cap(board("bo"), "youth", ONE, "pure", "the board")
    assert entry.said[SIGNED]["by"] == "bo" and board("ada").verify(board("ada").anchor) == []


def test_a_single_key_is_not_two_people_however_often_it_approves(board: As, ask):
    ledger = drawn(board, ask, BOARD)
    for why in ("fine", "fine again"):
        board("ada").decide("voter-1", "approve", "bo", why)
    assert [entry.details["who"] for entry in ledger.entries() if entry.kind == "approve"] == ["ada"]
    with pytest.raises(SpecError, match="is waiting"):
        ledger.publish("voter-1", "manifest")


def test_who_runs_a_release_cannot_be_its_only_approver(board: As, ask):
    for by in ("ada", "bo"):
        add(board, by, "ola", "operator", "approver")
    ledger = drawn(board, ask, {"approval": "required"})
    board("ola").decide("voter-1", "approve", "ola", "my own")
    assert ledger.state("voter-1") == "waiting"
    board("cy").decide("voter-1", "approve", "cy", "looked")
    assert ledger.state("voter-1") == "approved"


def test_an_approval_is_of_what_was_sealed_and_of_nothing_later(board: As, ask):
    ledger = drawn(board, ask, BOARD)
    board("cy").decide("voter-1", "approve", "cy", "early")
    ledger.seal("voter-1", "synthetic-1", "public", "1" * 32, "e" * 64, 10)
    board("bo").decide("voter-1", "approve", "bo", "all of it")
    assert ledger.state("voter-1") == "waiting" and ledger.decision("voter-1") is None
    board("cy").decide("voter-1", "approve", "cy", "all of it")
    assert ledger.state("voter-1") == "approved" and ledger.releases()[0].approver == "bo, cy"


@pytest.mark.parametrize("act", ["grant", "charge", "approve", "reject", "abandon", "burn", "home", "add", "remove"])
@pytest.mark.parametrize("who", ["nobody", "stranger", "removed", "wrong role"])
@pytest.mark.whole
def test_whoever_may_not_is_refused_and_nothing_is_written(board: As, any_home: Home, ask, act: str, who: str):
    ledger = drawn(board, ask, BOARD)
    for by in ("ada", "bo"):
        change_people(board(by), change(board, "remove", "cy"), "left")
    key = {"stranger": "eve", "removed": "cy", "wrong role": "ada" if act == "charge" else "ola"}.get(who)
    if act in ("abandon", "burn", "home") and who == "wrong role":
        for by in ("ada", "bo"):
            add(board, by, "gil", "guest")
        key = "gil"
    forger = board(key) if key else open_ledger(any_home)
    before = ledger.head()
    acts: dict[str, Callable[[], object]] = {
        "grant": lambda: forger.grant("youth", ONE, "more"),
        "charge": lambda: forger.charge(ask("voter-2")),
        "approve": lambda: forger.decide("voter-1", "approve", "ada", "forged name"),
        "reject": lambda: forger.decide("voter-1", "reject", "ada", "forged name"),
        "abandon": lambda: forger.abandon("voter-1", "mine"),
        "burn": lambda: forger.burn("voter-1", "it looks lost"),
        "home": lambda: register_home(forger, {"keys": {"signing-key.pem": "another"}}, after=0),
        "add": lambda: change_people(forger, change(board, "add", "eve", "approver"), "me too"),
        "remove": lambda: change_people(forger, change(board, "remove", "ada"), "go"),
    }
    with pytest.raises(SpecError, match="Nothing was written"):
        acts[act]()
    assert ledger.head() == before
    board("ada").grant("youth", ONE, "the control: who may, may")


def test_one_approver_cannot_make_the_other_eyes(board: As, ask):
    puppet = add(board, "ada", "puppet", "approver", "board")
    add(board, "ada", "puppet", "approver", "board")
    people = board("ada").people()
    assert "puppet" not in people.active and [*people.proposed.values()] == [{"ada"}]
    assert puppet.kind == "person"
    with pytest.raises(SpecError, match="not registered"):
        board("puppet").grant("youth", ONE, "from a puppet")
    for name in ("bo", "cy"):
        change_people(board("ada"), change(board, "remove", name), "to be alone")
    assert {"bo", "cy"} <= set(board("ada").people().active)
    add(board, "bo", "puppet", "approver", "board")  # a second approver says the same
    assert "puppet" in board("ada").people().active


def test_the_first_person_is_an_approver_and_the_last_one_stays(acting: As):
    with pytest.raises(SpecError, match="first person is an approver"):
        add(acting, "ola", "ola", "operator")
    with pytest.raises(SpecError, match="first person is an approver"):
        add(acting, "ola", "ada", "approver")  # signed by another key than the one that is registered
    add(acting, "ada", "ada", "approver")
    assert add(acting, "ada", "ada", "approver").seq == 1  # said again
    with pytest.raises(SpecError, match="last approver"):
        change_people(acting("ada"), change(acting, "remove", "ada"), "gone")


def test_a_key_serves_one_name_and_a_revoked_one_none(board: As):
    stolen = dataclasses.replace(change(board, "add", "bo", "operator"), name="second")
    with pytest.raises(SpecError, match="another's"):
        change_people(board("ada"), stolen, "two names")
    for by in ("ada", "bo"):
        change_people(board(by), change(board, "remove", "ola"), "left")
    with pytest.raises(SpecError, match="was revoked"):
        add(board, "ada", "ola", "operator")
    ledger = board("ada")
    assert ledger.verify(ledger.anchor) == []  # what it signed before stays valid


def test_a_ledger_without_registered_people_works_as_before(any_home: Home, ask):
    ledger = open_ledger(any_home)
    ledger.grant("youth", ONE, "pilot")
    ledger.charge(ask(context={"approval": "required"}))
    ledger.seal("voter-1", "noisy", "public", "0" * 32, "f" * 64, 10)
    ledger.decide("voter-1", "approve", "ada", "fine")
    assert ledger.state("voter-1") == "approved" and not ledger.people().are_registered and ledger.me() is None
    assert not any(SIGNED in entry.said for entry in ledger.entries())


@pytest.mark.parametrize("forgery", ["unsigned", "another's name", "another amount", "another ledger's", "another key"])
def test_a_forged_entry_is_found_however_well_it_is_linked(board: As, ask, tmp_path: Path, forgery: str):
    drawn(board, ask, BOARD)
    entries = board("ada").entries()
    grant = next(entry for entry in entries if entry.kind == "grant")
    said = grant.details
    if forgery == "unsigned":
        del said[SIGNED]
    elif forgery == "another's name":
        said[SIGNED] = said[SIGNED] | {"by": "bo"}
    elif forgery == "another key":
        said[SIGNED] = said[SIGNED] | {"key": read_signer(board("eve").key_file).public}
    forged = dataclasses.replace(grant, body=body_of(said), amount=grant.amount + (forgery == "another amount"))
    before = entries[: grant.seq - 1]
    if forgery == "another ledger's":
        before = [dataclasses.replace(before[0], hash="1" * 64), *before[1:]]
    found = list(people_problems([*before, forged]))
    assert any(f"entry {grant.seq} (grant)" in problem for problem in found)
    assert list(people_problems([*entries[: grant.seq - 1], grant])) == []  # the control


@pytest.mark.parametrize("approved", [0, 1, 2])
def test_a_publication_that_too_few_approved_is_found_however_well_it_is_linked(board: As, ask, approved: int):
    ledger = drawn(board, ask, BOARD)
    for who in ("ada", "bo")[:approved]:
        board(who).decide("voter-1", "approve", who, "fine")
    entries = ledger.entries()
    last = entries[-1]
    written = Draft("publish", "publish:voter-1#1", "youth", "voter-1", body_of({"manifest_hash": "mine"}))
    totals = Totals(last.granted_after, last.charged_after)
    found = list(people_problems([*entries, link(written, last.head, totals, last.at, "root")]))
    assert found == (
        [] if approved == 2 else [f'entry {last.seq + 1} (publish): release "voter-1" was not approved as its charge asks']
    )


def test_an_administrator_who_writes_an_unsigned_grant_into_the_table_is_found_and_nothing_goes_on(home: Home, tmp_path, ask):
    key = tmp_path / "ada.pem"
    new_key(key, None)
    ledger = open_ledger(dataclasses.replace(home, key_file=key))
    change_people(ledger, Change("add", "ada", ("approver", "operator"), read_signer(key).public), "first")
    first = ledger.grant("youth", ONE, "pilot")
    terms = body_of({"why": "mine", "neighbours": "add_remove", "unit": "person"})
    entry = link(Draft("grant", "grant:mine", "youth", None, terms, ONE), first.head, Totals(ONE, 0), first.at, "root")
    with closing(sqlite3.connect(home.ledger_file)) as raw, raw:
        marks = ", ".join("?" * len(dataclasses.fields(Entry)))
        raw.execute(f"INSERT INTO entries VALUES ({marks})", dataclasses.astuple(entry))
    assert any("nobody signed it" in problem for problem in ledger.verify(ledger.anchor))
    with pytest.raises(EvidenceBroken, match="nobody signed it"):
        ledger.charge(ask(nanos=2 * ONE))
    with pytest.raises(EvidenceBroken, match="nobody signed it"):
        ledger.account("youth")


def test_a_private_key_is_its_owners_alone_and_may_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    public = new_key(tmp_path / "ada.pem", "correct horse")
    assert stat.S_IMODE((tmp_path / "ada.pem").stat().st_mode) == 0o600
    with pytest.raises(SpecError, match="exists"):
        new_key(tmp_path / "ada.pem", None)
    monkeypatch.setenv("STEPS_KEY_PASSPHRASE", "wrong")
    with pytest.raises(SpecError, match="wrong passphrase"):
        read_signer(tmp_path / "ada.pem")
    monkeypatch.setenv("STEPS_KEY_PASSPHRASE", "correct horse")
    assert read_signer(tmp_path / "ada.pem").public == read_public(public)
    new_key(tmp_path / "open.pem", None)
    (tmp_path / "open.pem").chmod(0o640)
    with pytest.raises(StepsError, match="chmod 600"):
        read_signer(tmp_path / "open.pem")
    with pytest.raises(SpecError, match="no public Ed25519 key"):
        read_public(tmp_path / "open.pem")


def test_a_signature_is_never_published(board: As, ask):
    ledger = drawn(board, ask, BOARD)
    shown = json.dumps([each.content for each in public_chain(ledger.entries())])
    assert '"charge"' in shown and not [
        word for word in ("signed", "ola", "person") if f'"{word}"' in shown.replace('"unit": "person"', "")
    ]
