"""CITATION.cff: how to cite the release, in the Citation File Format 1.2.0."""

from __future__ import annotations

from typing import Any

from tasks.publishing.description import Description
from tasks.publishing.descriptions import DescribingFile
from tasks.publishing.yaml_text import yaml_bytes


def _write(said: Description) -> bytes:
    domain = said.domain
    who = domain.publisher or f"The publisher of {said.release}"
    licence = {"license-url" if "://" in domain.licence else "license": domain.licence} if domain.licence else {}
    return yaml_bytes(
        {
            "cff-version": "1.2.0",
            "message": "If you use these data, please cite them as below, and say that they are synthetic.",
            "type": "dataset",
            "title": said.name,
            "authors": [{"name": who}],
            "abstract": said.text,
            "version": said.release,
            "date-released": said.made_at,
            "keywords": ["synthetic data", "differential privacy", said.plan.population],
            **licence,
            **({"contact": [_contact(who, domain.contact)]} if domain.contact else {}),
        }
    )


def _contact(who: str, contact: str) -> dict[str, Any]:
    """An entity, and how it is reached."""
    if "://" in contact:
        return {"name": who, "website": contact}
    return {"name": who, "email": contact} if "@" in contact else {"name": contact}


ENTRY = DescribingFile("CITATION.cff", 5, "how to cite this release (Citation File Format)", _write)
