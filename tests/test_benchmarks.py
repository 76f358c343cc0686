"""A benchmark that fails costs its own figures alone: those of the others are written, and the end says which one failed."""

from __future__ import annotations

import json
import types
from pathlib import Path

import pytest

from benchmarks import __main__ as bench


def counts_what_is_written(path: Path) -> dict:
    return {"written before": len(json.loads(path.read_text())["measured"])}


def breaks() -> dict:
    raise ZeroDivisionError("the second one")


@pytest.fixture
def three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three benchmarks of which the second one fails; the third looks at what is written by then."""
    monkeypatch.chdir(tmp_path)
    entries = {name: (name, "measure", {}) for name in ("first", "second", "third")}
    monkeypatch.setattr(bench, "BENCHMARKS", entries)
    measures = {"first": lambda: {"ratio": 1.5}, "second": breaks, "third": lambda: counts_what_is_written(bench.OUT)}
    for name, measure in measures.items():
        monkeypatch.setitem(bench.sys.modules, f"benchmarks.{name}", types.SimpleNamespace(measure=measure))
    return tmp_path / bench.OUT


def test_a_benchmark_that_fails_is_named_at_the_end_and_the_others_are_kept(three, monkeypatch, capsys):
    monkeypatch.setattr(bench.sys, "argv", ["benchmarks"])
    with pytest.raises(SystemExit) as ended:
        bench.main()
    assert ended.value.code == "failed: second; their errors stand above", "a text: exit code 1"
    written = json.loads(three.read_text())
    assert written["measured"] == {"first": {"ratio": 1.5}, "third": {"written before": 1}} and written["failed"] == ["second"]
    said = capsys.readouterr()
    assert "ZeroDivisionError: the second one" in said.err and "ratio" in said.out and "written before" in said.out


def test_benchmarks_that_all_succeed_end_quietly(three, monkeypatch):
    monkeypatch.setattr(bench.sys, "argv", ["benchmarks", "first", "third"])
    bench.main()
    assert json.loads(three.read_text())["failed"] == []
