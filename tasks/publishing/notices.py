"""What is said about a bundle after it was published: a signed notice and a page beside its files, which stay as they are."""

from __future__ import annotations

import base64
import hashlib
from html import escape
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from schemas.notices import Notice, Superseded, Withdrawn
from tasks.publishing import bundle
from tasks.stores.files import write_over

_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{release}: {title}</title>
<style>
body{{font:1.1rem/1.5 system-ui,sans-serif;max-width:38rem;margin:12vh auto;padding:0 1rem;color:#222}}
h1{{color:#a40000}}
</style>
<h1>{release}: {title}</h1>
{said}
<p>The files of this release stay beside this page, unchanged, so that whoever used them can see what they were; its
<a href="index.html">own page</a> is from the day it was published. What it cost in privacy stays spent.</p>
</html>
"""


def write_notice(folder: Path, key: Ed25519PrivateKey, withdrawn: Withdrawn | None, superseded: Superseded | None) -> Notice:
    """Puts notice and page into the bundle's folder; the same said again leaves the same bytes."""
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
    said = ""
    if withdrawn:
        said += (
            f"<p>Withdrawn on {withdrawn.date}. Do not use it any more.</p>\n<blockquote>{escape(withdrawn.why)}</blockquote>\n"
        )
    if superseded:
        link = f'<a href="../{superseded.by}/index.html">{superseded.by}</a>'
        said += f"<p>Superseded on {superseded.date} by {link}.</p>\n"
    title = "withdrawn" if withdrawn else "superseded"
    return _PAGE.format(release=release, title=title, said=said).encode()
