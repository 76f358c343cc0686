"""A home with releases of some years: one superseded, one withdrawn, one never published; two populations, two measures."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from schemas.budget import UNIT
from schemas.spec.domain import Domain
from tasks.publishing import publication
from tasks.publishing.publication import publish
from tasks.stages.foresee import Outlook, Run
from tasks.stages.take_back import supersede, withdraw
from tasks.stores import writing
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tests.tasks.publishing.making import POLL, WORDED, a_release, make, some_counts

TREE = {"decomposition": "tree", "order": ("voted",), "sets": {"count": 2}}
WAGES = Domain.model_validate(
    {
        "name": "wages",
        "population": "payroll",
        "expected_rows": 500,
        "title": "Wages <by> sector",
        "source": "Collective agreements",
        "attributes": (
            {"name": "sector", "kind": "categorical", "categories": ("public", "private"), "labels": {"public": "the state's"}},
            {"name": "grade", "kind": "ordinal", "categories": ("junior", "senior")},
        ),
    }
)
SECRET = "a-reason-that-nobody-may-read"  # of a grant, an abandonment: kept in the ledger, never public
WHY = "A recode was wrong: <b>use</b> the next one"
TIME = "T03:14:15.926535+00:00"  # a time of day that no public file may tell


def _on(patch: pytest.MonkeyPatch, day: str) -> None:
    patch.setattr(writing, "_now", lambda: f"{day}{TIME}")
    patch.setattr(publication, "_today", lambda: day)


def _publish(home: Path, domain: Domain, name: str, **asked) -> None:
    method = TREE if domain is not WAGES else {"decomposition": "pairs", "sets": {"count": 2, "budget": "shared"}}
    made = make(home, a_release(domain, method, name=name, formats=("parquet",), **asked), some_counts(domain, 301))
    publish(*made.arguments, seeds="steps-seeds/1")


def some_shelves(folder: Path) -> Home:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOGNAME", "an-operator-nobody-may-know")
        patch.setenv("USER", "an-operator-nobody-may-know")
        _on(patch, "2024-03-01")
        _publish(folder, POLL, "poll-2024", epsilon="0.5")
        _on(patch, "2025-02-11")
        open_ledger(home := Home(folder)).grant("town", 2 * UNIT, SECRET)
        _publish(folder, WORDED, "poll-2025", epsilon="0.5")
        supersede(home, "poll-2024", "poll-2025")
        _on(patch, "2025-09-30")
        make(folder, a_release(POLL, TREE, name="never-seen", epsilon="0.25"), some_counts(POLL, 301))
        open_ledger(home).abandon("never-seen", SECRET)
        _on(patch, "2026-01-15")
        _publish(folder, WAGES, "wages-2026", rho="0.1", delta="1e-9")
        _on(patch, "2026-06-03")
        _publish(folder, WAGES, "wages-2026b", rho="0.05", delta="1e-9")
        withdraw(home, "wages-2026", WHY)
    return home


def outlooks() -> list[Outlook]:
    """A schedule that runs dry."""
    runs = (datetime(2026, month, 1, 2, 3, tzinfo=UTC) for month in (10, 11, 12))
    due = tuple(Run(f"secret-plan-{number}", at, 2 * UNIT) for number, at in enumerate(runs))
    return [Outlook("town", "pure", 23 * UNIT // 4, True, due)]
