"""Compare files with each other: for data one may look at. No ledger, no home, nothing confidential."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schemas.domain import Domain, load_domain
from schemas.errors import DataInvalid, SpecError
from steps_engine.evaluation.coded import Coded
from steps_engine.evaluation.page import render_evaluation
from steps_engine.evaluation.report import Options, evaluate
from steps_engine.noise import SystemSource
from tasks.discretize import count_cells
from tasks.evaluate import of_synthetic


@dataclass(frozen=True)
class Records:
    """A file of records and the domain that says what it holds."""

    source: str
    domain: Domain


def compare_files(
    original: Path, synthetic: Sequence[Path], domain: Path, classifier: str = "auto", page: Path | None = None
) -> dict[str, Any]:
    """SPECKS, margins and χ² of synthetic files against the original, as plain figures; a page with pictures on request."""
    known = load_domain(domain)
    sets = [_coded(path, of_synthetic(known)) for path in synthetic]
    found = evaluate(_coded(original, known), sets, SystemSource(), Options(classifier))
    if page is not None:
        try:
            page.write_text(render_evaluation(found, known.name, confidential=False), encoding="utf-8")
        except OSError as error:
            raise SpecError(f"cannot write {page}: {error.strerror}. Choose a place that can be written.") from None
    return found.as_json()


def _coded(path: Path, domain: Domain) -> Coded:
    with tempfile.TemporaryDirectory() as scratch:
        try:
            counts = count_cells(Records(str(path), domain), Path(scratch))
        except DataInvalid:
            counts = None
    if counts is None:
        raise DataInvalid(f"{path} does not fit the domain: its columns, categories, bounds or rules differ.")
    return Coded(domain.names, domain.sizes, counts.codes, counts.count)
