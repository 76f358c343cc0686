"""Take back: the verbs for what is public. The bundle stays, with a signed notice; so does its charge."""

from __future__ import annotations

from schemas.errors import EvidenceBroken
from schemas.notices import Notice, Superseded, Withdrawn
from tasks.publishing.notices import write_notice
from tasks.stages.audit import must_be_current
from tasks.stages.forget import forget_leftovers
from tasks.stores import acts
from tasks.stores.entries import must_be_name
from tasks.stores.files import alone, disk_faults
from tasks.stores.home import Home
from tasks.stores.keys import signing_key
from tasks.stores.ledger import Ledger, open_ledger
from tasks.stores.releases import current

PATIENCE = 60.0  # seconds to wait for a publication on this home


def withdraw(home: Home, name: str, why: str) -> Notice:
    """Say that a published release is not to be used any more, and why; both are published. Safe to repeat."""
    ledger = _ready(home, name)
    acts.withdraw(ledger, name, why)
    return _tell(home, ledger, name)


def supersede(home: Home, name: str, by: str) -> Notice:
    """Say which public release takes another's place. Safe to repeat."""
    ledger = _ready(home, name)
    acts.supersede(ledger, name, must_be_name("release", by))
    return _tell(home, ledger, name)


def _ready(home: Home, name: str) -> Ledger:
    """The ledger, sound and this home's; what it says was published is in its place, so that a notice can lie beside it."""
    must_be_name("release", name)
    must_be_current(home)
    ledger = open_ledger(home)
    if acts.consented(ledger, name) is not None and not (home.public / name).is_dir():
        raise EvidenceBroken(
            f'release "{name}" is published, and its bundle is not in {home.public / name}. Run it again if it was cut short, '
            "or restore the folder; then say this again."
        )
    return ledger


def _tell(home: Home, ledger: Ledger, name: str) -> Notice:
    said = {entry.kind: entry for entry in current(ledger.entries(release=name))}
    withdrawn, superseded = said.get("withdraw"), said.get("supersede")
    with alone(home.folder / "publish.lock", PATIENCE), disk_faults(home.public / name):
        notice = write_notice(
            home.public / name,
            signing_key(home),
            Withdrawn(date=withdrawn.at[:10], why=withdrawn.details["why"]) if withdrawn else None,
            Superseded(date=superseded.at[:10], by=superseded.details["by"]) if superseded else None,
        )
    forget_leftovers(home, name)
    return notice
