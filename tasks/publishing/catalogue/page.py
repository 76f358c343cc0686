"""index.html of the catalogue: one file that opens from a folder or a server, without network; it searches by itself."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from tasks.publishing.catalogue.accounts import Account
from tasks.publishing.catalogue.picture import burn_down
from tasks.publishing.catalogue.shelf import Shelved, versions
from tasks.publishing.templates import PAGES, template

SCRIPT = PAGES / "catalogue.js"


def heading(releases: Sequence[Shelved]) -> str:
    """Whose releases these are, where one publisher is named."""
    publishers = {each.domain.publisher for each in releases if each.domain.publisher}
    only = publishers.pop() if len(publishers) == 1 else None
    return f"Releases of {only}" if only else "Published releases"


def make_index(releases: Sequence[Shelved], accounts: Sequence[Account], key: str | None) -> bytes:
    script = SCRIPT.read_text(encoding="utf-8")
    page = template("catalogue.html").render(
        heading=heading(releases),
        cards=list(_cards(releases)),
        counted={state: sum(each.state == state for each in releases) for state in ("in use", "superseded", "withdrawn")},
        accounts=[{"account": each, "picture": burn_down(each)} for each in accounts],
        words={each.name: each.words for each in releases},
        key=key,
        script=script,
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        newest=max((each.changed for each in releases), default=None),
    )
    return page.encode()


def _cards(releases: Sequence[Shelved]) -> Iterator[dict[str, Any]]:
    lines = versions(releases)
    for each in releases:
        line = lines[each.name]
        yield {
            "release": each,
            "sets": each.manifest.composition.sets,
            "attributes": [attribute.title or attribute.name for attribute in each.domain.counted.attributes],
            "versions": line if len(line) > 1 else [],
            "files": [name for name in ("codebook.html", "datapackage.json", "CITATION.cff") if name in each.manifest.files],
        }
