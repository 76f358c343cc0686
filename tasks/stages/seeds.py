"""Seeds: the rule by which everything after the noise draws, sealed before anything is drawn by it."""

from __future__ import annotations

from typing import cast

import pyarrow as pa

from schemas import tables
from schemas.manifest import SEEDS_1, Seeds
from tasks.stores.artifacts import Store

STAGE = "seeds"


def settle_seeds(store: Store, release: str, rule: Seeds = SEEDS_1) -> Seeds | None:
    """The rule that was sealed; none where an earlier version made counts without one; otherwise this one, sealed now.

    A rule whose file is lost is written again: it follows from the domain.
    """
    if store.find(release, STAGE, drawn=False) is None and _may_be_settled(store, release):
        store.write(release, STAGE, pa.table({"seeds": [rule]}), tables.SEEDS, "public", drawn=False)
    return seeds_of(store, release)


def _may_be_settled(store: Store, release: str) -> bool:
    known = any(entry.details.get("stage") == STAGE for entry in store.ledger.entries(release=release))
    return known or store.find(release, "consistent-counts", drawn=False) is None


def seeds_of(store: Store, release: str) -> Seeds | None:
    """The rule that was sealed for a release, if one was."""
    found = store.find(release, STAGE, drawn=False)
    return cast(Seeds, store.read(found)["seeds"][0].as_py()) if found else None
