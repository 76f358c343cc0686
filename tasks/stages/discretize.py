"""Discretize: exact counts of the records' cells, kept until the release is evaluated. CONFIDENTIAL until sanitized."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Sequence

import numpy as np

from schemas import tables
from schemas.spec.domain import Domain
from schemas.spec.release import Release
from steps_engine.domain.counting import Counts
from tasks.reading.counting import count_cells
from tasks.reading.partial_counts import add_up
from tasks.stages.references import CellsReference
from tasks.stores.artifacts import Store
from tasks.stores.files import private_folder
from tasks.stores.home import Home
from tasks.stores.keys import secret_key


def discretize(home: Home, release: Release) -> CellsReference:
    """Count the records' cells and keep them, confidential, until the release is evaluated."""
    scratch = private_folder(home.confidential / release.name)
    return _keep(home, release, count_cells(release.source, release.domain, scratch, secret_key(home, "excess")))


def discretize_parts(home: Home, release: Release, parts: Sequence[str]) -> CellsReference:
    """Add up what workers counted and keep it, as one pass over all files would."""
    return _keep(home, release, add_up(release, parts, private_folder(home.confidential / release.name)))


def _keep(home: Home, release: Release, counts: Counts) -> CellsReference:
    table = counts.to_table(release.domain)
    return CellsReference(Store(home).write(release.name, "cells", table, tables.cells(release.domain), "confidential"))


def fingerprint(counts: Counts, domain: Domain, key: bytes) -> str:
    """Keyed hash of the occupied cells in order: the same for any order of rows and any split into files."""
    order = slice(None) if _in_order(counts.codes) else np.lexsort(counts.codes.T[::-1])
    digest = hmac.new(key, json.dumps([domain.names, domain.sizes]).encode(), hashlib.sha256)
    for column in counts.codes.T:
        digest.update(np.ascontiguousarray(column[order], dtype="<i4").data)
    digest.update(np.ascontiguousarray(counts.count[order], dtype="<i8").data)
    return digest.hexdigest()


def _in_order(codes: np.ndarray) -> bool:
    """Whether rows increase, first column first. DuckDB has put them so; sorting millions of them again would take minutes."""
    alike = np.ones(max(len(codes) - 1, 0), dtype=bool)
    for column in codes.T:
        before, after = column[:-1], column[1:]
        if (alike & (after < before)).any():
            return False
        alike &= after == before
    return True
