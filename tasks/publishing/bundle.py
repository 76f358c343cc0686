"""A bundle's files: which there are, how each is written and read back, and how the manifest is signed."""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

from schemas.identity import LARGEST_WHOLE, canonical, canonical_1
from schemas.manifest import FORMAT_3, FileFacts, Manifest
from schemas.manifest_1 import FORMAT_1, Manifest1
from schemas.plan import Plan
from schemas.plan import read_plan as plan_of
from schemas.spec.domain import Domain
from schemas.tables import HOUSEHOLD, PERSON
from tasks.publishing.descriptions import describing_files
from tasks.publishing.formats import FORMATS
from tasks.publishing.statement import STATEMENT
from tasks.tables_on_disk import Stored, copy_into, digest_of

MANIFEST, SIGNATURE, PUBLIC_KEY, PAGE = "manifest.json", "manifest.sig", "signing-key.pub", "index.html"
DOMAIN, PLAN = "domain.json", "plan.json"
NOTICE, NOTICE_PAGE, KEY_HISTORY = "notice.json", "notice.html", "key-history.json"
BESIDE = frozenset({NOTICE, NOTICE_PAGE, KEY_HISTORY})  # signed for themselves; a bundle may have them, and is the same without
MARGINS, PAIRS, CODEBOOK = "margins.csv", "pairs.csv", "codebook.csv"
PLACES = "places.csv"  # a listing that bundles have whose places lie within places
LISTINGS = frozenset({MARGINS, PAIRS, CODEBOOK})  # what the page shows, as tables; earlier versions made none of them
SBOM = "sbom.cdx.json"  # what computed it; earlier versions made none
UNLISTED = frozenset({MANIFEST, SIGNATURE, STATEMENT})  # every other file stands in the manifest
LARGEST_JSON = 32_000_000  # bytes
_LATER = re.compile(r"steps-release/([4-9]|[1-9][0-9]{1,3})")  # formats that a newer version may write

AnyManifest = Manifest | Manifest1
Content = bytes | Path  # of a file: what is small in memory, what grows with the rows on disk
Form = Callable[[Any], str]  # how a bundle writes JSON: RFC 8785, or as format 1 did


def table_stages(sets: int, linked: bool = False) -> tuple[str, ...]:
    """The allow-list: artifacts that a bundle takes, each as STAGE.parquet."""
    return ("tree", "noisy-counts", "consistent-counts", *record_stages(sets, linked))


def record_stages(sets: int, linked: bool = False) -> tuple[str, ...]:
    """Synthetic records: of each set, and where tables are linked those that follow from its household rows."""
    kinds = ("synthetic", HOUSEHOLD, PERSON) if linked else ("synthetic",)
    return tuple(f"{kind}-{i}" for kind in kinds for i in range(1, sets + 1))


def is_linked(files: Iterable[str]) -> bool:
    """Whether these are files of a bundle of linked tables."""
    return f"{PERSON}-1.parquet" in files


def listings_among(files: Iterable[str]) -> frozenset[str]:
    """All listings where a bundle has one of them, or none; that of places and the bill of materials where it has one."""
    return (LISTINGS if LISTINGS.intersection(files) else frozenset()) | {SBOM, PLACES}.intersection(files)


def file_names(
    sets: int,
    formats: Iterable[str],
    listings: Iterable[str] = LISTINGS | {SBOM},
    describing: Iterable[str] | None = None,
    linked: bool = False,
) -> frozenset[str]:
    """Every file of a bundle that gives its records in these formats, and no other. What describes it: all, unless said."""
    tables = {f"{stage}.parquet" for stage in table_stages(sets, linked)}
    records = {f"{stage}{FORMATS.named(name).suffix}" for name in formats for stage in record_stages(sets, linked)}
    described = describing_files() if describing is None else frozenset(describing)
    own = {DOMAIN, PLAN, PUBLIC_KEY, PAGE, MANIFEST, SIGNATURE, *((STATEMENT,) if described else ())}
    return frozenset(tables | records | set(listings) | described | own)


def form_of(manifest: AnyManifest) -> Form:
    """How the other JSON files of its bundle are written."""
    return canonical_1 if isinstance(manifest, Manifest1) else canonical


def to_bytes(value: Any, form: Form = canonical) -> bytes:
    """Canonical JSON of plain values."""
    return form(value).encode()


def domain_bytes(domain: Domain, form: Form = canonical) -> bytes:
    return to_bytes(_plain(domain.model_dump()), form)


def plan_bytes(plan: Plan) -> bytes:
    return to_bytes(plan.document)


def manifest_bytes(manifest: Manifest) -> bytes:
    return to_bytes(manifest.model_dump(mode="json"))


def read_domain(content: bytes, form: Form = canonical) -> Domain:
    """The inverse of `domain_bytes`: numbers as they were written, as in dataset.yaml."""
    canonical_json(content, form)
    return Domain.model_validate(_frozen(json.loads(content, parse_float=Decimal)))


def read_plan(content: bytes, form: Form = canonical) -> Plan:
    return plan_of(canonical_json(content, form))


def read_manifest(content: bytes) -> AnyManifest:
    """By the rules of the format that it names."""
    format = _format(content) if len(content) <= LARGEST_JSON else None
    if format == FORMAT_1:
        return Manifest1.model_validate(canonical_json(content, canonical_1))
    if isinstance(format, str) and _LATER.fullmatch(format):
        raise ValueError(
            f"has format {format}, and this version knows none after {FORMAT_3}: a newer version of this software made it. "
            "Verify it with that one, or with one that is newer still"
        )
    return Manifest.model_validate(canonical_json(content))


def _format(content: bytes) -> Any:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None  # which canonical_json explains
    return value.get("format") if isinstance(value, dict) else None


def canonical_json(content: bytes, form: Form = canonical) -> Any:
    """The value of a canonical JSON text; ValueError for any other text, so that one value has one text."""
    if len(content) > LARGEST_JSON:
        raise ValueError(f"larger than {LARGEST_JSON:,} bytes")
    try:
        value = json.loads(content)
        same = to_bytes(value if form is canonical_1 else json.loads(content, parse_int=_number), form) == content
    except (ValueError, RecursionError):
        raise ValueError("not readable as JSON") from None
    if not same:
        raise ValueError("not canonical JSON (sorted keys, no blanks)")
    return value


def _number(digits: str) -> int | float:
    """RFC 8785 knows floats only: digits beyond 2⁵³ − 1 are those of a float, or not canonical."""
    return int(digits) if abs(int(digits)) <= LARGEST_WHOLE else float(digits)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    if isinstance(value, datetime.date):
        return value.isoformat()
    is_last = isinstance(value, int) and abs(value) == LARGEST_WHOLE + 1  # the largest bound: a float holds it exactly
    return float(value) if isinstance(value, Decimal) or is_last else value


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _frozen(part) for key, part in value.items()}
    return tuple(_frozen(part) for part in value) if isinstance(value, list) else value


def read_table(content: Content) -> pa.Table:
    return Stored(content).read() if isinstance(content, Path) else pq.read_table(pa.BufferReader(content))


def facts_of(content: Content) -> FileFacts:
    if isinstance(content, Path):
        return FileFacts(sha256=digest_of(content), size=content.stat().st_size)
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


def write_durably(path: Path, content: Content) -> None:
    """A new file (0644), on disk when this returns; of another file a copy."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, 0o644)
        copy_into(content, file) if isinstance(content, Path) else file.write(content)
        file.flush()
        os.fsync(descriptor)
