"""People: who may act on a ledger; each change is compared with what is known elsewhere first, and signed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tasks.stages.audit import must_be_current_ledger
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tasks.stores.people import Change, People
from tasks.stores.signatures import read_public
from tasks.stores.trust import change_people


def add_person(home: Home, name: str, roles: Iterable[str], public: Path, why: str) -> tuple[Change, People]:
    """Says that a person is to be registered with this key and these roles; the people as they are then."""
    return _said(home, Change("add", name, tuple(sorted(set(roles))), read_public(public)), why)


def remove_person(home: Home, name: str, why: str) -> tuple[Change, People]:
    """Says that a person's key is to be revoked."""
    person = open_ledger(home).people().active.get(name)
    return _said(home, Change("remove", name, (), person.key if person else ""), why)


def _said(home: Home, change: Change, why: str) -> tuple[Change, People]:
    ledger = must_be_current_ledger(home)
    change_people(ledger, change, why)
    return change, ledger.people()
