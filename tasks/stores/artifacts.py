"""Write-once Parquet: a stage's artifact exists whole, sealed and unchanged, or not at all.

A draw's file has one possible name per charge, so of two writers one links it and the other reads that one.
Linked but not sealed (a writer died in between): the file is whole, since it was synced before it was linked, and
nobody has read it; it is adopted by sealing it, never drawn again. Not linked: nothing left the process, and the draw
is repeated under the same charge.

Sealed but missing or different: what is published is put back from its bundle. What was computed from paid noise is made again,
under a new seal that says so unless it is the same to the byte; of what is approved or public, only the same comes back. A lost
draw is refused until it is restored, or until a person gives its charge up: a second draw under the same charge would let
somebody choose between two.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field

from schemas.errors import EvidenceBroken, InfrastructureFault
from schemas.names import NAME
from tasks.tables_on_disk import Stored, copy_into, digest_of, write_blocks

from .entries import Entry, must_be_name
from .files import disk_faults, keep, private_folder, sweep, sync_folder, temporary
from .home import Home
from .keys import keyed_hash, name_of_draw, secret_key
from .ledger import open_ledger
from .releases import BEFORE_DRAW, CLOSED, MAY_FOLLOW, attempt_of, find_seal, is_stale, must_follow, state_of, times_remade

Side = Literal["confidential", "public"]


class Reference(BaseModel):
    """What travels between tasks in place of a table. A confidential one says nothing about the content."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    release: str = Field(pattern=f"^{NAME.pattern}$")
    stage: str = Field(pattern=f"^{NAME.pattern}$")
    side: Side
    id: str = Field(pattern="^[0-9a-f]{32}$")
    digest: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")


class Store:
    """The artifacts of one home. Confidential ones are sealed by a keyed hash, under names that say nothing."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.ledger = open_ledger(home)

    @cached_property
    def _key(self) -> bytes:
        return secret_key(self.home, "artifacts")

    def write(
        self,
        release: str,
        stage: str,
        table: pa.Table | Iterable[pa.Table],
        schema: pa.Schema,
        side: Side,
        drawn: bool = True,
    ) -> Reference:
        """Writes and seals a stage's table, whole or block by block, or returns the one that is already there. What follows a
        draw needs a charge first; `drawn`: it holds a draw, which is not made twice."""
        if stage not in BEFORE_DRAW:
            must_follow("seal", release, self.ledger.entries(release=release))
        folder = private_folder(private_folder(self._folder(side, release)) / stage)
        with temporary(folder) as file:
            write_blocks(file, table, schema, _name(release, stage))
            file.flush()
            made = Path(file.name)
            seal, fault = self._sealed(release, stage)
            if seal and fault == "lost" and self._digest(side, made) == seal.details["digest"]:
                return self._put_back(seal, made)
            history = self.ledger.entries(release=release)
            remade = 0 if seal is None else _may_be_remade(seal, history, drawn) if fault else times_remade(seal)
            identity = self._identity(release, stage, made, remade)
            keep(file, self._path(side, release, stage, identity))
        return self._seal(release, stage, side, identity, remade)

    def read(self, reference: Reference) -> pa.Table:
        """The table, if it is sealed and byte for byte what was sealed."""
        return self.open(reference).read()

    def open(self, reference: Reference) -> Stored:
        """The same, for whoever needs not all of it at a time."""
        history = self.ledger.entries(release=reference.release)
        seals = history if reference.stage in BEFORE_DRAW else [find_seal(history, reference.stage)]
        seal = next((e for e in seals if e and e.kind == "seal" and _reference(e) == reference), None)
        name = _name(reference.release, reference.stage)
        if seal is None:
            raise EvidenceBroken(f"{name} is not sealed under this reference, so it is not read. Run it again.")
        path = self._intact(seal)
        if path is None:
            raise EvidenceBroken(f"{name} was sealed and is now missing or different. Run it again.")
        return Stored(path)

    def find(self, release: str, stage: str, drawn: bool = True) -> Reference | None:
        """The stage's sealed artifact; None when it has to be made. `drawn`: it holds a draw, which is not made twice."""
        history = self.ledger.entries(release=release)
        seal = find_seal(history, stage)
        if seal is None:
            return self._adopt(release, stage) if state_of(history) in MAY_FOLLOW["seal"] else None
        if not is_stale(seal, history) and (self._intact(seal) is not None or self._restored(seal)):
            return _reference(seal)
        if stage not in BEFORE_DRAW and (drawn or state_of(history) not in MAY_FOLLOW["seal"]):
            _may_be_remade(seal, history, drawn)
        return None  # made again, what is approved or public comes back only as it was: `write` compares

    def forget_confidential(self, release: str, stages: Iterable[str]) -> None:
        """Deletes these stages' confidential files, sealed or not; safe to repeat."""
        for stage in stages:
            _name(release, stage)
            folder = self._folder("confidential", release) / stage
            sweep(folder)
            with disk_faults(folder):
                for path in folder.glob("*.parquet"):
                    path.unlink(missing_ok=True)
                if folder.is_dir():
                    sync_folder(folder)

    def forget(self, reference: Reference) -> None:
        """Deletes one confidential file; safe to repeat. Files of other data under the same name stay."""
        path = self._path("confidential", reference.release, reference.stage, reference.id)
        with disk_faults(path.parent):
            path.unlink(missing_ok=True)
            sync_folder(path.parent)

    def clean(self, release: str) -> None:
        """Removes the temporary files that killed processes of this release left; those of live ones stay."""
        must_be_name("release", release)
        for side in get_args(Side):
            sweep(self._folder(side, release))
        sweep(self.home.keys)

    def _folder(self, side: Side, release: str) -> Path:
        return (self.home.confidential if side == "confidential" else self.home.staging) / release

    def _path(self, side: Side, release: str, stage: str, identity: str) -> Path:
        return self._folder(side, release) / stage / f"{identity}.parquet"

    def _identity(self, release: str, stage: str, made: Path | None = None, remade: int = 0) -> str:
        # A draw is named by its charge: there is one. What comes before it by its content: other data, other file.
        if stage in BEFORE_DRAW and made is not None:
            return keyed_hash(self._key, f"name:{release}/{stage}/{digest_of(made, self._key)}".encode())[:32]
        return name_of_draw(self._key, release, attempt_of(self.ledger.entries(release=release)), stage, remade)

    def _sealed(self, release: str, stage: str) -> tuple[Entry | None, Literal["", "lost", "stale"]]:
        """What was sealed after a draw, and whether it is lost, or belongs to something that was."""
        history = self.ledger.entries(release=release)
        seal = None if stage in BEFORE_DRAW else find_seal(history, stage)
        if seal is None:
            return None, ""
        return seal, "stale" if is_stale(seal, history) else "" if self._intact(seal) is not None else "lost"

    def _restored(self, seal: Entry) -> bool:
        """Whether a published artifact could be put back from its bundle: the same bytes, or nothing."""
        path = self.home.path / "public" / (seal.release or "") / f"{seal.details['stage']}.parquet"
        if seal.details["side"] != "public" or not path.is_file():
            return False
        with disk_faults(path):
            return self._digest("public", path) == seal.details["digest"] and bool(self._put_back(seal, path))

    def _put_back(self, seal: Entry, made: Path) -> Reference:
        """Gives a sealed artifact its bytes again, in place of whatever stands there."""
        path = self._path(seal.details["side"], seal.release or "", seal.details["stage"], seal.details["id"])
        folder = private_folder(private_folder(path.parent.parent) / path.parent.name)
        with temporary(folder) as file:
            copy_into(made, file)
            path.unlink(missing_ok=True)  # what was not sealed
            keep(file, path)
        return _reference(seal)

    def _seal(self, release: str, stage: str, side: Side, identity: str, remade: int = 0) -> Reference:
        """Seals the file that has the final name, whoever wrote it."""
        path = self._path(side, release, stage, identity)
        with disk_faults(path):
            try:
                pq.read_metadata(path)
            except pa.ArrowException:
                raise EvidenceBroken(f"{path} is not Parquet and was never sealed. Delete it and run again.") from None
            size = path.stat().st_size if side == "public" else None  # a confidential file's tells how many cells it holds
            digest = self._digest(side, path)
        return _reference(self.ledger.seal(release, stage, side, identity, digest, size, remade))

    def _adopt(self, release: str, stage: str) -> Reference | None:
        if stage in BEFORE_DRAW:
            return None
        identity = self._identity(release, stage)
        sides = [side for side in get_args(Side) if self._path(side, release, stage, identity).exists()]
        return self._seal(release, stage, sides[0], identity) if sides else None

    def _digest(self, side: Side, path: Path) -> str:
        return digest_of(path, self._key if side == "confidential" else None)

    def _intact(self, seal: Entry) -> Path | None:
        """The file if its bytes are the sealed ones."""
        said = seal.details
        path = self._path(said["side"], seal.release or "", said["stage"], said["id"])
        try:
            found = self._digest(said["side"], path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InfrastructureFault(f"cannot read {path}: {error.strerror}. Run again when it can be read.") from None
        return path if hmac.compare_digest(found, said["digest"]) else None


def drawn_in(home: Home) -> list[str]:
    """The releases of which something that follows a charge lies in staging/, sealed or not."""
    folders = (path for path in (home.path / "staging").glob("*/*") if path.name not in BEFORE_DRAW)
    return sorted({path.parent.name for path in folders if NAME.fullmatch(path.parent.name) and any(path.glob("*.parquet"))})


def _may_be_remade(lost: Entry, history: Sequence[Entry], drawn: bool) -> int:
    """Which time it is made again. A draw never is; nor what a person has approved, or what is public."""
    state = state_of(history)
    if drawn or lost.details["side"] == "public" and state in CLOSED | {"approved"}:
        raise EvidenceBroken(_lost_for_good(_name(lost.release or "", lost.details["stage"]), lost.release or "", state))
    return times_remade(lost) + 1


def _lost_for_good(name: str, release: str, state: str) -> str:
    lost = (
        f"{name} was sealed and is now missing or different; nothing was burnt. Is its disk mounted? Restore it from its backup"
    )
    if state in CLOSED:
        return f"{lost}: the release is {state} and stays so."
    return f"{lost} and run again. If it is lost for good, give its charge up: steps burn {release} --why TEXT"


def _reference(seal: Entry) -> Reference:
    said = seal.details
    digest = said["digest"] if said["side"] == "public" else None
    return Reference(release=seal.release or "", stage=said["stage"], side=said["side"], id=said["id"], digest=digest)


def _name(release: str, stage: str) -> str:
    return f'stage "{must_be_name("stage", stage)}" of release "{must_be_name("release", release)}"'
