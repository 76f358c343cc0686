"""Who signed a bundle: its own key, or the one that was given."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from schemas.errors import SpecError
from schemas.manifest import Manifest
from steps_engine.methods.checked import Findings
from tasks.publishing import bundle
from tasks.publishing.statement import STATEMENT, is_envelope, statement_of
from tasks.verify.files import content_of

NOT_ESTABLISHED = "is self-consistent; who signed is not established. Give the publisher's --key"


def given_key(path: Path | None) -> bytes | None:
    """The publisher's key, which must be one: a mistake here is the caller's."""
    if path is None:
        return None
    try:
        pem = Path(path).read_bytes()
        bundle.read_public_key(pem)
        return pem
    except OSError as error:
        raise SpecError(
            f"the public key {path} cannot be read: {error.strerror}. Give the publisher's, signing-key.pub."
        ) from None
    except ValueError:
        raise SpecError(f"{path} is not a public key. Give the publisher's Ed25519 key in PEM, signing-key.pub.") from None


def fingerprint(pem: bytes) -> str:
    """A key in a form that two people can compare: SHA-256 of its 32 bytes, in hexadecimal digits."""
    raw = bundle.read_public_key(pem).public_bytes(Encoding.Raw, PublicFormat.Raw)
    return hashlib.sha256(raw).hexdigest()


def is_signed(files: Mapping[str, Path], manifest: bytes, given: bytes | None, found: Findings) -> bool:
    """Whether the manifest is signed by the bundle's own key; with a key, that must be the one."""
    signature, own = content_of(files, bundle.SIGNATURE), content_of(files, bundle.PUBLIC_KEY)
    key = bundle.read_public_key(given or own)
    if given is not None and key != bundle.read_public_key(own):
        found.add(bundle.PUBLIC_KEY, "is not the key that was given")
    if bundle.is_signed(key, manifest, signature):
        return True
    found.add(bundle.SIGNATURE, "does not sign this manifest with this key")
    return False


def statement_problems(files: Mapping[str, Path], manifest: bundle.AnyManifest, content: bytes) -> Iterator[str]:
    """The statement names the files that the manifest names, and is signed by the key that signed it."""
    if STATEMENT not in files or not isinstance(manifest, Manifest):
        return  # that one is missing, the list of files says
    key = bundle.read_public_key(content_of(files, bundle.PUBLIC_KEY))
    if not is_envelope(key, statement_of(manifest, content), content_of(files, STATEMENT)):
        yield "is not the statement of this manifest, signed by this key"
