"""Lies by a publisher with the true key: manifest, charge, chain and signature agree on each, and verify finds it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from schemas.manifest import SEEDS_1
from steps_engine.accounting import mechanisms
from tasks.publishing.formats import FORMATS
from tasks.publishing.publication import publish
from tasks.stores.keys import signing_key
from tasks.verify.bundle import Verdict, examine, holds
from tasks.verify.recompute import verify_again
from tests.campaign.trials import Family, Found, Trial
from tests.tasks.publishing.making import Made, edit_table, forge_chain, forge_plan, make, sign_again, some_counts
from tests.tasks.verify import test_lies, test_lies_in_rho, test_lies_of_pairs
from tests.tasks.verify.methods import release_of, room_for

Check = Callable[[Path, Path], Verdict]
Change = Callable[[Path, Made], None]
SPLIT, SHARED = {"count": 2, "budget": "split"}, {"count": 2, "budget": "shared"}


@dataclass(frozen=True)
class Lie:
    """What is told wrong, in which honest bundle; `again`: only --recompute can know."""

    name: str
    bundle: tuple[str, ...]
    tell: Change
    again: bool = False


def _plan(change: Callable[[dict[str, Any]], None], folder: Path, made: Made) -> None:
    forge_plan(folder, made.home, change)


def _column(file: str, column: str, change: Callable[[list], list], folder: Path, made: Made) -> None:
    edit_table(folder / file, lambda columns: columns.update({column: change(columns[column])}))
    sign_again(folder, made.home)


def _manifest(change: Callable[[dict[str, Any]], None], folder: Path, made: Made) -> None:
    sign_again(folder, made.home, change)


def _records(change: Callable[[pa.Table], pa.Table], folder: Path, made: Made) -> None:
    path = folder / "synthetic-1.parquet"
    schema = pq.read_schema(path).remove_metadata()
    pq.write_table(change(pq.read_table(path)).cast(schema), path, compression="zstd")
    path.with_suffix(".csv").write_bytes(FORMATS.named("csv").write(path.read_bytes()))
    sign_again(folder, made.home)


def _one_row_for_another(records: pa.Table) -> pa.Table:
    other = next(i for i in range(1, len(records)) if records.slice(i, 1) != records.slice(0, 1))
    return pa.concat_tables([records.slice(other, 1), records.slice(1)])


def _another_proof(proof: dict[str, Any]) -> None:
    """The charge of another release, well chained."""
    proof["charge"]["release"] = "poll-2025"
    forge_chain(proof)


def _paid(amount: int, manifest: dict[str, Any]) -> None:
    manifest["ledger"]["charge"]["amount"] = amount
    forge_chain(manifest["ledger"])


def _another_signer(folder: Path, made: Made) -> None:
    """Everything signed by a key that is not the publisher's."""
    stranger = type(made.home)(folder.parent / "stranger")
    signing_key(stranger)
    shutil.copy(stranger.keys / "signing-key.pub", folder / "signing-key.pub")
    sign_again(folder, stranger)


PLANS = [Lie(lie.__name__, ("epsilon", where[0]), partial(_plan, lie)) for lie, where in test_lies.LIES.items()]
PLANS += [Lie(f"{lie.__name__}, in ρ", ("rho", where[0]), partial(_plan, lie)) for lie, where in test_lies_in_rho.LIES.items()]
PAIRS = [Lie(lie.__name__, ("split", "pairs"), partial(_plan, lie)) for lie in test_lies_of_pairs.LIES]
PAIRS += [Lie(lie.__name__, ("split", "pairs, elected"), partial(_plan, lie)) for lie in test_lies_of_pairs.LIES_OF_ELECTIONS]

ESTIMATES = "consistent-counts.parquet"
TREES = ("given", "stopping", "flat", "uh")
TABLES = [
    *(Lie(f"standard errors nought, {m}", ("split", m), partial(_column, ESTIMATES, "standard_error", lambda v: [0.0 for _ in v])) for m in TREES),
    *(Lie(f"standard errors halved, {m}", ("split", m), partial(_column, ESTIMATES, "standard_error", lambda v: [x / 2 for x in v])) for m in TREES),
    *(Lie(f"an estimate replaced, {m}", ("split", m), partial(_column, ESTIMATES, "estimate", lambda v: [*v[:-1], v[-1] + 9.0])) for m in TREES),
    *(Lie(f"a set of five rows, {m}", ("split", m), partial(_records, lambda t: t.slice(0, 5))) for m in ("given", "cascade", "privbayes", "pairs")),
    *(Lie(f"a row in another's place, {m}", ("shared", m), partial(_records, _one_row_for_another), again=True) for m in ("given", "flat", "uh", "cascade", "privbayes", "pairs")),
    *(Lie(f"a noisy count moved, {m}", ("shared", m), partial(_column, "noisy-counts.parquet", "noisy_1", lambda v: [*v[:-1], v[-1] + 1]), again=True) for m in ("given", "cascade", "pairs")),
    *(Lie(f"no noise, {m}", ("no noise", m), lambda folder, made: None) for m in ("given", "elected", "uh", "cascade", "privbayes")),
]  # fmt: skip
MANIFESTS = [
    *(Lie(f"{figure} of the composition, {m}", ("split", m), partial(_manifest, lambda said, figure=figure, value=value: said["composition"].update({figure: value})))
      for m in ("elected", "cascade") for figure, value in (("structure", "1/4"), ("measurements", ["1/4", "3/4"]), ("total", "9/10"), ("sets", 1), ("sentence", "It is free."))),
    *(Lie(f"another charge ({amount}), {m}", ("split", m), partial(_manifest, partial(_paid, amount))) for m in ("given", "pairs") for amount in (1, 9 * 10**8, 10**9 + 1)),
    *(Lie(f"ε told as {epsilon}, {m}", ("split", m), partial(_manifest, lambda said, epsilon=epsilon: said["guarantee"].update(epsilon=epsilon))) for m in ("given", "pairs") for epsilon in ("0.9", "0.1", "1.1")),
    *(Lie(f"another release's charge, {m}", ("split", m), partial(_manifest, lambda said: _another_proof(said["ledger"]))) for m in ("given", "cascade", "pairs")),
    *(Lie(f"a head that nothing leads to, {m}", ("split", m), partial(_manifest, lambda said: said["ledger"].update(head="0" * 64))) for m in ("given", "pairs")),
    *(Lie(f"another signer, {m}", ("split", m), _another_signer) for m in ("given", "pairs")),
]  # fmt: skip
LIES = PLANS + PAIRS + TABLES + MANIFESTS


@cache
def honest(place: str, seed: int, kind: str, name: str) -> Made:
    """The bundle in which a lie is told, made once by every process that needs it."""
    release, account = _release(kind, name)
    with room_for(name), _noise(kind):
        made = make(
            Path(place) / f"{kind}-{name}".replace(" ", "-"), release, some_counts(release.domain, 4003, seed), 7, account
        )
        publish(*made.arguments, seeds=SEEDS_1)
    return made


def _release(kind: str, name: str) -> tuple[Any, str | None]:
    if kind == "rho":
        method, rows, asked, account = test_lies_in_rho.HONEST[name]
        return release_of(method, rows, {"count": 2}, **asked), account
    return test_lies.honest_release(name, SHARED if kind == "shared" else SPLIT), None


@contextmanager
def _noise(kind: str) -> Iterator[None]:
    """Software that forgets its noise publishes nothing by itself: the bundle is made as if its own check were not there."""
    if kind != "no noise":
        yield
        return
    import tasks.publishing.publication as publication

    draw, check = mechanisms.CountNoise.draw, publication.verify_bundle
    mechanisms.CountNoise.draw = lambda self, size, source: np.zeros_like(draw(self, size, source))
    publication.verify_bundle = lambda *_: []
    try:
        yield
    finally:
        mechanisms.CountNoise.draw, publication.verify_bundle = draw, check


def attempt(trial: Trial, check: Check = examine, check_again: Check = verify_again) -> Found:
    """The honest bundle verifies either way; with the lie in it, it does not."""
    lie = LIES[trial.number % len(LIES)]
    seed = 1 + trial.number // len(LIES)
    made = honest(str(trial.folder.parent / f"honest-{os.getpid()}-{seed}"), seed, *lie.bundle)
    key, folder = made.home.keys / "signing-key.pub", trial.folder / "copy"
    shutil.copytree(made.home.public / made.release.name, folder)
    lost = []
    if lie.bundle[0] != "no noise" and not holds((before := check(folder, key)).problems):
        lost.append(f"{lie.name}: the honest bundle does not verify: {before.problems[0]}")
    lie.tell(folder, made)
    if holds((check_again if lie.again else check)(folder, key).problems):
        lost.append(f"{lie.name}: verify{' --recompute' if lie.again else ''} says that all holds")
    return Found.in_one("--recompute" if lie.again else "plain", lost)


FAMILY = Family(
    name="lies",
    does="A publisher with the true key lies about draws, prices, sensitivities, ε, the charge, its proof, estimates, standard errors, rows or noise, and signs again; `verify` finds each, `verify --recompute` what only that can know.",
    trials=2 * len(LIES),
    share=90,
    attempt=attempt,
)
