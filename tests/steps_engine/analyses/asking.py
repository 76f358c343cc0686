"""Releases that ask for analyses, of a small domain."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import steps_engine.methods  # noqa: F401  registers the methods
from schemas.spec.domain import Domain
from schemas.spec.release import Release, ReleaseSpec

PAIRS: dict[str, Any] = {"decomposition": "pairs", "pairs": "all", "sets": {"count": 5, "budget": "shared"}}
FLAT: dict[str, Any] = {"decomposition": "flat", "sets": {"count": 4, "budget": "shared"}}


def people(**expected: dict[str, str]) -> Domain:
    """Of a town; by attribute the shares of some categories may be expected."""
    attributes: tuple[dict[str, Any], ...] = (
        {"name": "voted", "kind": "categorical", "categories": ("no", "yes")},
        {"name": "region", "kind": "categorical", "categories": ("north", "south", "west")},
        {"name": "age", "kind": "integer", "bounds": (18, 21)},
        {"name": "wage", "kind": "numeric", "bounds": (0, 8), "bins": 4},
    )
    for each in attributes:
        if shares := expected.get(each["name"]):
            each["expected"] = {label: Decimal(share) for label, share in shares.items()}
    said = {"name": "people", "population": "town", "expected_rows": 20_000, "attributes": attributes}
    return Domain.model_validate(said)


PEOPLE = people()


def asking(*analyses: Any, method: dict[str, Any] = PAIRS, domain: Domain = PEOPLE, **privacy: str) -> Release:
    """A release of `domain` with these analyses; ε = 1 unless said otherwise."""
    figures = {name: Decimal(value) for name, value in (privacy or {"epsilon": "1"}).items()}
    spec = {"name": "a", "dataset": "d", "source": "s", "method": method, "privacy": figures, "analyses": analyses}
    return Release(spec=ReleaseSpec.model_validate(spec), domain=domain, folder=".")
