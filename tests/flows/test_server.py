"""A real server and worker, started as `make ui` does, and a browser that looks at them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.flows.small import Small, make_small

ROOT = Path(__file__).parents[2]
PATIENCE = 240  # seconds, on a busy machine

pytestmark = [pytest.mark.server, pytest.mark.slow]


@dataclass(frozen=True)
class Ui:
    """What `make ui` started."""

    port: int
    small: Small

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"{self.address}/api{path}", data, {"Content-Type": "application/json"})
        for _ in range(10):  # the server on SQLite says 503 while its database is busy; Prefect's own client asks again, too
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return json.loads(answer.read())
            except urllib.error.HTTPError as error:
                assert error.code == 503, error.read()
                time.sleep(2)
        raise AssertionError(f"{path}: the server stays busy")

    def start(self, name: str, more: str = "") -> str:
        """A run of the deployment, asked to make a small release; the id of its flow run."""
        folder = self.small.folder / name
        shutil.copytree(self.small.folder / "inputs", folder)
        asked = Small(folder).write(name=name, more=more)
        deployment = self.ask("/deployments/name/release/youth-voter")["id"]
        parameters = {"release": str(asked), "home": str(self.small.home)}
        return self.ask(f"/deployments/{deployment}/create_flow_run", {"parameters": parameters})["id"]

    def wait(self, run: str, *states: str) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while (found := self.ask(f"/flow_runs/{run}"))["state_name"] not in states:
            assert time.monotonic() < deadline and found["state_type"] not in ("FAILED", "CRASHED"), found["state"]
            time.sleep(1)
        return found

    def steps(self, *words: str) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "tests.flows.program", "--home", str(self.small.home), *words]
        environment = {**os.environ, "PREFECT_API_URL": f"{self.address}/api"}
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment, timeout=PATIENCE)


@pytest.fixture(scope="module")
def ui(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ui]:
    folder = tmp_path_factory.mktemp("ui")
    (folder / "inputs").mkdir()
    make_small(folder / "inputs", rows=2_003)
    made = Ui(_free_port(), Small(folder))
    hidden = {"PREFECT_HOME", "PREFECT_API_URL"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment |= {"STEPS_HOME": str(made.small.home), "STEPS_UI_PORT": str(made.port)}
    script = subprocess.Popen(
        ["bash", "scripts/ui.sh"], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        said = []
        for line in script.stdout:
            said.append(line)
            if made.address in line:
                break
        assert script.poll() is None and made.address in said[-1], "".join(said)
        granted = made.steps("budget", "grant", "small-people", "5", "--why", "a test")
        assert granted.returncode == 0, granted.stderr
        yield made
        script.terminate()
        script.wait(timeout=60)
        assert _members(script.pid) == [], "Ctrl-C leaves no server and no worker behind"
    finally:
        if _members(script.pid):
            os.killpg(script.pid, signal.SIGKILL)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def _members(group: int) -> list[str]:
    """Processes of a process group that are still alive."""
    listed = subprocess.run(["ps", "-eo", "pgid=,stat=,args="], capture_output=True, text=True).stdout.splitlines()
    rows = (line.split(None, 2) for line in listed)
    return [row[2] for row in rows if row[0] == str(group) and not row[1].startswith("Z")]


def test_prefect_yaml_deploys_as_it_stands(ui: Ui):
    found = {each["name"]: each for each in ui.ask("/deployments/filter", {})}
    assert found["youth-voter"]["schedules"][0]["schedule"]["cron"] == "0 6 1 1,4,7,10 *"
    assert all(each["work_pool_name"] == "steps" and each["job_variables"]["stream_output"] is False for each in found.values())
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


def test_a_suspended_release_goes_on_when_a_person_approves_it(ui: Ui):
    run = ui.start("by-person", more="approval: required\n")
    ui.wait(run, "Suspended")
    assert not (ui.small.home / "public" / "by-person").exists()
    approved = ui.steps("approve", "by-person", "--why", "looks right", "--json")
    assert json.loads(approved.stdout)["next"] == "the run that waited for it goes on", approved.stderr
    ui.wait(run, "Completed")
    assert (ui.small.home / "public" / "by-person" / "manifest.json").exists()
    said = json.loads(ui.steps("show", "by-person", "--json").stdout)
    assert said["state"] == "evaluated" and said["approver"]
    assert sum(each["kind"] == "charge" for each in said["trail"]) == 1


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


def _look(browser: Any, address: str, words: str, picture: Path) -> None:
    """Opens a page, waits until it says the words, and keeps what it looks like."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(address)
    try:
        WebDriverWait(browser, 120).until(lambda page: words in page.find_element(By.TAG_NAME, "body").text)
    finally:
        browser.save_screenshot(str(picture))
