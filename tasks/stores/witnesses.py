"""What timestamp authorities say of the ledger's heads: each word checked against the certificates that were trusted for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from schemas.errors import EvidenceBroken, SpecError

from .home import Home
from .timestamps import Stamp, kept

if TYPE_CHECKING:
    from cryptography import x509
    from rfc3161_client import TimeStampResponse


@dataclass(frozen=True)
class Witness:
    """When an authority saw which entry, and by whose certificate it is believed."""

    seq: int
    head: str
    at: datetime
    authority: str
    root: str  # SHA-256 of the certificate that was trusted

    def __str__(self) -> str:
        when = self.at.isoformat(timespec="seconds").replace("+00:00", "Z")
        return f"entry {self.seq} existed at {when}, says {self.authority} (believed by the certificate {self.root[:16]}…)"


def granted(content: bytes, name: str) -> TimeStampResponse:
    from rfc3161_client import PKIStatus, decode_timestamp_response

    try:
        response = decode_timestamp_response(content)
        status, why = PKIStatus(response.status), "; ".join(response.status_string)
    except ValueError:
        raise SpecError(f"{name} is no timestamp response (RFC 3161, in strict DER). Nothing was kept.") from None
    if status != PKIStatus.GRANTED:
        raise SpecError(f"{name}: the authority did not grant it ({status.name.lower()}{': ' if why else ''}{why}).")
    return response


def witness_of(stamp: Stamp) -> Witness:
    """The authority's word, checked: signature, chain to a trusted certificate as of then, purpose, and this very head."""
    from cryptography import x509
    from cryptography.hazmat.primitives.hashes import SHA256

    name = f"the timestamp of entry {stamp.seq}"
    try:
        response = granted(bytes.fromhex(stamp.response or ""), name)
        trusted = x509.load_pem_x509_certificates((stamp.chain or "").encode())
    except (ValueError, SpecError):
        raise EvidenceBroken(f"{name} holds no response, or no certificates in PEM to check it by.") from None
    roots = [each for each in trusted if each.subject == each.issuer]
    if not roots:
        raise EvidenceBroken(f"{name}: none of the certificates given is a root, signed by itself. Give the whole chain.")
    others = [each for each in trusted if each not in roots]
    root = _believed(response, stamp.imprint, roots, others, name)
    signer = {(each.issuer, each.serial_number) for each in response.signed_data.signer_infos}
    embedded = map(x509.load_der_x509_certificate, response.signed_data.certificates)
    leaf = next((each for each in embedded if (each.issuer, each.serial_number) in signer), root)
    said = leaf.subject.rfc4514_string()
    return Witness(stamp.seq, stamp.head, response.tst_info.gen_time, said, root.fingerprint(SHA256()).hex())


def _believed(
    response: TimeStampResponse,
    imprint: bytes,
    roots: list[x509.Certificate],
    others: list[x509.Certificate],
    name: str,
) -> x509.Certificate:
    """The root by which the answer holds."""
    from rfc3161_client import VerificationError, VerifierBuilder

    wrong = ""
    for root in roots:
        try:
            VerifierBuilder(roots=[root], intermediates=list(others)).build().verify(response, imprint)
        except (VerificationError, ValueError) as error:
            wrong = str(error)
        else:
            return root
    raise EvidenceBroken(f"{name} does not verify: {wrong}. It proves nothing.")


def witnesses(home: Home) -> tuple[list[Witness], list[str]]:
    """Every kept timestamp that holds, and what is wrong with the others."""
    found, problems = [], []
    try:
        stamps = [stamp for stamp in kept(home) if stamp.response]
    except EvidenceBroken as error:
        return [], [str(error)]
    for stamp in stamps:
        try:
            found.append(witness_of(stamp))
        except EvidenceBroken as error:
            problems.append(str(error))
    return found, problems
