"""Secrets of this installation, made on first use: HMAC keys, the Ed25519 signing key and the login of Prefect's server."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from schemas.errors import EvidenceBroken, SpecError, StepsError

from .files import disk_faults, keep, temporary
from .home import Home

KEY_BYTES = 32
SHORTEST = 12  # characters of a passphrase
SECRETS = ("artifacts", "excess", "fingerprint")
SIGNING, SIGNING_PUBLIC = "signing-key.pem", "signing-key.pub"
RESTORE = "Restore keys/ from its backup; if there is none: steps keys replace --why TEXT"
LOGIN = "prefect-login"


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
    path, public = home.keys / SIGNING, home.keys / SIGNING_PUBLIC
    # The public half is looked for first: it is made after the private one, so who saw it finds that too, unless it was lost.
    is_known = public.exists()
    if not path.exists():
        if is_known:
            raise EvidenceBroken(
                f"{path} is gone, and its public half is still there: another key would sign as somebody else. {RESTORE}"
            )
        make_signing_key(path)
    key = read_signing_key(path)
    if not public.exists():
        _store_once(public, public_half(key))
    elif public.read_bytes() != public_half(key):
        raise EvidenceBroken(f"{public} is not the public half of {path}. Restore both from their backup.")
    return key


def make_signing_key(path: Path) -> None:
    made = Ed25519PrivateKey.generate()
    _store_once(path, made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def read_signing_key(path: Path) -> Ed25519PrivateKey:
    try:
        key = load_pem_private_key(_read_private(path), password=None)
    except ValueError:
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise EvidenceBroken(f"{path} is not an Ed25519 key in PEM. Restore it from its backup; do not delete it.")
    return key


def public_half(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def name_of_draw(key: bytes, release: str, attempt: int, stage: str, remade: int = 0) -> str:
    """A draw has one possible name per charge: there is one. What is made again after it was lost has another."""
    again = f"~{remade}" if remade else ""
    return keyed_hash(key, f"name:{release}#{attempt}/{stage}{again}".encode())[:32]


def locked(content: bytes, passphrase: str, label: bytes) -> bytes:
    """The content under a passphrase: AES-256-GCM by scrypt, with the label authenticated beside it."""
    if len(passphrase) < SHORTEST:
        raise SpecError(
            f"a passphrase has at least {SHORTEST} characters; whoever has the backup can try as many as they like."
        )
    salt, nonce = secrets.token_bytes(16), secrets.token_bytes(12)
    return salt + nonce + AESGCM(_stretched(passphrase, salt)).encrypt(nonce, content, label)


def unlocked(sealed: bytes, passphrase: str, label: bytes) -> bytes:
    """What `locked` was given."""
    salt, nonce, content = sealed[:16], sealed[16:28], sealed[28:]
    try:
        return AESGCM(_stretched(passphrase, salt)).decrypt(nonce, content, label)
    except (InvalidTag, ValueError):
        raise SpecError("the passphrase is not the one that this backup was made with, or the backup was changed.") from None


def _stretched(passphrase: str, salt: bytes) -> bytes:
    return Scrypt(salt=salt, length=32, n=2**15, r=8, p=1).derive(passphrase.encode())


def server_login(home: Home) -> str:
    """What Prefect's server asks of everybody who reaches it, name and password in one; of no use to anybody but its owner."""
    path = home.keys / LOGIN
    if not path.exists():
        _store_once(path, f"steps:{secrets.token_urlsafe(KEY_BYTES)}".encode())
    login = _read_private(path).decode("ascii", errors="replace").strip()
    if not re.fullmatch(r"[!-~]+:[!-~]{16,}", login):
        raise EvidenceBroken(f"{path} is no login of the form name:password. Delete it, and another is made on the next start.")
    return login


def _store_once(path: Path, content: bytes) -> None:
    with temporary(path.parent) as file:
        file.write(content)
        keep(file, path)  # the loser of a race reads the winner's key


def _read_private(path: Path) -> bytes:
    with disk_faults(path), path.open("rb") as file:
        if os.fstat(file.fileno()).st_mode & 0o077:
            raise StepsError(f"others than the owner may read the key {path}. Run: chmod 600 {path}")
        return file.read()
