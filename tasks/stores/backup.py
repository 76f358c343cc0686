"""A backup: one file with all that a home cannot make again, consistent while runs go on. Keys are under a passphrase.

Ledger and bundles are taken while no publication goes on, so that no bundle knows more than the ledger; sealed artifacts after
the ledger, so that whatever it says was sealed is there, and none of a release that it does not know as charged. A ledger on
PostgreSQL is in it too, as the file that one snapshot of it makes. confidential/ is not: exact counts can be counted again.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import sqlite3
import tarfile
import tempfile
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from schemas.errors import EvidenceBroken, SpecError
from schemas.identity import canonical

from .copying import as_file
from .files import alone, disk_faults, keep, temporary
from .home import Home
from .keys import locked, unlocked
from .ledger import open_ledger
from .timestamps import FOLDER as TIMESTAMPS

FORMAT = "steps-backup/1"
HEADER, KEYS, LEDGER, ANCHOR = "backup.json", "keys.locked", "ledger.db", "anchor.log"
PATIENCE = 60.0  # seconds to wait for a publication


def back_up(home: Home, out: Path, passphrase: str) -> dict[str, Any]:
    """Writes the backup to a new file (0600), whole or not at all."""
    must_be_writable(home, out)
    with disk_faults(out), temporary(out.absolute().parent) as file:
        header = _header(home)
        hashes: dict[str, str] = {}
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
            _add(archive, HEADER, io.BytesIO(header), hashes)
            with alone(home.folder / "publish.lock", PATIENCE):
                entries, charged = _add_ledger(archive, home, hashes)
                _add_tree(archive, home.public, "public", hashes)
            for folder in sorted(home.staging.iterdir()):
                if folder.name.partition(".")[0] in charged:  # with what an approver sees of it, NAME.preview
                    _add_tree(archive, folder, f"staging/{folder.name}", hashes)
            _add_tree(archive, home.path / TIMESTAMPS, TIMESTAMPS, hashes)
            secret = {"keys": _keys(home), "files": hashes}
            _add(archive, KEYS, io.BytesIO(locked(canonical(secret).encode(), passphrase, header)), {})
        if not keep(file, out):
            raise SpecError(f"{out} exists already, and a backup overwrites nothing. Choose another name.")
    return {"file": str(out), "files": len(hashes), "entries": entries}


def must_be_writable(home: Home, out: Path) -> None:
    """Refuses what can be known before anybody is asked for a passphrase."""
    if out.exists():
        raise SpecError(f"{out} exists already, and a backup overwrites nothing. Choose another name.")
    if not out.absolute().parent.is_dir():
        raise SpecError(f"the folder of {out} is missing. Nothing was written. Make it first, or choose another one.")
    if not (home.path / "keys").is_dir():
        raise SpecError(f"{home.path} has no keys yet, so there is nothing to back up.")


def _header(home: Home) -> bytes:
    kind = "postgresql" if home.ledger_url else "sqlite"
    return canonical({"format": FORMAT, "ledger": kind, "made_at": datetime.now(UTC).isoformat(timespec="seconds")}).encode()


def _add(archive: tarfile.TarFile, name: str, content: IO[bytes], hashes: dict[str, str]) -> None:
    """One file, read through one handle: what is hashed is what is written, whatever takes its name meanwhile."""
    hashes[name] = hashlib.file_digest(content, "sha256").hexdigest()  # type: ignore[arg-type]
    info = tarfile.TarInfo(name)
    info.size, info.mode = content.seek(0, io.SEEK_END), 0o644 if name.startswith("public/") else 0o600
    content.seek(0)
    archive.addfile(info, content)


def _add_ledger(archive: tarfile.TarFile, home: Home, hashes: dict[str, str]) -> tuple[int, set[str]]:
    """How many entries it has, and what it charged. The anchor first: an entry is committed before it is anchored, so that the
    ledger holds whatever the anchor knows."""
    if home.anchor_file.exists():
        with home.anchor_file.open("rb") as anchor:
            _add(archive, ANCHOR, io.BytesIO(anchor.read()), hashes)
    ledger = open_ledger(home)
    with tempfile.TemporaryDirectory(dir=home.keys) as folder:
        copy = Path(folder) / LEDGER
        file = as_file(ledger.database, Path(folder) / "taken") if home.ledger_url else home.ledger_file
        with closing(sqlite3.connect(file)) as live, closing(sqlite3.connect(copy)) as snapshot:
            live.backup(snapshot)
            snapshot.execute("PRAGMA journal_mode = DELETE")  # one file
            (entries,) = snapshot.execute("SELECT count(*) FROM entries").fetchone()
            charged = {name for (name,) in snapshot.execute("SELECT release FROM entries WHERE kind = 'charge'")}
        with copy.open("rb") as content:
            _add(archive, LEDGER, content, hashes)
    return int(entries), charged


def _add_tree(archive: tarfile.TarFile, folder: Path, name: str, hashes: dict[str, str]) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and not path.name.startswith(".writing-"):
            with path.open("rb") as content:
                _add(archive, f"{name}/{path.relative_to(folder)}", content, hashes)


def _keys(home: Home) -> dict[str, str]:
    files = (path for path in sorted(home.keys.iterdir()) if path.is_file() and not path.name.startswith("."))
    return {path.name: base64.b64encode(path.read_bytes()).decode() for path in files}


def unpack(file: Path, folder: Path, passphrase: str) -> dict[str, Any]:
    """Unpacks a backup into an empty folder, which then is laid out as a home; every byte is what was backed up."""
    try:
        with tarfile.open(file) as archive:
            members = archive.getmembers()
            if any(not member.isfile() or not _belongs(member.name) for member in members):
                raise EvidenceBroken(f"{file} holds files that no backup has. Nothing was restored.")
            archive.extractall(folder, members=members, filter="data")
    except (tarfile.TarError, EOFError) as error:
        raise EvidenceBroken(f"{file} cannot be read as a backup ({type(error).__name__}). Nothing was restored.") from None
    try:
        header, sealed = (folder / HEADER).read_bytes(), (folder / KEYS).read_bytes()
        said: dict[str, Any] = json.loads(header)
    except (OSError, ValueError):
        raise EvidenceBroken(f"{file} is no backup, or not a whole one. Nothing was restored.") from None
    secret = json.loads(unlocked(sealed, passphrase, header))
    _must_be_whole(file, folder, secret["files"], {member.name for member in members})
    (folder / "keys").mkdir(mode=0o700)
    for name, content in secret["keys"].items():
        (folder / "keys" / name).write_bytes(base64.b64decode(content))
        (folder / "keys" / name).chmod(0o600)
    return said | {"files": sorted(secret["files"].keys() - {HEADER})}


def _belongs(name: str) -> bool:
    first, _, rest = name.partition("/")
    if not rest:
        return first in (HEADER, KEYS, LEDGER, ANCHOR)
    return first in ("public", "staging", TIMESTAMPS) and all(part not in ("", ".", "..") for part in rest.split("/"))


def _must_be_whole(file: Path, folder: Path, hashes: dict[str, str], found: Iterable[str]) -> None:
    for name in {*hashes, *found} - {KEYS}:
        path = folder / name
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != hashes.get(name):
            raise EvidenceBroken(f"{name} in {file} is not what was backed up. Nothing was restored.")
