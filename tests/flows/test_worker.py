"""The worker's side of a rewritten server: a template and job variables that ask for everything get nothing."""

from __future__ import annotations

import asyncio
import os
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

EVIL = {
    "command": "touch PWNED",
    "env": {"STEPS_HOME": "/evil", "PYTHONPATH": "/evil"},
    "working_dir": "/evil",
    "stream_output": True,
}


def prepared(configuration: Any, evil_template: bool) -> Any:
    """How a run would be started, by a pool with a template that has all variables, or with constants of the attacker."""
    from prefect.client.schemas.objects import FlowRun
    from prefect.workers.process import ProcessWorker

    template = ProcessWorker.get_default_base_job_template()
    if evil_template:
        template = {"job_configuration": EVIL, "variables": {"type": "object", "properties": {}}}
    made = asyncio.run(configuration.from_template_and_values(template, dict(EVIL), client=SimpleNamespace()))
    made.prepare_for_flow_run(FlowRun(flow_id=uuid4(), name="a run"))
    return made


@pytest.mark.parametrize("evil_template", [False, True], ids=["job variables", "a template"])
def test_command_environment_and_folder_are_the_workers_own(evil_template: bool):
    from flows.runtime.worker import COMMAND, PinnedConfiguration

    made = prepared(PinnedConfiguration, evil_template)
    assert made.command == COMMAND and "prefect.engine" in COMMAND and made._command_configured
    assert made.working_dir is None and made.stream_output is False
    assert made.env.get("PYTHONPATH") == os.environ.get("PYTHONPATH") and made.env.get("STEPS_HOME") != "/evil"


@pytest.mark.parametrize("evil_template", [False, True], ids=["job variables", "a template"])
def test_the_control_prefects_own_configuration_takes_them_all(evil_template: bool):
    from prefect.workers.process import ProcessJobConfiguration

    made = prepared(ProcessJobConfiguration, evil_template)
    assert (made.command, str(made.working_dir), made.env["STEPS_HOME"]) == ("touch PWNED", "/evil", "/evil")


def test_every_flow_of_the_worker_is_one_of_ours_and_what_is_deployed_is_among_them():
    from prefect.flows import load_flow_from_entrypoint
    from ruamel.yaml import YAML

    from flows.runtime.worker import FLOWS
    from tests.import_graph import ROOT

    assert {name: load_flow_from_entrypoint(entrypoint).name for name, entrypoint in FLOWS.items()} == {
        name: name for name in FLOWS
    }
    deployments = YAML(typ="safe").load((ROOT / "prefect.yaml").read_text())["deployments"]
    paths = {each["entrypoint"].removesuffix(".py").replace("/", ".").replace(".py:", ".") for each in deployments}
    assert paths <= set(FLOWS.values())
