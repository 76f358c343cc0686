"""Exact counts that no run uses can be found and deleted, whatever became of their release; those of a run that goes on stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.errors import SpecError
from tasks.specs import load_release
from tasks.stages.discretize import discretize
from tasks.stages.forget import exact_counts, forget_leftovers
from tasks.stages.validate import silent_gx
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tasks.stores.running import running
from tests.flows import without_prefect
from tests.flows.small import Small, make_small
from tests.flows.without_prefect import run_stages
from tests.tasks.stages.test_home import stop_before


@pytest.fixture
def small(tmp_path: Path) -> Small:
    silent_gx()
    small = make_small(tmp_path, rows=303)
    open_ledger(Home(small.home)).grant("small-people", 10**9, "two releases")
    return small


def left(small: Small) -> list[Path]:
    return sorted(small.home.rglob("cells/*.parquet"))


def test_counts_of_a_run_killed_before_its_charge_are_found_and_deleted(small: Small):
    home = Home(small.home)
    discretize(home, load_release(small.release))
    assert left(small) and open_ledger(home).state("small-1") == "uncharged" and exact_counts(home) == ["small-1"]
    (home.confidential / "small-1" / "spill-dead").mkdir()
    with pytest.raises(SpecError, match='there is no release "another"'):
        forget_leftovers(home, "another")
    assert left(small)
    assert forget_leftovers(home) == {"forgotten": ["small-1"], "running": []}
    assert left(small) == [] == exact_counts(home) and not (home.confidential / "small-1" / "spill-dead").exists()
    assert forget_leftovers(home) == {"forgotten": [], "running": []}


def test_counts_of_a_run_that_goes_on_stay(small: Small):
    home = Home(small.home)
    discretize(home, load_release(small.release))
    with running(home, "small-1"), running(home, "small-1"):
        assert forget_leftovers(home, "small-1") == {"forgotten": [], "running": ["small-1"]} and left(small)
    assert forget_leftovers(home, "small-1")["forgotten"] == ["small-1"]


@pytest.mark.whole
def test_a_release_whose_counts_were_forgotten_resumes_under_its_charge_and_a_finished_one_counts_nothing(
    small: Small, monkeypatch: pytest.MonkeyPatch
):
    home = Home(small.home)
    stop_before("sanitize", home, small.release)
    assert forget_leftovers(home)["forgotten"] == ["small-1"]
    assert run_stages(home, small.release) is False and left(small) == []
    for stage in ("validate", "discretize"):
        monkeypatch.setattr(without_prefect, stage, lambda *_: pytest.fail("a finished release was counted again"))
    (small.folder / "records.parquet").unlink()
    assert run_stages(home, small.release) is False and left(small) == []
