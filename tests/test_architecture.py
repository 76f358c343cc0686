"""The rules that keep the code readable and the guarantee in one place. Each has a control: a snippet that it must catch."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = ("flows", "tasks", "steps_engine", "schemas")  # imports point from left to right
NOISE, KEYS, CHARGE = "steps_engine/noise.py", "tasks/stores/keys.py", "tasks/stages/charge.py"
LONGEST_FUNCTION, LONGEST_MODULE = 50, 300

Rule = Callable[[str, ast.Module], Iterator[str]]


def modules() -> dict[str, str]:
    """Every module of ours by its path."""
    paths = (path for layer in LAYERS for path in sorted((ROOT / layer).rglob("*.py")))
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}


def imported(tree: ast.Module) -> Iterator[str]:
    """Full names of what a module imports, wherever in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def dotted(node: ast.AST) -> str:
    """`np.random.default_rng` of an attribute chain."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def imports_point_one_way(path: str, tree: ast.Module) -> Iterator[str]:
    above = LAYERS[: LAYERS.index(path.split("/")[0])]
    yield from (name for name in imported(tree) if name.split(".")[0] in above)


def prefect_stays_in_flows(path: str, tree: ast.Module) -> Iterator[str]:
    if not path.startswith("flows/"):
        yield from (name for name in imported(tree) if name.split(".")[0] == "prefect")


def engine_is_pure(path: str, tree: ast.Module) -> Iterator[str]:
    impure = {"prefect", "great_expectations", "duckdb", "sqlalchemy", "os", "pathlib", "time", "datetime", "socket", "urllib"}
    if path.startswith("steps_engine/"):
        allowed = {"os"} if path == NOISE else set()
        yield from (name for name in imported(tree) if name.split(".")[0] in impure - allowed)


def noise_is_drawn_in_one_place(path: str, tree: ast.Module) -> Iterator[str]:
    if path == NOISE:
        return
    samplers = {"random", "numpy.random", "secrets", "opendp", "scipy.stats.qmc"} - ({"secrets"} if path == KEYS else set())
    for name in imported(tree):
        if any(name == sampler or name.startswith(f"{sampler}.") for sampler in samplers):
            yield name
    for node in ast.walk(tree):
        name = dotted(node)
        if name in ("os.urandom", "os.getrandom", "uuid.uuid4") or name.startswith(("np.random.", "numpy.random.")):
            yield name
        if isinstance(node, ast.Attribute) and node.attr in ("rvs", "sample"):
            yield f".{node.attr}"


def budget_is_charged_in_one_place(path: str, tree: ast.Module) -> Iterator[str]:
    """`charge` on a ledger may be called by tasks/stages/charge.py alone; its definition is no call."""
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call) and path != CHARGE)
    yield from (dotted(call) or call.attr for call in calls if isinstance(call, ast.Attribute) and call.attr == "charge")


def nothing_foreign_is_run(path: str, tree: ast.Module) -> Iterator[str]:
    foreign = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib"}
    yield from (name for name in imported(tree) if name.split(".")[0] in foreign or name in ("yaml", "yaml.load"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and dotted(node.func) in ("eval", "exec", "yaml.load", "pd.read_pickle", "np.load"):
            yield dotted(node.func)
        if isinstance(node, ast.keyword) and node.arg in ("allow_pickle", "shell") and getattr(node.value, "value", True):
            yield node.arg


def functions_and_modules_stay_short(path: str, tree: ast.Module) -> Iterator[str]:
    if max((getattr(node, "end_lineno", 0) for node in tree.body), default=0) > LONGEST_MODULE:
        yield path
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno >= LONGEST_FUNCTION:
            yield node.name


def no_seed_in_a_release(path: str, tree: ast.Module) -> Iterator[str]:
    """Seeded sources serve stand-ins and studies; a task of a release draws from the system alone."""
    if path.startswith(("tasks/", "flows/")) and path not in (
        "tasks/studies/standin.py",
        "flows/study.py",
        "tasks/studies/points.py",
    ):
        yield from (name for name in imported(tree) if name.endswith("SeededRandomness"))


CONTROLS: dict[Rule, tuple[str, str]] = {
    imports_point_one_way: ("schemas/x.py", "def f():\n    from tasks.stages.plan import plan"),
    prefect_stays_in_flows: ("tasks/x.py", "import prefect.states"),
    engine_is_pure: ("steps_engine/x.py", "from pathlib import Path"),
    noise_is_drawn_in_one_place: ("steps_engine/x.py", "import numpy as np\nnp.random.default_rng()"),
    budget_is_charged_in_one_place: ("tasks/x.py", "store.ledger.charge(request)"),
    nothing_foreign_is_run: ("tasks/x.py", "import pickle"),
    functions_and_modules_stay_short: ("tasks/x.py", "def f():\n" + "    x = 1\n" * LONGEST_FUNCTION),
    no_seed_in_a_release: ("tasks/stages/sanitize.py", "from steps_engine.noise import SeededRandomness"),
}
MORE_CONTROLS = [
    (noise_is_drawn_in_one_place, "tasks/x.py", "import random"),
    (noise_is_drawn_in_one_place, "tasks/x.py", "from numpy.random import default_rng"),
    (noise_is_drawn_in_one_place, "tasks/x.py", "import os\nos.urandom(8)"),
    (noise_is_drawn_in_one_place, "tasks/x.py", "import secrets"),
    (noise_is_drawn_in_one_place, "steps_engine/x.py", "frame.sample(3)"),
    (nothing_foreign_is_run, "tasks/x.py", "eval('1')"),
    (nothing_foreign_is_run, "tasks/x.py", "import yaml\nyaml.load('a')"),
    (nothing_foreign_is_run, "tasks/x.py", "subprocess.run('ls', shell=True)"),
]


@pytest.mark.parametrize("rule", CONTROLS, ids=lambda rule: rule.__name__)
def test_every_module_keeps_the_rule(rule: Rule):
    broken = {path: found for path, text in modules().items() if (found := list(rule(path, ast.parse(text))))}
    assert broken == {}


@pytest.mark.parametrize("rule", CONTROLS, ids=lambda rule: rule.__name__)
def test_the_rule_catches_what_breaks_it(rule: Rule):
    path, snippet = CONTROLS[rule]
    assert list(rule(path, ast.parse(snippet)))


@pytest.mark.parametrize(("rule", "path", "snippet"), MORE_CONTROLS)
def test_the_rule_catches_this_too(rule: Rule, path: str, snippet: str):
    assert list(rule(path, ast.parse(snippet)))


def test_noise_and_budget_each_have_their_place():
    """A newcomer finds both by their star."""
    assert "★" in (ROOT / CHARGE).read_text() and "ledger.charge(" in (ROOT / CHARGE).read_text()
    assert "★" in (ROOT / NOISE).read_text()


def commands() -> Iterator[str]:
    """Every command of the command line: `steps run`, `steps budget grant` …"""
    import click

    from flows.cli import main

    def walk(command: click.Command, words: str) -> Iterator[str]:
        if isinstance(command, click.Group):
            for name, child in command.commands.items():
                yield from walk(child, f"{words} {name}")
        else:
            yield words

    return walk(main, "steps")


def undocumented(readme: str) -> list[str]:
    return [command for command in commands() if command not in readme]


def test_every_command_is_documented_in_the_readme():
    assert undocumented((ROOT / "README.md").read_text(encoding="utf-8")) == []


def test_an_undocumented_command_is_noticed():
    assert "steps budget grant" in undocumented("steps run, steps plan")


def test_the_lock_file_names_no_address():
    text = (ROOT / "requirements.lock").read_text()
    assert "://" not in text and "--index-url" not in text and "--hash=sha256:" in text
