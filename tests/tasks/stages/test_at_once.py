"""Several processes that run one release: one does what is to be done, the others find it done."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from schemas.errors import EvidenceBroken
from tasks.specs import load_release
from tasks.stages import evaluate as evaluating
from tasks.stages.build import build_tree
from tasks.stages.charge import charge
from tasks.stages.correct import correct
from tasks.stages.discretize import discretize
from tasks.stages.forget import forget_exact_counts
from tasks.stages.plan import plan
from tasks.stages.publish import publish_release
from tasks.stages.sanitize import sanitize
from tasks.stages.synthesize import synthesize
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tests.flows.small import Small, make_small

ROOT = Path(__file__).parents[3]


@pytest.mark.whole
def test_who_evaluates_second_finds_it_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    small = make_small(tmp_path, rows=503)
    home, asked = Home(small.home), load_release(small.write())
    open_ledger(home).grant("small-people", 10**9, "a test")
    planned, cells = plan(home, asked), discretize(home, asked)
    paid = charge(home, asked, planned, cells, {})
    tree = build_tree(home, asked, planned, cells, paid)
    noisy = sanitize(home, asked, planned, cells, tree, paid)
    consistent = correct(home, asked, planned, tree, noisy)
    sets = synthesize(home, asked, planned, tree, noisy, consistent)
    publish_release(home, asked, planned, (tree, noisy, consistent, *sets))
    compared = evaluating._compared

    def overtaken(*arguments: object):
        monkeypatch.undo()
        evaluating.evaluate(home, asked, cells, sets)  # another process, quicker
        forget_exact_counts(home, asked)
        return compared(*arguments)

    monkeypatch.setattr(evaluating, "_compared", overtaken)
    evaluating.evaluate(home, asked, cells, sets)
    assert open_ledger(home).state("small-1") == "evaluated"
    shutil.rmtree(home.path)
    with pytest.raises(EvidenceBroken):  # the control: what nobody has evaluated is not passed over
        evaluating.evaluate(home, asked, cells, sets)


def at_once(small: Small, releases: list[Path]) -> dict[str, Any]:
    """A process for each of these runs its release in one home, all at the same moment; what they said, and what is there."""
    command = [sys.executable, "-m", "tests.flows.many_at_once", small.home, *releases]
    done = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def all_ended_well(found: dict[str, Any]) -> bool:
    """One paid, the others found it paid, and one whole release is there."""
    said = Counter(found.pop("said"))
    whole = {"charges": 1, "states": {"small-1": "evaluated"}}
    return set(said) == {"paid", "found"} and said["paid"] == 1 and found == dict.fromkeys(found, []) | whole


@pytest.mark.slow
def test_twelve_processes_run_one_release_under_one_charge(tmp_path: Path):
    small = make_small(tmp_path, rows=503)
    found = at_once(small, [small.release] * 12)
    assert all_ended_well(dict(found)), found


@pytest.mark.slow
def test_of_two_that_run_another_spec_under_one_name_one_is_refused_and_that_is_seen(tmp_path: Path):
    small = make_small(tmp_path, rows=503)
    (other := tmp_path / "other.yaml").write_text(small.release.read_text().replace("count: 2", "count: 3"))
    found = at_once(small, [small.release, other])
    assert found["charges"] == 1 and sum("SpecError" in said for said in found["said"]) == 1, found
    assert not all_ended_well(dict(found)), "the control"
