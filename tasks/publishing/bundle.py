"""A bundle's files: which there are, how each is written and read back, and how the manifest is signed."""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

from schemas.manifest import FileFacts, Manifest
from schemas.plan import Plan, canonical
from schemas.spec.domain import Domain
from tasks.publishing.formats import FORMATS

MANIFEST, SIGNATURE, PUBLIC_KEY, PAGE = "manifest.json", "manifest.sig", "signing-key.pub", "index.html"
DOMAIN, PLAN = "domain.json", "plan.json"
UNLISTED = frozenset({MANIFEST, SIGNATURE})  # every other file stands in the manifest
LARGEST_JSON = 32_000_000  # bytes
# Fraction("1e999999999") would fill the memory: figures of a plan or manifest are fractions or plain decimals.
_EXPONENT = re.compile(r"[-+0-9._\s]*[eE][-+0-9_\s]*")


def table_stages(sets: int) -> tuple[str, ...]:
    """The allow-list: artifacts that a bundle takes, each as STAGE.parquet."""
    return ("tree", "noisy-counts", "consistent-counts", *(f"synthetic-{i}" for i in range(1, sets + 1)))


def file_names(sets: int, formats: Iterable[str]) -> frozenset[str]:
    """Every file of a bundle that gives its records in these formats, and no other."""
    tables = {f"{stage}.parquet" for stage in table_stages(sets)}
    records = {f"synthetic-{i}{FORMATS.named(name).suffix}" for name in formats for i in range(1, sets + 1)}
    return frozenset(tables | records | {DOMAIN, PLAN, PUBLIC_KEY, PAGE} | UNLISTED)


def to_bytes(value: Any) -> bytes:
    """Canonical JSON of plain values."""
    return canonical(value).encode()


def domain_bytes(domain: Domain) -> bytes:
    return to_bytes(_plain(domain.model_dump()))


def plan_bytes(plan: Plan) -> bytes:
    return to_bytes(plan.model_dump(mode="json"))


def manifest_bytes(manifest: Manifest) -> bytes:
    return to_bytes(manifest.model_dump(mode="json"))


def read_domain(content: bytes) -> Domain:
    """The inverse of `domain_bytes`: numbers as they were written, as in dataset.yaml."""
    canonical_json(content)
    return Domain.model_validate(_frozen(json.loads(content, parse_float=Decimal)))


def read_plan(content: bytes) -> Plan:
    return Plan.model_validate(_figures(content))


def read_manifest(content: bytes) -> Manifest:
    return Manifest.model_validate(_figures(content))


def canonical_json(content: bytes) -> Any:
    """The value of a canonical JSON text; ValueError for any other text, so that one value has one text."""
    if len(content) > LARGEST_JSON:
        raise ValueError(f"larger than {LARGEST_JSON:,} bytes")
    try:
        value = json.loads(content)
        same = to_bytes(value) == content
    except (ValueError, RecursionError):
        raise ValueError("not readable as JSON") from None
    if not same:
        raise ValueError("not canonical JSON (sorted keys, no blanks)")
    return value


def _figures(content: bytes) -> Any:
    value = canonical_json(content)
    if any(_EXPONENT.fullmatch(text) for text in _texts(value)):
        raise ValueError("a figure with an exponent; figures are fractions such as 1/5")
    return value


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(part)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    if isinstance(value, datetime.date):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else value


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _frozen(part) for key, part in value.items()}
    return tuple(_frozen(part) for part in value) if isinstance(value, list) else value


def read_table(content: bytes) -> pa.Table:
    return pq.read_table(pa.BufferReader(content))


def facts_of(content: bytes) -> FileFacts:
    return FileFacts(sha256=hashlib.sha256(content).hexdigest(), size=len(content))


def public_pem(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def read_public_key(pem: bytes) -> Ed25519PublicKey:
    key = load_pem_public_key(pem)
    if not isinstance(key, Ed25519PublicKey):
        raise ValueError("not an Ed25519 key")
    return key


def signature_of(key: Ed25519PrivateKey, manifest: bytes) -> bytes:
    return base64.b64encode(key.sign(manifest)) + b"\n"


def is_signed(key: Ed25519PublicKey, manifest: bytes, signature: bytes) -> bool:
    """Whether the signature is the key's, written in the one way that `signature_of` writes it."""
    try:
        raw = base64.b64decode(signature.removesuffix(b"\n"), validate=True)
        key.verify(raw, manifest)
    except (InvalidSignature, ValueError):
        return False
    return base64.b64encode(raw) + b"\n" == signature


def write_durably(path: Path, content: bytes) -> None:
    """A new file (0644), on disk when this returns."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, 0o644)
        file.write(content)
        file.flush()
        os.fsync(descriptor)
