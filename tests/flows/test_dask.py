"""The same flows on a Dask cluster of two workers and a ledger on PostgreSQL: same cells, one charge, nothing confidential sent."""

from __future__ import annotations

import os
import socket
import ssl
import struct
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest

from schemas.errors import InfrastructureFault, SpecError, StepsError
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tests.flows.conftest import steps_in
from tests.flows.small import DATASET, LITTLE, PERSON, ROWS, STRANGER, Small, canaries_in, drawn, leaks, make_small
from tests.postgres import running_server

pytest.importorskip("prefect_dask", reason='prefect-dask is not installed: pip install "steps-release[dask]"')
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("prefect_server")]

FILES = 3


def make_folder(folder: Path, rows: int) -> Small:
    """The small release with its records in several files; in `plain` the same records without the person's number."""
    small = make_small(folder, rows)
    whole = pq.read_table(folder / "records.parquet")
    (folder / "plain.yaml").write_text(DATASET.replace("unit: {column: person, rows_per_person: 1}\n", ""))
    for name, table in {"records": whole, "plain": whole.drop_columns("person")}.items():
        (folder / name).mkdir()
        for number in range(FILES):
            share = table.slice(number * rows // FILES, (number + 1) * rows // FILES - number * rows // FILES)
            pq.write_table(share, folder / name / f"{number}.parquet")
    return small


def write_release(small: Small, name: str) -> Path:
    path = small.write(name=name, epsilon=LITTLE)
    path.write_text(path.read_text().replace("records.parquet", "records"))
    return path


def write_plain_release(small: Small, name: str) -> Path:
    path = write_release(small, name)
    path.write_text(path.read_text().replace("dataset.yaml", "plain.yaml").replace("source: records", "source: plain"))
    return path


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    return listen(monkeypatch)


def listen(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """All messages of a cluster whose scheduler is in this process: from and to client and workers, as they are sent."""
    from distributed.comm import tcp

    messages: list[bytes] = []
    to_frames, from_frames = tcp.to_frames, tcp.from_frames

    async def sending(*arguments: Any, **named: Any) -> Any:
        frames = await to_frames(*arguments, **named)
        messages.append(b"".join(map(bytes, frames)))
        return frames

    async def receiving(frames: Any, *arguments: Any, **named: Any) -> Any:
        messages.append(b"".join(map(bytes, frames)))
        return await from_frames(frames, *arguments, **named)

    monkeypatch.setattr(tcp, "to_frames", sending)
    monkeypatch.setattr(tcp, "from_frames", receiving)
    return messages


def confidential_in(messages: list[bytes]) -> list[str]:
    """Canaries as text, and the numbers among them as a pickle or an array would hold them."""
    binary = {"the number of rows": struct.pack("<I", ROWS), "a person's number": struct.pack("<Q", PERSON)[:7]}
    found = {name for message in messages for name in canaries_in(message)}
    return sorted(found | {name for message in messages for name, number in binary.items() if number in message})


@dataclass(frozen=True)
class Both:
    """The same records released into one home: by `steps run`, embedded, and on a cluster, with and without their persons."""

    small: Small
    home: Home
    embedded: dict[str, Any]
    shared: dict[str, Any]
    again: dict[str, Any]
    messages: list[bytes]
    verified: list[int]  # exit codes


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, prefect_server) -> Iterator[Both]:
    small = make_folder(tmp_path_factory.mktemp("both"), ROWS)
    with running_server() as server:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute("CREATE DATABASE ledger")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("STEPS_LEDGER", server.rpartition("/")[0] + "/ledger")
            released = _release_all(small, patch)
        yield released


def _release_all(small: Small, patch: pytest.MonkeyPatch) -> Both:
    steps = steps_in(small)
    steps("budget", "grant", "small-people", "0.00015", "--why", "three releases")
    embedded = steps("run", write_release(small, "embedded-1"), "--json").json
    patch.setenv("STEPS_DASK", "local:2")
    messages = listen(patch)
    plain = run_on_cluster(write_plain_release(small, "plain-1"), small.home)
    shared = run_on_cluster(write_release(small, "shared-1"), small.home)
    again = steps("run", small.release, "--json").json
    checks = [("budget", "verify"), ("verify", embedded["folder"]), ("verify", shared["folder"]), ("verify", plain["folder"])]
    verified = [steps(*words).code for words in checks]
    return Both(small, Home.from_environment(str(small.home)), embedded, shared, again, messages, verified)


def run_on_cluster(path: Path, home: Path) -> dict[str, Any]:
    """The flow as a process that is started with STEPS_DASK has it."""
    from flows.release import release
    from flows.runtime.place import embedded_in
    from flows.runtime.task_runners import task_runner

    with embedded_in(Home.from_environment(str(home))):
        return release.with_options(task_runner=task_runner())(release=str(path))


def sealed(home: Home, stage: str) -> dict[str, str]:
    """The digest of a stage's artifact by release."""
    seals = [entry for entry in open_ledger(home).entries() if entry.kind == "seal" and entry.details["stage"] == stage]
    return {entry.release: entry.details["digest"] for entry in seals}


@pytest.mark.postgres
def test_a_cluster_counts_the_same_cells_to_the_byte(both: Both):
    digests = sealed(both.home, "cells")
    assert set(digests) == {"embedded-1", "plain-1", "shared-1"} and len(set(digests.values())) == 1
    noisy = sealed(both.home, "noisy-counts")
    assert len(set(noisy.values())) == 3, "the control: what is drawn differs, and so do its digests"


@pytest.mark.postgres
def test_a_release_on_a_cluster_is_charged_once_in_the_ledger_that_all_share(both: Both):
    entries = open_ledger(both.home).entries()
    charges = [entry.release for entry in entries if entry.kind == "charge"]
    assert charges == ["embedded-1", "plain-1", "shared-1"] and both.embedded["charged"]
    assert (both.shared["charged"], both.shared["balance"]) == (True, "0")
    assert (both.again["charged"], both.again["folder"]) == (False, both.shared["folder"])
    assert not (both.small.home / "ledger.db").exists()
    assert both.verified == [0, 0, 0, 0]


@pytest.mark.postgres
def test_files_and_sets_are_tasks_of_their_own_on_a_cluster_and_one_task_without(both: Both):
    from tests.flows.test_release_flow import task_runs

    names = ("embedded-1", "plain-1", "shared-1")
    ran = {name: [run.name for run in task_runs(_flow_run(f"release {name}"))] for name in names}
    assert ran["plain-1"].count("count files") == FILES
    assert all({"synthesize 1", "synthesize 2"} <= set(ran[name]) for name in ("plain-1", "shared-1"))
    assert [ran[name].count("discretize") for name in names] == [1, 1, 1]
    assert "count files" not in ran["embedded-1"] and ran["embedded-1"].count("synthesize") == 1
    assert "count files" not in ran["shared-1"], "a person's rows may lie in any file: one pass sees all of them"


def _flow_run(name: str) -> Any:
    from prefect import get_client
    from prefect.client.schemas.filters import FlowRunFilter

    with get_client(sync_client=True) as client:
        runs = client.read_flow_runs(flow_run_filter=FlowRunFilter.model_validate({"name": {"any_": [name]}}))
    return min(runs, key=lambda run: run.start_time).id


@pytest.mark.postgres
def test_no_canary_is_sent_to_a_worker_or_back_and_no_part_is_left(both: Both):
    assert any(b"synthesize" in message for message in both.messages), "the control: the messages are there"
    assert confidential_in(both.messages) == []
    assert leaks(both.small.home) == []
    assert [path for path in both.home.confidential.rglob("*") if "parts-" in str(path)] == []


@pytest.fixture(scope="module")
def scheduler(prefect_server) -> Iterator[str]:
    """A cluster that somebody else started; a task whose worker died is not tried elsewhere."""
    import dask
    from distributed import LocalCluster

    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster:
            yield cluster.scheduler_address


@pytest.fixture
def handed_out(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list]:
    """Runs a stage on the cluster, once per item."""
    from prefect import flow, unmapped

    from flows.runtime.stages import stage
    from flows.runtime.task_runners import all_of, hand_out, task_runner

    monkeypatch.setenv("STEPS_DASK", scheduler)

    def run(home: Path, function: Callable, *same: Any, items: list) -> list:
        task = stage("on a worker", function)

        @flow(task_runner=task_runner())
        def on_cluster() -> list:
            return all_of(hand_out(task, *map(unmapped, (Home(home), *same)), items))

        return on_cluster()

    return run


def test_what_a_task_lets_slip_is_found_in_the_messages(tmp_path, handed_out, heard: list[bytes]):
    def slip(home: Home, item: int) -> tuple:
        return item * 1_000, f"{STRANGER[:5]}{STRANGER[5:]}", PERSON // 2 * 2

    handed_out(tmp_path / "home", lambda home, item: item, items=[1, 2])
    assert confidential_in(heard) == []
    handed_out(tmp_path / "home", lambda home, item: ROWS + item, items=[0])
    assert confidential_in(heard) == ["the number of rows"]
    handed_out(tmp_path / "home", slip, items=[1])
    assert len(confidential_in(heard)) == 3


def test_an_error_on_a_worker_passes_the_same_boundary(tmp_path, handed_out):
    def failing(home: Home, item: int) -> None:
        raise ValueError(f"{item} of {STRANGER}")

    def refusing(home: Home, item: int) -> None:
        raise SpecError("asked for what cannot be")

    with pytest.raises(StepsError, match="ValueError") as caught:
        handed_out(tmp_path / "home", failing, items=[1])
    assert STRANGER not in str(caught.value) and "confidential/errors" in str(caught.value)
    assert STRANGER in "".join(path.read_text() for path in (tmp_path / "home/confidential/errors").iterdir())
    with pytest.raises(SpecError, match="what cannot be"):
        handed_out(tmp_path / "home", refusing, items=[1])


def test_a_worker_that_dies_is_a_fault_of_the_infrastructure(tmp_path, handed_out):
    def dying(home: Home, item: int) -> None:
        os._exit(9)

    with pytest.raises(InfrastructureFault, match="workers of the Dask cluster died"):
        handed_out(tmp_path / "home", dying, items=[1])


def test_a_set_made_twice_at_the_same_time_is_one_set(tmp_path, handed_out):
    from tasks.stages.correct import correct
    from tasks.stages.synthesize import synthesize_set

    small = make_folder(tmp_path, rows=2_003)
    home, asked, planned, _, tree, noisy = drawn(small)
    made = (planned, tree, noisy, correct(home, asked, planned, tree, noisy))
    first, second, other = handed_out(small.home, synthesize_set, asked, *made, items=[1, 1, 2])
    assert first == second and first.digest != other.digest
    stages = [entry.details["stage"] for entry in open_ledger(home).entries() if entry.kind == "seal"]
    assert (stages.count("synthetic-1"), stages.count("synthetic-2")) == (1, 1)


def test_parts_of_a_set_that_workers_make_are_joined_to_the_set_that_one_makes(tmp_path, handed_out):
    from tasks.stages.correct import correct
    from tasks.stages.synthesize import join_parts, make_part, room_for_sets, synthesize_set

    small = make_folder(tmp_path, rows=2_003)
    home, asked, planned, _, tree, noisy = drawn(small)
    made = (planned, tree, noisy, correct(home, asked, planned, tree, noisy))
    with room_for_sets(home, asked, 2, [1]) as room:
        handed_out(small.home, make_part, asked, *made, 2, items=room)
        joined = join_parts(home, asked, 1, [path for _, _, path in room])
    path = home.staging / asked.name / "synthetic-1" / f"{joined.id}.parquet"
    path.unlink()
    assert synthesize_set(home, asked, *made, 1) == joined and not list(home.staging.rglob("parts-*"))


def test_a_study_on_a_cluster_finds_the_figures_of_an_embedded_one(tmp_path, scheduler, monkeypatch: pytest.MonkeyPatch):
    from flows.runtime.place import embedded_in
    from flows.runtime.task_runners import task_runner
    from flows.study import study
    from tasks.studies.points import ask, compute, grid, read_points

    asked = {"name": "simulation", "repeats": 1, "epsilon": ["2"], "method": ["steps"]}
    points = list(grid(ask(**asked), ""))
    monkeypatch.setenv("STEPS_DASK", scheduler)
    with embedded_in(Home(tmp_path / "home")):
        answer = study.with_options(task_runner=task_runner())(**asked, out=str(tmp_path / "shared"))
    assert (answer["points"], answer["computed"]) == (4, 4)
    (tmp_path / "alone" / "points").mkdir(parents=True)
    for point in points:
        compute(point, tmp_path / "alone")
    alone, shared = (read_points(points, tmp_path / place).query("measure != 'seconds'") for place in ("alone", "shared"))
    assert len(alone) and shared.equals(alone)


def test_a_local_cluster_listens_on_loopback_behind_keys_and_shows_no_pages():
    from distributed import Client

    from flows.runtime.dask_cluster import local_cluster

    with local_cluster(1) as cluster:
        address, server = cluster.scheduler_address, cluster.scheduler.http_server
        assert address.startswith("tls://127.0.0.1:") and server.address == "127.0.0.1"
        for page in ("status", "info/main/workers.html", "json/counts.json", "metrics"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(f"http://127.0.0.1:{server.port}/{page}", timeout=10)
        with pytest.raises(ssl.SSLError, match="certificate required"):
            call_without_keys(int(address.rpartition(":")[2]))
        with Client(cluster) as ours:
            assert ours.submit(int, "7").result() == 7


@pytest.mark.parametrize("patient", [True, False])
def test_a_worker_that_takes_long_to_end_does_not_fail_what_was_done(patient: bool, monkeypatch: pytest.MonkeyPatch):
    import psutil
    from distributed.process import AsyncProcess

    from flows.runtime import dask_cluster

    async def starved(process: AsyncProcess, timeout: float | None = None) -> None:
        raise TimeoutError

    if not patient:
        monkeypatch.setattr(dask_cluster, "PatientNanny", dask_cluster.Nanny)
    cluster = dask_cluster.local_cluster(1)
    workers = [psutil.Process(nanny.pid) for nanny in cluster.workers.values()]
    with monkeypatch.context() as machine:
        machine.setattr(AsyncProcess, "join", starved)
        if patient:
            cluster.close()
        else:  # the control
            pytest.raises(TimeoutError, cluster.close)
    assert len(psutil.wait_procs(workers, 30)[0]) == 1
    assert (cluster.status.name == "closed") is patient


def call_without_keys(port: int) -> bytes:
    """What somebody else on this machine is told."""
    anybody = ssl.create_default_context()
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port), timeout=10) as line, anybody.wrap_socket(line) as secured:
        return secured.recv(1)


@pytest.mark.parametrize("setting", ["2", "local:0", "local", "http://host:1", "tcp://host", "tcp://host:1/x", "local:2 "])
def test_a_setting_that_cannot_be_is_refused_with_what_can(setting: str, monkeypatch: pytest.MonkeyPatch):
    from flows.runtime.task_runners import task_runner

    monkeypatch.setenv("STEPS_DASK", setting)
    with pytest.raises(SpecError, match="local:2, tcp://host:port or tls://host:port"):
        task_runner()


def test_without_the_setting_nothing_changes(monkeypatch: pytest.MonkeyPatch):
    from prefect.task_runners import ThreadPoolTaskRunner

    from flows.runtime.task_runners import task_runner

    for unset in (None, ""):
        monkeypatch.delenv("STEPS_DASK", raising=False) if unset is None else monkeypatch.setenv("STEPS_DASK", unset)
        assert isinstance(task_runner(), ThreadPoolTaskRunner)


def test_a_bad_setting_ends_a_run_with_2_and_says_why(steps_process, small: Small, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("STEPS_DASK", "two")
    steps_process("budget", "grant", "small-people", "1", "--why", "test")
    said = steps_process("run", small.release)
    assert said.code == 2 and "STEPS_DASK is 'two'" in said.err and said.out == ""


def test_a_cluster_out_of_reach_is_a_fault_of_the_infrastructure(tmp_path, monkeypatch: pytest.MonkeyPatch):
    import dask

    small = make_folder(tmp_path, rows=90)
    steps_in(small)("budget", "grant", "small-people", "1", "--why", "test")
    monkeypatch.setenv("STEPS_DASK", "tcp://127.0.0.1:1")
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}), pytest.raises(InfrastructureFault, match="be reached"):
        run_on_cluster(write_plain_release(small, "far-1"), small.home)
    assert [*(small.home / "confidential" / "far-1").glob("parts-*")] == []
