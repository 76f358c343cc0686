"""Every threat names the tests that show how it is met, and they exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "threats.md").read_text(encoding="utf-8")


def names_of_tests() -> set[str]:
    trees = (ast.parse(path.read_bytes()) for path in (ROOT / "tests").rglob("test_*.py"))
    named = (node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {name.removeprefix("test_") for name in named if name.startswith("test_")}


def unshown(page: str, there: set[str]) -> list[str]:
    """Rows of threats whose last column names no test, or one that there is not."""
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| threat ")]
    named = [set(re.findall(r"`(\w+)`", row.rstrip("| ").rpartition(" | ")[2])) for row in rows]
    return [row for row, names in zip(rows, named, strict=True) if not names or names - there]


def test_every_threat_names_tests_that_exist():
    assert PAGE.count("\n| ") > 45 and unshown(PAGE, names_of_tests()) == []


@pytest.mark.parametrize("row", ["| a threat | a defence |", "| a threat | a defence | `no_such_test_there_is` |"])
def test_a_threat_without_a_test_is_noticed(row: str):
    assert unshown(f"{PAGE}\n{row}\n", names_of_tests()) == [row]
