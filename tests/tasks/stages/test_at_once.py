"""Several processes that run one release: one does what is to be done, the others find it done."""

from __future__ import annotations

import shutil
from pathlib import Path

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
from tests.flows.small import make_small


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
