"""Discretize: exact counts of the records' cells, kept until the release is evaluated. CONFIDENTIAL until sanitized."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from schemas import tables
from schemas.spec.domain import Domain
from schemas.spec.release import Release
from steps_engine.domain.counting import Counts
from tasks.reading.counting import counted
from tasks.reading.linked import counted_linked
from tasks.reading.partial_counts import add_up
from tasks.stages.references import CellsReference
from tasks.stores.artifacts import Store
from tasks.stores.files import private_folder
from tasks.stores.home import Home
from tasks.stores.keys import secret_key


def discretize(home: Home, release: Release) -> CellsReference:
    """Count the records' cells and keep them, confidential, until the release is evaluated."""
    scratch, key = private_folder(home.confidential / release.name), secret_key(home, "excess")
    if release.domain.tables is not None:
        return _keep(home, release, counted_linked(release.sources, release.domain, scratch, key))
    return _keep(home, release, counted(release.source, release.domain, scratch, key))


def discretize_parts(home: Home, release: Release, parts: Sequence[str]) -> CellsReference:
    """Add up what workers counted and keep it, as one pass over all files would."""
    scratch = private_folder(home.confidential / release.name)
    return _keep(home, release, add_up(release, parts, scratch, secret_key(home, "excess")))


def _keep(home: Home, release: Release, blocks: Iterator[pa.Table]) -> CellsReference:
    return CellsReference(Store(home).write(release.name, "cells", blocks, tables.cells(release.domain), "confidential"))


def fingerprint(counts: Counts, domain: Domain, key: bytes) -> str:
    """Keyed hash of the occupied cells in order: the same for any order of rows and any split into files."""
    if not all(map(_in_order, _overlapping(counts))):
        order = np.lexsort(counts.codes.T[::-1])
        counts = Counts(counts.codes[order], counts.count[order])
    digest = hmac.new(key, json.dumps([domain.counted.names, domain.counted.sizes]).encode(), hashlib.sha256)
    widths = ["<i4"] * len(domain.counted.names) + ["<i8"]
    for column, width in zip(counts.columns(), widths, strict=True):
        for piece in column:
            digest.update(np.ascontiguousarray(piece, dtype=width).data)
    return digest.hexdigest()


def _overlapping(counts: Counts) -> Iterator[np.ndarray]:
    """The codes of each block, after the last ones of the block before."""
    last: np.ndarray | None = None
    for block in counts.blocks():
        yield block.codes if last is None else np.concatenate([last, block.codes[:1]])
        if last is not None:
            yield block.codes
        last = block.codes[-1:]


def _in_order(codes: np.ndarray) -> bool:
    """Whether rows increase, first column first. DuckDB has put them so; sorting millions of them again would take minutes."""
    alike = np.ones(max(len(codes) - 1, 0), dtype=bool)
    for column in codes.T:
        before, after = column[:-1], column[1:]
        if (alike & (after < before)).any():
            return False
        alike &= after == before
    return True
