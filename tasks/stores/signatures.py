"""A person's signature over an entry: Ed25519 over all that the entry says, in RFC 8785, and over which ledger it is for."""

from __future__ import annotations

import getpass
import os
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from schemas.errors import SpecError, StepsError
from schemas.identity import canonical

from .entries import Draft, Entry, unsigned
from .files import disk_faults
from .home import KeyPlace

STATEMENT = "steps-release ledger entry, 1"  # what is signed is nothing else that the key may sign
PASSPHRASE = "STEPS_KEY_PASSPHRASE"


class Signer(Protocol):
    """Whatever holds a private Ed25519 key: a file, a token (tokens.py); a server's key store would need these two alone."""

    @property
    def public(self) -> str:
        """The public key, 32 bytes in hexadecimal."""

    def sign(self, statement: bytes) -> str:
        """64 bytes in hexadecimal."""


class FileSigner:
    """A private key from a file."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key

    @property
    def public(self) -> str:
        return self._key.public_key().public_bytes_raw().hex()

    def sign(self, statement: bytes) -> str:
        return self._key.sign(statement).hex()


def statement_of(said: Draft | Entry, details: dict[str, Any], ledger: str) -> bytes:
    """What a signature covers: the event, its amount, its reason, and the ledger by the hash of its first entry."""
    event = {name: getattr(said, name) for name in ("kind", "key", "population", "release", "amount", "measure")}
    return canonical({"statement": STATEMENT, "ledger": ledger, **event, "body": unsigned(details)}).encode()


def holds(public: str, signature: str, statement: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(bytes.fromhex(signature), statement)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def new_key(path: Path, passphrase: str | None) -> Path:
    """Makes a private key for its owner alone, and beside it the public half, which may be shown; overwrites nothing."""
    public, key = path.with_name(f"{path.name}.pub"), Ed25519PrivateKey.generate()
    locked: KeySerializationEncryption = BestAvailableEncryption(passphrase.encode()) if passphrase else NoEncryption()
    for place, mode, content in (
        (path, 0o600, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked)),
        (public, 0o644, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)),
    ):
        if place.exists():
            raise SpecError(f"{place} exists. Nothing was written; choose another name.")
        with disk_faults(place), os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    return public


def write_public(signer: Signer, path: Path) -> Path:
    """The public half of a key, to be registered; overwrites nothing."""
    if path.exists():
        raise SpecError(f"{path} exists. Nothing was written; choose another name.")
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signer.public))
    with disk_faults(path):
        path.write_bytes(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return path


def read_public(path: Path) -> str:
    """A person's public key, from a PEM file."""
    try:
        key = load_pem_public_key(path.read_bytes())
    except OSError as error:
        raise SpecError(f"cannot read the public key {path}: {error.strerror}. Make one: steps keys new FILE") from None
    except ValueError:
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise SpecError(f"{path} is no public Ed25519 key in PEM. Give the .pub file that `steps keys new` made.")
    return key.public_bytes_raw().hex()


@lru_cache(maxsize=8)  # a passphrase or PIN is asked for once
def read_signer(place: KeyPlace) -> Signer:
    """The private key in a file or on a token; what opens it comes from the environment or from the person at the terminal."""
    if isinstance(place, str):
        from .tokens import TokenSigner

        return TokenSigner(place)
    return _from_file(place)


def _from_file(path: Path) -> Signer:
    try:
        with path.open("rb") as file:
            loose = os.fstat(file.fileno()).st_mode & 0o077
            content = file.read()
    except OSError as error:
        raise SpecError(f"cannot read the signing key {path}: {error.strerror}. Nothing was written.") from None
    if loose:
        raise StepsError(f"others than the owner may read the key {path}. Nothing was written. Run: chmod 600 {path}")
    try:
        key = load_pem_private_key(content, _passphrase(path) if b"ENCRYPTED" in content else None)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise SpecError(
            f"{path} cannot be opened as a private Ed25519 key in PEM: another file, or a wrong passphrase ({PASSPHRASE}). "
            "Nothing was written."
        )
    return FileSigner(key)


def _passphrase(path: Path) -> bytes:
    said = os.environ.get(PASSPHRASE)
    if said is None and sys.stdin.isatty():
        said = getpass.getpass(f"Passphrase of {path}: ")
    return (said or "").encode()
