"""Validate: the domain's expectations, run on small tables about the records, before anything is paid."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from schemas.errors import DataInvalid
from schemas.expectations import BROKEN, ROWS, build_suite, silent_gx
from schemas.spec.domain import Domain
from schemas.spec.release import Release
from tasks.publishing.templates import template
from tasks.reading.profile import Finding, Profile, contents, structure
from tasks.reading.sources import ReadingFailed, Source, connect, open_source
from tasks.stores.files import disk_faults, private_folder
from tasks.stores.home import Home

PAGE = "validation.html"
EMPTY = "There is no record. An empty table is released like any other, as noise on zeros; is this the right source?"


@dataclass(frozen=True, repr=False)
class Outcome:
    """One expectation in words, and what came of it. CONFIDENTIAL."""

    column: str
    words: str
    state: str  # met, not met, not checked
    finding: Finding | None


def validate(home: Home, release: Release) -> None:
    """Check the records against the domain; the outcome's details stay on a page under confidential/."""
    validate_records(release, private_folder(home.confidential / release.name))


def validate_records(release: Release, folder: Path) -> None:
    """Writes the page into a confidential folder. Says that the data fail and where the page is, nothing else."""
    source = open_source(release.source, release.domain)
    profile = _profile_of(source, release.domain, folder)
    outcomes = judge(release.domain, profile)
    page = _write(folder, _render(release, outcomes, remarks(profile)))
    if any(outcome.state != "met" for outcome in outcomes):
        raise DataInvalid(f"data fail validation; see {page}")


def judge(domain: Domain, profile: Profile) -> list[Outcome]:
    """Every expectation of the domain's suite, in its order. What could not be checked is not met."""
    suite, frame, outcomes = build_suite(domain), profile.frame(), []
    metas = [expectation.meta for expectation in suite.expectations]
    suite.expectations = [expectation for expectation in suite.expectations if expectation.column in frame.columns]
    states = {r.expectation_config.meta["place"]: "met" if r.success else "not met" for r in _run(suite, frame)}
    for meta in metas:
        state = states.get(meta["place"], "not checked")
        finding = profile.findings.get((meta["column"], meta["problem"])) if state == "not met" else None
        outcomes.append(Outcome(meta["column"], meta["words"], state, finding))
    return outcomes


def remarks(profile: Profile) -> list[str]:
    """What the agency should know and decides nothing: whether there is a record at all may hang on a single person."""
    return [EMPTY] if profile.values.get(ROWS) == [0] else []


def _profile_of(source: Source, domain: Domain, folder: Path) -> Profile:
    """Records are read only when the columns are the domain's, each of a type that the domain can be read from."""
    profile = structure(source, domain)
    if any(outcome.state == "not met" for outcome in judge(domain, profile)):
        return profile
    try:
        with connect(source, folder) as connection:
            return profile | contents(connection, source, domain)
    except ReadingFailed as failure:
        return profile | Profile({BROKEN: [1]}, {("", "broken"): Finding(None, (failure.confidential,))})


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
