"""Answers as files: every number as CSV, intervals as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from schemas.errors import SpecError

if TYPE_CHECKING:
    from tasks.answers.frames import Answer

PICTURES = (".svg", ".png", ".pdf")
MOST_DRAWN = 80  # intervals


def write_csv(answer: Answer, path: Path) -> Path:
    """RFC 4180, no text that a spreadsheet would run; the notes are not in it, so that any program reads it."""
    from tasks.publishing.listings import csv_of

    rows = answer.document["coefficients"] if "coefficients" in answer.document else answer.document["cells"]
    columns = list(rows[0]) if rows else list(answer.columns)
    _write(path, csv_of(columns, ([("" if value is None else value) for value in row.values()] for row in rows)))
    return path


def write_picture(answer: Answer, path: Path) -> Path:
    """A line for every coefficient, or for every cell's share."""
    if path.suffix not in PICTURES:
        raise SpecError(f"--picture {path}: give a name that ends in {', '.join(PICTURES)}")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise SpecError(
            f'--picture {path} needs matplotlib; pip install "steps-release[pipeline]", or matplotlib alone'
        ) from None
    from tasks.answers.picture import drawn

    if len(answer) > MOST_DRAWN:
        raise SpecError(
            f"--picture {path}: {len(answer):,} intervals are too many to draw; at most {MOST_DRAWN}. Ask for fewer cells."
        )
    _write(path, drawn(answer, path.suffix[1:]))
    return path


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise SpecError(f"{path} cannot be written: {error.strerror}") from None
