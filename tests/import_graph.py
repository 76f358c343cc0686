"""Who imports whom among our modules, read from the source: also inside functions and behind TYPE_CHECKING."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
LAYERS = ("flows", "tasks", "steps_engine", "schemas")  # imports point from left to right

Graph = dict[str, set[str]]


@cache
def modules() -> dict[str, str]:
    """The text of every module of ours by its path."""
    paths = (path for layer in LAYERS for path in sorted((ROOT / layer).rglob("*.py")))
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}


@cache
def parsed(text: str) -> ast.Module:
    """The syntax of a module, parsed once for all rules."""
    return ast.parse(text)


def name_of(path: str) -> str:
    """`tasks.stages.plan` of tasks/stages/plan.py, `tasks.stages` of its __init__.py."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@cache
def our_names() -> frozenset[str]:
    return frozenset(map(name_of, modules()))


def imported(path: str, tree: ast.Module) -> Iterator[str]:
    """Full names of what a module imports, wherever in it; a module of ours goes by its own name, not by its folder's."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = _source(path, node)
            names = [f"{source}.{alias.name}" for alias in node.names]
            if not our_names().issuperset(names):
                yield source
            yield from names


def _source(path: str, node: ast.ImportFrom) -> str:
    """The module behind `from … import`, dots resolved."""
    above = path.split("/")[: -node.level] if node.level else []
    return ".".join([*above, *([node.module] if node.module else [])])


def graph(texts: Mapping[str, str]) -> Graph:
    """Every module with those of ours that it imports."""
    known = set(map(name_of, texts))
    return {name_of(path): known & set(imported(path, parsed(text))) for path, text in texts.items()}


def cycle(found: Graph) -> list[str]:
    """Modules that import each other in a circle; none, where there is no circle."""
    try:
        TopologicalSorter(found).prepare()
    except CycleError as error:
        return error.args[1]
    return []
