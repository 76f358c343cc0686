"""Who checks a plan must not ask the planner: what the verifier imports, directly and through our own modules."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.test_architecture import imported, modules

ROOT = Path(__file__).parents[3]

# Planning, electing and growing; `steps_engine.methods.tree.growth` is structure: a tree grown again from its splits.
PLANNING = re.compile(
    r"steps_engine\.methods(\.\w+)?\.(planning|plan|election|choosing|network)"
    r"|steps_engine\.methods\.cascade\.growth"
    r"|steps_engine\.accounting\.(plans|composition|conversion)"
    r"|steps_engine\.analyses\.(measured|predict|refusing|wanted)"
    r"|steps_engine\.studies"
    r"|tasks\.(stages|studies)"
)
# Readers of published structure share a module with what is not read here: they are where following imports ends.
# The registry finds a method by its name; what is called of one is its schemas and its check, and no more (TableCheck).
READERS = frozenset({"steps_engine.methods.registry", "steps_engine.methods.cascade.tables"})


def module_name(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def is_planning(name: str) -> bool:
    found = PLANNING.match(name)
    return found is not None and name[found.end() : found.end() + 1] in ("", ".")


def planning_reached(start: str, texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(module, what it imports of the planning) for every module that `start` reaches; readers are not followed."""
    known = {module_name(path): text for path, text in texts.items()}
    waiting, seen = [start], {start}
    while waiting:
        module = waiting.pop()
        for name in imported(module.replace(".", "/") + ".py", ast.parse(known[module])):
            if is_planning(name):
                yield module, name
            elif name in known and name not in seen | READERS:
                seen.add(name)
                waiting.append(name)


# Recomputing is running the methods again, so it reaches what they are made of; the plain check does not import it.
RECOMPUTE = "tasks.verify.recompute"
VERIFIER = sorted(module_name(path) for path in modules() if path.startswith("tasks/verify/") and "__init__" not in path)
PLAIN = [module for module in VERIFIER if module != RECOMPUTE]
CHECKS = sorted(module_name(path) for path in modules() if re.fullmatch(r"steps_engine/methods/\w+/check\.py", path))


def test_there_is_something_to_look_at():
    known = {"bundle", "accounts", "sensitivities", "prices", "promises"}
    assert {f"tasks.verify.{name}" for name in known} <= set(VERIFIER) and len(CHECKS) >= 3
    assert READERS <= {module_name(path) for path in modules()}


@pytest.mark.whole
def test_the_plain_check_does_not_recompute():
    texts = modules()
    assert RECOMPUTE in VERIFIER and not any(RECOMPUTE in _reached(module, texts) for module in PLAIN)
    assert RECOMPUTE in _reached("flows.cli", texts)


def _reached(start: str, texts: Mapping[str, str]) -> set[str]:
    known, seen = {module_name(path): text for path, text in texts.items()}, {start}
    waiting = [start]
    while waiting:
        module = waiting.pop()
        found = {name for name in imported(module.replace(".", "/") + ".py", ast.parse(known[module])) if name in known}
        waiting += found - seen
        seen |= found
    return seen


@pytest.mark.parametrize("module", [*PLAIN, *CHECKS])
def test_the_verifier_reaches_nothing_of_the_planning(module):
    assert list(planning_reached(module, modules())) == []


def accounting_of(path: str, text: str) -> list[str]:
    """What a module itself imports of the accounting: prices and sensitivities are the verifier's own."""
    return [name for name in imported(path, ast.parse(text)) if name.startswith("steps_engine.accounting")]


@pytest.mark.parametrize("module", VERIFIER)
def test_the_verifier_imports_nothing_of_the_accounting(module):
    path = f"{module.replace('.', '/')}.py"
    assert accounting_of(path, (ROOT / path).read_text(encoding="utf-8")) == []


def test_a_verifier_that_asks_for_the_planners_prices_is_caught():
    assert accounting_of("tasks/verify/x.py", "from steps_engine.accounting.mechanisms import COUNTS")
    assert accounting_of("tasks/verify/x.py", "def f():\n    from steps_engine.accounting import mechanisms")


@pytest.mark.parametrize("module", CHECKS)
def test_a_methods_check_imports_nothing_of_the_tasks(module):
    text = (ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
    assert [name for name in imported(f"{module.replace('.', '/')}.py", ast.parse(text)) if name.startswith("tasks")] == []


CONTROLS = {
    "the planner's spread": {"tasks/verify/x.py": "from steps_engine.methods.cascade.plan import SPREAD"},
    "the planner's utilities": {"tasks/verify/x.py": "def f():\n    from steps_engine.methods.tree import election"},
    "making a plan": {"tasks/verify/x.py": "import steps_engine.methods.planning"},
    "the growth of a cascade": {"tasks/verify/x.py": "from steps_engine.methods.cascade.growth import fit"},
    "the accounting": {"tasks/verify/x.py": "from steps_engine.accounting import plans"},
    "the conversion": {"tasks/verify/x.py": "from steps_engine.accounting.conversion import epsilon_of"},
    "a stage": {"tasks/verify/x.py": "from tasks.stages.plan import plan"},
    "through a module between": {
        "tasks/verify/x.py": "from tasks.verify import y",
        "tasks/verify/y.py": "from tasks.verify.z import z",
        "tasks/verify/z.py": "from steps_engine.methods.choosing import consider",
    },
}


@pytest.mark.parametrize("texts", CONTROLS.values(), ids=CONTROLS)
def test_planning_that_is_reached_is_caught(texts):
    assert len(list(planning_reached("tasks.verify.x", texts))) >= 1


@pytest.mark.parametrize(
    "text", ["from schemas.plan import Plan", "from steps_engine.methods.tree.growth import Growth", "import planner"]
)
def test_what_is_not_planning_may_be_imported(text):
    assert list(planning_reached("tasks.verify.x", {"tasks/verify/x.py": text})) == []
