"""What the page shows as CSV with labels: margins, pairs and the codebook. Made from published numbers alone."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from schemas.spec.domain import Domain
from steps_engine.methods.views import LevelView, Margin, Pair, View
from tasks.publishing import bundle
from tasks.publishing.columns import Category, columns_of, person_columns
from tasks.publishing.formats.csv import harmless
from tasks.publishing.said import rule_rows
from tasks.publishing.verdict import trust, trusts

Row = Sequence[str | int | float]
LISTED = {  # the columns of each, and what is in them
    bundle.MARGINS: {
        "attribute": "string", "category": "string", "estimate": "number", "low": "number", "high": "number",
        "standard_error": "number", "synthetic_mean": "number", "trust": "string", "label": "string",
    },
    bundle.PAIRS: {
        "first": "string", "second": "string", "known": "string", "strength_against_noise": "number",
        "clear_of_noise": "string",
    },
    bundle.CODEBOOK: {
        "attribute": "string", "kind": "string", "code": "integer", "category": "string", "label": "string",
        "estimate": "number", "low": "number", "high": "number", "standard_error": "number", "trust": "string",
        "counted": "string",
        "title": "string", "description": "string", "source": "string", "why": "string",
    },
    bundle.PLACES: {
        "level": "string", "place": "string", "within": "string", "estimate": "number", "low": "number", "high": "number",
        "standard_error": "number", "synthetic_mean": "number", "trust": "string",
    },
}  # fmt: skip


def listings(view: View, domain: Domain) -> dict[str, bytes]:
    """Every listing of a bundle by its name."""
    rows: dict[str, Iterable[Row]] = {
        bundle.MARGINS: (row for margin in (*view.margins, *view.derived) for row in _margin_rows(margin, domain)),
        bundle.PAIRS: map(_pair_row, view.pairs),
        bundle.CODEBOOK: (*_codebook_rows(view, domain), *_rule_rows(domain)),
    }
    if view.levels:
        rows[bundle.PLACES] = (row for level in view.levels for row in _place_rows(level))
    return {name: csv_of(tuple(columns), rows[name]) for name, columns in LISTED.items() if name in rows}


def csv_of(columns: Sequence[str], rows: Iterable[Row]) -> bytes:
    """RFC 4180 in UTF-8, numbers as they are and no text that a spreadsheet would run."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([harmless(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
    return text.getvalue().encode()


def _margin_rows(margin: Margin, domain: Domain) -> Iterator[Row]:
    named = {each.name: each.label_texts for each in (*domain.counted.attributes, *domain.derived)}
    texts = named.get(margin.attribute, {})  # a level of places has no labels of its own
    for k, (label, word) in enumerate(zip(margin.labels, trusts(margin), strict=True)):
        count, half = float(margin.estimate[k]), float(margin.half[k])
        numbers = (count, count - half, count + half, float(margin.error[k]), float(margin.synthetic[k]))
        yield margin.attribute, label, *(round(number, 4) for number in numbers), word, texts.get(label, "")


def _place_rows(level: LevelView) -> Iterator[Row]:
    """Every place of a level, those without people too."""
    low, high = level.estimate - level.half, level.estimate + level.half
    columns = (level.estimate, low, high, level.error, level.synthetic)
    for k, (label, parent) in enumerate(zip(level.labels, level.parents, strict=True)):
        word = trust(float(level.estimate[k]), float(level.half[k]))
        yield level.level, label, parent, *(round(float(column[k]), 4) for column in columns), word


def _pair_row(pair: Pair) -> Row:
    shown = "" if pair.strength is None else f"{pair.strength:.3f}"
    return pair.first, pair.second, pair.told, shown, ("yes" if pair.clear else "no") if pair.told == "measured" else ""


def _codebook_rows(view: View, domain: Domain) -> Iterator[Row]:
    """Every category of every column; what is said of an attribute stands in each row."""
    for column in (*columns_of(domain, view), *person_columns(domain, view)):
        kind = f"derived from {column.follows_from}" if column.follows_from else column.kind
        said = column.words
        words = tuple(text or "" for text in (said.title, said.description, said.source, said.why))
        for each in column.categories:
            code = "" if each.code is None else each.code
            yield column.name, kind, code, each.label, each.meaning, *_numbers(each, column.counted), *words


def _numbers(category: Category, of: str) -> Row:
    """Estimate, interval, error, trust and what is counted; empty where nothing was."""
    if category.estimate is None or category.half is None or category.error is None or category.trust is None:
        return ("",) * 6
    count, half = category.estimate, category.half
    return *(round(number, 4) for number in (count, count - half, count + half, category.error)), category.trust, of


def _rule_rows(domain: Domain) -> Iterator[Row]:
    """What a rule says stands where a category does; it is of no attribute alone."""
    for rule in rule_rows(domain):
        yield "", "rule", "", rule["words"], *("",) * 10, rule["why"]
