"""`steps server start`, `install` and `work`: Prefect's server behind its login, what stands on it, and who runs it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from flows.runtime.prefect_settings import log_in, quiet
from schemas.errors import InfrastructureFault, SpecError
from tasks.ownership import owned_by
from tasks.stores.home import Home
from tasks.stores.keys import server_login

DEPLOYMENTS = "prefect.yaml"
HOST = "127.0.0.1"


def start(home: Home, port: int, origin: str | None) -> NoReturn:
    """Becomes Prefect's server: on loopback, for those who have the login, asked by pages of its own origin alone."""
    quiet(home.folder)
    own = origin or f"http://{HOST}:{port}"
    os.environ |= {
        "PREFECT_SERVER_API_AUTH_STRING": server_login(home),
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": own,
        "PREFECT_UI_API_URL": f"{own}/api",
        "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
        "PREFECT_SERVER_LOGGING_LEVEL": "WARNING",
        "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "INFO",
    }
    os.environ.pop("PREFECT_API_URL", None)
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", HOST, "--port", str(port)]
    os.execv(sys.executable, command)


def install(home: Home, notify: str | None) -> dict[str, Any]:
    """The work pool without variables, the deployments of this folder, the automations; installed again, they are updated."""
    _must_name_a_server()
    quiet(home.folder)
    log_in(home)  # before anything imports Prefect, which reads its settings once
    _must_deploy_ours(Path(DEPLOYMENTS))
    import httpx
    from prefect import get_client

    from flows.runtime.automations import install_automations

    try:
        with get_client(sync_client=True) as client:
            _install_pool(client)
            _deploy()
            _close_schemas(client)
            deployed = sorted(each.name for each in client.read_deployments())
            automations, told = install_automations(client, notify)
    except httpx.HTTPStatusError as error:
        found = f"answered {error.response.status_code}"
    except httpx.HTTPError as error:
        found = f"cannot be reached ({type(error).__name__})"
    else:
        return {"deployed": deployed, "automations": automations, "notified": told}
    raise InfrastructureFault(
        f"Prefect's server at {os.environ['PREFECT_API_URL']} {found}. It must run, and with the login that this home has "
        "(`steps server login`) or that PREFECT_API_AUTH_STRING says. What was installed stays; run this again."
    )


def show(answer: dict[str, Any]) -> None:
    click.echo(f"deployed     {', '.join(answer['deployed'])}")
    click.echo(f"automations  {', '.join(answer['automations'])}")
    nobody = 'nobody: give --notify URL (or STEPS_NOTIFY), a webhook that takes {"text": …}'
    click.echo(f"told         {'the webhook' if answer['notified'] else nobody}")


def work(home: Home) -> dict[str, Any]:
    """Runs what the server asks for until it is told to stop."""
    _must_name_a_server()
    owned_by(home)  # a worker that owns nothing says so at once
    os.environ |= home.for_runs()
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "INFO")
    os.environ.setdefault("PREFECT_FLOWS_HEARTBEAT_FREQUENCY", "30")  # a run that falls silent is noticed
    quiet(home.folder)
    log_in(home)
    from prefect.settings import PREFECT_WORKER_HEARTBEAT_SECONDS
    from prefect.utilities.processutils import setup_signal_handlers_worker

    from flows.runtime.worker import POOL, Worker

    def say(*words: object, **_style: object) -> None:
        click.echo(" ".join(map(str, words)), err=True)

    setup_signal_handlers_worker(os.getpid(), "the worker", say)
    beat = int(PREFECT_WORKER_HEARTBEAT_SECONDS.value())
    worker = Worker(work_pool_name=POOL, create_pool_if_not_found=False, heartbeat_interval_seconds=beat)
    try:
        asyncio.run(worker.start(printer=say))
    except (KeyboardInterrupt, asyncio.CancelledError):
        pass
    return {"worker": worker.name}


def _must_name_a_server() -> None:
    if not os.environ.get("PREFECT_API_URL"):
        raise SpecError(
            "PREFECT_API_URL is not set: start a server with `steps server start`, then name it, as "
            f"PREFECT_API_URL=http://{HOST}:4200/api."
        )


def _must_deploy_ours(path: Path) -> None:
    """Another project's prefect.yaml is told in words, before anything is put on the server."""
    from flows.runtime.timetable import deployments_of
    from flows.runtime.worker import FLOWS, POOL

    if not path.is_file():
        raise SpecError(f"there is no {path} in {Path.cwd()}; run this where it lies.")
    ours = {f"flows/{name}.py:{name}" for name in FLOWS}
    for each in deployments_of(path):
        entrypoint = str(each.get("entrypoint"))
        file, pool = Path(entrypoint.partition(":")[0]), (each.get("work_pool") or {}).get("name")
        if pool == POOL and entrypoint not in ours:
            wrong = f"is no flow of steps-release ({', '.join(sorted(ours))}), and workers of its pool run no other"
        elif not file.is_file():
            wrong = f"lies in {file}, and there is no such file in {Path.cwd()}"
        else:
            continue
        raise SpecError(
            f"{path}, deployment {str(each.get('name'))!r}: entrypoint {entrypoint!r} {wrong}. Run this where the prefect.yaml "
            "of steps-release lies, beside its folder flows. Nothing was installed."
        )


def _install_pool(client: Any) -> None:
    """A pool of another type, as earlier versions had it, makes way: its runs would take commands from whoever asks."""
    from prefect.client.schemas.actions import WorkPoolCreate, WorkPoolUpdate
    from prefect.exceptions import ObjectNotFound

    from flows.runtime.worker import POOL, TEMPLATE, TYPE

    try:
        found = client.read_work_pool(POOL)
    except ObjectNotFound:
        found = None
    if found is not None and found.type == TYPE:
        client.update_work_pool(POOL, WorkPoolUpdate(base_job_template=TEMPLATE))
        return
    if found is not None:
        client.delete_work_pool(POOL)
    client.create_work_pool(WorkPoolCreate(name=POOL, type=TYPE, base_job_template=TEMPLATE))


def _deploy() -> None:
    command = [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        told = (done.stderr or done.stdout).strip().rpartition("\n")[2]  # below Prefect's traceback
        raise InfrastructureFault(
            f"`prefect deploy --all` failed: {told[:500] or 'it says nothing'}. Run it here by itself to see all that it says. "
            "What was installed stays; once it deploys, run this again."
        )


def _close_schemas(client: Any) -> None:
    """A run that names a parameter which its flow does not have is refused by the server, not by a crash of the worker.

    Prefect's schemas of parameters list what a flow has and let everything else pass.
    """
    from prefect.client.schemas.actions import DeploymentUpdate

    from flows.runtime.worker import POOL

    for each in client.read_deployments():
        schema = each.parameter_openapi_schema or {}
        complete = set(each.parameters or {}) <= set(schema.get("properties", {}))  # one made by hand may have no schema
        if each.work_pool_name == POOL and each.enforce_parameter_schema and complete:
            closed = DeploymentUpdate(parameter_openapi_schema=schema | {"additionalProperties": False})
            client.update_deployment(each.id, closed)
