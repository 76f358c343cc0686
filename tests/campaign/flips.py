"""Every byte of a small bundle, its signed notice and its history of keys included, changed by itself: verify sees it. And the
first bytes of every file of bundles with other files: of places, of households."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from schemas.spec.domain import Domain
from steps_engine.methods.checked import Findings
from tasks.publishing.publication import publish
from tasks.stages.take_back import withdraw
from tasks.stages.validate import silent_gx
from tasks.stores.keys import signing_key
from tasks.stores.ledger import open_ledger
from tasks.stores.rotation import rotate
from tasks.verify import bundle as checking
from tasks.verify.bundle import Problem, holds, verify_bundle
from tests.campaign.subject import NAME as RELEASED
from tests.campaign.subject import make_subject
from tests.campaign.trials import Family, Found, Trial
from tests.flows.without_prefect import run_stages
from tests.tasks.publishing.making import a_release, make, some_counts

BYTES = 256  # a trial
WHOLE, OF_LONG = 2**16, 32  # bytes of a file of which every one is changed; parts of a longer one (of what is installed)
OTHERS = ("places", "households")
NAME = "poll-2026"
SMALLEST = Domain.model_validate(
    {
        "name": "poll",
        "population": "town",
        "attributes": ({"name": "voted", "kind": "categorical", "categories": ("no", "yes")},),
    }
)

Verify = Callable[[Path, Path], list[Problem]]


def verify_until_found(folder: Path, key: Path) -> list[Problem]:
    """`verify_bundle`, but what is in the files is not looked at once a file is known to be another: the verdict is out."""
    look = checking._check_content

    def look_if_needed(files: Any, manifest: Any, found: Findings, again: Any) -> Any:
        return ((None, None), []) if found.found else look(files, manifest, found, again)

    checking._check_content = look_if_needed
    try:
        return verify_bundle(folder, key)
    finally:
        checking._check_content = look


@contextmanager
def preparing(folder: Path) -> Iterator[dict[str, Any]]:
    """The bundle as its readers have it: signed by a second key, published and withdrawn."""
    made = make(folder / "home", a_release(SMALLEST, {"decomposition": "flat"}, NAME), some_counts(SMALLEST, 101))
    signing_key(made.home)
    rotate(made.home, open_ledger(made.home), "a campaign")
    publish(*made.arguments)
    withdraw(made.home, NAME, "a campaign")
    place = made.home.public / NAME
    parts = [(str(place), path.name, start) for path in sorted(place.iterdir()) for start in starts(path.stat().st_size)]
    others = [_released(folder / way, way) for way in OTHERS]
    parts += [(str(other), path.name, 0) for other in others for path in sorted(other.iterdir())]
    yield {"bundle": str(place), "parts": parts, "trials": len(parts)}


def starts(size: int) -> list[int]:
    """Where parts of a file begin: all of them; of a long file its first, its last and others evenly between."""
    if size <= WHOLE:
        return list(range(0, size, BYTES))
    return [part * (size - BYTES) // (OF_LONG - 1) for part in range(OF_LONG)]


def _released(folder: Path, way: str) -> Path:
    folder.mkdir()
    subject = make_subject(folder, way)
    silent_gx()
    run_stages(subject.home, subject.release)
    return subject.home.public / RELEASED


def attempt(trial: Trial, verify: Verify = verify_until_found) -> Found:
    """Each byte of one part becomes another one, is looked at, and is put back."""
    place, name, start = trial.shared["parts"][trial.number]
    folder, key = trial.folder / Path(place).name, Path(place).parents[1] / "keys" / "signing-key.pub"
    shutil.copytree(place, folder)
    if not holds(verify(folder, key)):
        return Found(lost=("the bundle does not verify before anything is changed",), kind=name)
    path, chance = folder / name, trial.chance
    whole = path.read_bytes()
    numbers = range(start, min(start + BYTES, len(whole)))
    missed = []
    for at in numbers:
        other = whole[at] ^ chance.randrange(1, 256)
        path.write_bytes(whole[:at] + bytes([other]) + whole[at + 1 :])
        if holds(verify(folder, key)):
            missed.append(f"{name}: byte {at} is {other} in place of {whole[at]}, and verify says that all holds")
    return Found(tried=len(numbers), lost=tuple(missed), kind=name)


FAMILY = Family(
    name="bytes",
    does="Every byte of a small bundle (signed files, signature, keys, history of keys, notice of withdrawal) is changed to another one, one at a time, of the long list of what is installed 32 times 256, and the first 256 of every file of a bundle of places and of one of households; `verify` must find each.",
    share=350,
    attempt=attempt,
    preparing=preparing,
)
