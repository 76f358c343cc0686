from __future__ import annotations

import datetime
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from schemas.errors import BudgetRefused, EvidenceBroken, SpecError
from tasks.stores.artifacts import Store
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tests.flows.conftest import Said, steps_in
from tests.flows.small import RELEASE, STRANGER, Small, make_small, write_records
from tests.flows.without_prefect import run_stages
from tests.prefect_server import PrefectServer

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("prefect_server")]

STAGES = [
    "plan", "validate", "discretize", "charge", "build tree", "sanitize", "correct", "synthesize", "publish", "evaluate",
    "forget exact counts",
]  # fmt: skip


def last_flow_run():
    from prefect import get_client
    from prefect.client.schemas.sorting import FlowRunSort

    with get_client(sync_client=True) as client:
        return client.read_flow_runs(sort=FlowRunSort.START_TIME_DESC, limit=1)[0]


def task_runs(flow_run_id) -> list:
    from prefect import get_client
    from prefect.client.schemas.filters import FlowRunFilter

    with get_client(sync_client=True) as client:
        ours = FlowRunFilter.model_validate({"id": {"any_": [flow_run_id]}})
        return sorted(client.read_task_runs(flow_run_filter=ours), key=lambda run: run.start_time)


def artifacts(flow_run_id) -> dict[str, str]:
    from prefect import get_client
    from prefect.client.schemas.filters import ArtifactFilter

    with get_client(sync_client=True) as client:
        ours = ArtifactFilter.model_validate({"flow_run_id": {"any_": [flow_run_id]}})
        return {each.key: each.type for each in client.read_artifacts(artifact_filter=ours) if each.key}


def granted(steps, epsilon: str = "1") -> None:
    assert steps("budget", "grant", "small-people", epsilon, "--why", "a test").code == 0


@dataclass(frozen=True)
class Released:
    """A release that was run once; tests only look at it, or run it again."""

    small: Small
    steps: Callable[..., Said]
    said: dict[str, Any]
    run: Any


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory, prefect_server) -> Released:
    small = make_small(tmp_path_factory.mktemp("released"), rows=2_003)
    steps = steps_in(small)
    granted(steps)
    return Released(small, steps, steps("run", small.release, "--json").json, last_flow_run())


@pytest.fixture
def finished(released: Released, small: Small) -> Small:
    """The release that was run once, with all it left, in a place of its own: a test may change it."""
    shutil.copytree(released.small.folder, small.folder, dirs_exist_ok=True)
    return small


@pytest.mark.whole
def test_a_release_runs_from_plan_to_evaluation_and_can_be_checked(released: Released):
    small, steps, said = released.small, released.steps, released.said
    assert (said["release"], said["epsilon"], said["charged"], said["balance"]) == ("small-1", "0.5", True, "0.5")
    folder = Path(said["folder"])
    assert folder == small.home / "public" / "small-1"
    assert pq.read_table(folder / "synthetic-1.parquet").column_names == ["region", "working", "age"]
    assert (folder / "synthetic-2.parquet").exists() and (folder / "index.html").exists()
    assert steps("verify", folder, "--key", small.home / "keys" / "signing-key.pub", "--json").json["ok"]
    assert Path(said["evaluation"]).read_text().count("CONFIDENTIAL") and "confidential" in Path(said["evaluation"]).parts
    assert list((small.home / "confidential").rglob("cells/*.parquet")) == []
    assert steps("budget", "verify", "--json").json["ok"]
    assert steps("show", "small-1", "--json").json["state"] == "evaluated"


@pytest.mark.whole
def test_a_person_recognises_the_run_in_the_ui(released: Released):
    run = released.run
    assert run.name == "release small-1" and {"small-1", "small-people"} <= set(run.tags)
    assert [each.name for each in task_runs(run.id)] == STAGES
    assert all({"small-1", "small-people"} <= set(each.tags) for each in task_runs(run.id))
    shown = artifacts(run.id)
    assert shown["plan-small-1"] == "table" and shown["budget-small-people"] == "progress"
    assert shown["tree-small-1"] == "image" and "bundle-small-1" in shown
    assert set(run.parameters) == {"release", "period"}


def test_the_same_release_twice_is_charged_once_and_stays_byte_for_byte(released: Released):
    small, steps, first = released.small, released.steps, released.said
    before = {path.name: path.read_bytes() for path in Path(first["folder"]).iterdir()}
    second = steps("run", small.release, "--json").json
    assert (first["charged"], second["charged"]) == (True, False)
    assert second["folder"] == first["folder"] and second["balance"] == first["balance"] == "0.5"
    assert before == {path.name: path.read_bytes() for path in Path(first["folder"]).iterdir()}
    assert list((small.home / "confidential").rglob("cells/*.parquet")) == []


def test_a_finished_name_with_another_spec_is_refused(finished: Small, steps):
    finished.write(epsilon="0.25")
    said = steps("run", finished.release)
    assert said.code == 2 and "another spec" in said.err
    assert steps("budget", "show", "small-people", "--json").json["charged"] == "0.5"


@pytest.mark.whole
def test_what_the_planner_refuses_is_told_with_the_files_name_by_plan_and_by_run(small: Small, steps):
    granted(steps)
    small.write(release=RELEASE.replace("tree, order: [region]", "uh, layers: 9"))
    planned, run = steps("plan", small.release), steps("run", small.release)
    assert planned.code == run.code == 2
    told = f"steps: {small.release}: layers: 9 are asked; the domain has 3 attributes.\n"
    assert planned.err == told and run.err == f"reads one Parquet file, records.parquet\n{told}"


@pytest.mark.slow
def test_an_unfinished_release_refuses_other_data(small: Small, steps, monkeypatch: pytest.MonkeyPatch):
    granted(steps)
    with monkeypatch.context() as broken:
        cannot_write(broken, "synthetic-2")
        assert steps("run", small.release).code == 1
    write_records(small.folder / "records.parquet", 2_004)
    said = steps("run", small.release)
    assert said.code == 2 and "other data" in said.err
    assert steps("budget", "show", "small-people", "--json").json["charged"] == "0.5"
    trail = steps("show", "small-1", "--json").json["trail"]
    assert sum(each["details"].get("stage") == "cells" for each in trail) == 2, "the attempt has left its trace in the ledger"
    write_records(small.folder / "records.parquet", 2_003)
    assert not steps("run", small.release, "--json").json["charged"]
    assert list((small.home / "confidential").rglob("cells/*.parquet")) == []


@pytest.mark.slow
@pytest.mark.parametrize("server", [True, False], ids=["recorded by a server", "embedded"])
def test_a_finished_release_answers_alike_whatever_its_source_holds(
    finished: Small, steps, prefect_server: PrefectServer, monkeypatch: pytest.MonkeyPatch, server: bool
):
    """Who may run releases and write sources cannot confirm a guessed table: nothing that is said or kept depends on it."""
    folder = finished.home / "public" / "small-1"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    entries = len(open_ledger(Home(finished.home)).entries())
    answers, source, last = [], finished.folder / "records.parquet", last_flow_run().id
    if server:
        monkeypatch.setenv("PREFECT_API_URL", prefect_server.url)
    for write in (lambda: None, lambda: write_records(source, 2_004), lambda: source.write_bytes(b"no table"), source.unlink):
        write()
        said = steps("run", finished.release, "--json")
        answers.append((said.code, said.out))
        assert (last_flow_run().id != last) is server, "Prefect is told where it has a server, and else not started"
        tasks = ["plan", "publish", "forget exact counts"]
        assert not server or [each.name for each in task_runs(last_flow_run().id)] == tasks
    assert len(set(answers)) == 1 and answers[0][0] == 0 and not json.loads(answers[0][1])["charged"]
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}
    assert len(open_ledger(Home(finished.home)).entries()) == entries
    assert list((finished.home / "confidential").rglob("cells/*.parquet")) == []


def test_where_the_evaluation_is_gone_no_page_is_named(finished: Small, steps):
    (finished.home / "confidential" / "small-1" / "evaluation.html").unlink()  # as after a restore: no backup has it
    assert steps("run", finished.release, "--json").json["evaluation"] is None
    assert "evaluation  not here" in steps("run", finished.release).out


def test_a_finished_release_whose_bundle_was_touched_is_not_returned(finished: Small, steps):
    (finished.home / "public" / "small-1" / "synthetic-1.parquet").write_bytes(b"something else")
    said = steps("run", finished.release)
    assert said.code == 5 and "does not verify" in said.err


@pytest.mark.slow
def test_a_spec_may_be_mended_as_long_as_nothing_is_charged(small: Small, steps):
    granted(steps, "0.3")
    assert steps("run", small.release).code == 3
    small.write(epsilon="0.3")
    assert steps("run", small.release, "--json").json["epsilon"] == "0.3"


@pytest.mark.usefixtures("heard_by_the_server")
@pytest.mark.whole
def test_a_refused_release_draws_nothing_and_everybody_can_see_why(small: Small, steps):
    granted(steps, "0.4")
    small.write(name="refused-1")
    said = steps("run", small.release, "--json")
    assert said.code == 3
    for words in ("refused-1", "0.5", "0.4", "steps budget grant small-people"):
        assert words in said.json["error"]
    run = last_flow_run()
    assert run.state_name == "Failed" and "asks ε=0.5; 0.4 of 0.4 is left" in run.state.message
    assert artifacts(run.id)["refused-refused-1"] == "markdown"
    assert [each.name for each in task_runs(run.id)] == STAGES[:1]  # no record was read
    assert [path.name for path in (small.home / "staging" / "refused-1").iterdir()] == ["plan"]
    assert list((small.home / "confidential").rglob("cells/*.parquet")) == []
    assert {entry.kind for entry in open_ledger(Home(small.home)).entries()} == {"grant", "seal"}
    assert events_about("refused-1") == [{"measure": "pure", "asked": "0.5", "left": "0.4", "granted": "0.4"}]


def events_about(release: str, patience: float = 20.0) -> list[dict]:
    """The payloads of `steps.budget.refused` for a release; Prefect stores events a moment later."""
    import time

    from prefect import get_client

    deadline = time.monotonic() + patience
    while True:
        with get_client(sync_client=True) as client:
            wanted = {"event": {"name": ["steps.budget.refused"]}}
            found = client.request("POST", "/events/filter", json={"filter": wanted, "limit": 50}).json()["events"]
        payloads = [each["payload"] for each in found if each["resource"].get("steps.release") == release]
        if payloads or time.monotonic() > deadline:
            return payloads
        time.sleep(0.5)


@pytest.mark.whole
def test_data_that_fail_validation_end_with_4_and_only_the_page_says_why(small: Small, steps):
    granted(steps)
    write_records(small.folder / "records.parquet", 2_003, region=STRANGER)
    said = steps("run", small.release)
    page = small.home / "confidential" / "small-1" / "validation.html"
    assert said.code == 4 and f"data fail validation; see {page}" in said.err
    assert STRANGER in page.read_text() and STRANGER not in said.err + said.out
    assert steps("budget", "show", "small-people", "--json").json["charged"] == "0"


@pytest.mark.slow
def test_records_that_cannot_be_read_are_found_before_anything_is_paid(small: Small, steps):
    granted(steps)
    for content in (None, b"", b"PAR1 this is not Parquet PAR1"):
        (small.folder / "records.parquet").unlink(missing_ok=True)
        if content is not None:
            (small.folder / "records.parquet").write_bytes(content)
        said = steps("run", small.release)
        assert said.code in (2, 4) and said.err
    assert steps("budget", "show", "small-people", "--json").json["charged"] == "0"


@pytest.mark.whole
def test_an_edited_ledger_stops_every_run(small: Small, steps):
    import sqlite3

    granted(steps)
    with sqlite3.connect(small.home / "ledger.db") as database:
        database.execute("DROP TRIGGER no_update")
        database.execute("UPDATE entries SET amount = 2 * amount, granted_after = 2 * granted_after")
    said = steps("run", small.release)
    assert said.code == 5 and "does not verify" in said.err
    assert not (small.home / "staging" / "small-1").exists()


def cannot_write(broken: pytest.MonkeyPatch, stage: str) -> None:
    """Until the patch is undone, the stage's artifact cannot be stored."""
    write = Store.write

    def fails(self, of, name, *rest, **more):
        return 1 / 0 if name == stage else write(self, of, name, *rest, **more)

    broken.setattr(Store, "write", fails)


@pytest.mark.slow
def test_a_lost_draw_burns_its_charge_when_a_person_says_so(small: Small, steps, monkeypatch: pytest.MonkeyPatch):
    granted(steps)
    with monkeypatch.context() as broken:
        cannot_write(broken, "consistent-counts")
        assert steps("run", small.release).code == 1
    for path in (small.home / "staging" / "small-1" / "noisy-counts").iterdir():
        path.unlink()
    said = steps("run", small.release)
    assert said.code == 5 and "nothing was burnt" in said.err and "steps burn small-1" in said.err
    assert steps("burn", "small-1", "--why", "its disk is gone", "--json").json["state"] == "burnt"
    again = steps("run", small.release, "--json").json
    assert again["charged"] and again["charges"] == 2 and again["balance"] == "0"
    assert steps("budget", "verify").code == 0


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["cells", "noisy-counts", "consistent-counts"])
def test_a_run_that_another_overtook_answers_with_what_that_one_published(
    small: Small, steps, monkeypatch: pytest.MonkeyPatch, stage: str
):
    """As where a machine slept, and its release was run elsewhere: when it wakes, nothing of it may be stored any more."""
    granted(steps)
    write, paid = Store.write, []

    def overtaken(self, of, name, *rest, **more):
        if name == stage and not paid:
            monkeypatch.setattr(Store, "write", write)
            paid.append(run_stages(Home(small.home), small.release))
        return write(self, of, name, *rest, **more)

    monkeypatch.setattr(Store, "write", overtaken)
    said = steps("run", small.release, "--json")
    assert paid == [stage == "cells"], "the other one paid only where this one had not"
    assert said.code == 0 and not said.json["charged"] and said.json["balance"] == "0.5", said.err
    assert steps("verify", said.json["folder"]).code == 0 and steps("budget", "verify").code == 0
    assert not list(small.home.rglob("cells/*.parquet"))


@pytest.mark.slow
def test_an_answer_does_not_depend_on_what_prefects_server_sends_back(small: Small, steps, monkeypatch):
    """A request sent twice is answered from the server's database, where a state has no data."""
    from prefect import flow_engine

    propose = flow_engine.propose_state_sync

    def answered_from_the_database(client, state, **named):
        return propose(client, state, **named).model_copy(update={"data": None})

    monkeypatch.setattr(flow_engine, "propose_state_sync", answered_from_the_database)
    refused = steps("run", small.release)
    assert refused.code == 3 and "steps budget grant" in refused.err
    granted(steps)
    assert steps("run", small.release, "--json").json["charged"]


def run_scheduled(small: Small, at: datetime.datetime):
    """The flow as a schedule starts it: the time at which it was due is not the time at which it runs."""
    from prefect import get_client
    from prefect.flow_engine import run_flow
    from prefect.states import Scheduled

    from flows.release import release
    from flows.runtime.place import embedded_in

    asked = {"release": str(small.release)}
    with get_client(sync_client=True) as client:
        due = client.create_flow_run(release, parameters=asked, state=Scheduled(scheduled_time=at))
    with embedded_in(Home(small.home)):
        return run_flow(release, flow_run=due, parameters=asked, return_type="state")


@pytest.mark.slow
def test_the_period_is_that_of_the_scheduled_time_however_late_the_run(small: Small, steps):
    granted(steps, "2")
    small.write(name="small-{year}q{quarter}")
    state = run_scheduled(small, datetime.datetime(2026, 3, 31, 23, 59, tzinfo=datetime.UTC))
    assert state.is_completed() and last_flow_run().name == "release small-2026q1"
    late = run_scheduled(small, datetime.datetime(2026, 1, 1, 6, 0, tzinfo=datetime.UTC))
    assert late.is_completed()
    by_hand = steps("run", small.release, "--period", "2026q1", "--json").json
    assert by_hand["release"] == "small-2026q1" and not by_hand["charged"] and by_hand["balance"] == "1.5"


@pytest.mark.whole
def test_an_audit_passes_a_sound_home_and_fails_on_one_flipped_byte(finished: Small, steps):
    from flows.audit import audit
    from flows.runtime.place import embedded_in

    folder = finished.home / "public" / "small-1"
    with embedded_in(Home(finished.home)):
        assert audit()["bundles"] == ["small-1"]
    path = folder / "synthetic-1.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(EvidenceBroken, match="synthetic-1.parquet"), embedded_in(Home(finished.home)):
        audit()
    assert steps("verify", folder).code == 5
    path.unlink()
    (folder / "manifest.json").unlink()
    assert any("manifest.json" in problem for problem in steps("budget", "verify", "--json").json["problems"])
    for file in finished.home.glob("ledger.db*"):
        file.unlink()
    with pytest.raises(EvidenceBroken, match="was lost: ledger.db is missing"), embedded_in(Home(finished.home)):
        audit()
    (gone := finished.folder / "mount").mkdir()
    with pytest.raises(SpecError, match="there is no home in .*mount: ledger.db is missing"), embedded_in(Home(gone)):
        audit()
    assert not (gone / "ledger.db").exists()


@pytest.mark.slow
def test_only_faults_of_the_infrastructure_are_tried_again(small: Small, monkeypatch: pytest.MonkeyPatch):
    from prefect import flow

    from flows.runtime import stages
    from schemas.errors import InfrastructureFault, SpecError, StepsError

    monkeypatch.setattr(stages, "exponential_backoff", lambda factor: [0.01] * stages.RETRIES)
    tries: list[str] = []

    def failing(home: Home, error: Exception) -> None:
        tries.append(type(error).__name__)
        raise error

    task = stages.stage("failing", failing)

    @flow
    def attempt(place: str, number: int) -> None:
        task(Home(place), cases[number][0])

    cases = [
        (OSError(28, "No space left on device"), InfrastructureFault, 4),
        (InfrastructureFault("busy"), InfrastructureFault, 4),
        (BudgetRefused("no"), BudgetRefused, 1),
        (SpecError("no"), SpecError, 1),
        (ValueError("no"), StepsError, 1),
    ]
    for number, (error, seen, times) in enumerate(cases):
        tries.clear()
        with pytest.raises(seen):
            attempt(str(small.home), number)
        assert len(tries) == times, error


def test_the_ledger_keeps_the_trail_of_a_run(released: Released):
    steps = released.steps
    trail = steps("show", "small-1", "--json").json
    kinds = [each["kind"] for each in trail["trail"]]
    assert [kind for kind in kinds if kind != "seal"] == ["charge", "publish", "evaluate"]
    charge = next(each for each in trail["trail"] if each["kind"] == "charge")
    assert charge["details"]["context"]["flow_run"] == str(released.run.id)
    assert charge["details"]["context"]["versions"]["prefect"]
    assert "fingerprint" not in json.dumps(trail)
    assert steps("show", "small-1").out and steps("budget", "log").out and steps("releases").out


@pytest.mark.slow
def test_csv_is_published_on_request(small: Small, steps):
    granted(steps)
    small.write(more="formats: [parquet, csv]\n")
    folder = Path(steps("run", small.release, "--json").json["folder"])
    assert (folder / "synthetic-1.csv").read_text().startswith("region,working,age")
    assert steps("verify", folder).code == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [
        "decomposition: flat",
        "decomposition: uh, layers: 2",
        "decomposition: tree, elect: {layers: 1}",
        "decomposition: cascade",
        "decomposition: privbayes",
        "decomposition: auto",
    ],
)
def test_every_way_to_decompose_resumes_under_one_charge(small: Small, steps, monkeypatch: pytest.MonkeyPatch, method: str):
    granted(steps, "0.5")
    small.write(release=RELEASE.replace("decomposition: tree, order: [region]", method))
    with monkeypatch.context() as broken, pytest.raises(ZeroDivisionError):
        cannot_write(broken, "synthetic-2")
        run_stages(Home(small.home), small.release)
    assert not run_stages(Home(small.home), small.release), "the second run pays nothing"
    assert steps("budget", "show", "small-people", "--json").json["balance"] == "0"
    assert steps("verify", small.home / "public" / "small-1").code == 0
