"""What programs read of the catalogue: an Atom feed of what is new, a DCAT catalogue as JSON-LD, and catalogue.json."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID
from xml.etree import ElementTree as xml

from schemas.budget import show_nanos
from schemas.identity import digest
from tasks.publishing import bundle
from tasks.publishing.catalogue.accounts import Account
from tasks.publishing.catalogue.shelf import Shelved
from tasks.publishing.description import MEDIA

FORMAT = "steps-catalogue/1"
INDEX, ATOM, DCAT, LIST = "index.html", "feed.xml", "dcat.jsonld", "catalogue.json"
_ATOM = "http://www.w3.org/2005/Atom"
_STATUS = {"in use": "COMPLETED", "superseded": "DEPRECATED", "withdrawn": "WITHDRAWN"}  # of adms:status
CONTEXT = {
    "adms": "http://www.w3.org/ns/adms#",
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "spdx": "http://spdx.org/rdf/terms#",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}


def atom(releases: Sequence[Shelved], title: str, address: str) -> bytes:
    """The newest first; a release that was taken back comes again, on that day."""
    feed = xml.Element("feed", xmlns=_ATOM)
    newest = max((each.changed for each in releases), default="1970-01-01")
    # A catalogue is known by its first release, which stays; by nothing while it has none.
    first = min(((each.day, each.name) for each in releases), default=("", ""))
    for name, text in (("title", title), ("id", _urn(digest(["catalogue", *first]))), ("updated", _moment(newest))):
        xml.SubElement(feed, name).text = text
    xml.SubElement(feed, "link", rel="self", href=address + ATOM)
    xml.SubElement(feed, "link", rel="alternate", href=address + INDEX)
    xml.SubElement(xml.SubElement(feed, "author"), "name").text = title
    for each in sorted(releases, key=lambda each: (each.changed, each.name), reverse=True):
        entry = xml.SubElement(feed, "entry")
        said = "" if each.state == "in use" else f" ({each.state})"
        xml.SubElement(entry, "title").text = f"{each.called}{said}"
        xml.SubElement(entry, "id").text = _urn(each.manifest_sha256)
        xml.SubElement(entry, "published").text = _moment(each.day)
        xml.SubElement(entry, "updated").text = _moment(each.changed)
        xml.SubElement(entry, "link", href=address + each.page)
        xml.SubElement(entry, "summary").text = summary(each)
    xml.indent(feed)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{xml.tostring(feed, encoding="unicode")}\n'.encode()


def _urn(of: str) -> str:
    """A name that stays the same wherever the catalogue lies, from a SHA-256."""
    return UUID(hex=of[:32], version=5).urn


def _moment(day: str) -> str:
    return f"{day}T00:00:00Z"


def summary(each: Shelved) -> str:
    sets = each.manifest.composition.sets
    said = f" {each.notice.sentence[0].upper()}{each.notice.sentence[1:]}." if each.notice else ""
    return (
        f"{sets} synthetic set{'' if sets == 1 else 's'} of about {each.rows:,} rows and {len(each.domain.counted.names)} "
        f"attributes on population {each.population}, with {each.promise}.{said}"
    )


def dcat(releases: Sequence[Shelved], title: str, address: str) -> bytes:
    """W3C's vocabulary of data catalogues, version 3."""
    catalogue = {
        "@context": CONTEXT,
        "@id": address + DCAT,
        "@type": "dcat:Catalog",
        "dct:title": title,
        "foaf:homepage": {"@id": address + INDEX},
        "dcat:dataset": [_dataset(each, address) for each in releases],
    }
    return _json(catalogue)


def _dataset(each: Shelved, address: str) -> dict[str, Any]:
    domain, place = each.domain, address + each.address
    said = {
        "@id": place,
        "@type": "dcat:Dataset",
        "dct:identifier": each.name,
        "dct:title": each.called,
        "dct:description": f"{each.about} {summary(each)}".strip(),
        "dct:issued": {"@type": "xsd:date", "@value": each.day},
        "dct:modified": {"@type": "xsd:date", "@value": each.changed},
        "adms:status": {"@id": f"http://purl.org/adms/status/{_STATUS[each.state]}"},
        "dct:publisher": {"@type": "foaf:Organization", "foaf:name": domain.publisher} if domain.publisher else None,
        "dcat:contactPoint": _contact(domain.contact) if domain.contact else None,
        "dct:license": {"@id": _licence(domain.licence)} if domain.licence else None,
        "dct:source": domain.source,
        "dcat:keyword": ["synthetic data", "differential privacy", each.population],
        "dcat:landingPage": {"@id": address + each.page},
        "dct:isReplacedBy": {"@id": f"{address}releases/{each.notice.superseded.by}/"}
        if each.notice and each.notice.superseded
        else None,
        "dcat:distribution": [
            _distribution(name, each, place) for name in sorted(each.manifest.files) if name.startswith("synthetic-")
        ],
    }
    return {key: value for key, value in said.items() if value is not None}


def _contact(contact: str) -> dict[str, Any]:
    reached = {"vcard:hasEmail": {"@id": f"mailto:{contact}"}} if "@" in contact else {"vcard:fn": contact}
    return {"@type": "vcard:Kind", **({"vcard:hasURL": {"@id": contact}} if "://" in contact else reached)}


def _licence(licence: str) -> str:
    return licence if "://" in licence else f"https://spdx.org/licenses/{licence}.html"


def _distribution(name: str, each: Shelved, place: str) -> dict[str, Any]:
    facts = each.manifest.files[name]
    media = MEDIA.get("." + name.rsplit(".", 1)[1], "application/octet-stream")
    return {
        "@id": place + name,
        "@type": "dcat:Distribution",
        "dcat:downloadURL": {"@id": place + name},
        "dcat:mediaType": {"@id": f"https://www.iana.org/assignments/media-types/{media}"},
        "dcat:byteSize": facts.size,
        "spdx:checksum": {
            "@type": "spdx:Checksum",
            "spdx:algorithm": {"@id": "spdx:checksumAlgorithm_sha256"},
            "spdx:checksumValue": facts.sha256,
        },
    }


def listing(releases: Sequence[Shelved], accounts: Sequence[Account]) -> bytes:
    """catalogue.json: the same for programs that know nothing else; and by which a catalogue is known as one."""
    return _json(
        {
            "format": FORMAT,
            "releases": [_listed(each) for each in releases],
            "budgets": [
                {
                    "population": each.population,
                    "measure": each.symbol,
                    "granted": each.granted,
                    "spent": each.spent,
                    "left": each.left,
                    "days": [
                        {"day": day, "left": show_nanos(left), "releases": list(names)} for day, left, _, names in each.steps
                    ],
                }
                for each in accounts
            ],
        }
    )


def _listed(each: Shelved) -> dict[str, Any]:
    withdrawn, superseded = (each.notice.withdrawn, each.notice.superseded) if each.notice else (None, None)
    return {
        "release": each.name,
        "title": each.title,
        "population": each.population,
        "day": each.day,
        "state": each.state,
        "withdrawn": withdrawn.model_dump() if withdrawn else None,
        "superseded": superseded.model_dump() if superseded else None,
        "guarantee": {name: getattr(each.manifest.guarantee, name) for name in ("definition", "epsilon", "rho", "delta")},
        "charged": each.cost,
        "sets": each.manifest.composition.sets,
        "rows": each.rows,
        "attributes": list(each.domain.counted.names),
        "manifest_sha256": each.manifest_sha256,
        "folder": each.address,
        "page": each.page,
        "manifest": each.address + bundle.MANIFEST,
    }


def _json(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()
