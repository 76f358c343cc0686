"""The base installation, without the extra `pipeline`: an environment of its own, made of links to what the base requires."""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
import venv
from collections.abc import Callable, Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.test_frozen import unpacked

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
KEY = ROOT / "tests/frozen/0.1.0/bundles/tree-given.pub"
OURS = ("flows", "tasks", "steps_engine", "schemas")
STEPS = "from flows.cli import main; main(prog_name='steps')"
NOTEBOOK = """
from decimal import Decimal
import pandas as pd
from schemas.spec.domain import Domain
from schemas.spec.release import ReleaseSpec
from steps_engine.methods.run_in_memory import synthesize_frame
domain = Domain(name="club", population="club", attributes=(
    {"name": "member", "kind": "categorical", "categories": ("no", "yes")}, {"name": "age", "kind": "integer", "bounds": (18, 22)}))
frame = pd.DataFrame({"member": ["no", "yes"] * 50, "age": [18, 19, 20, 21, 22] * 20})
asked = {"decomposition": "tree", "order": ("member",), "sets": {"count": 2}}
spec = ReleaseSpec(name="club", dataset="-", source="-", privacy={"epsilon": Decimal(1)}, method=asked)
made = synthesize_frame(frame, domain, epsilon=1, method=spec.method)
print(len(made.frames), *made.frames[0].columns)
"""
IMPORTS = """
import importlib, pkgutil, schemas, steps_engine, tasks.answers, tasks.verify
for package in (schemas, steps_engine, tasks.answers, tasks.verify):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if module.name != "tasks.answers.picture":  # which is imported where a picture is asked for
            importlib.import_module(module.name)
"""

Run = Callable[..., subprocess.CompletedProcess[str]]


def required() -> list[Requirement]:
    """What pyproject.toml asks for without any extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [Requirement(text) for text in project["dependencies"]]


def closure(wanted: list[Requirement]) -> dict[str, Distribution]:
    """Every distribution that installing these would install here, by name."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    while wanted:
        requirement = wanted.pop()
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        found[name] = distribution(name)
        needs = [Requirement(text) for text in found[name].requires or ()]
        wanted += [need for need in needs if _applies(need, extras)]
    return found


def _applies(requirement: Requirement, extras: frozenset[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in extras | {""})


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The interpreter of an environment with the base and nothing else in it."""
    folder = tmp_path_factory.mktemp("base")
    venv.create(folder, symlinks=True, with_pip=False)
    (packages,) = folder.glob("lib/python*/site-packages")
    for found in closure(required()).values():
        for file in found.files or ():
            if ".." not in file.parts:
                place = packages / file
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(file.locate())
    for package in OURS:
        (packages / package).symlink_to(ROOT / package)
    yield folder / "bin/python"
    shutil.rmtree(folder)


@pytest.fixture
def run(base: Path, tmp_path: Path) -> Run:
    """Runs Python code on the base, in an empty folder; nothing of the tests' own environment reaches it."""

    def run(code: str, *words: object) -> subprocess.CompletedProcess[str]:
        command = [str(base), "-I", "-c", code, *map(str, words)]
        return subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True, timeout=60)

    return run


@pytest.mark.parametrize("package", ["prefect", "great_expectations", "duckdb", "sqlalchemy", "alembic", "matplotlib"])
def test_the_base_has_nothing_of_the_pipeline(run: Run, package: str):
    assert f"No module named '{package}'" in run(f"import {package}").stderr


def test_the_engine_the_schemas_and_the_verifier_import_nothing_of_the_pipeline(run: Run):
    done = run(IMPORTS)
    assert done.returncode == 0, done.stderr


def test_a_bundle_verifies_on_the_base(run: Run, tmp_path: Path):
    done = run(STEPS, "verify", unpacked("tree-given", tmp_path, "bundles"), "--key", KEY, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert {name: answer[name] for name in ("ok", "problems", "notes")} == {"ok": True, "problems": [], "notes": []}
    assert answer["bundle"]["release"] == json.loads((tmp_path / "tree-given/manifest.json").read_bytes())["release"]


@pytest.mark.parametrize("decomposition", ["pairs", "cascade"])
def test_a_bundle_is_recomputed_on_the_base(run: Run, tmp_path: Path, decomposition: str):
    from tasks.publishing.publication import publish
    from tasks.publishing.telling import told_names
    from tests.tasks.publishing.making import POLL, a_release, make, some_counts

    release = a_release(POLL, {"decomposition": decomposition, "sets": {"count": 2, "budget": "shared"}})
    folder = publish(*make(tmp_path / "home", release, some_counts(POLL, 503)).arguments, seeds="steps-seeds/1").folder
    done = run(STEPS, "verify", folder, "--recompute", "--json")
    files = {"consistent-counts.parquet", "synthetic-1.parquet", "synthetic-2.parquet", *told_names()}
    same = {"files": dict.fromkeys(files, True), "why_not": None, "otherwise": []}
    assert json.loads(done.stdout)["recomputed"] == same, done.stderr


@pytest.mark.parametrize("name", ["tree-given", "cascade-split"])
def test_a_bundle_is_asked_on_the_base(run: Run, tmp_path: Path, name: str):
    folder = unpacked(name, tmp_path, "bundles")
    table = run(STEPS, "table", folder, "voted", "age", "--json")
    assert (table.returncode, table.stderr) == (0, "") and len(json.loads(table.stdout)["cells"]) > 4
    fit = run(STEPS, "fit", folder, "wage ~ voted", "--csv", "found.csv")
    assert (fit.returncode, fit.stderr) == (0, "") and (tmp_path / "found.csv").read_text().startswith("name,estimate,")
    sample = run(STEPS, "sample", folder, "--rows", 20, "--where", "voted=yes", "--out", "more")
    assert (sample.returncode, sample.stderr) == (0, "") and (tmp_path / "more/sample.json").is_file()


def test_a_picture_says_what_to_install(run: Run, tmp_path: Path):
    done = run(STEPS, "table", unpacked("tree-given", tmp_path, "bundles"), "voted", "--picture", "voted.svg")
    assert done.returncode == 2 and "needs matplotlib; pip install" in done.stderr


def test_a_spoilt_bundle_does_not_verify_on_the_base(run: Run, tmp_path: Path):
    copy = unpacked("tree-given", tmp_path, "bundles")
    (copy / "synthetic-1.csv").write_text("voted\nyes\n")
    done = run(STEPS, "verify", copy)
    assert done.returncode == 5
    assert "synthetic-1.csv: is not the file that was signed" in done.stdout


def test_the_notebook_call_runs_on_the_base(run: Run):
    done = run(NOTEBOOK)
    assert (done.returncode, done.stdout) == (0, "2 member age\n"), done.stderr


def test_the_stand_in_is_written_on_the_base(run: Run, tmp_path: Path):
    assert run(STEPS, "data", "youth-voter", "voter.parquet", "--rows", 10).returncode == 0
    assert (tmp_path / "voter.parquet").stat().st_size > 0


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("plan", ["release.yaml"]),
        ("run", ["release.yaml"]),
        ("budget show", []),
        ("approve", ["name"]),
        ("releases", []),
        ("evaluate", ["a.parquet", "b.parquet", "--domain", "dataset.yaml"]),
        ("study", ["voter"]),
    ],
)
def test_a_command_of_the_pipeline_says_what_to_install_and_leaves_nothing_behind(run: Run, tmp_path: Path, command, words):
    done = run(STEPS, *command.split(), *words)
    assert done.returncode == 2
    assert done.stderr == f'steps: steps {command} needs the pipeline; pip install "steps-release[pipeline]"\n'
    assert list(tmp_path.iterdir()) == []


def test_the_refusal_is_also_json_for_programs(run: Run):
    done = run(STEPS, "run", "release.yaml", "--json")
    assert json.loads(done.stdout)["exit_code"] == done.returncode == 2


def test_a_manifest_names_the_versions_of_the_pipeline_too():
    from tasks.publishing.code import code_facts

    named = code_facts().dependencies.keys()
    assert {"numpy", "prefect", "duckdb", "sqlalchemy"} <= named
    assert not {"pytest", "mypy"} & named
