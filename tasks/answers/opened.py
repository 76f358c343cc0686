"""A bundle that is read: signed, each file with the hash that was signed, none opened that takes more room than it may.

What `steps verify` checks beyond that, what tables must hold, is not looked at here: it takes longer, and once is enough.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import steps_engine.methods  # noqa: F401  registers the methods
from schemas import tables
from schemas.errors import EvidenceBroken, SpecError
from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.domain.blocks import Blocks
from steps_engine.domain.columns import with_derived
from steps_engine.domain.linked_records import Everybody, everybody
from steps_engine.methods.checked import Findings
from steps_engine.methods.registry import method_of
from tasks.publishing import bundle
from tasks.tables_on_disk import Stored
from tasks.verify.beside import look_beside
from tasks.verify.files import content_of, is_as_signed, open_table, regular_files
from tasks.verify.signature import given_key, is_signed
from tasks.verify.ways import MOST_SETS

DRAWN = ("tree", "noisy-counts")


@dataclass(frozen=True)
class Opened:
    """The files of a bundle whose signature holds, and what its publisher has said of it since."""

    folder: Path
    files: Mapping[str, Path]
    manifest: bundle.AnyManifest
    notices: tuple[str, ...]

    @cached_property
    def domain(self) -> Domain:
        return bundle.read_domain(self._content(bundle.DOMAIN), bundle.form_of(self.manifest))

    @cached_property
    def plan(self) -> Plan:
        plan = bundle.read_plan(self._content(bundle.PLAN), bundle.form_of(self.manifest))
        if not 1 <= plan.sets <= MOST_SETS or plan.sets != self.manifest.composition.sets:
            raise EvidenceBroken(f"{self.folder}: plan and manifest do not agree on the number of sets; run steps verify.")
        return plan

    def counts(self, *stages: str) -> dict[str, pa.Table]:
        """The method's own tables: `tree`, `noisy-counts`, `consistent-counts`."""
        schemas = method_of(self.plan).schemas(self.plan)
        return {stage: self._table(stage, schemas[stage]) for stage in stages}

    def records(self, number: int) -> pa.Table:
        """One synthetic set."""
        return self._table(f"synthetic-{number}", tables.records(self.domain))

    def sets(self, columns: Collection[str]) -> Sequence[Blocks]:
        """Those that have such columns, not in memory: of linked tables persons, where a column is theirs."""
        numbers = range(1, self.plan.sets + 1)
        rows = [self._open(f"synthetic-{number}", tables.records(self.domain)) for number in numbers]
        if self.asked_of(columns) is self.domain:
            return rows
        schema = tables.linked(self.domain)[tables.PERSON]
        persons = [self._open(f"{tables.PERSON}-{number}", schema) for number in numbers]
        return [Everybody(self.domain, *both) for both in zip(rows, persons, strict=True)]

    def linked(self, kind: str, number: int) -> pa.Table:
        """Households or persons of one set, where tables are linked."""
        return self._table(f"{kind}-{number}", tables.linked(self.domain)[kind])

    def asked_of(self, names: Collection[str]) -> Domain:
        """The domain of the rows that have these attributes: those of the sets, or of all persons of linked tables."""
        linked = self.domain.tables is not None and not set(names) <= set(with_derived(self.domain).names)
        return everybody(self.domain) if linked else self.domain

    @property
    def rows(self) -> int:
        """Of all synthetic sets together, by their footers."""
        files = (self._signed(f"synthetic-{number}.parquet") for number in range(1, self.plan.sets + 1))
        return sum(pq.read_metadata(path).num_rows for path in files)

    def _table(self, stage: str, schema: pa.Schema) -> pa.Table:
        with self.reading(f"{stage}.parquet"):
            return self._open(stage, schema).read()

    def _open(self, stage: str, schema: pa.Schema) -> Stored:
        with self.reading(name := f"{stage}.parquet", ValueError):
            return open_table(self._signed(name), schema)

    @contextmanager
    def reading(self, name: str, *others: type[Exception]) -> Iterator[None]:
        """What was signed may still be no table, or one whose rows cannot be read."""
        try:
            yield
        except (OSError, pa.ArrowException, *others) as error:
            told = " ".join(str(error).split()).rstrip(".")
            raise EvidenceBroken(f"{self.folder}: {name} {told}. Nothing was answered.") from None

    def _content(self, name: str) -> bytes:
        return content_of({name: self._signed(name)}, name)

    def _signed(self, name: str) -> Path:
        """The file, if it is the one that was signed."""
        if name not in self.files or name not in self.manifest.files:
            raise EvidenceBroken(f"{self.folder}: {name} is missing. Fetch the bundle again.")
        if not is_as_signed(self.files[name], self.manifest.files[name]):
            raise EvidenceBroken(f"{self.folder}: {name} is not the file that was signed. Fetch the bundle again.")
        return self.files[name]


def open_bundle(folder: Path | str, key: Path | None = None) -> Opened:
    """A folder as a bundle; with a key, it must be signed by that one."""
    folder, pem, found = Path(folder), given_key(key), Findings()
    if not (folder / bundle.MANIFEST).is_file():
        found_there = (
            f"it holds no {bundle.MANIFEST}" if folder.is_dir() else "a file" if folder.exists() else "it is not there"
        )
        raise SpecError(f"{folder} is no published release: {found_there}. Give a bundle's folder, as `steps run` prints.")
    files = regular_files(folder, Findings())  # what is no plain file is not opened, and no concern here
    pem, notes = found.attempt(bundle.PUBLIC_KEY, look_beside, files, folder, pem, found) or (pem, [])
    raw = found.attempt(bundle.MANIFEST, content_of, files, bundle.MANIFEST)
    signed = raw is not None and found.attempt(bundle.SIGNATURE, is_signed, files, raw, pem, found)
    manifest = found.attempt(bundle.MANIFEST, bundle.read_manifest, raw) if signed else None
    if manifest is None or found.found:
        told = "; ".join(f"{place}: {sentence}" for place, sentence in found.found[:3])
        raise EvidenceBroken(f"{folder} does not verify: {told}. Nothing was read; `steps verify {folder}` says more.")
    return Opened(folder, files, manifest, tuple(notes))
