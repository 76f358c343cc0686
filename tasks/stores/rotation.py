"""The signing key changes: by rotation, the old key signs the new one; by replacement, what was lost is made anew.

The ledger's entry comes first, then the files: killed in between, the same command finishes what was begun.
"""

from __future__ import annotations

import base64
import json
import os
from datetime import UTC, datetime
from typing import Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from schemas.errors import EvidenceBroken, SpecError
from schemas.identity import digest
from schemas.notices import KeyHistory, KeyLink

from .acts import homes, register_home
from .entries import Draft, Entry, must_be_name
from .files import disk_faults, sync_folder, write_over
from .home import Home
from .identity import NEXT, keys_of, make_keys, must_be_ours, public_hex, register
from .keys import SIGNING, SIGNING_PUBLIC, make_signing_key, public_half, read_signing_key
from .ledger import Ledger
from .people import must_be_allowed
from .signatures import read_signer

HISTORY = "key-history.json"
BEGUN = "replacing.json"  # which keys a replacement makes, until the ledger knows them


def history_of(ledger: Ledger) -> KeyHistory | None:
    """Every change of the signing key; None where it never changed."""
    links = tuple(KeyLink.model_validate(entry.details["link"]) for entry in homes(ledger) if "link" in entry.details)
    return KeyHistory(links=links) if links else None


def rotate(home: Home, ledger: Ledger, why: str, revoke: bool = False, key: str | None = None) -> KeyLink:
    """A new signing key, signed by the one before; or, where that one was revoked, by itself alone. Once for each `key`."""
    _must_say(why, "a rotation")
    _must_be_signable(ledger)
    begun = home.keys / NEXT
    if (found := rotated_before(home, ledger, why, revoke, key)) is not None:
        return KeyLink.model_validate(found.details["link"])
    if not begun.exists():
        must_be_ours(home, ledger)
        if SIGNING not in keys_of(home):
            raise SpecError("there is no signing key yet: the first release makes it.")
        register(home, ledger)
        make_signing_key(begun)
    new = public_hex(home, NEXT)
    registered = homes(ledger)
    said = registered[-1].details
    if said["keys"][SIGNING] != new:
        old = read_signing_key(home.keys / SIGNING)
        link = _linked(_kind(revoke), said["keys"][SIGNING], read_signing_key(begun), old)
        told = {"why": why, "link": link.model_dump(exclude_none=True), "said": _name(why, revoke, key)}
        details = {"keys": said["keys"] | {SIGNING: new}, **told}
        register_home(ledger, details, after=len(registered))
    _place(home, ledger)
    return _last(ledger)


def rotated_before(home: Home, ledger: Ledger, why: str, revoke: bool, key: str | None) -> Entry | None:
    """The rotation of this name, if it was made to its end: without one, the same words on the same day are the same."""
    name = _name(why, revoke, key)
    found = next((entry for entry in homes(ledger) if entry.details.get("said") == name), None)
    if found is None or _is_cut_short(home, ledger):
        return None
    link = found.details["link"]
    if (found.details["why"], link["kind"]) != (why, _kind(revoke)):
        raise SpecError(
            f'a rotation named "{key}" was made on {link["date"]}, for another reason or of another kind ({link["kind"]}). '
            "Nothing was changed. Give this one a --key of its own, or none."
        )
    return found


def _name(why: str, revoke: bool, key: str | None) -> str:
    if key is not None:
        return must_be_name("key", key)
    return f"same:{digest({'why': why, 'revoke': revoke, 'day': _today()})[:32]}"


def _kind(revoke: bool) -> Literal["rotated", "revoked"]:
    return "revoked" if revoke else "rotated"


def _is_cut_short(home: Home, ledger: Ledger) -> bool:
    """Whether the ledger knows of a rotation whose key has not got its place yet."""
    return (home.keys / NEXT).exists() and homes(ledger)[-1].details["keys"][SIGNING] == public_hex(home, NEXT)


def replace(home: Home, ledger: Ledger, why: str) -> list[str]:
    """Makes lost keys anew, and says so in the ledger. Releases under way cannot go on where a key had part in them."""
    _must_say(why, "a replacement of lost keys")
    _must_be_signable(ledger)
    registered, found = homes(ledger), keys_of(home)
    said: dict[str, str] = registered[-1].details["keys"] if registered else {}
    lost = _begun(home) or [name for name in said if name not in found]
    if other := [name for name in said if name in found and found[name] != said[name] and name not in lost]:
        raise EvidenceBroken(f"keys/{other[0]} in {home.path} is another home's. Only keys that are missing are replaced.")
    if registered and not lost:
        raise SpecError('no key is missing. To change the signing key: steps keys rotate --why "…"')
    write_over(home.keys / BEGUN, json.dumps(lost).encode(), 0o600)
    if SIGNING not in found:
        (home.keys / SIGNING_PUBLIC).unlink(missing_ok=True)
    details = {"keys": make_keys(home), "why": why, "lost": lost}
    if SIGNING in lost:
        link = _linked("lost", said[SIGNING], read_signing_key(home.keys / SIGNING))
        details["link"] = link.model_dump(exclude_none=True)
    if said != details["keys"]:
        register_home(ledger, details, after=len(registered))
    write_history(home, ledger)
    (home.keys / BEGUN).unlink(missing_ok=True)
    return lost


def _begun(home: Home) -> list[str]:
    """Which keys a replacement that was cut short was making."""
    path = home.keys / BEGUN
    return list(json.loads(path.read_bytes())) if path.exists() else []


def write_history(home: Home, ledger: Ledger) -> None:
    """Puts the history beside all bundles, where `steps verify` finds it."""
    history = history_of(ledger)
    if history is not None:
        write_over(home.public / HISTORY, history.document, 0o644)


def _must_say(why: str, what: str) -> None:
    if not why.strip():
        raise SpecError(f'{what} needs a reason, which the ledger keeps: --why "…"')


def _must_be_signable(ledger: Ledger) -> None:
    """Where people are registered: nothing is made for who may not say so. The entry's own transaction looks again."""
    people = ledger.people()
    if people.concerns("home"):
        public = read_signer(ledger.key_file).public if ledger.key_file else None
        must_be_allowed(people, Draft("home", "", None, None, ""), public)


def _linked(
    kind: Literal["rotated", "lost", "revoked"], previous: str, new: Ed25519PrivateKey, old: Ed25519PrivateKey | None = None
) -> KeyLink:
    key = new.public_key().public_bytes_raw().hex()
    link = KeyLink(date=_today(), kind=kind, previous=previous, key=key)
    signatures = {"by_key": _signature(new, link.signed)}
    if kind == "rotated" and old is not None:
        signatures["by_previous"] = _signature(old, link.signed)
    return link.model_copy(update=signatures)


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def _signature(key: Ed25519PrivateKey, content: bytes) -> str:
    return base64.b64encode(key.sign(content)).decode()


def _last(ledger: Ledger) -> KeyLink:
    history = history_of(ledger)
    assert history is not None
    return history.links[-1]


def _place(home: Home, ledger: Ledger) -> None:
    """Public half first: until the private one is in its place, the one beside it tells that a rotation was cut short."""
    write_history(home, ledger)
    begun = home.keys / NEXT
    write_over(home.keys / SIGNING_PUBLIC, public_half(read_signing_key(begun)), 0o600)
    with disk_faults(home.keys):
        os.replace(begun, home.keys / SIGNING)
        sync_folder(home.keys)
