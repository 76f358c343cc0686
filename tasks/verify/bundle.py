"""Verify a published bundle offline: nothing is needed but its folder and, to know who signed it, the publisher's key.

A bundle may come from anybody: names are taken from an allow-list and never from the bundle, links are not followed, nothing
is opened before the signature holds, tables only if their hash holds and they unpack to no more than they may, and whatever
goes wrong is a problem in the list, not an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from schemas.manifest import SEEDS_1, SEEDS_2, seeds_for
from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.inference.noise_test import NoiseTest
from steps_engine.methods.checked import Checked, Findings, printable
from tasks.publishing import bundle
from tasks.publishing.statement import STATEMENT
from tasks.verify import accounts
from tasks.verify.analyses import check_analyses
from tasks.verify.beside import look_beside
from tasks.verify.files import content_of, regular_files, sound_files
from tasks.verify.materials import must_agree
from tasks.verify.signature import NOT_ESTABLISHED, fingerprint, given_key, is_signed, statement_problems
from tasks.verify.tables import check_set, check_tables
from tasks.verify.waves import overlap_problems

T = TypeVar("T")
BY_BINS = (
    f"an earlier rule made these rows ({SEEDS_1}): comparisons within a household hold bin by bin, not value by value as by "
    f"{SEEDS_2}"
)


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


@dataclass(frozen=True)
class Told:
    """What a bundle says it is, so that an old one in the place of a new one is seen; all of it signed."""

    release: str
    population: str
    guarantee: str
    made_at: str
    key: str  # SHA-256 of the public key that signed

    @classmethod
    def of(cls, manifest: bundle.AnyManifest, pem: bytes) -> Told:
        promised = manifest.guarantee
        rho = f"ρ={promised.rho}, δ={promised.delta}, " if getattr(promised, "rho", None) else ""
        words = (manifest.release, manifest.population, f"{rho}ε={promised.epsilon}", manifest.made_at)
        release, population, guarantee, made_at = map(printable, words)
        return cls(release, population, guarantee, made_at, fingerprint(pem))


@dataclass(frozen=True)
class Verdict:
    """Everything that does not hold, with notes; what the bundle says it is, if its signature holds."""

    problems: tuple[Problem, ...]
    told: Told | None = None
    noise: NoiseTest | None = None
    recomputed: Recomputed | None = None


@dataclass(frozen=True)
class Recomputed:
    """What was made again from the noisy counts, file by file: whether it is what was published.

    `otherwise`: files for people that another version of this program wrote, and this one would write in other words.
    """

    same: Mapping[str, bool]
    why_not: str | None = None
    otherwise: tuple[str, ...] = ()


def is_by_values(manifest: bundle.AnyManifest, domain: Domain) -> bool:
    """Whether every comparison holds value by value: by rules before, those within a household that bins leave open did not."""
    return seeds_for(domain) == SEEDS_1 or getattr(manifest, "seeds", None) == SEEDS_2


Again = Callable[[Mapping[str, Path], bundle.AnyManifest, Plan, Domain, Findings], Recomputed]


def verify_bundle(folder: Path | str, key: Path | None = None) -> list[Problem]:
    """Everything that does not hold in a bundle. With a key, it must be signed by that one."""
    return list(examine(folder, key).problems)


def examine(folder: Path | str, key: Path | None = None, again: Again | None = None) -> Verdict:
    """The whole check; with `again` (recompute.py) everything after the noise is made once more and compared.

    What is not signed is not looked at: without a signature that holds, no file is opened but the manifest, the signature and
    the key.
    """
    pem, found = given_key(key), Findings()
    notes: list[Problem] = []
    files = found.attempt(".", regular_files, Path(folder), found) or {}
    pem, beside = found.attempt(bundle.PUBLIC_KEY, look_beside, files, Path(folder), pem, found) or (pem, [])
    notes += [Problem(bundle.MANIFEST, text, note=True) for text in beside]
    if bundle.MANIFEST not in files:
        found.add(bundle.MANIFEST, "is missing: this is no published release. Give a bundle's folder, as `steps run` prints")
    raw = found.attempt(bundle.MANIFEST, content_of, files, bundle.MANIFEST) if bundle.MANIFEST in files else None
    signed = raw is not None and found.attempt(bundle.SIGNATURE, is_signed, files, raw, pem, found)
    manifest = found.attempt(bundle.MANIFEST, bundle.read_manifest, raw) if signed else None
    if manifest is None or raw is None:
        return Verdict((*_problems(found), *notes))
    sound = found.attempt(".", sound_files, files, manifest, found) or {}
    found.collect(STATEMENT, statement_problems, files, manifest, raw)
    content, more = _check_content(sound, manifest, found, again)
    notes += [Problem(bundle.MANIFEST, text, note=True) for text in more]
    notes += [Problem(bundle.SIGNATURE, NOT_ESTABLISHED, note=True)] if pem is None else []
    told = found.attempt(bundle.MANIFEST, Told.of, manifest, content_of(files, bundle.PUBLIC_KEY))
    return Verdict((*_problems(found), *notes), told, *content)


def _problems(found: Findings) -> tuple[Problem, ...]:
    return tuple(Problem(file, sentence) for file, sentence in found.found)


def _check_content(
    files: Mapping[str, Path], manifest: bundle.AnyManifest, found: Findings, again: Again | None
) -> tuple[tuple[NoiseTest | None, Recomputed | None], list[str]]:
    """What the signed files say, as far as they are there; and what is worth knowing of them."""
    form = bundle.form_of(manifest)
    plan = _read(files, bundle.PLAN, lambda content: bundle.read_plan(content, form), found)
    domain = _read(files, bundle.DOMAIN, lambda content: bundle.read_domain(content, form), found)
    if plan is None:
        return (None, None), []
    found.collect(bundle.MANIFEST, accounts.manifest_problems, manifest, plan)
    found.collect(bundle.MANIFEST, accounts.ledger_problems, manifest.ledger, manifest, plan)
    _read(files, bundle.SBOM, lambda content: must_agree(bundle.canonical_json(content), manifest.code), found)
    checked, recomputed, notes = None, None, list[str]()
    if domain is not None:
        by_values = is_by_values(manifest, domain)
        notes += [] if by_values else [BY_BINS]
        found.collect(bundle.DOMAIN, accounts.domain_problems, plan, domain)
        found.collect(bundle.DOMAIN, overlap_problems, manifest.ledger.charge, domain)
        if plan.sets == manifest.composition.sets:
            checked = _check_tables(files, domain, plan, found, by_values)
            found.attempt(bundle.PLAN, check_analyses, files, manifest, plan, domain, found)
            recomputed = again(files, manifest, plan, domain, found) if again is not None else None
    found.collect(bundle.PLAN, accounts.plan_problems, plan, checked.ends if checked is not None else None)
    return (checked.noise if checked is not None else None, recomputed), notes


def _check_tables(files: Mapping[str, Path], domain: Domain, plan: Plan, found: Findings, by_values: bool) -> Checked | None:
    """The method's tables, and every set that was made from them."""
    checked = found.attempt(bundle.PLAN, check_tables, files, domain, plan, found)
    if checked is not None:
        for number in range(1, plan.sets + 1):
            found.attempt(f"synthetic-{number}.parquet", check_set, files, number, domain, checked, found, by_values)
    return checked


def _read(files: Mapping[str, Path], name: str, read: Callable[[bytes], T], found: Findings) -> T | None:
    return found.attempt(name, lambda: read(content_of(files, name))) if name in files else None
