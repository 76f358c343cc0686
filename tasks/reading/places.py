"""Which files a path, a folder or a glob stands for, each once."""

from __future__ import annotations

import glob
import os
import re

from schemas.errors import SpecError
from tasks.reading.formats import titles
from tasks.reading.partitions import is_partition


def files_at(path: str) -> tuple[str, ...]:
    """Every file that is asked for, once: by whichever names, links or patterns it was reached."""
    if "\0" in path:
        raise SpecError(f"source {path!r}: a path holds no NUL character; write it without.")
    found = _in_folder(path) if os.path.isdir(path) else [path] if os.path.lexists(path) else _matches(path)
    files = _each_once(sorted(os.path.abspath(file) for file in found if not os.path.isdir(file)))
    if not files:
        what = "a folder without files" if os.path.isdir(path) else "no such file, folder or match"
        raise SpecError(f"source {path}: {what}; give {titles('or')}: a file, a folder or a glob.")
    for file in files:
        if glob.has_magic(file):
            raise SpecError(f"source {file}: a path with *, ? or [ cannot be read safely; rename it.")
    return files


def _in_folder(path: str) -> list[str]:
    """The files of a folder, or of its partitions. One whose sub folders hold files too could be meant with or without them."""
    found = {
        os.path.relpath(folder, path): [os.path.join(folder, name) for name in names if not _is_hidden(name)]
        for folder, _, names in os.walk(path)
    }
    own, below = found.pop(".", []), {where: files for where, files in found.items() if files and not _is_hidden(where)}
    if not own and below and all(map(is_partition, below)):
        return [file for files in below.values() for file in files]
    if below:
        raise SpecError(
            f"source {path}: a folder whose sub folders hold files too ({next(iter(below))}); "
            f"write {os.path.join(path, '**', '*.parquet')} for all of them, or {os.path.join(path, '*.parquet')} for "
            "those of the folder alone (or .csv, as the files are named)."
        )
    return own


def _is_hidden(name: str) -> bool:
    """Whether a name, or a part of a path, begins as those do that programs leave beside data: .crc, _SUCCESS."""
    return any(part.startswith((".", "_")) for part in name.split(os.sep))


def _matches(pattern: str) -> list[str]:
    """What a glob matches; `**/**` says no more than `**`, and would be walked once per pair of levels."""
    return glob.glob(re.sub(r"(\*\*/)+", "**/", pattern), recursive=True)


def _each_once(files: list[str]) -> tuple[str, ...]:
    """One name per file on disk, the first: links and hard links are the same records."""
    kept: dict[tuple[int, int] | str, str] = {}
    for file in files:
        try:
            on_disk = os.stat(file)
        except OSError:  # told when it is opened
            kept[file] = file
        else:
            kept.setdefault((on_disk.st_dev, on_disk.st_ino), file)
    return tuple(kept.values())
