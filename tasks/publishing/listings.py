"""What the page shows as CSV with labels: margins, pairs and the codebook. Made from published numbers alone."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from schemas.spec.attributes import Attribute
from schemas.spec.derived import Derived
from schemas.spec.domain import Domain
from steps_engine.methods.views import Margin, Pair, View
from tasks.publishing import bundle
from tasks.publishing.formats.csv import harmless
from tasks.publishing.verdict import trusts

Row = Sequence[str | int | float]


def listings(view: View, domain: Domain) -> dict[str, bytes]:
    """Every listing of a bundle by its name."""
    margins = ("attribute", "category", "estimate", "low", "high", "standard_error", "synthetic_mean", "trust", "label")
    pairs = ("first", "second", "known", "strength_against_noise", "clear_of_noise")
    codebook = ("attribute", "kind", "code", "category", "label", "title", "description", "source", "why")
    return {
        bundle.MARGINS: csv_of(margins, (row for margin in view.margins for row in _margin_rows(margin, domain))),
        bundle.PAIRS: csv_of(pairs, map(_pair_row, view.pairs)),
        bundle.CODEBOOK: csv_of(codebook, _codebook_rows(domain)),
    }


def csv_of(columns: Sequence[str], rows: Iterable[Row]) -> bytes:
    """RFC 4180 in UTF-8, numbers as they are and no text that a spreadsheet would run."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([harmless(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
    return text.getvalue().encode()


def _margin_rows(margin: Margin, domain: Domain) -> Iterator[Row]:
    meanings = domain.attributes[domain.index(margin.attribute)].meanings
    for k, (label, word) in enumerate(zip(margin.labels, trusts(margin), strict=True)):
        count, half = float(margin.estimate[k]), float(margin.half[k])
        numbers = (count, count - half, count + half, float(margin.error[k]), float(margin.synthetic[k]))
        yield margin.attribute, label, *(round(number, 4) for number in numbers), word, meanings[k]


def _pair_row(pair: Pair) -> Row:
    shown = "" if pair.strength is None else f"{pair.strength:.3f}"
    return pair.first, pair.second, pair.told, shown, ("yes" if pair.clear else "no") if pair.told == "measured" else ""


def _codebook_rows(domain: Domain) -> Iterator[Row]:
    """Every category of every attribute, then of those that are derived; what is said of an attribute stands in each row."""
    for attribute in domain.attributes:
        for code, (label, meaning) in enumerate(zip(attribute.labels, attribute.meanings, strict=True)):
            yield attribute.name, attribute.kind, code, label, meaning, *_words(attribute)
    for following in domain.followings:
        derived = following.derived
        for code, category in enumerate(following.categories):
            meaning = derived.label_texts.get(category, "")
            yield derived.name, f"derived from {derived.from_}", code, category, meaning, *_words(derived)


def _words(of: Attribute | Derived) -> tuple[str, ...]:
    return tuple(text or "" for text in (of.title, of.description, of.source, of.why))
