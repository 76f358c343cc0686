"""What a terminal shows of a long run: how long in all, and of a long stage how far it is and what is left."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from flows.runtime import progress
from tasks.progress import told


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What a terminal of 100 columns is sent."""
    screen = io.StringIO()
    monkeypatch.setattr("rich.console.Console", lambda **_: Console(file=screen, force_terminal=True, width=100))
    monkeypatch.setattr("prefect.runtime.flow_run.id", "a run", raising=False)
    return screen


def test_a_long_run_says_how_long_and_a_long_stage_how_far(shown: io.StringIO):
    with progress.shown_in_terminal("starting") as begun:
        progress.expect(9000)
        progress.announce("synthesize")
        parts = told([(lambda: "block", 1)] * 4, 4)
        assert next(parts) == "block"
        next(parts)  # the first is done
        half = list(parts)
    assert half == ["block", "block"] and list(begun) == ["synthesize"]
    text = shown.getvalue()
    assert "about 2.5 h in all on a quiet core" in text
    assert all(f"synthesize {share}%, about 0 s left" in text for share in (25, 50, 75)) and "100%" not in text


def test_a_short_run_and_nobody_who_listens_are_told_nothing(shown: io.StringIO):
    progress.expect(9000)  # nobody listens
    with progress.shown_in_terminal("starting"):
        progress.expect(20)
    assert "in all" not in shown.getvalue()
    assert list(told([(lambda: 1, 1)], 1)) == [1]
