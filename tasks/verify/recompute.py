"""`steps verify --recompute`: everything after the noise made once more, from noisy counts, structure and plan, and compared;
then what tells of it: page, listings and describing files.

The plain check imports nothing of this: it judges published tables by what must hold in them. Here the methods themselves
run, as they ran for the publisher, on the seeds that follow from what was drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas import tables
from schemas.manifest import Manifest
from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.domain.blocks import Reading
from steps_engine.methods.after_noise import Drawn
from steps_engine.methods.blocks import Block
from steps_engine.methods.checked import Findings
from steps_engine.methods.pairs.again import choice_problems
from steps_engine.methods.protocol import Method
from steps_engine.methods.registry import method_of
from steps_engine.methods.views import View
from tasks.publishing import bundle
from tasks.publishing.code import version_facts
from tasks.publishing.telling import told
from tasks.tables_on_disk import Stored
from tasks.verify.bundle import BY_BINS, Recomputed, Verdict, examine, is_by_values
from tasks.verify.files import open_table, read_table

NO_SEEDS = "cannot be recomputed: rows were drawn without seeds that follow from what is published, as versions before did"
EARLIER = f"cannot be recomputed: {BY_BINS}. The version that made the bundle can"
CLOSE = 1e-9  # of estimates, relative to their error: machines round differently
DRAWN, CONSISTENT = ("tree", "noisy-counts"), "consistent-counts"


def verify_again(folder: Path | str, key: Path | None = None) -> Verdict:
    """The whole check, and everything after the noise once more."""
    return examine(folder, key, recompute)


def recompute(
    files: Mapping[str, Path], manifest: bundle.AnyManifest, plan: Plan, domain: Domain, found: Findings
) -> Recomputed:
    """Of consistent counts and every set, whether they follow; analyses follow from the sets, as the plain check says."""
    if getattr(manifest, "seeds", None) is None:
        return Recomputed({}, NO_SEEDS)
    if not is_by_values(manifest, domain):
        return Recomputed({}, EARLIER)
    method, same = method_of(plan), dict[str, bool]()
    schemas, sets = method.schemas(plan), [f"synthetic-{i}" for i in range(1, plan.sets + 1)]
    given = {stage: _given(files, stage, schema, found, read_table) for stage, schema in schemas.items()}
    given |= {stage: _given(files, stage, tables.records(domain), found, open_table) for stage in sets}
    linked = {f"{kind}-{i}": each for kind, each in tables.linked(domain).items() for i in range(1, plan.sets + 1)}
    given |= {stage: _given(files, stage, schema, found, open_table) for stage, schema in linked.items()}
    if any(given[stage] is None for stage in DRAWN):
        return Recomputed({}, "cannot be recomputed: the noisy counts or the tree are missing or broken")
    if any(draw.of == "again" for draw in plan.draws):
        found.collect(_file("noisy-counts"), choice_problems, domain, plan, given)
    drawn = Drawn(domain, plan, given["tree"], given["noisy-counts"])
    consistent = found.attempt(_file(CONSISTENT), drawn.correct, method)
    name, same[_file(CONSISTENT)] = _file(CONSISTENT), False
    if consistent is not None and given[CONSISTENT] is not None:
        same[name] = found.collect(name, differences, given[CONSISTENT], consistent.cast(schemas[CONSISTENT]))
    for number, stage in enumerate(sets, start=1):
        name = _file(stage)
        there = consistent is not None and given[stage] is not None
        blocks = found.attempt(name, drawn.blocks, method, consistent, number) if there else None
        if linked:
            same |= _linked(drawn, method, consistent, blocks, given, number, found)
        else:
            same[name] = blocks is not None and found.collect(
                name, set_differences, given[stage], blocks, tables.records(domain)
            )
    if isinstance(manifest, Manifest) and all(same.values()):  # what tells of other tables tells something else
        view = found.attempt(bundle.PAGE, method.view, domain, plan, given)
        if view is not None:
            return _retold(files, manifest, plan, domain, view, same, found)
    return Recomputed(same)


def _linked(
    drawn: Drawn,
    method: Method,
    consistent: Any,
    blocks: Sequence[Block] | None,
    given: Mapping[str, Any],
    number: int,
    found: Findings,
) -> dict[str, bool]:
    """Whether household rows, households and persons of one set follow: they are made again, and read, side by side."""
    schemas = {tables.SYNTHETIC: tables.records(drawn.domain), **tables.linked(drawn.domain)}
    seen = {kind: Beside(given[f"{kind}-{number}"], schema) for kind, schema in schemas.items() if given[f"{kind}-{number}"]}
    whole = None
    if blocks is not None:
        person = _file(f"{tables.PERSON}-{number}")
        whole = found.attempt(person, _look_at_all, seen, drawn.linked(method, consistent, blocks, number))
    same = {_file(f"{kind}-{number}"): False for kind in schemas}
    for kind, beside in seen.items() if whole is not None else ():
        name = _file(f"{kind}-{number}")
        same[name] = found.collect(name, beside.problems)
    return same


def _look_at_all(seen: Mapping[str, Beside], made: Iterator[dict[str, pa.Table]]) -> bool:
    for some in made:
        for kind, beside in seen.items():
            beside.look_at(some[kind])
    return True


def _retold(
    files: Mapping[str, Path],
    manifest: Manifest,
    plan: Plan,
    domain: Domain,
    view: View,
    same: dict[str, bool],
    found: Findings,
) -> Recomputed:
    """Page, listings and describing files once more, byte for byte; another version may have put them in other words."""
    again = found.attempt(bundle.PAGE, told, manifest, plan, domain, view) or {}
    otherwise = []
    for name in sorted(again.keys() & files.keys()):
        if again[name] == files[name].read_bytes():
            same[name] = True
        elif _is_ours(manifest):
            same[name] = False
            found.add(name, "is not what follows from the tables, the plan and the domain")
        else:
            otherwise.append(name)
    return Recomputed(same, otherwise=tuple(otherwise))


def _is_ours(manifest: Manifest) -> bool:
    """Whether this very version wrote it."""
    try:
        own = version_facts()
    except PackageNotFoundError:  # run from files that were never installed
        return False
    return (manifest.code.version, manifest.code.commit) == (own["version"], own["commit"])


def _file(stage: str) -> str:
    return f"{stage}.parquet"


def _given(files: Mapping[str, Path], stage: str, schema: pa.Schema, found: Findings, read: Callable[..., Any]) -> Any:
    name = _file(stage)
    return found.attempt(name, read, files[name], schema) if name in files else None


def differences(published: pa.Table, again: pa.Table) -> Iterator[str]:
    """Where a table is not the one that follows from what was drawn: how many rows differ, and the first."""
    beside = Beside(published, again.schema)
    beside.look_at(again)
    return beside.problems()


def set_differences(published: Stored, blocks: Sequence[Block], schema: pa.Schema) -> Iterator[str]:
    """The same of a set, neither of which is held: rows are made again block by block as the file is read."""
    beside = Beside(published, schema)
    if published.num_rows == (expected := sum(block.rows for block in blocks)):
        for block in blocks:
            beside.look_at(block.make())
    else:
        beside.seen = expected
    return beside.problems()


class Beside:
    """A published table, read as far as it is made again."""

    def __init__(self, published: Any, schema: pa.Schema) -> None:
        self.rows, self.schema, self.reading = published.num_rows, schema, Reading(published)
        self.seen, self.differing, self.first, self.columns = 0, 0, 0, dict[str, None]()

    def look_at(self, again: pa.Table) -> None:
        """At the next rows."""
        again, published = again.cast(self.schema), self.reading.take(len(again))
        differ = np.zeros(len(published), dtype=bool)
        for name in again.column_names:
            wrong = ~_equal(published[name], again[name].slice(0, len(published)))
            if wrong.any():
                self.columns[name] = None
                differ |= wrong
        if not self.differing and differ.any():
            self.first = self.seen + int(differ.argmax()) + 1
        self.seen, self.differing = self.seen + len(again), self.differing + int(differ.sum())

    def problems(self) -> Iterator[str]:
        if self.rows != self.seen:
            yield f"has {self.rows:,} rows; from the noisy counts follow {self.seen:,}"
        elif self.differing:
            yield (
                f"is not what follows from the noisy counts: {self.differing:,} of {self.seen:,} rows differ, the first is row "
                f"{self.first:,} ({', '.join([*self.columns][:3])})"
            )


def _equal(published: pa.ChunkedArray, again: pa.ChunkedArray) -> np.ndarray:
    """Row by row; what is estimated up to rounding."""
    if pa.types.is_list(again.type):
        return np.full(len(again), published.combine_chunks().equals(again.combine_chunks()))
    if pa.types.is_floating(again.type) and again.null_count == 0 == published.null_count:
        a, b = published.to_numpy(), again.to_numpy()
        close: np.ndarray = np.isclose(a, b, rtol=CLOSE, atol=CLOSE)
        return close
    if pa.types.is_dictionary(again.type):
        published, again = published.cast(pa.string()), again.cast(pa.string())
    same = pc.fill_null(pc.equal(published, again), False)
    both_null = pc.and_(published.is_null(), again.is_null())
    equal: np.ndarray = np.asarray(pc.or_(same, both_null))
    return equal
