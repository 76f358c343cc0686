"""`steps verify --recompute`: everything after the noise made once more, from noisy counts, structure and plan, and compared;
then what tells of it: page, listings and describing files.

The plain check imports nothing of this: it judges published tables by what must hold in them. Here the methods themselves
run, as they ran for the publisher, on the seeds that follow from what was drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from schemas import tables
from schemas.manifest import Manifest
from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.methods.after_noise import Drawn
from steps_engine.methods.checked import Findings
from steps_engine.methods.registry import method_of
from steps_engine.methods.views import View
from tasks.publishing import bundle
from tasks.publishing.code import version_facts
from tasks.publishing.telling import told
from tasks.verify.bundle import Recomputed, Verdict, examine
from tasks.verify.files import read_table

NO_SEEDS = "cannot be recomputed: rows were drawn without seeds that follow from what is published, as versions before did"
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
    method, same = method_of(plan), dict[str, bool]()
    schemas = method.schemas(plan) | {f"synthetic-{i}": tables.records(domain) for i in range(1, plan.sets + 1)}
    given = {stage: _given(files, stage, schema, found) for stage, schema in schemas.items()}
    if any(given[stage] is None for stage in DRAWN):
        return Recomputed({}, "cannot be recomputed: the noisy counts or the tree are missing or broken")
    drawn = Drawn(domain, plan, given["tree"], given["noisy-counts"])
    made = {CONSISTENT: found.attempt(_file(CONSISTENT), drawn.correct, method)}
    for number in range(1, plan.sets + 1):
        stage = f"synthetic-{number}"
        if made[CONSISTENT] is not None:
            made[stage] = found.attempt(_file(stage), drawn.synthesize, method, made[CONSISTENT], number)
    for stage, again in made.items():
        if again is not None and (published := given[stage]) is not None:
            same[_file(stage)] = found.collect(_file(stage), differences, published, again.cast(schemas[stage]))
        else:
            same[_file(stage)] = False
    if isinstance(manifest, Manifest) and all(same.values()):  # what tells of other tables tells something else
        view = found.attempt(bundle.PAGE, method.view, domain, plan, given)
        if view is not None:
            return _retold(files, manifest, plan, domain, view, same, found)
    return Recomputed(same)


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


def _given(files: Mapping[str, Path], stage: str, schema: pa.Schema, found: Findings) -> pa.Table | None:
    name = _file(stage)
    return found.attempt(name, read_table, files[name], schema) if name in files else None


def differences(published: pa.Table, again: pa.Table) -> Iterator[str]:
    """Where a table is not the one that follows from what was drawn: how many rows differ, and the first."""
    if len(published) != len(again):
        yield f"has {len(published):,} rows; from the noisy counts follow {len(again):,}"
        return
    differ, columns = np.zeros(len(again), dtype=bool), []
    for name in again.column_names:
        here = ~_equal(published[name], again[name])
        if here.any():
            columns.append(name)
            differ |= here
    if columns:
        rows, first = int(differ.sum()), int(differ.argmax()) + 1
        yield (
            f"is not what follows from the noisy counts: {rows:,} of {len(again):,} rows differ, the first is row {first:,} "
            f"({', '.join(columns[:3])})"
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
