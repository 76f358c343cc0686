"""`make bench-peers DATA=FOLDER`: pairs and auto beside MST and AIM: mean 2-way and 3-way distance of one set, CPU seconds.

FOLDER (or the environment variable STEPS_PEERS_DATA) holds NAME.parquet or NAME.csv of category codes from 0, with the number
of categories of each attribute in NAME-domain.json; they are read in place. Same files, ε and δ for all, one after the other
and seeded. MST and AIM run in a process of their own with the Python of .cache/peers (benchmarks/peer.py). What a peer made
is kept in .cache/peers.json, after each run, so that an interrupted run goes on where it was; ours is measured anew.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.cascade import domain_of, read
from benchmarks.choosing import one_set, release
from schemas.spec.method import method_spec
from steps_engine.domain.counting import count_codes
from steps_engine.evaluation.coded import Coded
from steps_engine.evaluation.measures.margins import margins

DELTA = "1e-9"
EPSILONS = {"e-2": math.exp(-2), "e-1": math.exp(-1), "1": 1.0, "e": math.e, "e2": math.exp(2)}
OURS = ("pairs", "auto")
PEERS = ("MST", "MST in dpmm", "AIM")
PYTHON = Path(".cache/peers/bin/python")
KEPT = Path(".cache/peers.json")
PINNED = Path("requirements-peers.lock")
THREADS = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
Settings = dict[str, int | float]


@dataclass(frozen=True)
class Made:
    """Mean distances of one set, or means over sets; of a peer that was stopped, those of what it had by then, if anything."""

    two_way: float
    three_way: float
    seconds: float
    stopped: str = ""  # where it was then

    @property
    def finished(self) -> bool:
        return math.isfinite(self.two_way) and not self.stopped


@dataclass(frozen=True)
class Run:
    """One set of one method on one file."""

    file: Path
    method: str
    epsilon: float
    repeat: int
    settings: Settings
    limit: int

    @property
    def key(self) -> str:
        """What the figures depend on: another file, setting or release of the peers is another run."""
        pinned = hashlib.sha256(PINNED.read_bytes()).hexdigest()[:12]
        data = hashlib.sha256(self.file.read_bytes()).hexdigest()[:12]
        asked = {"epsilon": f"{self.epsilon:.6f}", "delta": DELTA, "repeat": self.repeat, "settings": self.settings}
        return json.dumps([self.file.stem, data, pinned, self.method, asked | {"limit": self.limit}], sort_keys=True)


def sizes_of(file: Path) -> Path:
    return file.with_name(f"{file.stem}-domain.json")


def files_in(folder: str | None, names: str | None) -> list[Path]:
    """Coded files with their sizes beside them; the smallest first."""
    if not folder or not Path(folder).is_dir():
        said = f"{folder} is no folder" if folder else "no folder was given"
        sys.exit(f"{said}: make bench-peers DATA=FOLDER, with NAME.parquet or NAME.csv and NAME-domain.json in it")
    found = {file.stem: file for file in sorted(Path(folder).iterdir()) if file.suffix in (".csv", ".parquet")}
    found = {name: file for name, file in found.items() if sizes_of(file).exists()}
    asked = names.split(",") if names else list(found)
    if missing := [name for name in asked if name not in found]:
        sys.exit(f"not in {folder}, or without NAME-domain.json: {', '.join(missing)}. There: {', '.join(found) or 'none'}")
    return sorted((found[name] for name in asked), key=lambda file: file.stat().st_size)


def distances(original: Coded, rows: np.ndarray, seconds: float) -> Made:
    made = [Coded(original.names, original.sizes, rows.astype(np.int64))]
    return Made(margins(original, made, 2).mean, margins(original, made, 3).mean, seconds)


def ours(original: Coded, asked: Run) -> Made:
    wanted = release(domain_of(original), method_spec(asked.method), asked.epsilon, DELTA)
    counts, begun = count_codes(original.codes), time.process_time()
    rows = one_set(wanted, counts, asked.repeat)
    return distances(original, rows, time.process_time() - begun)


def peers(original: Coded, asked: Run) -> Made:
    request = {
        "method": asked.method,
        "epsilon": asked.epsilon,
        "delta": float(DELTA),
        "seed": asked.repeat,
        "seconds": asked.limit,
        "settings": asked.settings,
        "sizes": dict(zip(original.names, original.sizes, strict=True)),
    }
    codes = io.BytesIO()
    np.save(codes, original.codes)
    command = [str(PYTHON), str(Path(__file__).with_name("peer.py")), json.dumps(request)]
    ended = subprocess.run(command, input=codes.getvalue(), capture_output=True, env=os.environ | THREADS)
    if asked.limit and ended.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return Made(math.inf, math.inf, float(asked.limit))
    if ended.returncode:
        sys.exit(f"{asked.method} on {asked.file.name} failed:\n{ended.stderr.decode()}")
    answer = np.load(io.BytesIO(ended.stdout))
    found = distances(original, answer["rows"], float(answer["seconds"]))
    if answer["finished"]:
        return found
    where = f"in round {answer['rounds']}, {float(answer['spent']):.0%} of ρ; model of {answer['estimated']} rounds"
    return replace(found, stopped=where)


def kept() -> dict[str, Made]:
    return {key: Made(**made) for key, made in json.loads(KEPT.read_text()).items()} if KEPT.exists() else {}


def keep(key: str, found: Made) -> None:
    """Beside what is kept by now, all of it or nothing."""
    text = json.dumps({key: asdict(made) for key, made in (kept() | {key: found}).items()}, indent=1)
    KEPT.parent.mkdir(exist_ok=True)
    (whole := KEPT.with_suffix(".new")).write_text(text)
    whole.replace(KEPT)


def made_by(original: Coded, asked: Run, progress: Console) -> Made:
    """From what is kept, if a peer has made it before."""
    if asked.method in PEERS and (known := kept().get(asked.key)):
        return known
    found = (peers if asked.method in PEERS else ours)(original, asked)
    if asked.method in PEERS:
        keep(asked.key, found)
    said = f"{asked.file.stem}, ε = {asked.epsilon:.4g}, {asked.method}, repeat {asked.repeat}: {shown(found)}"
    progress.print(said, highlight=False, soft_wrap=True)
    return found


def mean(made: list[Made]) -> Made:
    where = "; ".join(one.stopped for one in made if one.stopped)
    return Made(*np.mean([(one.two_way, one.three_way, one.seconds) for one in made], axis=0).tolist(), where)


def shown(made: Made | None) -> str:
    if made is None:
        return ""
    return f"{made.two_way:.4f} / {made.three_way:.4f}, {made.seconds:.0f} s" if made.finished else stopped(made)


def stopped(made: Made) -> str:
    had = f": {made.two_way:.4f} / {made.three_way:.4f} {made.stopped}" if made.stopped else ""
    return f"not finished in {made.seconds:.0f} s{had}"


def ratio(ours: Made | None, peer: Made | None) -> str:
    """2-way / 3-way distance of ours as a part of the peer's."""
    if ours is None or peer is None or not peer.finished:
        return ""
    return f"{ours.two_way / peer.two_way:.2f} / {ours.three_way / peer.three_way:.2f}"


def table_of(original: Coded, file: Path, found: dict[tuple[str, str], Made], methods: list[str]) -> Table:
    compared = [(one, peer) for one in OURS for peer in PEERS if one in methods and peer in methods]
    title = (
        f"{file.stem}: {original.total:,} rows × {len(original.names)} attributes, δ = {DELTA}: 2-way / 3-way distance, CPU s"
    )
    table = Table("ε", *methods, *(f"{one} : {peer}" for one, peer in compared), title=title)
    for epsilon in dict.fromkeys(epsilon for epsilon, _ in found):
        cells = [shown(found.get((epsilon, method))) for method in methods]
        ratios = [ratio(found.get((epsilon, one)), found.get((epsilon, peer))) for one, peer in compared]
        table.add_row(epsilon, *cells, *ratios)
    return table


def settings(said: str) -> Settings:
    """`n_iters=1000,rounds=60`, as the peers' own arguments are called."""
    pairs = (part.split("=") for part in said.split(",") if part)
    return {name: float(number) if "." in number else int(number) for name, number in pairs}


def asked_for() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", default=os.environ.get("STEPS_PEERS_DATA"))
    parser.add_argument("--files", help="NAME,… without the ending; all that are there if left out")
    parser.add_argument("--epsilons", default=",".join(EPSILONS), help="of e-2, e-1, 1, e, e2")
    parser.add_argument("--methods", default="pairs,auto,MST,AIM", help=f"of {', '.join(OURS + PEERS)}")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument(
        "--mst", type=settings, default={}, metavar="NAME=NUMBER,…", help="such as n_iters=1000; its own defaults"
    )
    parser.add_argument("--aim", type=settings, default={}, metavar="NAME=NUMBER,…", help="such as rounds=60; its own defaults")
    parser.add_argument("--aim-seconds", type=int, default=3600, help="CPU seconds that one run of AIM may take")
    asked = parser.parse_args()
    asked.epsilons, asked.methods = asked.epsilons.split(","), asked.methods.split(",")
    if unknown := {*asked.epsilons} - {*EPSILONS} | {*asked.methods} - {*OURS, *PEERS}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    return asked


def main() -> None:
    asked, progress = asked_for(), Console(stderr=True)
    files = files_in(asked.folder, asked.files)
    if {*asked.methods} & {*PEERS} and not PYTHON.exists():
        sys.exit(f"{PYTHON} is not there: make bench-peers builds it from {PINNED}")
    os.environ |= THREADS
    for file in files:
        original, found = read(str(file), str(sizes_of(file))), dict[tuple[str, str], Made]()
        for epsilon in asked.epsilons:
            for method in asked.methods:
                given = (asked.aim, asked.aim_seconds) if method == "AIM" else (asked.mst if method in PEERS else {}, 0)
                runs = [Run(file, method, EPSILONS[epsilon], repeat, *given) for repeat in range(asked.repeats)]
                found[epsilon, method] = mean([made_by(original, run, progress) for run in runs])
        Console(width=160).print(table_of(original, file, found, asked.methods))


if __name__ == "__main__":
    main()
