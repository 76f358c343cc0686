"""The comparison with MST and AIM: which files, what is kept, and what a run that was stopped says."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from benchmarks import peers
from benchmarks.cascade import read
from benchmarks.peers import Made, Run

QUIET = Console(quiet=True)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two coded files, and one without its sizes; nothing kept yet."""
    codes = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (200, 3)), columns=["a", "b", "c"])
    for name in ("small", "other", "unsized"):
        codes.to_parquet(tmp_path / f"{name}.parquet")
    for name in ("small", "other"):
        (tmp_path / f"{name}-domain.json").write_text(json.dumps({"a": 2, "b": 2, "c": 2}))
    monkeypatch.setattr(peers, "KEPT", tmp_path / "kept" / "peers.json")
    return tmp_path


def run_of(folder: Path, method: str = "MST", settings: dict | None = None, limit: int = 0) -> Run:
    return Run(folder / "small.parquet", method, 1.0, 0, settings or {}, limit)


@pytest.mark.parametrize(
    ("place", "names", "said"),
    [
        (None, None, "no folder was given: make bench-peers DATA=FOLDER"),
        ("nowhere", None, "nowhere is no folder: make bench-peers DATA=FOLDER"),
        (".", "small,unsized", "without NAME-domain.json: unsized. There: other, small"),
    ],
)
def test_files_that_are_not_there_are_said(folder, monkeypatch, place, names, said):
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit) as ended:
        peers.files_in(place, names)
    assert said in str(ended.value)


def test_files_are_those_that_have_their_sizes_beside_them(folder):
    assert {file.stem for file in peers.files_in(str(folder), None)} == {"small", "other"}


def test_an_interrupted_run_goes_on_where_it_was(folder, monkeypatch):
    asked: list[Run] = []
    monkeypatch.setattr(peers, "peers", lambda original, run: asked.append(run) or Made(0.1, 0.2, 3.0))
    table = read(str(folder / "small.parquet"), str(folder / "small-domain.json"))
    for _ in range(2):
        assert peers.made_by(table, run_of(folder), QUIET) == Made(0.1, 0.2, 3.0)
    assert len(asked) == 1
    for another in (run_of(folder, "AIM"), run_of(folder, settings={"n_iters": 5}), run_of(folder, limit=9)):
        peers.made_by(table, another, QUIET)
    assert len(asked) == 4, "another method, setting or limit is another run"
    pd.read_parquet(folder / "small.parquet").iloc[1:].to_parquet(folder / "small.parquet")
    peers.made_by(table, run_of(folder), QUIET)
    assert len(asked) == 5, "and so are other data"


def test_ours_is_measured_anew(folder):
    table = read(str(folder / "small.parquet"), str(folder / "small-domain.json"))
    made = peers.made_by(table, run_of(folder, "pairs"), QUIET)
    assert made.finished and 0 < made.two_way < made.three_way < 1 and not peers.KEPT.exists()


def test_a_run_that_was_stopped_says_so_and_has_no_ratio():
    ours, stopped = Made(0.02, 0.06, 1.0), Made(math.inf, math.inf, 300.0)
    assert peers.shown(stopped) == "not finished in 300 s" and peers.ratio(ours, stopped) == ""
    assert peers.ratio(ours, Made(0.04, 0.08, 90.0)) == "0.50 / 0.75"
    assert peers.mean([ours, Made(0.04, 0.08, 3.0)]) == Made(0.03, 0.07, 2.0)
    midway = Made(0.03, 0.07, 300.0, "in round 9, 40% of ρ; model of 8 rounds")
    assert peers.shown(midway) == "not finished in 300 s: 0.0300 / 0.0700 in round 9, 40% of ρ; model of 8 rounds"
    assert peers.ratio(ours, midway) == "" and not peers.mean([ours, midway]).finished


def test_settings_are_the_peers_own_arguments():
    assert peers.settings("n_iters=1000,max_model_size=2.5") == {"n_iters": 1000, "max_model_size": 2.5}
    assert peers.settings("") == {}
