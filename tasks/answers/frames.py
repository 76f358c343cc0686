"""Answers as pandas: a frame that says under its numbers what a reader must know, and the same as plain values."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable
from typing import Any

import pandas as pd

from schemas.counted import counted
from schemas.errors import SpecError
from steps_engine.answers.fit import Fit
from steps_engine.answers.table import OF_IT, Quantity, Table
from tasks.publishing.verdict import TRUST, trust

MOST_CELLS, MOST_AT_ALL = 1_000, 2_000_000  # of a table that people look at, and of one that is worth making
INTERVALS = "95% intervals are about what the records hold: the noise alone, not the chance of who is among them."
WEIGHTED = "Records have weights: counts are of the population; intervals hold what rounding weights to rows adds."
FROM_SETS = "Not from the noisy counts but from the synthetic sets"


class Answer(pd.DataFrame):
    """A frame with a title above and notes below; `document` is all of it as plain values. What is made of it is a frame."""

    _metadata = ["title", "notes", "document"]
    title: str
    notes: list[str]
    document: dict[str, Any]

    @classmethod
    def of(cls, frame: pd.DataFrame, title: str, notes: list[str], document: dict[str, Any]) -> Answer:
        made = cls(frame)
        made.title, made.notes, made.document = title, notes, document
        return made

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    def __repr__(self) -> str:
        return "\n".join([self.title, pd.DataFrame(self).to_string(max_rows=60), *(f"• {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        frame: str = pd.DataFrame(self).to_html(max_rows=60)
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        return f"<p><b>{html.escape(self.title)}</b></p>{frame}<ul>{notes}</ul>"


def fit_answer(fit: Fit, facts: dict[str, Any], notices: Iterable[str]) -> Answer:
    found = fit.found
    numbers = {"estimate": found.value, "standard_error": fit.error, "low": fit.low, "high": fit.high}
    frame = pd.DataFrame(numbers | {"freedom": found.freedom}, index=pd.Index(found.names, name="coefficient"))
    frame[found.unknown] = math.nan
    lost = [name for name, unknown in zip(found.names, found.unknown, strict=True) if unknown]
    warnings = [*notices, *([] if fit.honest else [fit.why])]
    if lost:
        warnings.append(f"The sets do not determine {', '.join(lost[:5])}: in one of them it could grow without bound.")
    notes = [
        *([fit.why] if fit.honest else []),
        f"Combined by {fit.combining}. Rows per set in which nothing of it is missing: {_spread(found.rows)}.",
    ]
    if fit.first is not None:
        notes.append(f"Too many rows differ to hold all of them: the first {fit.first:,} of a set are a sample of it.")
    document = {
        **facts, "model": fit.analysis.formula, "kind": fit.analysis.kind, "where": fit.analysis.where,
        "sets": len(found.rows), "rows": list(found.rows), "combining": fit.combining,
        "honest": fit.honest and not lost, "measured": fit.analysis.measured, "why": fit.why,
        "needs": [{"of": list(table.of), "measured": table.measured} for table in fit.analysis.needs],
        "coefficients": _rows(frame.reset_index().rename(columns={"coefficient": "name"})),
        "warnings": warnings, "notes": notes,
    }  # fmt: skip
    title = f"{fit.analysis.name}   ({fit.analysis.kind}, {counted(len(found.rows), 'set')}, 95% intervals)"
    return Answer.of(frame, title, [*(f"WARNING: {warning}" for warning in warnings), *notes], document)


def table_answer(
    table: Table, names: tuple[str, ...], where: dict[str, tuple[str, ...]], facts: dict[str, Any], notices: Iterable[str]
) -> Answer:
    frame = pd.DataFrame(list(table.labels), columns=list(names))
    numbers = _columns(table.counts, "") | _columns(table.shares, "share_")
    words = [
        trust(float(count), float(high - count)) for count, high in zip(table.counts.value, table.counts.high, strict=True)
    ]
    renamed = given_way([*numbers, "trust"], names)
    frame = frame.assign(**{renamed.get(name, name): values for name, values in (numbers | {"trust": words}).items()})
    warnings = [*notices, *_noise_warning(words)]
    if table.source == "sets":
        warnings.append(f"{FROM_SETS}: {table.why}. What they say beyond what was measured is what their model supposes.")
    notes = [INTERVALS] if table.source == "measured" else []
    notes += [WEIGHTED] if table.of.endswith(OF_IT) else []
    if (table.counts.value < 0).any():
        notes.append("Estimates are unbiased, so that noise takes some of them below 0.")
    if table.grouped:
        notes.append(f"Counted in groups of categories: {', '.join(table.grouped)}.")
    notes += [f"{name} is an attribute here: the figure of this name stands in {column}." for name, column in renamed.items()]
    said = ", ".join(f"{name} = {' or '.join(labels)}" for name, labels in where.items())
    document = {
        **facts, "table": list(names), "where": where, "source": table.source, "rows": table.whole,
        "cells": _rows(frame), "warnings": warnings, "notes": notes,
    }  # fmt: skip
    document |= ({"of": table.of} if table.of != "rows" else {}) | ({"renamed": renamed} if renamed else {})
    title = f"{' × '.join(names)}{f' where {said}' if said else ''}   (about {table.whole:,.0f} {table.of})"
    return Answer.of(frame, title, [*(f"WARNING: {warning}" for warning in warnings), *notes], document)


def must_be_worth_looking_at(cells: int, names: tuple[str, ...], everything: bool) -> None:
    table = " × ".join(names)
    if cells > MOST_AT_ALL:
        raise SpecError(f"{table} has {cells:,} cells; at most {MOST_AT_ALL:,} are made. Name fewer attributes.")
    if cells > MOST_CELLS and not everything:
        raise SpecError(
            f"{table} has {cells:,} cells, too many to look at. Name fewer attributes, fix some with --where, write them with "
            "--csv FILE, or say --all."
        )


def given_way(figures: Iterable[str], names: tuple[str, ...]) -> dict[str, str]:
    """Columns that are called otherwise than the figures in them, since an attribute has that name and keeps it.

    >>> given_way(["count", "low", "trust"], ("low", "low_", "age"))
    {'low': 'low__'}
    """
    taken, found = set(names), dict[str, str]()
    for figure in figures:
        if figure in taken:
            found[figure] = figure + "_"
            while found[figure] in taken:
                found[figure] += "_"
    return found


def _columns(quantity: Quantity, prefix: str) -> dict[str, Any]:
    first = prefix.removesuffix("_") or "count"
    return {
        first: quantity.value,
        f"{prefix}standard_error": quantity.error,
        f"{prefix}low": quantity.low,
        f"{prefix}high": quantity.high,
    }


def _noise_warning(words: list[str]) -> list[str]:
    lost = words.count(TRUST[-1])
    if not lost:
        return []
    which = "every cell" if lost == len(words) else f"{lost:,} of {len(words):,} cells"
    return [f"Noise dominates in {which}: a 95% interval there reaches further than half of the count."]


def _spread(rows: tuple[int, ...]) -> str:
    return f"{rows[0]:,}" if min(rows) == max(rows) else f"{min(rows):,} to {max(rows):,}"


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """As JSON has them: what is not a number is null."""
    plain = frame.astype(object).where(frame.notna(), None)
    return [{str(name): _plain(value) for name, value in row.items()} for row in plain.to_dict("records")]


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
