"""What lies in deploy/: looked at without being root; the image is built where a Docker daemon answers."""

from __future__ import annotations

import fnmatch
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.import_graph import ROOT

DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()


def instructions(text: str) -> list[tuple[str, str]]:
    joined = re.sub(r"\\\n", " ", text)
    lines = [line.split(None, 1) for line in joined.splitlines() if line.strip() and not line.startswith("#")]
    return [(name, rest) for name, rest in lines]


def test_the_image_has_what_it_copies_and_nothing_else():
    kept = [line[1:] for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines() if line.startswith("!")]
    copied = [word for name, rest in instructions(DOCKERFILE) if name == "COPY" for word in rest.split()[:-1]]
    assert sorted(copied) == sorted(kept) and all((ROOT / name).exists() for name in copied)
    packages = {"flows", "tasks", "steps_engine", "schemas"}
    assert packages <= set(copied)
    assert not [name for name in copied if fnmatch.fnmatch(name, "examples*") or "steps-demo" in name]


def test_the_image_installs_by_hash_and_does_not_run_as_root():
    found = instructions(DOCKERFILE)
    installs = [rest for name, rest in found if name == "RUN" and "pip install" in rest]
    assert "--require-hashes" in installs[0] and all("--no-deps" in each for each in installs)
    assert [rest for name, rest in found if name == "USER"][-1] == "steps"
    assert not [name for name, _ in found if name == "ADD"]
    entry, command = (rest for name, rest in found if name in ("ENTRYPOINT", "CMD"))
    assert (entry, command) == ('["steps"]', '["server", "work"]')


@pytest.fixture
def docker() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Asks a Docker daemon, where one answers."""
    if (client := shutil.which("docker")) is None:
        pytest.skip("docker is not installed: the image is not built here")

    def ask(*words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run([client, *map(str, words)], capture_output=True, text=True, timeout=1800)

    if (asked := ask("version", "--format", "{{.Server.Version}}")).returncode:
        pytest.skip(f"no Docker daemon answers, so that the image is not built here: {asked.stderr.strip()}")
    return ask


@pytest.mark.slow
def test_the_image_is_built_and_runs_the_program_as_nobody_special(docker, tmp_path: Path):
    built = docker("build", "--quiet", "-f", DEPLOY / "Dockerfile", ROOT)
    assert built.returncode == 0, built.stderr
    image = built.stdout.strip()
    try:
        alone = ("run", "--rm", "--read-only", "--network", "none")
        assert docker(*alone, image, "--version").stdout.startswith("steps-release ")
        assert docker(*alone, "--entrypoint", "id", image, "-u").stdout.strip() == "10001"
        assert docker(*alone, image, "server", "--help").returncode == 0
        (tmp_path / "Dockerfile").write_text(f"{DOCKERFILE}\nCOPY tests tests\n")
        shutil.copy(DEPLOY / "Dockerfile.dockerignore", tmp_path)
        assert docker("build", "--quiet", "-f", tmp_path / "Dockerfile", ROOT).returncode, "the control: tests stay outside"
    finally:
        docker("image", "rm", "--force", image)


@pytest.fixture
def verified(tmp_path: Path):
    """What systemd finds wrong with a unit, once the program that it starts exists."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")

    def verify(name: str, old: str = "", new: str = "") -> str:
        text = (DEPLOY / name).read_text().replace("/opt/steps/.venv/bin/steps", "/bin/true").replace(old, new)
        (tmp_path / name).write_text(text)
        done = subprocess.run(["systemd-analyze", "verify", str(tmp_path / name)], capture_output=True, text=True, timeout=60)
        return "\n".join(line for line in done.stderr.splitlines() if name in line)

    return verify


@pytest.mark.parametrize("name", ["steps-server.service", "steps-worker.service"])
def test_systemd_finds_nothing_wrong_with_the_units(verified, name: str):
    assert verified(name) == ""
    assert verified(name, "NoNewPrivileges", "NoNewPrivilege"), "the control: a misspelt key is found"


@pytest.mark.parametrize("name", ["start", "work"])
def test_the_units_call_commands_that_exist(name: str):
    from flows.commands.server import server

    units = "".join(path.read_text() for path in DEPLOY.glob("*.service"))
    assert f"steps server {name}" in units and name in server.commands
