"""Evaluate: compare what was published with the records. CONFIDENTIAL, and too late to change what was published."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from schemas import tables
from schemas.errors import SpecError, StepsError
from schemas.spec.domain import Domain
from schemas.spec.release import EvaluationSpec, Release
from steps_engine.domain.counting import Counts
from steps_engine.domain.encoding import encode
from steps_engine.evaluation.classifiers import resolve
from steps_engine.evaluation.coded import Coded, sample
from steps_engine.evaluation.measures import Options
from steps_engine.evaluation.report import evaluate as measure
from steps_engine.noise import SystemRandomness, permutation
from tasks.publishing.evaluation_page import WARNING, render_evaluation
from tasks.stages.references import CellsReference, SetReference
from tasks.stores.artifacts import Store
from tasks.stores.files import private_folder
from tasks.stores.home import Home, evaluation_page
from tasks.stores.releases import TAKEN_BACK

MOST_VALUES = 2 * 10**7  # rows × attributes that are compared; of larger tables a sample of the rows


def evaluate(home: Home, release: Release, cells: CellsReference, sets: Sequence[SetReference]) -> None:
    """Evaluate a published release, once: of several processes that run it the first one does, and the others find it done."""
    try:
        _evaluate(home, release, cells, sets)
    except StepsError:
        if Store(home).ledger.state(release.name) != "evaluated":
            raise


def _evaluate(home: Home, release: Release, cells: CellsReference, sets: Sequence[SetReference]) -> None:
    """Seal the evaluation of a published release and write its page; done once."""
    store = Store(home)
    if store.ledger.state(release.name) in {"evaluated"} | TAKEN_BACK:
        return
    if store.find(release.name, "evaluation", drawn=False) is None:
        domain, counts = release.domain, Counts.from_table(release.domain, store.read(cells))
        rows = MOST_VALUES // len(domain.names)
        original = sample(Coded(domain.names, domain.sizes, counts.codes, counts.count), rows, SystemRandomness())
        codes = (encode(_some(store.read(each), rows).to_pandas(), of_synthetic(domain)) for each in sets)
        synthetic = [Coded(domain.names, domain.sizes, each) for each in codes]
        page, table = _compared(original, synthetic, release)
        _write_page(evaluation_page(home, release.name), page)
        store.write(release.name, "evaluation", table, tables.EVALUATION, "confidential", drawn=False)
    store.ledger.evaluated(release.name)


def _some(records: pa.Table, rows: int) -> pa.Table:
    """A random choice of so many records, where there are more."""
    if records.num_rows <= rows:
        return records
    return records.take(np.sort(permutation(records.num_rows, SystemRandomness())[:rows]))


def of_synthetic(domain: Domain) -> Domain:
    """The domain of synthetic records: they belong to nobody, and have nothing left to be read in another way."""
    return domain.as_published()


def _compared(original: Coded, synthetic: list[Coded], release: Release) -> tuple[str, pa.Table]:
    try:
        found = measure(original, synthetic, SystemRandomness(), Options(_classifier(release.spec.evaluation, original.sizes)))
    except SpecError as error:  # a synthetic set without rows, say: published as it is, and not comparable
        return f"<!doctype html><title>{release.name}</title><p>{WARNING}<p>Not comparable: {error}", _rows({})
    sampled = original.total == MOST_VALUES // len(original.names)
    title = f"{release.name}, from {original.total:,} rows each" if sampled else release.name
    return render_evaluation(found, title, confidential=True), _rows(found.figures())


def _classifier(spec: EvaluationSpec, sizes: Sequence[int]) -> str:
    """The classifier that was asked for, or the richest one that this domain allows."""
    asked = "logistic_interactions" if spec.classifier == "logistic" and spec.interactions else spec.classifier
    try:
        return resolve(asked, sizes)
    except SpecError:
        return "auto"


def _rows(found: dict[tuple[str, str], float]) -> pa.Table:
    rows = [{"measure": measure, "which": which, "value": value} for (measure, which), value in found.items()]
    return pa.Table.from_pylist(rows, schema=tables.EVALUATION)


def _write_page(path: Path, text: str) -> None:
    private_folder(path.parent)
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
