"""What a worker owns: releases, sources and populations, by the worker.yaml in its home.

Whoever may ask Prefect's server for a run chooses its parameters. They choose among what the worker's owner wrote down, and
are refused before a record is read or a plan is sealed.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from schemas.errors import NotOwned, SpecError
from schemas.spec import yaml
from schemas.spec.database import DatabaseSource, is_address, server_of
from schemas.spec.release import Release
from schemas.worker import WorkerSpec
from tasks.reading.sources import open_source
from tasks.stores.home import Home

FILE = "worker.yaml"
LONGEST = 200  # characters of what was asked that a message repeats


@dataclass(frozen=True)
class Owned:
    """What worker.yaml names, links followed once: whoever wrote it meant the places, not the names."""

    file: Path
    releases: Path
    sources: tuple[Path, ...]
    populations: tuple[str, ...]
    catalogue: Path | None = None
    address: str = ""
    databases: tuple[str, ...] = ()  # addresses

    def release_file(self, name: str) -> Path:
        """The file that a run names by its path under `releases`; no way leads out of that folder."""
        parts = PurePosixPath(name).parts
        if not parts or "\0" in name or ".." in parts or PurePosixPath(name).is_absolute():
            raise self._refused(f"release {name[:LONGEST]!r}", f"give a path from {self.releases}, without ..")
        path = self.releases
        for part in parts:
            path = path / part
            if os.path.islink(path):
                raise self._refused(f"release {name[:LONGEST]!r}", f"{path} is a link; put the file itself there")
        if not os.path.isfile(path):
            raise self._refused(f"release {name[:LONGEST]!r}", f"there is no such file in {self.releases}")
        return path

    def must_own(self, release: Release) -> None:
        """Population, dataset.yaml and the place of the records; opens none of them."""
        population = release.domain.population
        if population not in self.populations:
            raise self._refused(f'population "{population}"', f"it owns {', '.join(self.populations)}")
        dataset = Path(release.folder) / release.spec.dataset
        if not _within(dataset, [self.releases]):
            raise self._refused(f"dataset {dataset}", f"put it under {self.releases}")
        for expectations, _ in release.expectations:
            if expectations and not _within(expectations, [self.releases]):
                raise self._refused(f"expectations {expectations}", f"put them under {self.releases}")
        for source in release.sources:
            if not self._owns(source):
                raise self._refused(f"source {source}", _places((*self.sources, *self.databases)))

    def _owns(self, source: str | DatabaseSource) -> bool:
        """A server's database by host, port and name, whoever reads there; one that is a file by its place."""
        if isinstance(source, str):
            return _within(_place(source), self.sources)
        if source.path is not None:
            return _within(Path(source.path), self.sources)
        return server_of(source.url) in map(server_of, self.databases)

    def must_own_files(self, release: Release) -> None:
        """Every file that a folder or a glob stands for, wherever links lead; of a database, `must_own` has seen the place."""
        named = (source for source in release.sources if not isinstance(source, DatabaseSource))
        for file in (file for source in named for file in open_source(source).files):
            if not _within(Path(file), self.sources):
                raise self._refused(f"source {file}", _places(self.sources))

    def _refused(self, asked: str, found: str) -> NotOwned:
        return NotOwned(
            f"{asked} is not this worker's ({found}). Nothing was read, nothing charged. What it owns is said in {self.file} "
            "on the worker's machine."
        )


def owned_by(home: Home) -> Owned:
    """What the worker of this home owns; without a worker.yaml nothing, and that is an error."""
    file = home.folder / FILE
    if not file.exists():
        raise SpecError(
            f"{file} is missing: a worker runs only what it owns. Write three keys into it: releases (a folder), sources (a "
            "list of files, folders or databases) and populations (a list of names)."
        )
    if file.stat().st_mode & 0o022:
        raise SpecError(f"others than the owner may write {file}. Run: chmod go-w {file}")
    spec = yaml.validate(WorkerSpec, yaml.read(file))
    databases = tuple(filter(is_address, spec.sources))
    paths = (spec.releases, *(source for source in spec.sources if source not in databases))
    releases, *sources = (Path(os.path.realpath(file.parent / path)) for path in paths)
    if not releases.is_dir():
        raise SpecError(f"{file}: releases names {releases}, which is no folder; make it, or name another.")
    catalogue = file.parent / spec.catalogue if spec.catalogue is not None else None
    return Owned(file, releases, tuple(sources), spec.populations, catalogue, spec.address, databases)


def _place(source: str) -> Path:
    """What stands still of a path or glob: everything before the first part with a wildcard.

    >>> _place("/data/2026/part-*.parquet")
    PosixPath('/data/2026')
    """
    if os.path.lexists(source) or not glob.has_magic(source):
        return Path(source)
    parts = Path(source).parts
    fixed = next(place for place, part in enumerate(parts) if glob.has_magic(part))
    rest = parts[fixed:]
    # After a wildcard, `..` may lead anywhere: nothing stands still then.
    return Path("/") if ".." in rest else Path(*parts[:fixed])


def _within(path: Path, owned: Iterable[Path]) -> bool:
    real = Path(os.path.realpath(path))
    return any(real == place or place in real.parents for place in owned)


def _places(owned: Iterable[Path | str]) -> str:
    return f"it reads from {', '.join(map(str, owned))}"
