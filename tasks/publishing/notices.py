"""What is said about a bundle after it was published: a signed notice and a page beside its files, which stay as they are."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from schemas.notices import Notice, Superseded, Withdrawn
from tasks.publishing import bundle
from tasks.publishing.templates import template
from tasks.stores.files import write_over


def write_notice(folder: Path, key: Ed25519PrivateKey, withdrawn: Withdrawn | None, superseded: Superseded | None) -> Notice:
    """Puts notice and page into the bundle's folder; the same said again, by the same version, leaves the same bytes."""
    page = _page(folder.name, withdrawn, superseded)
    notice = Notice(
        release=folder.name,
        manifest_sha256=hashlib.sha256((folder / bundle.MANIFEST).read_bytes()).hexdigest(),
        withdrawn=withdrawn,
        superseded=superseded,
        page_sha256=hashlib.sha256(page).hexdigest(),
        key=key.public_key().public_bytes_raw().hex(),
    )
    notice = notice.model_copy(update={"signature": base64.b64encode(key.sign(notice.signed)).decode()})
    write_over(folder / bundle.NOTICE_PAGE, page, 0o644)
    write_over(folder / bundle.NOTICE, notice.document, 0o644)
    return notice


def _page(release: str, withdrawn: Withdrawn | None, superseded: Superseded | None) -> bytes:
    state = "withdrawn" if withdrawn else "superseded"
    page = template("notice.html").render(release=release, state=state, withdrawn=withdrawn, superseded=superseded)
    return page.encode()
