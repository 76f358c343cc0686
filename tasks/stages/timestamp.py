"""Timestamp: asks a timestamp authority (RFC 3161) for its word that the ledger's head exists, and checks what it answers.

Nothing is sent from here: a person, or cron with curl, carries the request out and the response in.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from schemas.errors import SpecError
from tasks.stages.audit import must_be_current_ledger
from tasks.stores.files import disk_faults, write_over
from tasks.stores.home import Home
from tasks.stores.timestamps import Stamp, asked_for, keep_stamp, kept
from tasks.stores.witnesses import Witness, granted, witness_of

REQUEST_SUFFIX = ".tsq"


def write_request(home: Home, out: Path) -> Stamp:
    """A request for the present head, for an authority to answer; for the same head, the same bytes."""
    from rfc3161_client import HashAlgorithm, TimestampRequestBuilder

    if out.exists() and out.suffix != REQUEST_SUFFIX:
        raise SpecError(f"{out} exists, and is not named as a request ({REQUEST_SUFFIX}). Nothing was written over.")
    head = must_be_current_ledger(home).head()
    if head[0] == 0:
        raise SpecError("the ledger has no entry yet, so there is no head to be timestamped.")
    stamp = asked_for(home, head)
    # No nonce: the secret in what is hashed makes every question another one, so that no old answer fits it.
    asked = TimestampRequestBuilder().data(stamp.statement).hash_algorithm(HashAlgorithm.SHA256).nonce(nonce=False)
    with disk_faults(out):
        write_over(out.absolute(), asked.cert_request(cert_request=True).build().as_bytes(), 0o644)
    return stamp


def accept_response(home: Home, file: Path, chain: Path | None) -> Witness:
    """Checks an authority's answer to one of our requests, and keeps it with the certificates that it was checked against."""
    with disk_faults(file):
        content = file.read_bytes()
    response = granted(content, str(file))
    imprint = response.tst_info.message_imprint.message
    stamps = kept(home)
    stamp = next((each for each in stamps if each.imprint == imprint), None)
    if stamp is None:
        raise SpecError(f"{file} answers no request of this home. Nothing was kept. Make one: steps budget timestamp --request")
    if stamp.response is not None:  # the first answer stands
        return witness_of(stamp)
    answered = replace(stamp, response=content.hex(), chain=_certificates(chain, stamps))
    witness = witness_of(answered)
    keep_stamp(home, answered)
    return witness


def _certificates(chain: Path | None, stamps: list[Stamp]) -> str:
    if chain is not None:
        with disk_faults(chain):
            return chain.read_text(encoding="utf-8", errors="replace")
    before = next((each.chain for each in reversed(stamps) if each.chain), None)
    if before is None:
        raise SpecError("whose word this is cannot be known without the authority's certificates. Give them: --chain CA.pem")
    return before
