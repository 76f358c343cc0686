"""Evaluate: compare what was published with the records. CONFIDENTIAL, and too late to change what was published."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas import tables
from schemas.errors import EvidenceBroken, SpecError, StepsError
from schemas.spec.domain import Domain
from schemas.spec.release import EvaluationSpec, Release
from steps_engine.domain.blocks import Blocks, blocks_of
from steps_engine.domain.counting import Counts, no_codes
from steps_engine.domain.linked import parted
from steps_engine.domain.linked_records import Members
from steps_engine.domain.records import codes_of
from steps_engine.evaluation.classifiers import resolve
from steps_engine.evaluation.coded import Coded, coded, some_of, taken_of
from steps_engine.evaluation.measures import Options
from steps_engine.evaluation.report import evaluate as measure
from steps_engine.noise import SystemRandomness
from tasks.publishing.evaluation_page import render_evaluation, render_incomparable
from tasks.stages.cells import stored_counts
from tasks.stages.references import CellsReference, SetReference
from tasks.stores.artifacts import Reference, Store
from tasks.stores.files import private_folder
from tasks.stores.home import Home, evaluation_page
from tasks.stores.releases import TAKEN_BACK

MEMBERS_PAGE = "evaluation-members.html"  # of linked tables: members beside their household's columns
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
        counts, path = stored_counts(store, cells, release.domain), evaluation_page(home, release.name)
        if release.domain.tables is None:
            page, table = _compared_in(release.domain, counts, [store.open(each) for each in sets], release)
        else:
            page, table = _compared_linked(store, release, counts, sets, path.with_name(MEMBERS_PAGE))
        _write_page(path, page)
        store.write(release.name, "evaluation", table, tables.EVALUATION, "confidential", drawn=False)
    store.ledger.evaluated(release.name)


def _compared_linked(
    store: Store, release: Release, counts: Counts, sets: Sequence[SetReference], beside: Path
) -> tuple[str, pa.Table]:
    """Household rows; and on a page beside theirs the other members with their household's columns."""
    domain, records = release.domain, [store.open(each) for each in sets]
    households, members = parted(domain, counts)
    page, table = _compared_in(domain, households, records, release)
    persons = [store.open(_person_table(store, release, number)) for number in range(1, len(sets) + 1)]
    flat = [Members(domain, *each) for each in zip(records, persons, strict=True)]
    of_members, figures = _compared_in(domain.counted, members, flat, release)
    _write_page(beside, of_members)
    return page, pa.concat_tables([table, _of_members(figures)])


def _compared_in(
    domain: Domain, counts: Counts, records: Sequence[pa.Table | Blocks], release: Release
) -> tuple[str, pa.Table]:
    """Page and figures of one flat table against its synthetic sets."""
    rows = MOST_VALUES // len(domain.names)
    original = some_original(counts, domain, rows)
    synthetic = [some_synthetic(each, domain, rows) for each in records]
    return _compared(original, synthetic, release, rows_are(release.domain, domain))


def rows_are(whole: Domain, flat: Domain) -> str:
    """What a row of the original is: a record, of linked tables a household or another member of one; with weights what these
    stand for.
    """
    records, of = "original records", "people"
    if whole.tables is not None and flat is whole:
        records, of = "original households", "households"
    elif whole.tables is not None:
        records = "original members of households beside the reference person"
    if whole.weighing is None:
        return records
    return f"rows that {records} stand for, one for {float(whole.weighing.step):.6g} {of}"


def some_original(counts: Counts, domain: Domain, rows: int) -> Coded:
    """A random choice of so many records, where there are more; no more than a block of cells and these are held."""
    chosen = some_of(sum(int(block.count.sum()) for block in counts.blocks()), rows, SystemRandomness())
    codes, weights, first = [no_codes(0, domain.sizes)], [np.zeros(0, dtype=np.int64)], 0
    for block in counts.blocks():
        last = first + int(block.count.sum())
        here = chosen[np.searchsorted(chosen, first) : np.searchsorted(chosen, last)]
        taken, weight = taken_of(block.count, here - first)
        codes.append(block.codes[taken])
        weights.append(weight)
        first = last
    return coded(domain, np.concatenate(codes), np.concatenate(weights))


def some_synthetic(records: pa.Table | Blocks, domain: Domain, rows: int) -> Coded:
    """The same of a synthetic set."""
    chosen, first, codes = some_of(records.num_rows, rows, SystemRandomness()), 0, [no_codes(0, domain.sizes)]
    for block in blocks_of(records, domain.names):
        here = chosen[np.searchsorted(chosen, first) : np.searchsorted(chosen, first + len(block))]
        codes.append(codes_of(block.take(here - first), domain).astype(codes[0].dtype))
        first += len(block)
    return coded(domain, np.concatenate(codes))


def _person_table(store: Store, release: Release, number: int) -> Reference:
    found = store.find(release.name, f"{tables.PERSON}-{number}", drawn=False)
    if found is None:
        raise EvidenceBroken(f'persons of set {number} of release "{release.name}" are gone. Restore them from a backup.')
    return found


def _of_members(figures: pa.Table) -> pa.Table:
    """Named apart from those of household rows."""
    named = pc.binary_join_element_wise(f"{tables.PERSON}: ", figures["measure"], "")
    return figures.set_column(0, figures.schema.field(0), named)


def of_synthetic(domain: Domain) -> Domain:
    """The domain of synthetic records: they belong to nobody, and have nothing left to be read in another way."""
    return domain.as_published()


def _compared(original: Coded, synthetic: list[Coded], release: Release, of: str) -> tuple[str, pa.Table]:
    try:
        found = measure(original, synthetic, SystemRandomness(), Options(_classifier(release.spec.evaluation, original.sizes)))
    except SpecError as error:  # a synthetic set without rows, say: published as it is, and not comparable
        return render_incomparable(release.name, str(error)), _rows({})
    sampled = original.total == MOST_VALUES // len(original.names)
    title = f"{release.name}, from {original.total:,} rows each" if sampled else release.name
    return render_evaluation(found, title, confidential=True, of=of), _rows(found.figures())


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
