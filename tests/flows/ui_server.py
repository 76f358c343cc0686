"""What `make ui` starts, in a folder of its own, and somebody who asks its API: with the login, without it, as a web page."""

from __future__ import annotations

import base64
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
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tests.flows.small import Small, make_small

ROOT = Path(__file__).parents[2]
PATIENCE = 240  # seconds, on a busy machine
WORKER = """
releases: ../releases
sources: [../data]
populations: [small-people]
catalogue: ../catalogue
"""


class Answer(NamedTuple):
    code: int
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Ui:
    """What `make ui` started. Its worker owns `releases/` and `data/`; beside them lie `foreign/` and other people's data."""

    port: int
    small: Small

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def login(self) -> str:
        return (self.small.home / "keys" / "prefect-login").read_text()

    def try_to(self, method: str, path: str, body: Any = None, login: str | None = None, **headers: str) -> Answer:
        """One request, whatever comes of it; without a login unless one is given."""
        if login is not None:
            headers["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        named = {"Content-Type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(f"{self.address}/api{path}", data, named, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return Answer(answer.status, _lower(answer.headers), _read(answer.read()))
        except urllib.error.HTTPError as error:
            return Answer(error.code, _lower(error.headers), _read(error.read()))

    def ask(self, path: str, body: dict[str, Any] | None = None, method: str | None = None) -> Any:
        """What the owner of the login gets, who does not mind asking again."""
        for _ in range(10):  # the server on SQLite says 503 while its database is busy; Prefect's own client asks again, too
            with suppress(TimeoutError):
                answer = self.try_to(method or ("GET" if body is None else "POST"), path, body, self.login)
                if answer.code != 503:
                    assert answer.code < 300, answer
                    return answer.body
            time.sleep(2)
        raise AssertionError(f"{path}: the server stays busy")

    def deployment(self, name: str = "release/youth-voter") -> str:
        return self.ask(f"/deployments/name/{name}")["id"]

    def write(self, name: str, into: str = "releases", source: str = "../../data/records.parquet", **asked_for: str) -> str:
        """A small release in one of the folders; how a run names it."""
        folder = self.small.folder / into / name
        shutil.copytree(self.small.folder / "inputs", folder)
        asked = Small(folder).write(name=name, **asked_for)
        asked.write_text(asked.read_text().replace("records.parquet", source))
        return f"{name}/release.yaml"

    def run(self, deployment: str, **asked: Any) -> str:
        return self.ask(f"/deployments/{deployment}/create_flow_run", asked)["id"]

    def start(self, name: str, more: str = "") -> str:
        """A run of the deployment, asked to make a small release; the id of its flow run."""
        return self.run(self.deployment(), parameters={"release": self.write(name, more=more)})

    def wait(self, run: str, *states: str) -> dict[str, Any]:
        """The run in one of the states, or in an end that nobody asked for, which is an error."""
        found = self.ended(run, *states)
        assert found["state_name"] in states, found["state"]
        return found

    def ended(self, run: str, *states: str) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while (found := self.ask(f"/flow_runs/{run}"))["state_name"] not in states:
            if found["state_type"] in ("COMPLETED", "FAILED", "CRASHED"):
                break
            assert time.monotonic() < deadline, found["state"]
            time.sleep(1)
        return found

    def steps(self, *words: str) -> subprocess.CompletedProcess:
        """A command of somebody who has the account: the login is found in the home."""
        command = [sys.executable, "-m", "tests.flows.program", "--home", str(self.small.home), *words]
        others = {name: value for name, value in os.environ.items() if name != "PREFECT_API_AUTH_STRING"}  # of another home
        environment = {**others, "PREFECT_API_URL": f"{self.address}/api"}
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment, timeout=PATIENCE)

    def charged(self) -> str:
        return json.loads(self.steps("budget", "show", "small-people", "--json").stdout)["charged"]


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _read(content: bytes) -> Any:
    return json.loads(content) if content[:1] in (b"{", b"[") else content


@contextmanager
def serving_ui(folder: Path, notify: str) -> Iterator[Ui]:
    """`make ui`, its worker owning the small release's folders, with a grant; nothing of it is left afterwards."""
    for name in ("inputs", "releases", "foreign", "data", "home"):
        (folder / name).mkdir()
    make_small(folder / "inputs", rows=2_003)
    (folder / "inputs" / "records.parquet").rename(folder / "data" / "records.parquet")
    (folder / "home" / "worker.yaml").write_text(WORKER)
    made = Ui(_free_port(), Small(folder))
    hidden = {"PREFECT_HOME", "PREFECT_API_URL", "PREFECT_API_AUTH_STRING", "PREFECT_SERVER_API_AUTH_STRING"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment |= {"STEPS_HOME": str(made.small.home), "STEPS_UI_PORT": str(made.port), "STEPS_NOTIFY": notify}
    script = subprocess.Popen(
        ["bash", "scripts/ui.sh"], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        _must_say(script, "Login for the UI: steps:", made.address)
        granted = made.steps("budget", "grant", "small-people", "5", "--why", "a test")
        assert granted.returncode == 0, granted.stderr
        yield made
        script.terminate()
        script.wait(timeout=60)
        assert _members(script.pid) == [], "Ctrl-C leaves no server and no worker behind"
    finally:
        if _members(script.pid):
            os.killpg(script.pid, signal.SIGKILL)


def _must_say(script: subprocess.Popen, *words: str) -> None:
    said = []
    for line in script.stdout:
        said.append(line)
        if words[-1] in line:
            break
    assert script.poll() is None and all(word in "".join(said) for word in words), "".join(said)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def _members(group: int) -> list[str]:
    """Processes of a process group that are still alive."""
    listed = subprocess.run(["ps", "-eo", "pgid=,stat=,args="], capture_output=True, text=True).stdout.splitlines()
    rows = (line.split(None, 2) for line in listed)
    return [row[2] for row in rows if row[0] == str(group) and not row[1].startswith("Z")]
