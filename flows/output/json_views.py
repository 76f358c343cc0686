"""What the commands answer, as plain JSON values: ε as decimal strings, nothing confidential."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from schemas.budget import show_nanos
from schemas.errors import BudgetRefused, SpecError
from schemas.spec.release import Release
from tasks.specs import load_release, refusals_naming
from tasks.stages.evaluate import evaluation_page
from tasks.stores.charging import Account
from tasks.stores.entries import Entry
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tasks.stores.releases import ReleaseState


def describe_plan(home: Home, path: Path, period: str | None) -> dict[str, Any]:
    """The plan of a release with what is left of its population's budget; balance is null without a grant."""
    from steps_engine.methods.planning import make_plan
    from steps_engine.methods.registry import method_of
    from steps_engine.noise import SystemRandomness

    asked = load_release(path, period)
    with refusals_naming(path):
        made = make_plan(asked, SystemRandomness())
    try:
        left = show_nanos(open_ledger(home).account(made.population).balance)
    except BudgetRefused:
        left = None
    sketch = asdict(method_of(made).sketch(made))
    return {**made.model_dump(mode="json"), "hash": made.hash, "balance": left, "sketch": sketch}


def account(found: Account) -> dict[str, Any]:
    return {
        "population": found.population,
        "granted": show_nanos(found.granted),
        "charged": show_nanos(found.charged),
        "balance": show_nanos(found.balance),
        "neighbours": found.neighbours,
        "unit": found.unit,
    }


def entry(found: Entry) -> dict[str, Any]:
    """An entry without the keyed hashes that stay in the ledger."""
    details = {name: value for name, value in found.details.items() if name not in ("fingerprint", "digest", "id")}
    return {
        "seq": found.seq,
        "at": found.at,
        "actor": found.actor,
        "kind": found.kind,
        "population": found.population,
        "release": found.release,
        "epsilon": show_nanos(found.amount) if found.amount else None,
        "balance_after": show_nanos(found.granted_after - found.charged_after),
        "details": details,
        "hash": found.hash,
    }


def release(found: ReleaseState) -> dict[str, Any]:
    return {
        "release": found.name,
        "state": found.state,
        "population": found.population,
        "epsilon": show_nanos(found.epsilon),
        "charged": show_nanos(found.charged),
        "charges": found.attempt,
        "actor": found.actor,
        "at": found.at,
        "approver": found.approver,
        "hashes": found.hashes,
    }


def trail(home: Home, name: str) -> dict[str, Any]:
    """One release with every entry that concerns it, and where its bundle lies."""
    ledger = open_ledger(home)
    found = next((each for each in ledger.releases() if each.name == name), None)
    if found is None:
        raise SpecError(f'there is no release "{name}" in {home.path}. See: steps releases')
    folder = home.path / "public" / name
    return {
        **release(found),
        "folder": str(folder) if folder.is_dir() else None,
        "trail": [entry(each) for each in ledger.entries(release=name)],
    }


def outcome(home: Home, release: Release, folder: Path, charged: bool, charges: int) -> dict[str, Any]:
    """What a run answers: what was released, what it cost, what is left, and where everything lies."""
    return {
        "release": release.name,
        "folder": str(folder),
        "page": str(folder / "index.html"),
        "epsilon": show_nanos(release.spec.privacy.epsilon),
        "charged": charged,
        "charges": charges,
        "population": release.domain.population,
        "balance": show_nanos(open_ledger(home).account(release.domain.population).balance),
        "evaluation": str(evaluation_page(home, release.name)),
    }
