"""release.yaml with its dataset.yaml: read, checked by the methods that are registered, its period filled in."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import steps_engine.methods  # noqa: F401  registers the methods that a spec may name
from schemas.errors import KeyRefused, SpecError
from schemas.spec import yaml
from schemas.spec.database import DatabaseSource, LinkedSources
from schemas.spec.domain import Domain, load_domain
from schemas.spec.release import PERIOD, Release, ReleaseSpec, check_names, sources_of
from schemas.supplied import load_supplied
from steps_engine.analyses.questions import questions_of
from tasks.publishing.formats import must_be_known

A_PERIOD = r"([0-9]{4})(?:q([1-4])|-(0[1-9]|1[0-2]))?"


def load_release(path: Path | str, period: str | None = None, now: datetime.datetime | None = None) -> Release:
    """The release that a file describes. `period` (2026q4, 2026-11 or 2026) wins over `now`, the run's scheduled time."""
    path = Path(path)
    document = yaml.read(path)
    _must_not_be_a_dataset(document)
    if document.gaps:
        yaml.must_be_filled(document, *_dataset_of(path, document))
    spec = yaml.validate(ReleaseSpec, document)
    spec = _in_period(spec, period, now)
    domain = _domain_of(spec, document, path.parent)
    _check_analyses(spec, domain, document)
    try:
        check_names(spec, domain)
        must_be_known(spec.formats)
        release = Release(spec=spec, domain=domain, folder=str(path.parent))
    except KeyRefused as refusal:
        raise SpecError(f"{document.place(refusal.key)}: {refusal}") from None
    for asked, own in release.expectations:
        if asked:
            load_supplied(asked, own)
    return release


def _must_not_be_a_dataset(document: yaml.Document) -> None:
    """The two files are easily taken for each other, and then every key of one is unknown in the other."""
    found = document.data if isinstance(document.data, dict) else {}
    if found.keys() & {"attributes", "tables"} and not found.keys() & {"dataset", "source", "privacy"}:
        raise SpecError(f"{document.name} describes a dataset. Give the release.yaml, whose `dataset:` names it.")


def _domain_of(spec: ReleaseSpec, document: yaml.Document, folder: Path) -> Domain:
    """The dataset that a release names; the line that names it, where it cannot be read."""
    file = folder / spec.dataset
    try:
        return load_domain(file)
    except SpecError as error:
        if str(error).startswith("cannot read"):
            raise SpecError(f"{document.place(('dataset',))}: {error}") from None
        raise SpecError(f"{error}" if str(file) in str(error) else f"{document.name}: {error}") from None


def _dataset_of(path: Path, document: yaml.Document) -> list[yaml.Document]:
    """The dataset.yaml that a release.yaml with gaps names, so that the gaps of both are told at once."""
    dataset = document.data.get("dataset") if isinstance(document.data, dict) else None
    try:
        return [yaml.read(path.parent / dataset)] if isinstance(dataset, str) else []
    except SpecError:
        return []


def _check_analyses(spec: ReleaseSpec, domain: Domain, document: yaml.Document) -> None:
    """Everything that the analyses name is in the domain, and no analysis stands twice."""
    for place in range(len(spec.analyses)):
        try:
            questions_of(spec.analyses[: place + 1], domain)
        except SpecError as error:
            raise SpecError(
                f"{document.name}, line {document.lines['analyses', place]}: analyses.{place}: {_ended(str(error))}"
            ) from None


def _ended(text: str) -> str:
    """A sentence with an end.

    >>> _ended("there is no attribute 'grad'; did you mean 'grade'?")
    "there is no attribute 'grad'; did you mean 'grade'?"
    """
    return text if text.endswith(("?", ".")) else f"{text}."


@contextmanager
def refusals_naming(path: Path | str) -> Iterator[None]:
    """What the planner refuses of a release is told with the file that describes it."""
    try:
        yield
    except KeyRefused as error:
        raise SpecError(f"{yaml.read(path).place(error.key)}: {error}") from None
    except SpecError as error:
        raise SpecError(f"{path}: {error}") from None


def _in_period(spec: ReleaseSpec, period: str | None, now: datetime.datetime | None) -> ReleaseSpec:
    texts = {key: text for key in ("name", "title", "description") if (text := getattr(spec, key)) is not None}
    named = [text for each in sources_of(spec.source) for text in _texts(each)]
    used = {part for text in (*texts.values(), *named) for part in PERIOD.findall(text)}
    values = _period_values(period, now, used)
    if not used:
        return spec

    def fill(text: str) -> str:
        return PERIOD.sub(lambda match: values[match[1]], text)

    def filled(source: str | DatabaseSource) -> str | DatabaseSource:
        return source.filled(fill) if isinstance(source, DatabaseSource) else fill(source)

    source = spec.source.each(filled) if isinstance(spec.source, LinkedSources) else filled(spec.source)
    return spec.model_copy(update={key: fill(text) for key, text in texts.items()} | {"source": source})


def _texts(source: str | DatabaseSource) -> tuple[str, ...]:
    return tuple(source.texts.values()) if isinstance(source, DatabaseSource) else (source,)


def _period_values(period: str | None, now: datetime.datetime | None, used: set[str]) -> dict[str, str]:
    if period is None:
        at = (now or datetime.datetime.now(datetime.UTC)).astimezone(datetime.UTC)
        return {"year": f"{at.year}", "quarter": f"{(at.month + 2) // 3}", "month": f"{at.month:02d}"}
    match = re.fullmatch(A_PERIOD, period)
    if not match:
        raise SpecError(f"period {period!r} is not one: write 2026, 2026q4 or 2026-11.")
    year, quarter, month = match.groups()
    quarter = quarter or (str((int(month) + 2) // 3) if month else None)
    values = {key: value for key, value in zip(("year", "quarter", "month"), (year, quarter, month), strict=True) if value}
    if used - values.keys():
        lacking = " or ".join(sorted(used - values.keys()))
        raise SpecError(f"period {period!r} does not say the {lacking} that the release names.")
    return values
