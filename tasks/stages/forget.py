"""Forget: exact counts live as long as a run may still need them, and no longer."""

from __future__ import annotations

import shutil
from pathlib import Path

from schemas.errors import SpecError
from schemas.names import NAME
from schemas.spec.release import Release
from tasks.stores.artifacts import Store
from tasks.stores.entries import must_be_name
from tasks.stores.files import disk_faults
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tasks.stores.running import not_running

EXACT = ["cells"]
SCRATCH = ("spill-*", "parts-*", ".writing-*")  # what counting and killed writers leave beside them


def forget_exact_counts(home: Home, release: Release) -> None:
    """Delete the exact counts; safe to repeat."""
    Store(home).forget_confidential(release.name, EXACT)


def exact_counts(home: Home) -> list[str]:
    """The releases of which exact counts, or pieces of them, lie about: charged or not, finished or not."""
    if not (home.path / "confidential").is_dir():
        return []
    folders = (path for path in home.confidential.iterdir() if path.is_dir() and NAME.fullmatch(path.name))
    return sorted(folder.name for folder in folders if any(_leftovers(folder)))


def forget_leftovers(home: Home, name: str | None = None) -> dict[str, list[str]]:
    """Delete the exact counts of one release, or of all, that no run is using. Whoever runs it again counts again."""
    if name is not None:
        must_be_name("release", name)
        if not (home.path / "confidential" / name).is_dir() and not open_ledger(home).entries(release=name):
            raise SpecError(f'there is no release "{name}" in {home.path}, so nothing was deleted. See: steps status')
    forgotten: list[str] = []
    running: list[str] = []
    for release in exact_counts(home):
        if name not in (None, release):
            continue
        with not_running(home, release) as free:
            (forgotten if free else running).append(release)
            if free:
                _forget(home, release)
    return {"forgotten": forgotten, "running": running}


def _forget(home: Home, release: str) -> None:
    Store(home).forget_confidential(release, EXACT)
    for path in _leftovers(home.confidential / release):
        with disk_faults(path):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _leftovers(folder: Path) -> list[Path]:
    cells = (path for stage in EXACT for path in (folder / stage).glob("*.parquet"))
    return [*cells, *(path for pattern in SCRATCH for path in folder.rglob(pattern))]
