"""`steps sample`: files of more rows, with a label that says what they are. They are no part of the release."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from schemas import tables
from schemas.errors import SpecError
from schemas.identity import canonical
from schemas.plan import Plan
from schemas.spec.weights import LARGEST_SET
from steps_engine.answers.conditions import labels_where
from steps_engine.answers.sample import ROWS, RULE
from tasks.answers.bundle import Bundle
from tasks.publishing.bundle import MANIFEST
from tasks.publishing.formats.csv import csv_lines
from tasks.verify.ways import MOST_SETS

LABEL = "sample.json"
NO_PART = (
    "These rows were made from what the release published, after its publication. They are not among its signed files, and "
    "know nothing that it does not say. Whoever has the bundle makes the same ones by the same command."
)


def write_sample(
    found: Bundle, rows: int | None, where: Mapping[str, Any], sets: int | None, seed: int, out: Path, form: str
) -> dict[str, Any]:
    """A file for each set (of linked tables three), and the label last: a folder without it is not finished."""
    rows, sets = rows or found.rows, sets or found.plan.sets
    if not 1 <= rows <= LARGEST_SET or not 1 <= sets <= MOST_SETS:
        raise SpecError(
            f"{rows:,} rows in {sets:,} sets were asked; 1 to {LARGEST_SET:,} rows and 1 to {MOST_SETS:,} sets can be made"
        )
    asked = found.sampling(where, seed)
    _must_be_free(out)
    label = {
        "format": RULE, "release": found.name, "plan_hash": found.plan.hash, "seed": seed, "rows": rows, "sets": sets,
        "where": labels_where(where, found.domain), "sentence": NO_PART, "of": rows_of(found.plan),
        "notes": notes(found.plan, rows, found.rows, sets, bool(asked.kept)),
        "warnings": list(found.notices),
    }  # fmt: skip
    files = dict[str, str]()
    schemas = {ROWS: tables.records(asked.domain), **tables.linked(asked.domain)}
    for number in range(1, sets + 1):
        paths = {kind: out / f"{kind}-{number}.{form}" for kind in schemas}
        with contextlib.ExitStack() as opened:
            writing = _csv if form == "csv" else _parquet
            write = {kind: opened.enter_context(writing(path, schemas[kind], label)) for kind, path in paths.items()}
            for made in asked.linked(number, rows):
                for kind, table in made.items():
                    write[kind](table)
        files |= {path.name: _sha256(path) for path in paths.values()}
    (out / LABEL).write_text(canonical(label | {"files": files}), encoding="utf-8")
    return label | {"files": files, "folder": str(out)}


def notes(plan: Plan, rows: int, published: int, sets: int, conditional: bool) -> list[str]:
    """What a reader must know who computes with these rows."""
    found, who = list[str](), "people" if plan.at_most is None else "households"
    if rows > published or conditional:
        of = rows_of(plan)
        whose = f"a set of the release, which has {published:,} {of}" + (" in all" if conditional else "")
        found.append(f"They do not know more than {whose}: a standard error from {rows:,} {of} may be too small.")
    if plan.measurements > 1 and sets > plan.measurements:
        found.append(
            f"The release measured {plan.measurements} times: set {plan.measurements + 1} has the noise of set 1, and so on. "
            f"For intervals combine {plan.measurements} sets at most."
        )
    if plan.weight is not None:
        people = float(plan.weight.step) * published
        each = f"{people / rows:.6g} {who} of the population" if not conditional else f"equally many {who} of the population"
        found.append(f"They have no column of weights: every row stands for {each}.")
    if (factor := float(plan.inflation) * rows / published) > 1 and plan.inflation != 1:
        most = "up to" if plan.inflates_at_most else "by the survey's design effect about"
        found.append(f"Variances of sampling {who} are {most} {factor:.4g} times those of independent rows.")
    if plan.measurements == 1 and plan.decomposition != "privbayes":
        found.append("Every set is another plausible table behind one measurement: combine them by T = W + (1 + 1/m)·B.")
    return found


def rows_of(plan: Plan) -> str:
    """What is counted by `rows`: of linked tables whole households, with everybody in them."""
    return "rows" if plan.at_most is None else "households"


def _must_be_free(out: Path) -> None:
    """A new or empty folder, and never a bundle: a file more, and it would not verify."""
    if any((place / MANIFEST).exists() for place in (out, *out.absolute().parents[:2])):
        raise SpecError(f"--out {out} lies in a published bundle, whose files stay as they are; give another folder")
    try:
        out.mkdir(parents=True, exist_ok=True)
        taken = next(out.iterdir(), None)
    except OSError as error:
        raise SpecError(f"--out {out} cannot be written: {error.strerror}") from None
    if taken is not None:
        raise SpecError(f"--out {out} is not empty; give a new folder")


@contextlib.contextmanager
def _parquet(path: Path, schema: pa.Schema, label: dict[str, Any]) -> Iterator[Callable[[pa.Table], None]]:
    labelled = schema.with_metadata({"steps-sample": canonical(label)})
    with _whole(path) as unfinished, pq.ParquetWriter(unfinished, labelled) as writer:
        yield lambda block: writer.write_table(block.cast(labelled))


@contextlib.contextmanager
def _csv(path: Path, schema: pa.Schema, label: dict[str, Any]) -> Iterator[Callable[[pa.Table], None]]:
    with _whole(path) as unfinished, unfinished.open("wb") as file:
        yield lambda block: _append(file, block)


def _append(file: BinaryIO, block: pa.Table) -> None:
    """The names of columns stand above the first rows."""
    file.write(csv_lines(block, header=file.tell() == 0))


@contextlib.contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """Written beside its place; a file that is there is whole."""
    unfinished = path.with_name(f".{path.name}.part")
    try:
        yield unfinished
        os.replace(unfinished, path)
    except (OSError, pa.ArrowException) as error:
        raise SpecError(f"{path} cannot be written: {error}") from None
    finally:
        unfinished.unlink(missing_ok=True)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
