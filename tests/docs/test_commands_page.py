"""The page of the command line is made from the commands: every command and every option of it, in Markdown that holds."""

from __future__ import annotations

import click
import pytest

from flows.cli import main
from scripts import commands

PAGE = commands.page()
EVERY = dict(commands.commands(main, "steps"))


@pytest.mark.parametrize("words", EVERY)
def test_a_command_has_its_section_with_every_option(words: str):
    section = next(part for part in PAGE.split("\n## ") if part.startswith((f"`{words}`", f"`{words} ")))
    first = (EVERY[words].help or "").strip().splitlines()[0]
    assert first and first in section
    own = [
        each
        for each in EVERY[words].params
        if isinstance(each, click.Option) and each.name not in ("home", "as_json", "signer")
    ]
    assert all(f"| `{max(each.opts, key=len)}" in section for each in own), "each option is a line of the table"


def test_a_table_has_no_bar_within_a_cell_and_no_words_of_python():
    rows = [line for line in PAGE.splitlines() if line.startswith("|")]
    assert all(line.count("|") == 3 for line in rows)
    assert "RANGE" not in PAGE and "x>=" not in PAGE


def test_what_every_command_takes_is_told_once():
    assert PAGE.count("| `--home DIR` |") == 1 and PAGE.count("| `--json` |") == 1
