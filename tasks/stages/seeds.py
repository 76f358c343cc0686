"""Seeds: the rule by which everything after the noise draws, sealed before anything is drawn by it."""

from __future__ import annotations

from typing import cast

import pyarrow as pa

from schemas import tables
from schemas.manifest import SEEDS_1, Seeds
from tasks.stores.artifacts import Store

STAGE = "seeds"


def settle_seeds(store: Store, release: str) -> Seeds | None:
    """The rule that was sealed; none where an earlier version made counts without one; otherwise this version's, sealed now."""
    if store.find(release, STAGE) is None and store.find(release, "consistent-counts") is None:
        store.write(release, STAGE, pa.table({"seeds": [SEEDS_1]}), tables.SEEDS, "public")
    return seeds_of(store, release)


def seeds_of(store: Store, release: str) -> Seeds | None:
    """The rule that was sealed for a release, if one was."""
    found = store.find(release, STAGE)
    return cast(Seeds, store.read(found)["seeds"][0].as_py()) if found else None
