"""A small domain with every kind of attribute, and releases that read a given source."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import pandas as pd

import steps_engine.methods  # noqa: F401  registers what a spec may name
from schemas.spec.domain import Domain
from schemas.spec.release import Release, ReleaseSpec
from steps_engine.domain.counting import Counts
from tasks.reading import counting

ATTRIBUTES = (
    {"name": "voted", "kind": "categorical", "categories": ("no", "yes")},
    {"name": "age", "kind": "integer", "bounds": (18, 22)},
    {"name": "wage", "kind": "numeric", "bounds": (0, 1000), "bins": 4},
    {"name": "born", "kind": "date", "bounds": ("1980-01-01", "1999-12-31"), "bins": 5},
)


def make_domain(attributes=ATTRIBUTES, rules=(), **unit) -> Domain:
    asked = {"name": "small", "population": "people", "attributes": tuple(attributes), "rules": tuple(rules), "unit": unit}
    return Domain.model_validate(asked)


def make_release(source: Path | str, domain: Domain | None = None) -> Release:
    privacy = {"epsilon": Decimal("1")}
    spec = ReleaseSpec.model_validate({"name": "small", "dataset": "dataset.yaml", "source": str(source), "privacy": privacy})
    return Release(spec=spec, domain=domain or make_domain(), folder="/")


def good_frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "voted": ["no", "yes", "no", "no"],
            "age": [18, 20, 22, 18],
            "wage": [0.0, 250.0, 1000.0, 3.5],
            "born": [
                datetime.date(1980, 1, 1),
                datetime.date(1990, 6, 1),
                datetime.date(1999, 12, 31),
                datetime.date(1980, 1, 2),
            ],
        }
    )


def count_cells(release: Release, scratch: Path, *key: bytes) -> Counts:
    """The counts of a release's source."""
    return counting.count_cells(release.source, release.domain, scratch, *key)
