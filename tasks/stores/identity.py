"""Which home works on a ledger: the one whose keys it registered. Another, or an empty folder, is refused and loses nothing.

A home is known by its keys. Of the secret ones the ledger holds a keyed hash of one word, of the signing key its public half.
They move with a backup, so that a restored home is the same one.
"""

from __future__ import annotations

from typing import Any

from schemas.errors import EvidenceBroken

from .acts import homes, register_home
from .entries import Entry
from .home import Home
from .keys import RESTORE, SECRETS, SIGNING, keyed_hash, name_of_draw, read_signing_key, secret_key, signing_key
from .ledger import Ledger
from .releases import is_draw, times_remade

NOTHING = "Nothing was charged, drawn, burnt or published"
NEXT = "signing-key.next.pem"  # of a rotation that is going on


def keys_of(home: Home) -> dict[str, str]:
    """What tells this home's keys from others', of those that are there; none is made by looking."""
    folder = home.path / "keys"
    there = [name for name in SECRETS if (folder / f"{name}.key").exists()]
    found = {f"{name}.key": keyed_hash(secret_key(home, name), b"home") for name in there}
    return found | ({SIGNING: public_hex(home)} if (folder / SIGNING).exists() else {})


def public_hex(home: Home, name: str = SIGNING) -> str:
    return read_signing_key(home.keys / name).public_key().public_bytes_raw().hex()


def must_be_ours(home: Home, ledger: Ledger) -> None:
    """Refuses a home that is not the one that the ledger knows."""
    registered = homes(ledger)
    if not registered:
        return _must_fit_seals(home, ledger)
    found = keys_of(home)  # read after the ledger: keys are made before it knows them
    said: dict[str, str] = registered[-1].details["keys"]
    wrong = [name for name in said if found.get(name) != said[name]]
    if not wrong:
        return None
    if len(homes(ledger)) > len(registered):  # a key was changed between the two looks
        return must_be_ours(home, ledger)
    if not found:
        raise EvidenceBroken(
            f"{home.path} has no keys, though the ledger {ledger.database.name} knows its home: is this another folder, or a "
            f"disk that is not mounted? {NOTHING}. Use the home that made its releases. {RESTORE}"
        )
    if wrong == [SIGNING] and (home.path / "keys" / NEXT).exists():
        raise EvidenceBroken(f"a rotation of the signing key was cut short. {NOTHING}. Finish it: steps keys rotate")
    if "artifacts.key" in wrong and "artifacts.key" in found:
        raise EvidenceBroken(
            f"{home.path} is another home than the one that the ledger {ledger.database.name} knows. {NOTHING}. "
            "One ledger, one home: use that one, or another ledger."
        )
    what = ", ".join(f"keys/{name} is {'another' if name in found else 'missing'}" for name in wrong)
    raise EvidenceBroken(f"{what} in {home.path}. {NOTHING}. {RESTORE}")


def _must_fit_seals(home: Home, ledger: Ledger) -> None:
    """A ledger of an earlier version has no home yet: its last draw has a name that only the home's key gives."""
    # Again the ledger first: keys are made before anything is drawn or published, so those of every draw are found.
    entries, found = ledger.entries(), keys_of(home)
    draws = [entry for entry in entries if is_draw(entry)]
    if draws and _name_under_key(home, found, draws[-1], entries) != draws[-1].details["id"]:
        which = "no keys/artifacts.key" if "artifacts.key" not in found else "another keys/artifacts.key"
        raise EvidenceBroken(
            f"{home.path} has {which} than the home whose draws the ledger {ledger.database.name} knows: is this another "
            f"folder, or a disk that is not mounted? {NOTHING}. {RESTORE}"
        )
    if SIGNING not in found and any(entry.kind == "publish" for entry in entries):
        raise EvidenceBroken(f"keys/{SIGNING}, which signed earlier releases, is missing in {home.path}. {NOTHING}. {RESTORE}")


def _name_under_key(home: Home, found: dict[str, str], draw: Entry, entries: list[Entry]) -> str | None:
    if "artifacts.key" not in found:
        return None
    before = (entry for entry in entries if entry.seq < draw.seq)
    attempt = sum(entry.kind == "charge" and entry.release == draw.release for entry in before)
    key, stage = secret_key(home, "artifacts"), draw.details["stage"]
    return name_of_draw(key, draw.release or "", attempt, stage, times_remade(draw))


def make_keys(home: Home) -> dict[str, str]:
    """All keys, made where there are none."""
    for name in SECRETS:
        secret_key(home, name)
    signing_key(home)
    return keys_of(home)


def register(home: Home, ledger: Ledger, **details: Any) -> None:
    """Tells the ledger at the first charge which home this is. Before it, nothing was drawn that another could lose."""
    if not homes(ledger):
        register_home(ledger, {"keys": make_keys(home), **details}, after=0)
