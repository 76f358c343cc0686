"""`steps server …` where no server is needed: the login, what is said at the door, and what is installed."""

from __future__ import annotations

import os
import re
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from flows.runtime import serving
from flows.runtime.prefect_settings import log_in, quiet
from schemas.errors import EvidenceBroken, InfrastructureFault, NotOwned, StepsError
from tasks.stages.forget import forget_leftovers
from tasks.stores.home import Home
from tasks.stores.keys import server_login
from tests.flows.small import Small


def test_the_login_is_made_once_and_is_long(tmp_path: Path):
    home, other = Home(tmp_path / "a"), Home(tmp_path / "b")
    name, _, password = server_login(home).partition(":")
    assert name == "steps" and len(password) >= 43
    assert server_login(home) == server_login(home) != server_login(other)


def test_runs_of_a_worker_sign_with_the_key_that_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    given = Home(tmp_path / "home", key_file=tmp_path / "night.pem")
    for name in ("STEPS_HOME", "STEPS_KEY", "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "PREFECT_FLOWS_HEARTBEAT_FREQUENCY"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    monkeypatch.setattr(serving, "owned_by", lambda home: None)
    monkeypatch.setattr(serving, "quiet", lambda folder: pytest.fail("here its runs would begin"))
    with pytest.raises(pytest.fail.Exception, match="would begin"):
        serving.work(given)
    assert Home.from_environment() == given


def test_a_login_that_others_may_read_or_that_is_none_is_refused(tmp_path: Path):
    home = Home(tmp_path)
    server_login(home)
    file = home.keys / "prefect-login"
    file.write_text("steps:short")
    with pytest.raises(EvidenceBroken, match="no login"):
        server_login(home)
    file.chmod(0o644)
    with pytest.raises(StepsError, match="chmod 600"):
        server_login(home)


def test_a_home_of_another_account_is_told_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Root may open every folder: access is denied here as another account would meet it."""
    home = Home(tmp_path)
    server_login(home)
    (home.confidential / "poll").mkdir()
    monkeypatch.setattr(os, "access", lambda *_: False)
    for use in (server_login, forget_leftovers, lambda home: quiet(home.folder)):
        with pytest.raises(InfrastructureFault, match="cannot use .*: Permission denied"):
            use(home)


@pytest.mark.parametrize(
    ("address", "is_told"),
    [("http://127.0.0.1:4200/api", True), ("http://localhost:4200/api", True), ("https://prefect.example/api", False)],
)
def test_the_login_is_told_to_a_server_on_this_machine_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, is_told: bool
):
    monkeypatch.setattr(os, "environ", {"PREFECT_API_URL": address})
    log_in(Home(tmp_path))
    assert ("PREFECT_API_AUTH_STRING" in os.environ) is is_told and "PREFECT_SERVER_API_AUTH_STRING" not in os.environ


@pytest.mark.parametrize("command", ["install", "work"])
def test_what_is_missing_is_said_at_the_door(small: Small, steps, command: str):
    said = steps("server", command)
    assert said.code == 2 and "PREFECT_API_URL is not set" in said.err


THEIRS = "name: theirs\ndeployments:\n  - {name: nightly, entrypoint: ENTRYPOINT, work_pool: {name: POOL}}\n"


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (None, "there is no prefect.yaml in .*; run this where it lies"),
        (THEIRS.replace("ENTRYPOINT", "flow.py:hello").replace("POOL", "steps"), "'nightly'.* is no flow of steps-release"),
        (THEIRS.replace("ENTRYPOINT", "flow.py:hello").replace("POOL", "other"), "lies in flow.py, and there is no such file"),
        (THEIRS.replace("ENTRYPOINT", "flows/release.py:release").replace("POOL", "steps"), "there is no such file"),
        ("name: theirs\n", "it has no 'deployments'"),
        ("- a list\n", "cannot be read as a prefect.yaml"),
        ("deployments: [a text]\n", "cannot be read as a prefect.yaml"),
        ("a: [", "cannot be read as a prefect.yaml"),
    ],
)
def test_another_projects_prefect_yaml_is_told_before_the_server_is_asked(
    small: Small, steps, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, written: str | None, told: str
):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    if written is not None:
        Path("prefect.yaml").write_text(written)
    said = steps("server", "install")
    assert said.code == 2 and re.search(told, said.err) and "Traceback" not in said.err


def test_where_prefect_cannot_deploy_its_last_words_are_told(monkeypatch: pytest.MonkeyPatch):
    failed = subprocess.CompletedProcess((), 1, "", "Traceback (most recent call last):\n  File x\nValueError: no cron\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(InfrastructureFault, match="failed: ValueError: no cron. Run it here") as told:
        serving._deploy()
    assert "Traceback" not in str(told.value)


def test_a_worker_that_owns_nothing_does_not_begin(small: Small, steps, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")
    said = steps("server", "work")
    assert said.code == 2 and "worker.yaml is missing" in said.err


def test_a_run_that_no_command_embeds_is_a_workers(small: Small, monkeypatch: pytest.MonkeyPatch):
    from flows.runtime.place import embedded_in, place_of_run

    monkeypatch.setenv("STEPS_HOME", str(small.home))
    Home(small.home).folder.joinpath("worker.yaml").write_text("releases: ..\nsources: [..]\npopulations: [small-people]\n")
    place = place_of_run()
    assert place.home.path == small.home and place.owned is not None
    with pytest.raises(NotOwned):
        place.release_file(str(small.release))
    with embedded_in(Home(small.folder / "other")):
        assert place_of_run().owned is None and place_of_run().release_file(str(small.release)) == small.release


@pytest.mark.parametrize("named", [{"out": "x"}, {"data": "records.parquet"}, {"domain": "dataset.yaml"}])
def test_a_workers_study_names_no_files(small: Small, monkeypatch: pytest.MonkeyPatch, named: dict[str, str]):
    from flows.study import study

    monkeypatch.setenv("STEPS_HOME", str(small.home))
    with pytest.raises(NotOwned, match="command line"):
        study.fn("voter", **named)


def test_flows_have_no_parameter_for_a_home_and_say_what_theirs_are():
    from prefect.utilities.callables import parameter_schema

    from flows.audit import audit
    from flows.release import release
    from flows.study import study

    assert all(each["description"] for each in parameter_schema(study.fn).model_dump()["properties"].values())
    asked = parameter_schema(release.fn).model_dump()["properties"]
    assert set(asked) == {"release", "period"} and "folder of releases" in asked["release"]["description"]
    assert "pattern" in str(asked["period"]) and parameter_schema(audit.fn).model_dump()["properties"] == {}


def test_every_automation_is_one_that_prefect_takes_and_waits_for_decisions_are_no_zombies():
    from flows.runtime.automations import watches

    made = {watch.name: watch.automation(()) for watch in watches()}
    assert {action.type for action in made["refused"].actions} == {"pause-deployment"}
    assert made["waiting"].trigger.within == timedelta(days=1)
    assert "prefect.flow-run.Suspended" in made["zombie"].trigger.expect
    assert {action.type for action in made["late"].actions} == {"do-nothing"}, "without a webhook nobody is told"
