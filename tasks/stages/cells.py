"""Exact counts as they lie in the store: read in blocks by whoever can, whole by whoever asks for all codes. CONFIDENTIAL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

import numpy as np

from schemas.spec.domain import Domain
from schemas.tables import COUNT
from steps_engine.domain.blocks import BLOCK
from steps_engine.domain.counting import Counts, no_codes
from tasks.stages.references import CellsReference
from tasks.stores.artifacts import Store
from tasks.tables_on_disk import Stored


def stored_counts(store: Store, cells: CellsReference, domain: Domain) -> Counts:
    """The sealed counts; nothing of them is in memory yet."""
    return StoredCounts(store.open(cells), domain)


class StoredCounts(Counts):
    """CONFIDENTIAL. Counts of which no more than a block need be held."""

    def __init__(self, stored: Stored, domain: Domain) -> None:
        object.__setattr__(self, "_stored", stored)
        object.__setattr__(self, "_domain", domain)

    _stored: Stored
    _domain: Domain

    def __repr__(self) -> str:
        return f"StoredCounts(confidential, {len(self._domain.names)} attributes)"

    @cached_property
    def codes(self) -> np.ndarray:
        codes, first = no_codes(self._stored.num_rows, self._domain.counted.sizes), 0
        for block in self.blocks():
            codes[first : first + len(block.count)] = block.codes
            first += len(block.count)
        return codes

    @cached_property
    def count(self) -> np.ndarray:
        found: np.ndarray = self._stored[COUNT].to_numpy()
        return found

    def blocks(self) -> Iterator[Counts]:
        return (Counts.from_table(self._domain, block) for block in self._stored.blocks(rows=BLOCK))

    def columns(self) -> Iterator[Iterable[np.ndarray]]:
        return (self._column(name) for name in (*self._domain.counted.names, COUNT))

    def _column(self, name: str) -> Iterator[np.ndarray]:
        return (block[name].to_numpy() for block in self._stored.blocks([name]))
