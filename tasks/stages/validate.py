"""Validate: the domain's expectations, run on small tables about the records, before anything is paid."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

from schemas import tables
from schemas.errors import DataInvalid, SpecError
from schemas.expectations import BROKEN, CRITICAL, ROWS, WARNING, build_suite, of_rule, silent_gx
from schemas.spec.domain import Domain
from schemas.spec.release import Release
from schemas.supplied import Supplied, load_supplied, suite_of
from schemas.supplier_suite import supplier_suite
from tasks.publishing.templates import template
from tasks.reading.linked import broken, coded, counts_of, links, rule_breaks
from tasks.reading.locked_down import memory_for
from tasks.reading.profile import Finding, Profile, contents, structure
from tasks.reading.sources import ReadingFailed, Source, connect, open_source
from tasks.reading.supplied import frame_for
from tasks.stores.files import disk_faults, private_folder
from tasks.stores.home import Home

if TYPE_CHECKING:
    import pandas as pd

PAGE, MET, WHOLE = "validation.html", "met", "whole table"
TOO_MANY = Finding(None, ("more values than are held in memory; name fewer columns",))
EMPTY = "There is no record. An empty table is released like any other, as noise on zeros; is this the right source?"


@dataclass(frozen=True, repr=False)
class Outcome:
    """One expectation in words, and what came of it. CONFIDENTIAL."""

    column: str
    words: str
    state: str  # met, not met, not checked
    finding: Finding | None
    severity: str = CRITICAL

    @property
    def refuses(self) -> bool:
        return self.state != MET and self.severity == CRITICAL

    @property
    def warns(self) -> bool:
        return self.state != MET and self.severity == WARNING


@dataclass(frozen=True, repr=False)
class Verdict:
    """Of data that may be released: where the page is, how much was expected, how much of it was warned of. CONFIDENTIAL."""

    page: Path
    expectations: int
    warnings: int


def validate(home: Home, release: Release) -> None:
    """Check the records against the domain; the outcome's details stay on a page under confidential/."""
    check(home, release)


def check(home: Home, release: Release) -> Verdict:
    """The same for the person who asks before anything is paid. What it returns is for that person alone."""
    return validate_records(release, private_folder(home.confidential / release.name))


def validate_records(release: Release, folder: Path) -> Verdict:
    """Writes the page into a confidential folder. Says that the data fail and where the page is, nothing else."""
    if release.domain.tables is not None:
        profile, outcomes = _linked(release, folder)
    else:
        [(asked, domain)] = release.expectations
        profile, supplied = _looked_at(open_source(release.source, domain), domain, asked, folder)
        outcomes = [*judge(release.domain, profile), *supplied]
    page = _write(folder, _render(release, outcomes, remarks(profile)))
    if any(outcome.refuses for outcome in outcomes):
        raise DataInvalid(f"data fail validation; see {page}")
    return Verdict(page, len(outcomes), sum(outcome.warns for outcome in outcomes) + len(remarks(profile)))


def write_suite(release: Release, path: Path) -> dict[str, Any]:
    """The domain's expectations as a public file for suppliers; never over what is there. Reads no record."""
    if os.path.lexists(path):
        raise SpecError(f"{path} exists, and is never overwritten; give another name.")
    if release.domain.tables is not None:
        raise SpecError(
            f'release "{release.name}": a suite is written for a dataset of one table, and this one has linked tables.'
        )
    suite = supplier_suite(release.domain, is_csv=str(release.source).lower().endswith(".csv"))
    with disk_faults(path), open(path, "x", encoding="utf-8") as file:
        json.dump(suite, file, ensure_ascii=False, indent=2)
    return suite


def judge(domain: Domain, profile: Profile) -> list[Outcome]:
    """Every expectation of the domain's suite, in its order. What could not be checked is not met."""
    suite, frame, outcomes = build_suite(domain), profile.frame(), []
    metas = [{**expectation.meta, "severity": str(expectation.severity.value)} for expectation in suite.expectations]
    suite.expectations = [expectation for expectation in suite.expectations if expectation.column in frame.columns]
    states = _states(suite, frame)
    for meta in metas:
        state = states.get(meta["place"], "not checked")
        finding = profile.findings.get((meta["column"], meta["problem"])) if state == "not met" else None
        outcomes.append(Outcome(meta["column"], meta["words"], state, finding, meta["severity"]))
    return outcomes


def judge_supplied(
    supplied: tuple[Supplied, ...], suite: Any, frame: pd.DataFrame | None, why: Finding | None = None
) -> list[Outcome]:
    """A supplier's own expectations, in their order, on a frame of the records; where there is none, this is why."""
    states = _states(suite, frame) if frame is not None else {}
    found = None if frame is not None else why
    return [
        Outcome(", ".join(each.columns), f"supplier's: {each.words}", states.get(place, "not checked"), found, each.severity)
        for place, each in enumerate(supplied)
    ]


def _states(suite: Any, frame: Any) -> dict[int, str]:
    return {r.expectation_config.meta["place"]: MET if r.success else "not met" for r in _run(suite, frame)}


def remarks(profile: Profile) -> list[str]:
    """What the agency should know and decides nothing: whether there is a record at all may hang on a single person."""
    return [EMPTY] if profile.values.get(ROWS) == [0] else []


def _looked_at(source: Source, domain: Domain, asked: Path | None, folder: Path) -> tuple[Profile, list[Outcome]]:
    """Records are read only when the columns are the domain's, each of a type that the domain can be read from."""
    supplied = load_supplied(asked, domain) if asked else ()
    suite = suite_of(supplied, asked) if asked else None
    profile, unchecked = structure(source, domain), judge_supplied(supplied, suite, None)
    if any(outcome.state == "not met" for outcome in judge(domain, profile)):
        return profile, unchecked
    try:
        with connect(source, folder, memory_for(domain)) as connection:
            profile |= contents(connection, source, domain)
            frame = frame_for(connection, source, domain, supplied, profile.values[ROWS][0]) if supplied else None
            return profile, judge_supplied(supplied, suite, frame, TOO_MANY)
    except ReadingFailed as failure:
        return profile | Profile({BROKEN: [1]}, {("", "broken"): Finding(None, (failure.confidential,))}), unchecked


def _linked(release: Release, folder: Path) -> tuple[Profile, list[Outcome]]:
    """Each of two linked tables as any other, then what holds between them; the profile is that of households."""
    domain, profiles, outcomes = release.domain, list[Profile](), list[Outcome]()
    for kind, path, (asked, own) in zip(tables.linked(domain), release.sources, release.expectations, strict=True):
        profile, supplied = _looked_at(open_source(path, own), own, asked, folder)
        profiles.append(profile)
        outcomes += [replace(each, column=f"{kind}: {each.column or WHOLE}") for each in (*judge(own, profile), *supplied)]
    if any(outcome.refuses for outcome in outcomes):
        return profiles[0], [*outcomes, *(Outcome(each.column, each.words, "not checked", None) for each in links(domain))]
    with coded(release.sources, domain, folder) as connection:
        rows = broken(connection, domain)
        outcomes += [_between(each.column, each.words, rows[each.name]) for each in links(domain)]
        if not any(each.rows for each in rows.values()):
            each_once = domain.model_copy(update={"weight": None})  # households, and not what they stand for
            found, flat = rule_breaks(counts_of(connection, each_once), domain), domain.counted
            for number, (rule, breaking) in enumerate(zip(flat.rules, found, strict=False), 1):
                words = f"within a household: {rule.words}"
                outcomes.append(_between(of_rule(flat, number), words, Finding(breaking)))
    return profiles[0], outcomes


def _between(column: str, words: str, found: Finding) -> Outcome:
    return Outcome(column, words, "not met", found) if found.rows else Outcome(column, words, MET, None)


def _run(suite: Any, frame: Any) -> list[Any]:
    """Great Expectations' verdicts alone: every other result format copies values into the result."""
    gx = silent_gx()
    from great_expectations.data_context.types import base

    config = base.DataContextConfig(
        store_backend_defaults=base.InMemoryStoreBackendDefaults(init_temp_docs_sites=False),
        progress_bars=base.ProgressBarsConfig(globally=False, metric_calculations=False),
        analytics_enabled=False,
    )
    context = gx.get_context(project_config=config, mode="ephemeral")
    asset = context.data_sources.add_pandas("records").add_dataframe_asset("small tables")
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": frame})
    results: list[Any] = batch.validate(suite, result_format="BOOLEAN_ONLY").results
    return results


def _render(release: Release, outcomes: list[Outcome], remarks: list[str]) -> str:
    return template(PAGE).render(release=release, outcomes=outcomes, remarks=remarks)


def _write(folder: Path, page: str) -> Path:
    """Replaces the page of an earlier run; for its owner alone (0600) from its first moment on."""
    path = folder / PAGE
    with disk_faults(path), NamedTemporaryFile("w", encoding="utf-8", dir=folder, prefix=".writing-", delete=False) as file:
        file.write(page)
        file.flush()
        os.replace(file.name, path)
    return path
