"""What dataset.yaml and release.yaml say in words, for the page: who, what, from where, and why. Templates escape all of it."""

from __future__ import annotations

from typing import Any

from schemas.manifest import Manifest
from schemas.spec.domain import Domain


def about(manifest: Manifest, domain: Domain) -> dict[str, Any]:
    """Paragraphs, and facts by their names; a licence that is an address, or a known identifier, can be followed."""
    facts = {
        "Publisher": domain.publisher,
        "Contact": domain.contact,
        "Licence": domain.licence,
        "Public facts from": domain.source,
    }
    paragraphs = dict.fromkeys(text for text in (manifest.description, domain.description) if text)
    return {"paragraphs": list(paragraphs), "facts": {name: text for name, text in facts.items() if text}}


def rule_rows(domain: Domain) -> list[dict[str, str]]:
    return [{"words": rule.words, "why": rule.why or ""} for rule in domain.rules]


def derived_rows(domain: Domain) -> list[dict[str, Any]]:
    rows = []
    for following in domain.followings:
        derived = following.derived
        shown = (f"{name} · {text}" if (text := derived.label_texts.get(name)) else name for name in following.categories)
        rows.append({"derived": derived, "categories": list(shown)})
    return rows
