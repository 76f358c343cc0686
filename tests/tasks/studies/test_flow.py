"""The study as a Prefect flow: interrupted, it goes on where it was; a worker that dies is replaced."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from schemas.errors import InfrastructureFault, StepsError
from tasks.stores.home import Home
from tasks.studies.points import ask, compute, grid, prepare
from tasks.studies.process_pool import ProcessPool

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def in_a_command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A study with files of its own is a command's, not a worker's."""
    from flows.runtime.place import embedded_in

    with embedded_in(Home(tmp_path_factory.mktemp("home"))):
        yield


def command(folder: Path, repeats: int) -> list[str]:
    words = f"study simulation --json --repeats {repeats} --epsilon 2 --method steps --method original --out {folder}"
    return [sys.executable, "-c", "from flows.cli import main; main()", "--home", str(folder / "home"), *words.split()]


def surroundings() -> dict:
    """A process of its own, with a Prefect of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "STEPS_"))}
    return {"env": kept | {"PYTHONPATH": str(ROOT)}, "cwd": ROOT}


def finished(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.glob("points/*.parquet")}


def die() -> None:
    os._exit(9)


@pytest.mark.slow
def test_a_study_interrupted_goes_on_without_computing_anything_again(tmp_path, prefect_api):
    from flows.study import study

    asked = {"name": "simulation", "repeats": 1, "epsilon": ["2"], "method": ["steps", "original"]}
    points = list(grid(ask(**asked), prepare(ask(**asked), tmp_path)))
    for point in points[:3]:
        compute(point, tmp_path)  # what an interrupted run left
    kept = finished(tmp_path)
    first = study(**asked, out=str(tmp_path))
    assert (first["points"], first["computed"]) == (8, 5)
    again = study(**asked, out=str(tmp_path))
    assert (again["points"], again["computed"]) == (8, 0) and again["figures"] == first["figures"]
    assert kept.items() <= finished(tmp_path).items()


@pytest.mark.slow
def test_more_repeats_compute_only_what_is_new(tmp_path, prefect_api):
    from flows.study import study

    asked = {"name": "simulation", "epsilon": ["2"], "method": ["original"], "out": str(tmp_path)}
    assert study(**asked, repeats=1)["computed"] == 4
    assert study(**asked, repeats=2)["computed"] == 4


@pytest.mark.slow
def test_a_failing_point_fails_the_study_with_its_reason(tmp_path, prefect_api):
    from flows.study import study

    with pytest.raises(StepsError, match="no method"):
        study(name="voter", method=["nothing"], out=str(tmp_path))


def stopped(folder: Path, **environment: str) -> dict[Path, int]:
    """What a study has finished when Ctrl-C is pressed in its terminal."""
    listening = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a background shell lets its children ignore it
    around = surroundings()
    around["env"] |= environment
    terminal = {"stderr": subprocess.PIPE, "text": True, "preexec_fn": listening, "start_new_session": True}
    running = subprocess.Popen(command(folder, repeats=40), **terminal, **around)
    deadline = time.monotonic() + 240
    while len(finished(folder)) < 5 and time.monotonic() < deadline and running.poll() is None:
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGINT)  # a terminal sends it to every process begun in it
    _, said = running.communicate(timeout=60)  # a run whose Prefect server died of it would ask for that one much longer
    assert running.returncode == 1 and "stopped" in said and "go on" in said and "Traceback" not in said
    return finished(folder)


@pytest.mark.slow
@pytest.mark.server
def test_control_c_keeps_finished_points_and_the_next_run_goes_on(tmp_path):
    kept = stopped(tmp_path)
    assert 5 <= len(kept) < 8 * 40
    done = subprocess.run(command(tmp_path, repeats=2), capture_output=True, text=True, timeout=300, **surroundings())
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["computed"] <= 16 - 5
    assert kept.items() <= finished(tmp_path).items()


@pytest.mark.slow
def test_control_c_stops_a_cluster_of_ours_too(tmp_path, prefect_api):
    pytest.importorskip("prefect_dask", reason='prefect-dask is not installed: pip install "steps-release[dask]"')
    kept = stopped(tmp_path, STEPS_DASK="local:2", PREFECT_API_URL=prefect_api)
    assert 5 <= len(kept) < 8 * 40


@pytest.mark.whole
def test_a_dead_worker_is_a_fault_worth_a_retry_and_is_replaced():
    with ProcessPool(1) as pool:
        with pytest.raises(InfrastructureFault, match="died"):
            pool.call(die)
        assert pool.call(int, "7") == 7


def test_an_error_in_a_worker_comes_back_as_it_is():
    with ProcessPool(1) as pool, pytest.raises(ValueError, match="invalid literal"):
        pool.call(int, "x")


def test_a_stopped_crew_takes_no_more_work():
    with ProcessPool(1) as pool:
        assert pool.call(int, "1") == 1
    with pytest.raises(StepsError, match="stopped"):
        pool.call(int, "2")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["voter", "--method", "stepz"], "no method 'stepz'"),
        (["voter", "--epsilon", "0"], "positive"),
        (["simulation", "--epsilon=-2"], "positive"),
        (["voter", "--repeats", "0"], "--repeats"),
        (["voter", "--delta", "0"], "delta must be above 0"),
        (["voter", "--delta", "0.1"], "no reason serves"),
        (["voter", "--delta", "0.00001"], "far below one in all"),
        (["elsewhere"], "elsewhere"),
    ],
)
def test_bad_input_exits_with_2_and_says_why(tmp_path, words, said):
    from flows.cli import main

    done = CliRunner().invoke(main, ["--home", str(tmp_path), "study", *words, "--out", str(tmp_path / "out")])
    assert done.exit_code == 2 and said in done.stderr and not (tmp_path / "out").exists()
