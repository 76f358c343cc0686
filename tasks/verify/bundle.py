"""Verify a published bundle offline: nothing is needed but its folder and, to know who signed it, the publisher's key.

A bundle may come from anybody: names are taken from an allow-list and never from the bundle, links are not followed,
tables are opened only if their hash holds, and whatever goes wrong is a problem in the list, not an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.methods.checked import Checked, Findings
from tasks.publishing import bundle
from tasks.verify import accounts
from tasks.verify.analyses import check_analyses
from tasks.verify.beside import look_beside
from tasks.verify.files import content_of, regular_files, sound_files
from tasks.verify.signature import NOT_ESTABLISHED, given_key, is_signed
from tasks.verify.tables import check_set, check_tables

T = TypeVar("T")


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
    pem, found = given_key(key), Findings()
    notes: list[Problem] = []
    files = found.attempt(".", regular_files, Path(folder), found) or {}
    pem, told = found.attempt(bundle.PUBLIC_KEY, look_beside, files, Path(folder), pem, found) or (pem, [])
    notes += [Problem(bundle.MANIFEST, text, note=True) for text in told]
    raw = found.attempt(bundle.MANIFEST, content_of, files, bundle.MANIFEST)
    manifest = found.attempt(bundle.MANIFEST, bundle.read_manifest, raw) if raw is not None else None
    if raw is not None and found.attempt(bundle.SIGNATURE, is_signed, files, raw, pem, found) and pem is None:
        notes.append(Problem(bundle.SIGNATURE, NOT_ESTABLISHED, note=True))
    if manifest is not None:
        sound = found.attempt(".", sound_files, files, manifest, found) or {}
        _check_content(sound, manifest, found)
    return [*(Problem(file, sentence) for file, sentence in found.found), *notes]


def _check_content(files: Mapping[str, Path], manifest: bundle.AnyManifest, found: Findings) -> None:
    """What the signed files say, as far as they are there."""
    form = bundle.form_of(manifest)
    plan = _read(files, bundle.PLAN, lambda content: bundle.read_plan(content, form), found)
    domain = _read(files, bundle.DOMAIN, lambda content: bundle.read_domain(content, form), found)
    if plan is None:
        return
    found.collect(bundle.MANIFEST, accounts.manifest_problems, manifest, plan)
    found.collect(bundle.MANIFEST, accounts.ledger_problems, manifest.ledger, manifest, plan)
    checked = None
    if domain is not None:
        found.collect(bundle.DOMAIN, accounts.domain_problems, plan, domain)
        if plan.sets == manifest.composition.sets:
            checked = _check_tables(files, domain, plan, found)
            found.attempt(bundle.PLAN, check_analyses, files, manifest, plan, domain, found)
    found.collect(bundle.PLAN, accounts.plan_problems, plan, checked.ends if checked is not None else None)


def _check_tables(files: Mapping[str, Path], domain: Domain, plan: Plan, found: Findings) -> Checked | None:
    """The method's tables, and every set that was made from them."""
    checked = found.attempt(bundle.PLAN, check_tables, files, domain, plan, found)
    if checked is not None:
        for number in range(1, plan.sets + 1):
            found.attempt(f"synthetic-{number}.parquet", check_set, files, number, domain, checked.cells, found)
    return checked


def _read(files: Mapping[str, Path], name: str, read: Callable[[bytes], T], found: Findings) -> T | None:
    return found.attempt(name, lambda: read(content_of(files, name))) if name in files else None
