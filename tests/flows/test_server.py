"""A real server and worker, started as `make ui` does: what they do, who may ask them, and a browser that looks at them."""

from __future__ import annotations

import asyncio
import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.flows.small import leaks
from tests.flows.ui_server import PATIENCE, ROOT, Ui, serving_ui

pytestmark = [pytest.mark.server, pytest.mark.slow]


@pytest.fixture(scope="module")
def heard() -> Iterator[tuple[str, list[str]]]:
    """The address of a webhook, and what it was told."""
    texts: list[str] = []

    class Hook(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            texts.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/hook", texts
        server.shutdown()


@pytest.fixture(scope="module")
def ui(tmp_path_factory: pytest.TempPathFactory, heard: tuple[str, list[str]]) -> Iterator[Ui]:
    with serving_ui(tmp_path_factory.mktemp("ui"), notify=heard[0]) as made:
        yield made


def until(found: Any, patience: float = 60) -> Any:
    """What `found` finds, once it finds something."""
    deadline = time.monotonic() + patience
    while not (answer := found()):
        assert time.monotonic() < deadline, "in vain"
        time.sleep(0.5)
    return answer


def test_prefect_yaml_deploys_as_it_stands(ui: Ui):
    found = {each["name"]: each for each in ui.ask("/deployments/filter", {})}
    assert found["youth-voter"]["schedules"][0]["schedule"]["cron"] == "0 6 1 1,4,7,10 *"
    assert all(each["work_pool_name"] == "steps" and not each["job_variables"] for each in found.values())
    assert all(found[name]["global_concurrency_limit"]["limit"] == 1 for name in ("youth-voter", "nightly"))


@pytest.fixture(scope="module")
def by_worker(ui: Ui) -> dict[str, Any]:
    """A finished run of the deployment."""
    return ui.wait(ui.start("by-worker"), "Completed")


def test_a_worker_runs_a_deployed_release(ui: Ui, by_worker: dict[str, Any]):
    run = by_worker
    assert run["name"] == "release by-worker" and {"by-worker", "small-people"} <= set(run["tags"])
    assert (ui.small.home / "public" / "by-worker" / "manifest.json").exists()
    charge = json.loads(ui.steps("show", "by-worker", "--json").stdout)["trail"]
    context = next(each["details"]["context"] for each in charge if each["kind"] == "charge")
    assert context["flow_run"] == run["id"] and context["deployment"] == run["deployment_id"]


# What a web page could do, opened by somebody who is logged in elsewhere on this machine.


def test_a_web_page_of_another_origin_gets_nothing(ui: Ui):
    asks = {"Origin": "http://evil.example", "Access_Control_Request_Method": "POST"}
    before = ui.try_to("OPTIONS", "/deployments/filter", **asks, Access_Control_Request_Headers="content-type,authorization")
    assert before.code == 400 and "access-control-allow-origin" not in before.headers
    simple = ui.try_to("POST", "/deployments/filter", b"{}", Origin="http://evil.example", Content_Type="text/plain")
    assert simple.code == 401 and "access-control-allow-origin" not in simple.headers
    own = ui.try_to("OPTIONS", "/deployments/filter", **{**asks, "Origin": ui.address})
    assert own.code == 200 and own.headers["access-control-allow-origin"] == ui.address, "the control: its own UI may"


def test_a_web_page_cannot_tell_events_through_a_socket(ui: Ui):
    event = {"event": "steps.release.refused", "resource": {"prefect.resource.id": "steps.release.x"}, "id": "0" * 32}
    assert not asyncio.run(_through_a_socket(ui, None, event))
    assert not asyncio.run(_through_a_socket(ui, "steps:wrong", event))
    assert asyncio.run(_through_a_socket(ui, ui.login, event)), "the control: with the login the socket stays open"


async def _through_a_socket(ui: Ui, login: str | None, event: dict[str, Any]) -> bool:
    """Whether the server takes part in a conversation that a page begins; sockets know no CORS."""
    import websockets

    address = f"ws://127.0.0.1:{ui.port}/api/events/in"
    try:
        async with websockets.connect(address, subprotocols=["prefect"], origin="http://evil.example", proxy=None) as talk:
            if login is not None:
                await talk.send(json.dumps({"type": "auth", "token": login}))
                return json.loads(await asyncio.wait_for(talk.recv(), 20))["type"] == "auth_success"
            await talk.send(json.dumps(event))
            await asyncio.wait_for(talk.recv(), 20)
            return True
    except websockets.exceptions.ConnectionClosed:
        return False


@pytest.mark.parametrize("login", [None, "", "steps:", "steps:wrong", "admin:admin"])
def test_another_account_of_this_machine_is_sent_away_without_the_login(ui: Ui, login: str | None):
    deployment = ui.deployment()
    for method, path, body in [
        ("POST", "/deployments/filter", {}),
        ("POST", f"/deployments/{deployment}/create_flow_run", {}),
        ("PATCH", "/work_pools/steps", {"is_paused": True}),
        ("POST", "/flow_runs/filter", {}),
        ("POST", "/artifacts/filter", {}),
        ("GET", "/admin/settings", None),
        ("DELETE", f"/deployments/{deployment}", None),
    ]:
        assert ui.try_to(method, path, body, login).code == 401, path
    assert ui.try_to("POST", "/deployments/filter", {}, ui.login).code == 200, "the control: with the login it answers"


def test_the_login_is_for_its_owner_alone_and_nobody_else_is_told(ui: Ui):
    file = ui.small.home / "keys" / "prefect-login"
    assert file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o777 == 0o700
    assert len(ui.login) > 40
    logs = [path for path in (ui.small.home / "prefect").iterdir() if path.suffix == ".log"]
    assert len(logs) == 2 and not any(ui.login in path.read_text() for path in logs)


# What somebody could do who has the login, such as an operator: choose among what the worker owns.


@pytest.mark.parametrize(
    "asked", [{"command": "touch PWNED"}, {"env": {"STEPS_HOME": "/tmp"}}, {"env.STEPS_HOME": "/tmp"}, {"working_dir": "/tmp"}]
)
def test_a_run_cannot_ask_for_a_command_or_an_environment(ui: Ui, asked: dict[str, Any]):
    path = f"/deployments/{ui.deployment()}/create_flow_run"
    refused = ui.try_to("POST", path, {"job_variables": asked}, ui.login)
    assert refused.code == 422 and "Additional properties are not allowed" in refused.body["detail"]


def test_a_parameter_that_a_flow_does_not_have_is_refused_at_the_door(ui: Ui):
    for name in ("release/youth-voter", "audit/nightly", "study/voter"):
        path = f"/deployments/{ui.deployment(name)}/create_flow_run"
        refused = ui.try_to("POST", path, {"parameters": {"home": "/tmp/other"}}, ui.login)
        assert refused.code == 409 and "'home' was unexpected" in refused.body["detail"], refused
    assert ui.ask(f"/deployments/{ui.deployment()}")["schedules"][0]["active"], "the schedule stays"


def test_a_rewritten_server_gets_no_code_into_the_worker(ui: Ui, tmp_path: Path):
    """Whoever has the login may write deployments and templates. The worker takes neither code, command nor folder from them."""
    flow = ui.ask("/flows/", {"name": "release"})["id"]
    foreign = ui.ask("/deployments/", _evil(tmp_path, flow, "evil"))["id"]
    ended = ui.ended(ui.run(foreign))
    assert ended["state_name"] == "Failed" and "is not this worker's" in ended["state"]["message"]
    other = ui.ask("/flows/", {"name": "mine"})["id"]
    mine = ui.ask("/deployments/", _evil(tmp_path, other, "mine"))["id"]
    ended = ui.ended(ui.run(mine))
    assert ended["state_name"] == "Crashed" and 'flow "mine" is not one of this worker' in ended["state"]["message"]
    assert not (tmp_path / "PWNED").exists()


def _evil(folder: Path, flow: str, name: str) -> dict[str, Any]:
    """A deployment that runs a script before it loads code of its own."""
    mark = folder / "PWNED"
    (folder / "evil.py").write_text(
        f"from pathlib import Path\nfrom prefect import flow\nPath({str(mark)!r}).touch()\n\n"
        "@flow(name='release')\ndef release(release: str = ''): ...\n"
    )
    pull = [{"prefect.deployments.steps.run_shell_script": {"script": f"touch {mark}"}}]
    return {
        "name": name, "flow_id": flow, "work_pool_name": "steps", "path": str(folder), "entrypoint": "evil.py:release",
        "pull_steps": pull, "enforce_parameter_schema": False, "parameters": {"release": "x"},
    }  # fmt: skip


def test_the_control_prefects_own_worker_runs_whatever_it_is_told(ui: Ui, tmp_path: Path):
    """The same requests, by somebody with the login, to a pool with the stock template and its stock worker."""
    ui.ask("/work_pools/", {"name": "stock", "type": "process"})
    flow = ui.ask("/flows/", {"name": "release"})["id"]
    deployment = ui.ask("/deployments/", _evil(tmp_path, flow, "stock") | {"work_pool_name": "stock"})["id"]
    ui.run(deployment, job_variables={"command": f"touch {tmp_path / 'BY-COMMAND'}"})
    ui.run(deployment)
    environment = {**os.environ, "PREFECT_API_URL": f"{ui.address}/api", "PREFECT_API_AUTH_STRING": ui.login}
    command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", "stock", "--run-once"]
    subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=PATIENCE, check=True)
    assert (tmp_path / "BY-COMMAND").exists() and (tmp_path / "PWNED").exists()


def test_a_release_source_or_population_that_the_worker_does_not_own_is_refused_and_nothing_is_charged(
    ui: Ui, by_worker: dict[str, Any], heard: tuple[str, list[str]]
):
    secret = ui.small.folder / "secret"
    secret.mkdir()
    shutil.copy(ui.small.folder / "data" / "records.parquet", secret / "records.parquet")
    foreign = ui.write("foreign", into="foreign")
    stolen = ui.write("stolen", source="../../secret/records.parquet")
    theirs = ui.write("theirs")
    dataset = ui.small.folder / "releases" / "theirs" / "dataset.yaml"
    dataset.write_text(dataset.read_text().replace("small-people", "other-people"))
    before, deployment = ui.charged(), ui.deployment()
    asked = [str(ui.small.folder / "foreign" / foreign), stolen, theirs]
    runs = [ui.run(deployment, parameters={"release": name}) for name in asked]
    elsewhere = {"parameters": {"release": "by-worker/release.yaml", "home": str(secret / "home")}}
    runs.append(ui.run(deployment, **elsewhere, enforce_parameter_schema=False))
    *said, other_home = [ui.ended(run)["state"] for run in runs]
    assert all("is not this worker's" in state["message"] for state in said), said
    assert other_home["type"] in ("FAILED", "CRASHED"), "a parameter that the flow does not have"
    assert ui.charged() == before and not (secret / "home").exists()
    assert until(lambda: [text for text in heard[1] if text.startswith("steps-release: not owned")])
    assert sorted(path.name for path in (ui.small.home / "public").iterdir()) == ["by-worker"]


# What happens at night.


def events(ui: Ui, name: str) -> list[dict[str, Any]]:
    found = ui.ask("/events/filter", {"filter": {"event": {"name": [name]}}, "limit": 50})
    return found["events"]


def test_a_release_tells_what_it_did_and_nothing_confidential(ui: Ui, by_worker: dict[str, Any]):
    (charged,) = until(
        lambda: [each for each in events(ui, "steps.release.charged") if "by-worker" in each["resource"].values()]
    )
    assert charged["payload"] == {
        "measure": "pure", "amount": "0.5", "left": "4.5", "text": "by-worker was charged to small-people.",
    }  # fmt: skip
    roles = {each["prefect.resource.role"]: each["prefect.resource.id"] for each in charged["related"]}
    assert roles["flow-run"].endswith(by_worker["id"]) and roles["deployment"].endswith(by_worker["deployment_id"])
    assert until(lambda: events(ui, "steps.release.published"))
    database = ui.small.home / "prefect" / "prefect.db"
    assert b"by-worker was charged" in database.read_bytes() + database.with_name("prefect.db-wal").read_bytes()
    assert leaks(ui.small.home / "prefect") == []


def test_a_withdrawal_by_command_reaches_the_server(ui: Ui):
    ui.wait(ui.start("taken-back"), "Completed")
    said = ui.steps("withdraw", "taken-back", "--why", "wrong weights", "--json")
    assert said.returncode == 0 and "could not be told" not in said.stderr
    (told,) = until(lambda: events(ui, "steps.release.withdrawn"))
    assert told["resource"]["prefect.resource.id"] == "steps.release.taken-back"
    assert told["payload"] == {"text": "taken-back is withdrawn. See: steps show taken-back"}


def test_a_refused_release_pauses_its_deployment_and_a_person_is_told(ui: Ui, heard: tuple[str, list[str]]):
    flow = ui.ask("/flows/", {"name": "release"})["id"]
    name = ui.write("too-much", epsilon="50")
    asked = {"name": "too-much", "flow_id": flow, "work_pool_name": "steps", "entrypoint": "flows/release.py:release"}
    schedule = {"schedule": {"cron": "0 6 1 1 *", "timezone": "UTC"}, "active": True}
    deployment = ui.ask("/deployments/", asked | {"parameters": {"release": name}, "schedules": [schedule]})["id"]
    ui.ask(f"/deployments/{deployment}/schedule", {"min_runs": 1})
    audit = ui.run(ui.deployment("audit/nightly"))
    ui.wait(audit, "Completed")
    catalogue = (ui.small.folder / "catalogue" / "index.html").read_text(encoding="utf-8")
    assert "too-much" not in catalogue, "what is scheduled is not named"
    (low,) = until(lambda: [text for text in heard[1] if text.startswith("steps-release: low balance")])
    assert 'population "small-people": ε = 50 is scheduled (too-much)' in low
    shown = ui.ask("/artifacts/latest/filter", {"artifacts": {"key": {"any_": ["budget-forecast"]}}})
    (row,) = [each for each in json.loads(shown[0]["data"]) if each["population"] == "small-people"]
    foreseen = json.loads(ui.steps("budget", "forecast", "--json").stdout)
    (forecast,) = [each for each in foreseen["populations"] if each["population"] == "small-people"]
    (due,) = [run for run in forecast["runs"] if run["release"] == "too-much"]
    assert foreseen["schedule"] == f"Prefect's server at {ui.address}/api" and due["cost"] == "50"
    assert forecast["dry_on"] == due["due"] and row["runs dry"] == due["due"][:10]
    assert "asks ε=50" in ui.wait(ui.run(deployment), "Failed")["state"]["message"]
    assert until(lambda: ui.ask(f"/deployments/{deployment}")["paused"])
    (told,) = until(lambda: [text for text in heard[1] if text.startswith("steps-release: refused")])
    assert "asks ε=50" in told and "deployment is paused" in told
    assert not ui.ask(f"/deployments/{ui.deployment()}")["paused"], "other schedules go on"


def processes(*words: str, of: int | None = None) -> list[int]:
    """Those whose command holds the words; `of`: children of this one alone."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True).stdout.splitlines()
    rows = [line.split(None, 2) for line in listed]
    return [int(row[0]) for row in rows if all(word in row[2] for word in words) and of in (None, int(row[1]))]


def worker_of(ui: Ui) -> int:
    """The worker that `make ui` started for this home."""
    ours = [pid for pid in processes("server work") if str(ui.small.home).encode() in Path(f"/proc/{pid}/environ").read_bytes()]
    (found,) = [pid for pid in ours if processes("server work", of=pid) == []]
    return found


def test_a_run_whose_process_dies_is_told_and_so_is_one_that_no_worker_takes(ui: Ui, heard: tuple[str, list[str]]):
    def told(what: str) -> list[str]:
        return [text for text in heard[1] if text.startswith(f"steps-release: {what}")]

    worker, run = worker_of(ui), ui.start("dies")
    ui.wait(run, "Running")
    for process in processes("prefect.engine", of=worker):
        os.kill(process, signal.SIGKILL)
    crashed, *_ = until(lambda: [text for text in told("crashed") if "release dies" in text])
    assert "None" not in crashed and ui.ask(f"/flow_runs/{run}")["state_name"] == "Crashed"
    os.kill(worker, signal.SIGSTOP)
    try:
        run = ui.start("is-late")
        late, *_ = until(lambda: [text for text in told("late") if "youth-voter was due" in text])
    finally:
        os.kill(worker, signal.SIGCONT)
    assert "steps server work" in late
    ui.wait(run, "Completed")
    until(lambda: processes("prefect.engine", of=worker) == [])  # a worker that is stopped leaves its runs to their end


@contextmanager
def shortened(ui: Ui, name: str, usually: int) -> Iterator[None]:
    """An automation as it is installed, but that it waits for ten seconds of absence only."""
    (found,) = ui.ask("/automations/filter", {"automations": {"name": {"any_": [f"steps: {name}"]}}})
    assert found["trigger"]["within"] == usually and found["enabled"]
    asked = {key: found[key] for key in ("name", "description", "enabled", "actions", "trigger")}
    ui.ask(f"/automations/{found['id']}", asked | {"trigger": found["trigger"] | {"within": 10}}, "PUT")
    try:
        yield
    finally:
        ui.ask(f"/automations/{found['id']}", asked, "PUT")


def test_a_run_that_falls_silent_is_called_crashed_and_one_that_ended_is_not(ui: Ui, heard: tuple[str, list[str]]):
    """A run dies and its worker is not there to say so, as with their machine: no heartbeat comes any more."""
    with shortened(ui, "zombie", usually=90):
        worker, ended = worker_of(ui), _heard_of_and_ended(ui)
        silent = ui.start("silent")
        until(lambda: _beats(ui, silent), PATIENCE)
        os.kill(worker, signal.SIGSTOP)
        try:
            for process in processes("prefect.engine", of=worker):
                os.kill(process, signal.SIGKILL)
            found = ui.wait(silent, "Crashed")
            until(lambda: [text for text in heard[1] if text.startswith("steps-release: crashed") and "release silent" in text])
        finally:
            os.kill(worker, signal.SIGCONT)
    assert found["state"]["message"] == "Nothing was heard of it for 90 seconds."
    assert ui.ask(f"/flow_runs/{ended}")["state_name"] == "Completed"


def _beats(ui: Ui, run: str) -> list[dict[str, Any]]:
    return [each for each in events(ui, "prefect.flow-run.heartbeat") if each["resource"]["prefect.resource.id"].endswith(run)]


def _heard_of_and_ended(ui: Ui) -> str:
    flow, running = ui.ask("/flows/", {"name": "release"})["id"], {"type": "RUNNING", "name": "Running"}
    run = ui.ask("/flow_runs/", {"name": "release ended", "flow_id": flow, "state": running})["id"]
    beat = {"occurred": datetime.now(UTC).isoformat(), "event": "prefect.flow-run.heartbeat", "related": [], "payload": {}}
    ui.ask("/events", [beat | {"id": str(uuid4()), "resource": {"prefect.resource.id": f"prefect.flow-run.{run}"}}])
    ui.ask(f"/flow_runs/{run}/set_state", {"state": {"type": "COMPLETED", "name": "Completed"}})
    return run


def test_a_suspended_release_goes_on_when_a_person_approves_it(ui: Ui):
    run = ui.start("by-person", more="approval: required\n")
    waits = ui.wait(run, "Suspended")
    until(lambda: "steps approve by-person --why" in (ui.ask(f"/flow_runs/{run}")["state"]["message"] or ""))
    assert waits["state"]["state_details"]["pause_key"] == "approval"
    assert not (ui.small.home / "public" / "by-person").exists()
    approved = ui.steps("approve", "by-person", "--why", "looks right", "--json")
    assert json.loads(approved.stdout)["next"] == "the run that waited for it goes on", approved.stderr
    ui.wait(run, "Completed")
    assert (ui.small.home / "public" / "by-person" / "manifest.json").exists()
    said = json.loads(ui.steps("show", "by-person", "--json").stdout)
    assert said["state"] == "evaluated" and said["approver"]
    assert sum(each["kind"] == "charge" for each in said["trail"]) == 1


def test_a_release_that_nobody_decides_is_told(ui: Ui, heard: tuple[str, list[str]]):
    def told() -> list[str]:
        return [text for text in heard[1] if text.startswith("steps-release: waiting") and "release undecided" in text]

    with shortened(ui, "waiting", usually=24 * 60 * 60):
        run = ui.start("undecided", more="approval: required\n")
        ui.wait(run, "Suspended")
        said = until(told, PATIENCE)[0]
    assert "steps approve undecided" in said
    assert ui.steps("reject", "undecided", "--why", "a test").returncode == 0
    ui.ended(run, "Failed")
    no_run_is_alive(ui)


def no_run_is_alive(ui: Ui) -> None:
    """A worker that is stopped leaves its runs to their end; a run's process lives on for a moment after its last state."""
    until(lambda: processes("prefect.engine", of=worker_of(ui)) == [])


def test_an_audit_that_finds_something_is_told(ui: Ui, by_worker: dict[str, Any], heard: tuple[str, list[str]]):
    def told() -> list[str]:
        return [text for text in heard[1] if text.startswith("steps-release: audit failed")]

    ui.wait(ui.run(ui.deployment("audit/nightly")), "Completed")
    assert told() == [], "the control: where everything holds nobody is woken"
    (smuggled := ui.small.home / "public" / "smuggled").mkdir()
    try:
        ui.wait(ui.run(ui.deployment("audit/nightly")), "Failed")
        (said,) = until(told)
    finally:
        smuggled.rmdir()
    assert "smuggled is public, though the ledger has" in said
    no_run_is_alive(ui)


def test_a_person_may_reject_a_suspended_release_in_the_ui(ui: Ui):
    run = ui.start("not-this", more="approval: required\n")
    ui.wait(run, "Suspended")
    ui.ask(f"/flow_runs/{run}/resume", {"run_input": {"approve": False, "who": "Ada", "why": "the wrong quarter"}})
    assert "was rejected" in ui.wait(run, "Failed")["state"]["message"]
    said = json.loads(ui.steps("show", "not-this", "--json").stdout)
    decision = next(each["details"] for each in said["trail"] if each["kind"] == "reject")
    assert said["state"] == "rejected" and (decision["who"], decision["why"]) == ("Ada", "the wrong quarter")
    assert not (ui.small.home / "public" / "not-this").exists()
    assert list((ui.small.home / "confidential" / "not-this").rglob("cells/*.parquet")) == []


@pytest.mark.browser
def test_a_person_sees_the_run_in_a_browser(ui: Ui, by_worker: dict[str, Any], tmp_path: Path):
    browser = _browser(tmp_path)
    try:
        _log_in(browser, ui)
        _look(browser, f"{ui.address}/runs", "release by-worker", tmp_path / "runs.png")
        _look(browser, f"{ui.address}/runs/flow-run/{by_worker['id']}", "release by-worker", tmp_path / "run.png")
        assert (tmp_path / "run.png").stat().st_size > 10_000
    finally:
        browser.quit()


def _browser(folder: Path) -> Any:
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("Chromium is not installed: apt-get install chromium chromium-driver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    quiet = "headless=new no-sandbox disable-gpu disable-dev-shm-usage disable-background-networking no-first-run"
    for flag in (*quiet.split(), "window-size=1400,1000", f"user-data-dir={folder / 'profile'}"):
        options.add_argument(f"--{flag}")
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver))


def _log_in(browser: Any, ui: Ui) -> None:
    """As a person does: the page asks, and is given what `make ui` printed."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(f"{ui.address}/runs")
    field = WebDriverWait(browser, 120).until(lambda page: page.find_elements(By.CSS_SELECTOR, "input[type=password]"))[0]
    field.send_keys(ui.login, Keys.ENTER)
    WebDriverWait(browser, 60).until(lambda page: "/login" not in page.current_url)


def _look(browser: Any, address: str, words: str, picture: Path) -> None:
    """Opens a page, waits until it says the words, and keeps what it looks like."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(address)
    try:
        WebDriverWait(browser, 120).until(lambda page: words in page.find_element(By.TAG_NAME, "body").text)
    finally:
        browser.save_screenshot(str(picture))
