"""The catalogue's files: bundles are copied whole before a page names them, and go after no page does. A reader who comes in
between sees the catalogue from before, or the new one; never half a file, nor a link that leads nowhere.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from schemas.errors import SpecError
from tasks.publishing import bundle
from tasks.publishing.catalogue.feeds import FORMAT, INDEX, LIST
from tasks.publishing.catalogue.shelf import Shelved
from tasks.stores.files import open_folder, sweep, sync_folder, write_over
from tasks.stores.home import Home

RELEASES = "releases"
_UNFINISHED = ".copying-"


@dataclass(frozen=True)
class Written:
    """Which bundles were copied or mended, were there already, and are gone."""

    copied: tuple[str, ...]
    kept: tuple[str, ...]
    removed: tuple[str, ...]


def must_be_catalogue(out: Path, home: Home) -> None:
    """A folder that is not there yet, is empty, or is a catalogue already; not within the home, nor around it."""
    real, own = Path(os.path.realpath(out)), Path(os.path.realpath(home.path))
    if real == own or own in real.parents or real in own.parents:
        raise SpecError(f"{out} and the home {home.path} lie one within the other. Give a folder of its own for the catalogue.")
    if not real.exists():
        return
    if not real.is_dir():
        raise SpecError(
            f"{out} is a file. Give a folder for the catalogue: a new one, an empty one, or one that is a catalogue."
        )
    if any(real.iterdir()) and _format(real / LIST) != FORMAT:
        raise SpecError(
            f"{out} holds files and is no catalogue ({LIST} is missing, or of another kind). Nothing was written. Give a new "
            "folder, an empty one, or one that this command made."
        )


def _format(path: Path) -> object:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return found.get("format") if isinstance(found, dict) else None


def write_site(out: Path, releases: Sequence[Shelved], files: Mapping[str, bytes]) -> Written:
    """Bundles, which were verified; then `files` by name, the index last of all."""
    place = out / RELEASES
    _begin(out, place)
    copied = [each.name for each in releases if _copy(each, place / each.name)]
    for name in sorted(files, key=lambda name: name == INDEX):
        _write(out / name, files[name])
    wanted = {each.name for each in releases}
    removed = [path for path in sorted(place.iterdir()) if path.is_dir() and path.name not in wanted]
    for path in removed:
        shutil.rmtree(path)
    return Written(
        copied=tuple(copied),
        kept=tuple(sorted(wanted - set(copied))),
        removed=tuple(path.name for path in removed),
    )


def _begin(out: Path, place: Path) -> None:
    """What a killed writer left goes; a new folder is known as a catalogue before anything else is in it."""
    open_folder(out)
    if not (out / LIST).is_file():
        _write(out / LIST, json.dumps({"format": FORMAT}).encode())
    open_folder(place)
    sweep(out)
    for left in place.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(left)


def _write(path: Path, content: bytes) -> None:
    if not path.is_file() or path.read_bytes() != content:
        write_over(path, content, 0o644)


def _copy(release: Shelved, target: Path) -> bool:
    """Whether something had to be copied: all of it, or what was said of the bundle later."""
    if _holds(release.folder, target):
        return any(list(_said_later(release, target)))
    building = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=target.parent))
    own = [path for path in sorted(release.folder.iterdir()) if path.name not in bundle.BESIDE]
    for path in own:
        bundle.write_durably(building / path.name, path.read_bytes())
    for name, content in release.beside.items():
        bundle.write_durably(building / name, content)
    building.chmod(0o755)
    sync_folder(building)
    if target.exists():  # another bundle of this name, or a spoilt copy
        os.rename(target, building.with_name(f"{building.name}-old"))
    os.rename(building, target)
    sync_folder(target.parent)
    shutil.rmtree(building.with_name(f"{building.name}-old"), ignore_errors=True)
    return True


def _holds(folder: Path, target: Path) -> bool:
    """Whether the copy has every file of the bundle, byte for byte, as the manifest names them, and no other."""
    if not target.is_dir():
        return False
    names = {path.name for path in folder.iterdir()} - bundle.BESIDE
    if {path.name for path in target.iterdir()} - bundle.BESIDE != names:
        return False
    same = ((folder / name).read_bytes() == (target / name).read_bytes() for name in names & bundle.UNLISTED)
    if not all(same):
        return False
    files = bundle.read_manifest((folder / bundle.MANIFEST).read_bytes()).files
    return all(_digest(target / name) == facts.sha256 for name, facts in files.items())


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _said_later(release: Shelved, target: Path) -> Iterator[bool]:
    """Notices and earlier keys, the page before what names it."""
    for name in (bundle.KEY_HISTORY, bundle.NOTICE_PAGE, bundle.NOTICE):
        content = release.beside.get(name)
        if content is None and (target / name).exists():
            (target / name).unlink()
            yield True
        elif content is not None and (not (target / name).is_file() or (target / name).read_bytes() != content):
            write_over(target / name, content, 0o644)
            yield True
