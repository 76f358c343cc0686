"""release.intoto.jsonl: a DSSE envelope with an in-toto statement, which names every file by its SHA-256 and is signed as the
manifest is. Programs that know in-toto check it without knowing this one; it says nothing that the manifest does not.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from schemas.identity import canonical
from schemas.manifest import Manifest

STATEMENT = "release.intoto.jsonl"
PAYLOAD = "application/vnd.in-toto+json"
_TYPE = "https://in-toto.io/Statement/v1"
_PREDICATE = "steps-release:bundle/1"


def statement_of(manifest: Manifest, content: bytes) -> bytes:
    """What is signed: a function of the manifest and its bytes, so that there is one statement for one manifest."""
    hashes = {name: facts.sha256 for name, facts in manifest.files.items()}
    hashes["manifest.json"] = hashlib.sha256(content).hexdigest()
    statement = {
        "_type": _TYPE,
        "subject": [{"name": name, "digest": {"sha256": hashes[name]}} for name in sorted(hashes)],
        "predicateType": _PREDICATE,
        "predicate": {
            "format": manifest.format,
            "release": manifest.release,
            "population": manifest.population,
            "made_at": manifest.made_at,
            "guarantee": manifest.guarantee.model_dump(mode="json"),
        },
    }
    return canonical(statement).encode()


def envelope_of(key: Ed25519PrivateKey, statement: bytes) -> bytes:
    """One envelope in one line."""
    signature = base64.b64encode(key.sign(_encoded(statement))).decode()
    return _line(statement, signature, key.public_key())


def is_envelope(key: Ed25519PublicKey, statement: bytes, content: bytes) -> bool:
    """Whether the file is the one envelope of this statement under this key, with a signature that holds."""
    try:
        signature = str(json.loads(content)["signatures"][0]["sig"])
        key.verify(base64.b64decode(signature, validate=True), _encoded(statement))
    except (InvalidSignature, ValueError, KeyError, IndexError, TypeError, RecursionError):
        return False
    return content == _line(statement, signature, key)


def _line(statement: bytes, signature: str, key: Ed25519PublicKey) -> bytes:
    envelope = {
        "payload": base64.b64encode(statement).decode(),
        "payloadType": PAYLOAD,
        "signatures": [{"keyid": _key_id(key), "sig": signature}],
    }
    return (canonical(envelope) + "\n").encode()


def _encoded(statement: bytes) -> bytes:
    """DSSE's pre-authentication encoding. It begins unlike anything else that this key signs, which is JSON."""
    kind = PAYLOAD.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(statement), statement)


def _key_id(key: Ed25519PublicKey) -> str:
    """By which securesystemslib knows a key."""
    said: dict[str, Any] = {"keytype": "ed25519", "scheme": "ed25519", "keyval": {"public": key.public_bytes_raw().hex()}}
    return hashlib.sha256(canonical(said).encode()).hexdigest()
