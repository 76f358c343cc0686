"""Compare files with each other: for data one may look at. No ledger, no home, nothing confidential."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from schemas.errors import DataInvalid, SpecError
from schemas.expectations import wanted_columns
from schemas.spec.attributes import Attribute, Named
from schemas.spec.domain import Domain, load_domain
from steps_engine.domain.encoding import PUBLIC_KEY
from steps_engine.evaluation.coded import Coded, coded
from steps_engine.evaluation.combining import Sets
from steps_engine.evaluation.comparison import compare
from steps_engine.evaluation.measures import Options
from steps_engine.evaluation.regression import MODELS, Kind, Model, effective_weights, variables
from steps_engine.evaluation.report import Evaluation, evaluate
from steps_engine.noise import SystemRandomness
from tasks.publishing.evaluation_page import render_evaluation
from tasks.reading.counting import count_cells
from tasks.reading.encoding_sql import coded_rows, counted_rows
from tasks.reading.persons_sql import kept_rows, prepare
from tasks.reading.sources import connect, open_source, query
from tasks.reading.weights_sql import UNITS
from tasks.stages.evaluate import of_synthetic


@dataclass(frozen=True)
class Records:
    """A file of records and the domain that says what it holds."""

    source: str
    domain: Domain


@dataclass(frozen=True)
class Regression:
    """A model to fit on every file, and how the synthetic sets' answers become one."""

    model: Model
    sets: Sets = "split"


def find_regression(asked: str | None, kind: Kind | None, sets: Sets | None) -> Regression | None:
    """A model by its name or its formula (linear unless said otherwise), or none."""
    if asked is None:
        if kind or sets:
            raise SpecError("--kind and --sets describe a regression; name its formula with --model.")
        return None
    model = MODELS.get(asked) or Model(asked, asked, kind or "linear")
    if kind not in (None, model.kind):
        raise SpecError(f"model {asked} is {model.kind}, not {kind}; leave --kind out or write a formula.")
    return Regression(model, sets or "split")


def compare_files(
    original: Path,
    synthetic: Sequence[Path],
    domain: Path,
    options: Options = Options(),  # noqa: B008  frozen
    regression: Regression | None = None,
    page: Path | None = None,
) -> dict[str, Any]:
    """Every measure and a regression of synthetic files against the original; a page with pictures on request."""
    known = load_domain(domain)
    _must_be_one_table(known, domain)
    files = [Records(str(original), known), *(Records(str(path), of_synthetic(known)) for path in synthetic)]
    names = _variables(regression.model, known) if regression else ()
    first, *others = (_coded(file) for file in files)
    fitted = None
    if regression:
        (reference, weight), *frames = (_frame(file, names) for file in files)
        rows = [frame for frame, _ in frames]
        fitted = compare(
            regression.model,
            reference,
            rows,
            regression.sets,
            weight=weight,
            inflation=known.inflation,
            rows_per_person=known.unit.rows_per_person,
        )
    found = evaluate(first, others, SystemRandomness(), options, fitted)
    if page is not None:
        _write(page, found, known.name)
    return found.as_json()


def _must_be_one_table(domain: Domain, path: Path) -> None:
    if domain.tables is not None:
        raise SpecError(
            f"{path} describes linked tables; this compares one table with others like it. A release of linked tables compares "
            "households, and members beside their household's columns, by itself: confidential/NAME/evaluation.html and "
            "evaluation-members.html in the home. To compare households or persons alone, write a dataset.yaml with the "
            "attributes of that table, and give files without keys."
        )


def _variables(model: Model, domain: Domain) -> tuple[str, ...]:
    outcome, predictors = variables(model)
    if unknown := sorted({outcome, *predictors} - set(domain.names)):
        known = ", ".join(domain.names)
        raise SpecError(f"model {model.name!r} names {', '.join(unknown)}; the domain has {known}.")
    return outcome, *predictors


def _coded(file: Records) -> Coded:
    _must_have_columns(file)
    with tempfile.TemporaryDirectory() as scratch:
        try:
            counts = count_cells(file.source, file.domain, Path(scratch))
        except DataInvalid:
            counts = None
    if counts is None or not len(counts.count):
        raise DataInvalid(f"{file.source} does not fit the domain: its categories, bounds or rules differ, or it has no rows.")
    return coded(file.domain, counts.codes, counts.count)


def _must_have_columns(file: Records) -> None:
    found, wanted = Counter(open_source(file.source, file.domain).wanted), Counter(wanted_columns(file.domain))
    if found != wanted:
        missing, extra = (", ".join(sorted(names)) or "none" for names in (wanted - found, found - wanted))
        raise SpecError(f"{file.source} does not have the domain's columns: missing {missing}; not expected {extra}.")


def _frame(file: Records, names: Sequence[str]) -> tuple[pd.DataFrame, np.ndarray | None]:
    """Attributes of a file that was coded before, so that every value can be read: numbers, or the domain's categories.

    With them the weights of the rows, as far as they have any.
    """
    source, domain = open_source(file.source, file.domain), file.domain
    places = [domain.index(name) for name in names]
    attributes = [domain.attributes[j] for j in places]
    read = ("k{0}::INTEGER" if isinstance(a, Named) else "v{0}::DOUBLE" for a in attributes)
    values = [
        f"CASE WHEN k{j} < {domain.attributes[j].present} THEN {each.format(j)} END"
        for j, each in zip(places, read, strict=True)
    ]
    columns = ", ".join(f"{value} AS a{j}" for j, value in enumerate(values))
    # The records that were counted: of each person at most rows_per_person where the rest is dropped.
    dropping = domain.unit.excess == "drop"
    every = coded_rows(counted_rows(source, domain), source, domain)
    columns += f", {UNITS}" if domain.weight else ""
    rows = kept_rows(source, domain, columns, values) if dropping else f"(SELECT {columns} FROM {every})"
    with tempfile.TemporaryDirectory() as scratch, connect(source, Path(scratch)) as connection:
        prepare(connection, domain, PUBLIC_KEY)
        table = query(connection, f"FROM {rows}")
    weight = effective_weights(table[UNITS].to_numpy().astype(float)) if domain.weight else None
    frame = {a.name: _column(found, a) for a, found in zip(attributes, table.columns[: len(attributes)], strict=True)}
    return pd.DataFrame(frame), weight


def _column(found: pa.ChunkedArray, attribute: Attribute) -> pd.Categorical[Any] | np.ndarray:
    if isinstance(attribute, Named):
        missing = -1 if attribute.missing_code is None else attribute.missing_code
        return pd.Categorical.from_codes(pc.fill_null(found, missing).to_numpy(), pd.Index(attribute.labels))
    values: np.ndarray = pc.fill_null(found, np.nan).to_numpy()
    top = None if attribute.is_open else attribute.highest
    values = np.clip(values, attribute.edge_values[0], top)  # moves something only where the domain says outside: clamp
    whole = attribute.is_whole and not np.isnan(values).any()
    return values.astype(np.int64) if whole else values


def _write(page: Path, found: Evaluation, title: str) -> None:
    try:
        page.write_text(render_evaluation(found, title, confidential=False), encoding="utf-8")
    except OSError as error:
        raise SpecError(f"cannot write {page}: {error.strerror}. Choose a place that can be written.") from None
