"""Publish: public/NAME/ from an allow-list of public artifacts. Nothing here opens confidential/."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from schemas.errors import EvidenceBroken, SpecError
from schemas.manifest import ChargeEntry, FileFacts, LedgerProof, Manifest, Seeds, format_of, guarantee_of
from schemas.manifest_1 import ChargeEntry1, Manifest1
from schemas.plan import Plan
from schemas.results import AnalysisResult
from schemas.spec.release import Release
from steps_engine.accounting.composition import composition_of
from tasks.publishing import bundle
from tasks.publishing.analyses import analyses_of
from tasks.publishing.code import code_facts
from tasks.publishing.formats import FORMATS, SEALED
from tasks.publishing.page import view_of
from tasks.publishing.sbom import bill_of_materials
from tasks.publishing.sealed import public_tables
from tasks.publishing.statement import STATEMENT, envelope_of, statement_of
from tasks.publishing.telling import told
from tasks.stores.acts import consented
from tasks.stores.artifacts import Reference
from tasks.stores.entries import Entry, KnownHead
from tasks.stores.files import alone, disk_faults, sync_folder
from tasks.stores.home import Home
from tasks.stores.identity import must_be_ours
from tasks.stores.keys import signing_key
from tasks.stores.ledger import Ledger, open_ledger
from tasks.stores.public_chain import public_chain
from tasks.stores.rotation import history_of
from tasks.stores.timestamps import stamped_heads
from tasks.verify.bundle import holds, verify_bundle

PATIENCE = 60.0  # seconds to wait for another publication on this home


@dataclass(frozen=True)
class Bundle:
    """A published release. `manifest_hash` is what the ledger records."""

    folder: Path
    manifest: bundle.AnyManifest
    manifest_hash: str


def publish(
    home: Home,
    release: Release,
    plan: Plan,
    references: Iterable[Reference],
    proof: LedgerProof,
    seeds: Seeds | None = None,
) -> Bundle:
    """The whole folder or none: built beside its place, verified as an outsider would, consented to by the ledger, renamed.

    The ledger's entry comes first: it refuses what was abandoned or rejected, and from then on refuses both. Killed between the
    entry and the rename, the folder that it names still lies beside its place, and the next run renames it.
    `seeds`: the rule by which rows follow from what was drawn; None where an earlier version drew them as it liked.
    """
    final, references, ledger = home.public / release.name, tuple(references), open_ledger(home)
    must_be_ours(home, ledger)
    tables = public_tables(home, release, plan, references)
    with alone(home.folder / "publish.lock", PATIENCE), disk_faults(home.public):
        if final.exists():
            _must_verify(home, final)
        else:
            known = consented(ledger, release.name)
            if known:
                ready = _ready(home, final, known)
            else:
                ready = _build(home, final, lambda room: contents(home, release, plan, tables, proof, seeds, room))
            _must_consent(ledger, ready, final)
            _place(ready, final)
        for left in _beside(final):  # of a publisher that was killed: we hold the lock
            shutil.rmtree(left)
        published = _published(final, plan, references, proof)
        ledger.publish(release.name, published.manifest_hash)
        return published


def preview(
    home: Home,
    release: Release,
    plan: Plan,
    references: Iterable[Reference],
    proof: LedgerProof,
    seeds: Seeds | None = None,
) -> Path:
    """What would be published, unsigned and outside public/: all that an approver may see."""
    folder, tables = home.staging / f"{release.name}.preview", public_tables(home, release, plan, references)
    with disk_faults(folder):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        with tempfile.TemporaryDirectory(prefix="records-", dir=folder) as room:
            files = contents(home, release, plan, tables, proof, seeds, Path(room))
        for name in (bundle.PAGE, bundle.PLAN, bundle.DOMAIN, bundle.MANIFEST):
            bundle.write_durably(folder / name, files[name])
    return folder


def contents(
    home: Home,
    release: Release,
    plan: Plan,
    tables: Mapping[str, Path],
    proof: LedgerProof,
    seeds: Seeds | None,
    room: Path,
) -> dict[str, bundle.Content]:
    """Every file of the bundle, the manifest and its signature last. Records in other formats are written into `room`."""
    key = signing_key(home)
    files: dict[str, bundle.Content] = {f"{stage}.parquet": path for stage, path in tables.items()}
    for form in map(FORMATS.named, release.spec.formats):
        for stage in bundle.record_stages(plan.sets, plan.at_most is not None) if form.name != SEALED else ():
            with (room / f"{stage}{form.suffix}").open("xb") as file:
                form.write_into(file, tables[stage])
            files[f"{stage}{form.suffix}"] = Path(file.name)
    files[bundle.DOMAIN] = said = bundle.domain_bytes(release.domain)
    files[bundle.PLAN] = bundle.plan_bytes(plan)
    files[bundle.PUBLIC_KEY] = bundle.public_pem(key)
    analyses = analyses_of(plan, release.domain, tables)
    view = view_of(plan, release.domain, tables)
    files[bundle.SBOM] = bill_of_materials()
    domain = bundle.read_domain(said)  # as whoever makes this again will read it
    facts = {name: bundle.facts_of(content) for name, content in files.items()}
    telling = told(_manifest(release, plan, facts, proof, analyses, seeds), plan, domain, view)
    facts |= {name: bundle.facts_of(content) for name, content in telling.items()}
    files |= telling
    manifest = _manifest(release, plan, facts, proof, analyses, seeds)
    files[bundle.MANIFEST] = signed = bundle.manifest_bytes(manifest)
    files[bundle.SIGNATURE] = bundle.signature_of(key, signed)
    files[STATEMENT] = envelope_of(key, statement_of(manifest, signed))
    history = history_of(open_ledger(home))
    return files | ({bundle.KEY_HISTORY: history.document} if history else {})


def _manifest(
    release: Release,
    plan: Plan,
    facts: Mapping[str, FileFacts],
    proof: LedgerProof,
    analyses: tuple[AnalysisResult, ...],
    seeds: Seeds | None,
) -> Manifest:
    said = release.spec
    guarantee, words = guarantee_of(plan), (said.title, said.description, said.privacy.why)
    return Manifest(
        format=format_of(guarantee, plan.draws, proof, analyses, seeds, words),
        release=plan.release,
        title=said.title,
        description=said.description,
        why=said.privacy.why,
        population=plan.population,
        made_at=_today(),
        guarantee=guarantee,
        composition=composition_of(plan),
        draws=plan.draws,
        analyses=analyses,
        seeds=seeds,
        plan_hash=plan.hash,
        spec_hash=plan.spec_hash,
        ledger=proof,
        code=code_facts(),
        files=dict(facts),
    )


def _today() -> str:
    """The day, in UTC: a finer time would tell how long the run took, which depends on the records."""
    return datetime.now(UTC).date().isoformat()


def _beside(final: Path) -> list[Path]:
    """Bundles of this name that were being built."""
    return sorted(final.parent.glob(f".{final.name}.tmp-*"))


def _build(home: Home, final: Path, made: Callable[[Path], Mapping[str, bundle.Content]]) -> Path:
    for left in _beside(final):
        shutil.rmtree(left)
    building = Path(tempfile.mkdtemp(prefix=f".{final.name}.tmp-", dir=home.public))
    try:
        with tempfile.TemporaryDirectory(prefix="records-", dir=building) as room:
            for name, content in made(Path(room)).items():
                bundle.write_durably(building / name, content)
        _must_verify(home, building)
        sync_folder(building)
        sync_folder(home.public)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise
    return building


def _ready(home: Home, final: Path, manifest_hash: str) -> Path:
    """The bundle to which the ledger has consented, whose publisher was killed before it was in its place."""
    for folder in _beside(final):
        manifest = folder / bundle.MANIFEST
        if manifest.is_file() and hashlib.sha256(manifest.read_bytes()).hexdigest() == manifest_hash:
            _must_verify(home, folder)
            return folder
    raise EvidenceBroken(
        f'release "{final.name}" was published, and its bundle {final} is gone. It is never made a second time: '
        "restore the folder from its backup, then run again."
    )


def _must_consent(ledger: Ledger, ready: Path, final: Path) -> None:
    """One transaction: refused, nothing was written and the bundle goes; a fault leaves it, since the entry may stand."""
    try:
        ledger.publish(final.name, hashlib.sha256((ready / bundle.MANIFEST).read_bytes()).hexdigest())
    except SpecError:
        shutil.rmtree(ready, ignore_errors=True)
        raise


def _place(ready: Path, final: Path) -> None:
    ready.chmod(0o755)
    os.rename(ready, final)
    sync_folder(final.parent)


def _published(final: Path, plan: Plan, references: Sequence[Reference], proof: LedgerProof) -> Bundle:
    """The bundle in its place, if it is this release: same plan, same charge, same artifacts."""
    content = (final / bundle.MANIFEST).read_bytes()
    manifest = bundle.read_manifest(content)
    artifacts = {f"{reference.stage}.parquet": reference.digest for reference in references}
    same_files = all(manifest.files[name].sha256 == digest for name, digest in artifacts.items())
    same_charge = _without_place(manifest.ledger.charge) == _without_place(proof.charge)
    if not same_files or not same_charge or manifest.plan_hash != plan.hash:
        raise EvidenceBroken(f"{final} holds another release under this name. It stays as it is; choose another name.")
    return Bundle(final, manifest, hashlib.sha256(content).hexdigest())


def _without_place(charge: ChargeEntry | ChargeEntry1) -> dict[str, Any]:
    """A charge's own words, the same in every format; its place in the chain is checked by what the ledger holds."""
    own = charge.model_dump(exclude={"seq", "at", "date", "hidden"})
    return own | {"date": charge.at[:10] if isinstance(charge, ChargeEntry1) else charge.date}


def _must_verify(home: Home, folder: Path) -> None:
    signing_key(home)  # its public half lies beside it from the first use on
    problems = verify_bundle(folder, home.keys / "signing-key.pub")
    if not holds(problems):
        shown = "; ".join(str(problem) for problem in problems[:3])
        raise EvidenceBroken(f"the bundle in {folder} does not verify: {shown}. Nothing was published or changed.")


def charge_proof(entries: Sequence[Entry], release: str) -> LedgerProof:
    """The release's last charge and its way to the public head of `entries`, which must be the whole ledger in order."""
    chain = public_chain(entries)
    mine = {"kind": "charge", "release": release}
    place = max(i for i, entry in enumerate(chain) if mine.items() <= entry.content.items())
    head_seq, head = chain[-1].head
    return LedgerProof(
        charge=ChargeEntry.model_validate(chain[place].content),
        previous=chain[place].previous,
        later=tuple(entry.content_hash for entry in chain[place + 1 :]),
        head_seq=head_seq,
        head=head,
    )


def published_heads(home: Home) -> list[KnownHead]:
    """The ledger heads that published manifests and kept timestamps know: a ledger that lacks one is an old copy."""
    heads = stamped_heads(home)
    for path in sorted((home.path / "public").glob(f"[a-z0-9]*/{bundle.MANIFEST}")):
        try:
            manifest = bundle.read_manifest(path.read_bytes())
        except (OSError, ValueError):
            raise EvidenceBroken(f"{path} cannot be read. Restore the bundle from its backup.") from None
        source, proof = f'the bundle "{path.parent.name}"', manifest.ledger
        is_old = isinstance(manifest, Manifest1)
        heads.append(KnownHead(source, proof.head_seq, proof.head, "own" if is_old else "public"))
    return heads
