"""The stages in order, in processes without Prefect, killed at every durable step. Run as a script; answers with JSON.

The parent imports everything once and forks a child per attempt: the child is killed (kill -9) at its k-th durable step (an
fsync, link, rename or unlink). The next child goes on: to its own kill, the last one to the end.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from schemas.spec.release import Release
from tasks.specs import load_release
from tasks.stages.audit import bundles, check_bundle, check_ledger, must_be_current
from tasks.stages.build import build_tree
from tasks.stages.charge import charge, must_be_payable
from tasks.stages.correct import correct
from tasks.stages.discretize import discretize
from tasks.stages.evaluate import evaluate
from tasks.stages.finished import Finished, find_finished
from tasks.stages.forget import forget_exact_counts
from tasks.stages.plan import plan
from tasks.stages.publish import publish_release
from tasks.stages.references import PlanReference
from tasks.stages.sanitize import sanitize
from tasks.stages.synthesize import linked_tables, synthesize
from tasks.stages.validate import silent_gx, validate
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tests.flows.small import leaks

stage_now = "start"


def run_stages(home: Home, path: Path) -> bool:
    """The release flow's order, as plain calls; whether it was charged by this run."""
    global stage_now

    def at(stage: str) -> str:
        global stage_now
        stage_now = stage
        return stage

    at("start")  # also where this process, or the one it was forked from, has run stages before
    must_be_current(home)
    asked = load_release(path)
    at("plan")
    planned = plan(home, asked)
    if finished := find_finished(home, asked, planned):
        return _found(home, asked, planned, finished)
    try:
        return _made(home, asked, planned, at)
    except Exception:
        if not (finished := find_finished(home, asked, planned)):
            raise
        return _found(home, asked, planned, finished)


def _made(home: Home, asked: Release, planned: PlanReference, at: Callable[[str], str]) -> bool:
    must_be_payable(home, planned)
    at("validate")
    validate(home, asked)
    at("discretize")
    cells = discretize(home, asked)
    at("charge")
    paid = charge(home, asked, planned, cells, {})
    at("build tree")
    tree = build_tree(home, asked, planned, cells, paid)
    at("sanitize")
    noisy = sanitize(home, asked, planned, cells, tree, paid)
    at("correct")
    consistent = correct(home, asked, planned, tree, noisy)
    at("synthesize")
    sets = synthesize(home, asked, planned, tree, noisy, consistent)
    at("publish")
    publish_release(home, asked, planned, (tree, noisy, consistent, *sets, *linked_tables(home, asked, planned)))
    at("evaluate")
    evaluate(home, asked, cells, sets)
    at("forget")
    forget_exact_counts(home, asked)
    return paid.new


def _found(home: Home, asked: Release, planned: PlanReference, finished: Finished) -> bool:
    publish_release(home, asked, planned, finished.public)
    forget_exact_counts(home, asked)
    return False


def in_child(function) -> tuple[int, list]:
    """The exit status of a forked child, and what it reported."""
    return ended(*forked(function))


def forked(function) -> tuple[int, int]:
    """A child that does this and reports it: its number, and where to read."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            os.write(writer, json.dumps(function(writer)).encode() + b"\n")
            os._exit(0)
        except BaseException as error:
            os.write(writer, json.dumps(f"{type(error).__name__}: {error}").encode() + b"\n")
            os._exit(1)
    os.close(writer)
    return child, reader


def ended(child: int, reader: int) -> tuple[int, list]:
    with os.fdopen(reader) as pipe:
        said = [json.loads(line) for line in pipe]
    return os.waitpid(child, 0)[1], said


def killed_at(step: int | None, home: Home, path: Path, writer: int) -> list[str]:
    """Dies at the given durable step; without one, runs to the end and says in which stage each step was."""
    return _killed(lambda stages: len(stages) == step, home, path)


def killed_in(stage: str, nth: int, home: Home, path: Path, by: int = signal.SIGKILL) -> list[str]:
    """Sends itself a signal at the n-th durable step of a stage; dies of the one that nobody can refuse."""
    return _killed(lambda stages: stages[-1] == stage and stages.count(stage) == nth, home, path, by)


def _killed(now: Callable[[list[str]], bool], home: Home, path: Path, by: int = signal.SIGKILL) -> list[str]:
    stages: list[str] = []
    for name in ("fsync", "link", "rename", "replace", "unlink"):
        original = getattr(os, name)

        def counted(*arguments, _original=original, **named):
            stages.append(stage_now)
            if now(stages):
                os.kill(os.getpid(), by)
            return _original(*arguments, **named)

        setattr(os, name, counted)
    run_stages(home, path)
    return stages


def chains(stages: list[str]) -> list[list[tuple[str, int]]]:
    """Kills that one home suffers one after another, each run getting as far as the next: in the middle of every stage; where
    something is paid, drawn or published also at the first step, and at the last. What is published is not evaluated by a later
    run: kills after that have homes of their own."""
    steps = Counter(stages)
    after = [stage for stage in steps if stage in ("evaluate", "forget")]
    middle = [(stage, steps[stage] // 2 + 1) for stage in steps if stage not in after]
    paid = [stage for stage in ("charge", "build tree", "sanitize", "publish") if steps[stage] > 1]
    first, last = [(stage, 1) for stage in paid], [(stage, steps[stage]) for stage in paid]
    return [middle, first, last, *([(stage, steps[stage] // 2 + 1)] for stage in after)]


def drawn(home: Home) -> dict[str, str]:
    """What is sealed: nobody may draw it again."""
    sealed = [entry.details for entry in open_ledger(home).entries() if entry.kind == "seal"]
    return {each["stage"]: each["digest"] for each in sealed if each["side"] == "public"}


def granted_home(folder: Path) -> Home:
    home = Home(folder)
    open_ledger(home).grant("small-people", 500_000_000, "exactly one release")
    return home


def attempt(kills: list[tuple[str, int]], folder: Path, path: Path) -> list[dict]:
    """Kills in a fresh home, then a run to the end; what was to be seen after each of them."""
    home, seen = granted_home(folder), []
    before: dict[str, str] = {}
    for stage, nth in kills:
        status, said = in_child(lambda _, stage=stage, nth=nth: killed_in(stage, nth, home, path))
        killed = os.WIFSIGNALED(status) or said
        seen.append({"stage": stage, "killed": killed, **_unwanted(home, before)})
        before = drawn(home)
    resumed, heard = in_child(lambda _: run_stages(home, path))
    ended = {
        "resumed": heard if resumed else "to the end",
        "charges": sum(entry.kind == "charge" for entry in open_ledger(home).entries()),
        "problems": check_ledger(home) + [problem for each in bundles(home) for problem in check_bundle(home, each)],
        "exact counts left": [str(each) for each in folder.rglob("cells/*.parquet")],
        "half files left": [str(each) for pattern in (".*tmp*", ".writing-*") for each in folder.rglob(pattern)],
        **_unwanted(home, before),
    }
    return [*seen, ended]


def _unwanted(home: Home, before: dict[str, str]) -> dict[str, list[str]]:
    """What was drawn a second time, and canaries where they must not be."""
    after = drawn(home)
    return {
        "redrawn": [stage for stage, digest in before.items() if after.get(stage) != digest],
        "leaks": leaks(home.folder),
    }


if __name__ == "__main__":
    silent_gx()
    root, path = Path(sys.argv[1]), Path(sys.argv[2])
    rehearsal = granted_home(root / "rehearsal")
    stages = in_child(lambda writer: killed_at(None, rehearsal, path, writer))[1][0]
    for number, kills in enumerate(chains(stages)):
        print(json.dumps(attempt(kills, root / f"home-{number}", path)), flush=True)
