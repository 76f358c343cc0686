"""Verify a published bundle offline: nothing is needed but its folder and, to know who signed it, the publisher's key.

A bundle may come from anybody: names are taken from an allow-list and never from the bundle, links are not followed,
tables are opened only if their hash holds, and whatever goes wrong is a problem in the list, not an exception.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from schemas import tables
from schemas.errors import SpecError, StepsError
from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.methods.cascade import tables as forest
from steps_engine.methods.registry import decomposition_of
from tasks.publishing import bundle
from tasks.verify import accounts as verify_accounts
from tasks.verify import counts as verify_counts
from tasks.verify import forest as verify_forest
from tasks.verify.tree import Branches, read_branches

MOST_SETS = 100
MOST_TABLE_ROWS = 2**31


@dataclass(frozen=True)
class Problem:
    """What does not hold, and in which file; a note is worth knowing and breaks nothing."""

    file: str
    text: str
    note: bool = False

    def __str__(self) -> str:
        return f"{self.file}: {self.text}"


def holds(problems: Iterable[Problem]) -> bool:
    """Whether a bundle verifies: there may be notes, but no problems."""
    return all(problem.note for problem in problems)


def verify_bundle(folder: Path | str, key: Path | None = None) -> list[Problem]:
    """Everything that does not hold in a bundle. With a key, it must be signed by that one."""
    pem = _given_key(key)
    found = _Findings()
    files = found.attempt(".", _regular_files, Path(folder), found) or {}
    raw = found.attempt(bundle.MANIFEST, _content, files, bundle.MANIFEST)
    manifest = found.attempt(bundle.MANIFEST, bundle.read_manifest, raw) if raw is not None else None
    if raw is not None:
        found.attempt(bundle.SIGNATURE, _check_signature, files, raw, pem, found)
    if manifest is not None:
        sound = found.attempt(".", _check_files, files, manifest, found) or {}
        _check_content(sound, manifest, found)
    return found.problems


@dataclass
class _Findings:
    """The problems so far."""

    problems: list[Problem] = field(default_factory=list)

    def add(self, file: str, text: str, note: bool = False) -> None:
        self.problems.append(Problem(file, text, note))

    def attempt(self, file: str, function: Callable, *arguments: Any) -> Any:
        """The function's value; None, and a problem, when it fails."""
        try:
            return function(*arguments)
        except ValidationError as error:
            places = sorted({".".join(str(part) for part in e["loc"][:2]) for e in error.errors(include_input=False)})
            self.add(file, f"does not have the form of this format: {_printable(', '.join(places[:3]))}")
        except (StepsError, ValueError) as error:
            self.add(file, _printable(str(error)))
        except Exception as error:  # a hostile bundle can fail in any way; each of them is a problem, none a crash
            self.add(file, f"cannot be checked ({type(error).__name__})")

    def collect(self, file: str, check: Callable, *arguments: Any) -> None:
        """Adds every sentence that a check yields."""
        for sentence in self.attempt(file, lambda: list(check(*arguments))) or ():
            self.add(file, sentence)


def _printable(text: str) -> str:
    """Text from a bundle, safe for a terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)[:300]


def _given_key(path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        pem = Path(path).read_bytes()
        bundle.read_public_key(pem)
        return pem
    except (OSError, ValueError):
        raise SpecError(f"{path} is not a public key. Give the publisher's Ed25519 key in PEM, signing-key.pub.") from None


def _regular_files(folder: Path, found: _Findings) -> dict[str, Path]:
    """Plain files of the folder by name; links, folders and devices are problems and are not opened."""
    files = {}
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise SpecError(f"{folder} cannot be read: {error.strerror}") from None
    for entry in entries:
        if stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
            files[entry.name] = Path(entry.path)
        else:
            found.add(_printable(entry.name), "is not a plain file")
    return files


def _content(files: dict[str, Path], name: str) -> bytes:
    if name not in files:
        raise ValueError("is missing")
    with files[name].open("rb") as file:
        return file.read(bundle.LARGEST_JSON + 1)


def _check_signature(files: dict[str, Path], manifest: bytes, given: bytes | None, found: _Findings) -> None:
    signature, own = _content(files, bundle.SIGNATURE), _content(files, bundle.PUBLIC_KEY)
    key = bundle.read_public_key(given or own)
    if given is not None and key != bundle.read_public_key(own):
        found.add(bundle.PUBLIC_KEY, "is not the key that was given")
    if not bundle.is_signed(key, manifest, signature):
        found.add(bundle.SIGNATURE, "does not sign this manifest with this key")
    elif given is None:
        found.add(bundle.SIGNATURE, "is self-consistent; who signed is not established. Give the publisher's --key", note=True)


def _check_files(files: dict[str, Path], manifest: bundle.AnyManifest, found: _Findings) -> dict[str, Path]:
    """The files that the manifest vouches for; anything extra, missing or different is a problem."""
    sets, with_csv = manifest.composition.sets, any(name.endswith(".csv") for name in manifest.files)
    if not 1 <= sets <= MOST_SETS:
        raise ValueError(f"a bundle has 1 to {MOST_SETS} sets")
    names = bundle.file_names(sets, with_csv)
    for name in sorted(files.keys() - names):
        found.add(_printable(name), "does not belong to a bundle")
    for name in sorted(names - files.keys() - bundle.UNLISTED):
        found.add(name, "is missing")
    if manifest.files.keys() != names - bundle.UNLISTED:
        found.add(bundle.MANIFEST, "lists other files than a bundle of this many sets has")
    sound = {}
    for name in sorted(names & files.keys() & manifest.files.keys()):
        if _facts(files[name]) == (manifest.files[name].sha256, manifest.files[name].size):
            sound[name] = files[name]
        else:
            found.add(name, "is not the file that was signed: its hash or size differs")
    return sound


def _facts(path: Path) -> tuple[str, int]:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest(), os.fstat(file.fileno()).st_size


def _check_content(files: dict[str, Path], manifest: bundle.AnyManifest, found: _Findings) -> None:
    """What the signed files say, as far as they are there."""
    plan = domain = branches = None
    form = bundle.form_of(manifest)
    if bundle.PLAN in files:
        plan = found.attempt(bundle.PLAN, lambda: bundle.read_plan(_content(files, bundle.PLAN), form))
    if bundle.DOMAIN in files:
        domain = found.attempt(bundle.DOMAIN, lambda: bundle.read_domain(_content(files, bundle.DOMAIN), form))
    if plan is not None:
        found.collect(bundle.MANIFEST, verify_accounts.manifest_problems, manifest, plan)
        found.collect(bundle.MANIFEST, verify_accounts.ledger_problems, manifest.ledger, manifest, plan)
    if plan is not None and not plan.has_forest:
        found.collect(bundle.PLAN, verify_accounts.draw_problems, plan, (len(plan.layers),))
    if plan is not None and domain is not None:
        found.collect(bundle.DOMAIN, verify_accounts.domain_problems, plan, domain)
        if plan.has_forest:
            return _check_forest(files, plan, domain, manifest, found)
        if (tree := _table(files, "tree", tables.TREE, found)) is not None:
            branches = found.attempt("tree.parquet", read_branches, domain, plan, tree)
    if branches is not None and plan.sets == manifest.composition.sets:
        found.collect(bundle.PLAN, verify_accounts.draw_problems, plan, branches.leaf_layers)
        _check_numbers(files, plan, domain, branches, found)


def _check_forest(files: dict[str, Path], plan: Plan, domain: Domain, manifest: bundle.AnyManifest, found: _Findings) -> None:
    """One tree per attribute: what the trees are, what they drew, and that the records lie in the domain."""
    schemas = decomposition_of(plan).schemas(plan)
    read = {stage: _table(files, stage, schema, found) for stage, schema in schemas.items()}
    if read["tree"] is None or plan.sets != manifest.composition.sets:
        return
    trees = found.attempt("tree.parquet", forest.read_trees, domain, read["tree"])
    if trees is None:
        return
    found.collect(bundle.PLAN, verify_forest.draw_problems, plan, trees, domain)
    if read["noisy-counts"] is not None:
        drawn = found.attempt("noisy-counts.parquet", forest.read_noisy, domain, trees, read["noisy-counts"])
        if drawn is not None and (drawn.total is None) != (plan.total == "estimated"):
            found.add("noisy-counts.parquet", "holds an exact number of rows that the plan does not publish, or lacks it")
        if drawn is not None and read["consistent-counts"] is not None:
            name = "consistent-counts.parquet"
            found.collect(name, verify_forest.estimate_problems, plan, drawn, read["consistent-counts"])
    for number in range(1, plan.sets + 1):
        _check_records(files, number, domain, found, lambda records: verify_forest.record_problems(domain, records))


def _check_numbers(files: dict[str, Path], plan: Plan, domain: Domain, branches: Branches, found: _Findings) -> None:
    schemas = decomposition_of(plan).schemas(plan)
    noisy, consistent = (_table(files, stage, schemas[stage], found) for stage in ("noisy-counts", "consistent-counts"))
    if noisy is not None:
        noisy, cells = verify_counts.held_and_sampled(noisy, plan)
        found.collect("noisy-counts.parquet", verify_counts.noisy_problems, branches, plan, noisy)
        if plan.sparse:
            found.collect("noisy-counts.parquet", verify_counts.noisy_cell_problems, branches, plan, cells)
    if consistent is not None:
        before = len(found.problems)
        held, cells = verify_counts.held_and_sampled(consistent, plan)
        found.collect("consistent-counts.parquet", verify_counts.consistent_problems, branches, plan, held)
        if noisy is not None:
            found.collect("consistent-counts.parquet", verify_counts.total_problems, plan, noisy, held)
        if plan.sparse:
            found.collect("consistent-counts.parquet", verify_counts.whole_cell_problems, branches, held, cells)
        if len(found.problems) == before:
            for number in range(1, plan.sets + 1):
                _check_set(files, number, domain, branches, (held, cells), found)


def _check_set(files, number: int, domain: Domain, branches: Branches, held_and_cells: tuple, found: _Findings) -> None:
    where, whole = verify_counts.cells_with_rows(branches, *held_and_cells, number)
    problems = lambda records: verify_counts.record_problems(branches.space, records, where, whole)  # noqa: E731
    _check_records(files, number, domain, found, problems, rows=int(whole.sum()))


def _check_records(files, number: int, domain: Domain, found: _Findings, problems: Callable, rows: int | None = None) -> None:
    records = _table(files, f"synthetic-{number}", tables.records(domain), found, rows=rows)
    if records is None:
        return
    found.collect(f"synthetic-{number}.parquet", problems, records)
    text = f"synthetic-{number}.csv"
    if text in files and found.attempt(text, lambda: bundle.csv_bytes(records) != files[text].read_bytes()):
        found.add(text, "does not hold the rows of the Parquet file")


def _table(files: dict[str, Path], stage: str, schema: pa.Schema, found: _Findings, rows: int | None = None) -> pa.Table | None:
    """A table of exactly this schema, without notes of pandas or anybody else."""
    name = f"{stage}.parquet"
    return found.attempt(name, _read_table, files[name], schema, rows) if name in files else None


def _read_table(path: Path, schema: pa.Schema, rows: int | None) -> pa.Table:
    with pq.ParquetFile(path) as file:
        if not file.schema_arrow.equals(schema, check_metadata=False):
            raise ValueError("does not have the columns and types of this format")
        if set(file.metadata.metadata or {}) - {b"ARROW:schema"} or b"pandas" in (file.schema_arrow.metadata or {}):
            raise ValueError("carries notes (of pandas, or of another program) that do not belong there")
        if file.metadata.num_rows > MOST_TABLE_ROWS or rows not in (None, file.metadata.num_rows):
            raise ValueError("does not have as many rows as its whole counts say" if rows is not None else "has too many rows")
        return file.read()
