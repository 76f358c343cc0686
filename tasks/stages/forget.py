"""Forget: exact counts live as long as a run may still need them, and no longer."""

from __future__ import annotations

from schemas.spec.release import Release
from tasks.stores.artifacts import Store
from tasks.stores.home import Home

EXACT = ["cells"]


def forget_exact_counts(home: Home, release: Release) -> None:
    """Delete the exact counts; safe to repeat."""
    Store(home).forget_confidential(release.name, EXACT)
