"""Secrets of this installation, made on first use: HMAC keys and the Ed25519 signing key."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from schemas.errors import EvidenceBroken, StepsError

from .files import disk_faults, keep, temporary
from .home import Home

KEY_BYTES = 32


def secret_key(home: Home, name: str) -> bytes:
    """The 32 secret bytes of that name, the same for every process that asks."""
    path = home.keys / f"{name}.key"
    if not path.exists():
        _store_once(path, secrets.token_bytes(KEY_BYTES))
    key = _read_private(path)
    if len(key) != KEY_BYTES:
        raise EvidenceBroken(f"{path} is not a key of {KEY_BYTES} bytes. Restore it from its backup; do not delete it.")
    return key


def passing_secret() -> str:
    """A secret that no file holds: known while this process lives, to whom it tells it."""
    return secrets.token_hex(KEY_BYTES)


def keyed_hash(key: bytes, content: bytes) -> str:
    """HMAC-SHA256: who knows all but one record cannot confirm the last one by hashing, as with a plain hash."""
    return hmac.new(key, content, hashlib.sha256).hexdigest()


def signing_key(home: Home) -> Ed25519PrivateKey:
    """The key that signs manifests; its public half lies beside it in signing-key.pub."""
    path = home.keys / "signing-key.pem"
    if not path.exists():
        made = Ed25519PrivateKey.generate()
        _store_once(path, made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    try:
        key = load_pem_private_key(_read_private(path), password=None)
    except ValueError:
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise EvidenceBroken(f"{path} is not an Ed25519 key in PEM. Restore it from its backup; do not delete it.")
    public = home.keys / "signing-key.pub"
    if not public.exists():
        _store_once(public, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return key


def _store_once(path: Path, content: bytes) -> None:
    with temporary(path.parent) as file:
        file.write(content)
        keep(file, path)  # the loser of a race reads the winner's key


def _read_private(path: Path) -> bytes:
    with disk_faults(path), path.open("rb") as file:
        if os.fstat(file.fileno()).st_mode & 0o077:
            raise StepsError(f"others than the owner may read the key {path}. Run: chmod 600 {path}")
        return file.read()
