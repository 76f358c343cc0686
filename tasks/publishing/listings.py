"""What the page shows as CSV with labels: margins, pairs and the codebook. Made from published numbers alone."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from schemas.spec.attributes import Attribute
from schemas.spec.derived import Derived
from schemas.spec.domain import Domain
from steps_engine.methods.views import LevelView, Margin, Pair, View
from tasks.publishing import bundle
from tasks.publishing.columns import weight_columns
from tasks.publishing.formats.csv import harmless
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
        bundle.CODEBOOK: _codebook_rows(domain),
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


def _codebook_rows(domain: Domain) -> Iterator[Row]:
    """Every category of every attribute, then of those that are derived; what is said of an attribute stands in each row."""
    of_persons = domain.tables.person.attributes if domain.tables is not None else ()
    for attribute in (*domain.attributes, *of_persons):
        for code, (label, meaning) in enumerate(zip(attribute.labels, attribute.meanings, strict=True)):
            yield attribute.name, attribute.kind, code, label, meaning, *_words(attribute)
    for following in domain.all_followings:
        derived = following.derived
        for code, category in enumerate(following.categories):
            meaning = derived.label_texts.get(category, "")
            yield derived.name, f"derived from {derived.from_}", code, category, meaning, *_words(derived)
    yield from _weight_rows(domain)


def _weight_rows(domain: Domain) -> Iterator[Row]:
    for column in weight_columns(domain):
        step = f"{column.bounds[0]}" if column.bounds else ""
        yield column.name, "weight", 0, step, "", column.words.title or "", column.words.description or "", "", ""


def _words(of: Attribute | Derived) -> tuple[str, ...]:
    return tuple(text or "" for text in (of.title, of.description, of.source, of.why))
