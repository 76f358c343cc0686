"""What lies beside a bundle's own files and is signed for itself: the signer's earlier keys, and a notice of withdrawal."""

from __future__ import annotations

import base64
import hashlib
import json
import stat
from collections.abc import Iterable
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from schemas.notices import KeyHistory, KeyLink, Notice
from steps_engine.methods.checked import Findings, printable
from tasks.publishing import bundle
from tasks.verify.files import content_of

LARGEST = 1_000_000  # bytes


def look_beside(files: dict[str, Path], folder: Path, given: bytes | None, found: Findings) -> tuple[bytes | None, list[str]]:
    """Takes what lies beside out of `files`; says which key to verify by, and what a reader must know."""
    beside = {name: files.pop(name) for name in bundle.BESIDE if name in files}
    own = _readable(files.get(bundle.PUBLIC_KEY))
    if own is None:
        return given, []  # which the check of the signature says
    history = found.attempt(bundle.KEY_HISTORY, _history, beside, folder)
    links = history.links if history else ()
    trusted, notes = _vouched_for(_raw(given or own), links), []
    for link in links:
        if link.kind == "revoked" and link.previous == _raw(own) and _signs(link.key, link.signed, link.by_key):
            found.add(bundle.PUBLIC_KEY, f"is a key that its owner revoked on {link.date}")
    if given is not None and _raw(own) != _raw(given) and _raw(own) in trusted:
        notes.append("is signed by another key of the publisher whose key was given: its history of keys vouches for it")
        given = own
    if bundle.MANIFEST in files and (bundle.NOTICE in beside or bundle.NOTICE_PAGE in beside):
        notice = found.attempt(bundle.NOTICE, _notice, beside, content_of(files, bundle.MANIFEST), trusted)
        notes += [printable(notice.sentence)] if notice else []
    return given, notes


def _readable(key: Path | None) -> bytes | None:
    try:
        pem = _content(key) if key else b""
        bundle.read_public_key(pem)
    except (OSError, ValueError):
        return None
    return pem


def _raw(pem: bytes) -> str:
    return bundle.read_public_key(pem).public_bytes_raw().hex()


def _content(path: Path) -> bytes:
    if not stat.S_ISREG(path.lstat().st_mode) or path.stat().st_size > LARGEST:
        raise ValueError("is no plain file, or too large")
    return path.read_bytes()


def _history(beside: dict[str, Path], folder: Path) -> KeyHistory | None:
    """The bundle's own copy, and the one beside all bundles, which may know more."""
    copies = [path for path in (folder.parent / bundle.KEY_HISTORY, beside.get(bundle.KEY_HISTORY)) if path and path.exists()]
    read = [KeyHistory.model_validate(json.loads(_content(path))) for path in copies]
    if not all(_stands(link) for history in read for link in history.links):
        raise ValueError("tells of a change of keys that its keys did not sign")
    return max(read, key=lambda history: len(history.links), default=None)


def _stands(link: KeyLink) -> bool:
    """Whether the new key signs its link, and where keys were rotated the previous one too: a revocation cannot be blurred."""
    by_previous = link.kind != "rotated" or _signs(link.previous, link.signed, link.by_previous or "")
    return by_previous and _signs(link.key, link.signed, link.by_key)


def _vouched_for(key: str, links: Iterable[KeyLink]) -> set[str]:
    """Every key for which this one vouches: it signed the next, or was signed in by one that named it as its previous.

    A lost key did not sign the next; of a revoked one neither side counts.
    """
    trusted, links = {key}, [link for link in links if link.kind != "revoked"]
    for _ in links:
        for link in links:
            if link.key in trusted and _signs(link.key, link.signed, link.by_key):
                trusted.add(link.previous)
            if link.previous in trusted and link.by_previous and _signs(link.previous, link.signed, link.by_previous):
                trusted.add(link.key)
    return trusted


def _signs(key: str, content: bytes, signature: str) -> bool:
    try:
        raw = base64.b64decode(signature, validate=True)
        if base64.b64encode(raw) != signature.encode():  # its last letter has bits that mean nothing
            return False
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(raw, content)
    except (InvalidSignature, ValueError):
        return False
    return True


def _notice(beside: dict[str, Path], manifest: bytes, trusted: set[str]) -> Notice:
    if bundle.NOTICE not in beside or bundle.NOTICE_PAGE not in beside:
        raise ValueError("notice and page belong together, and one of them is missing")
    notice = Notice.model_validate(json.loads(_content(beside[bundle.NOTICE])))
    if notice.key not in trusted or not _signs(notice.key, notice.signed, notice.signature):
        raise ValueError("is not signed by the publisher")
    if notice.manifest_sha256 != hashlib.sha256(manifest).hexdigest():
        raise ValueError("is about another bundle")
    if notice.page_sha256 != hashlib.sha256(_content(beside[bundle.NOTICE_PAGE])).hexdigest():
        raise ValueError("its page is not the one that was signed")
    return notice
