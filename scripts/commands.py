"""Every command of `steps` with its arguments and options, as a page: what `--help` says, in one place."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from flows.cli import main

RANGE = r" *\[\d*<?=?x[<>]=?\d+\]|; \d*<?=?x[<>]=?\d+"
OPENING = """\
# The command line

What `steps COMMAND --help` says, in one place; this page is made from the commands themselves. Every command also takes these,
before or after its name:

"""
CODES = """
Exit codes: 0 done · 1 failure · 2 bad spec, domain or usage · 3 refused by the budget · 4 data fail validation ·
5 evidence does not verify · 6 waiting for approval. [What to do when](../operations.md#what-to-do-when).
"""


def page() -> str:
    """Every command in the order in which `--help` lists them, with a table of its options."""
    everywhere = {each.name for each in main.params if isinstance(each, click.Option)}
    wishes = [each for each in main.params if isinstance(each, click.Option) and each.name != "version"]
    parts = [part for words, command in commands(main, "steps") for part in _section(words, command, everywhere)]
    return "\n".join([OPENING + "\n".join(_table(wishes)), CODES, *parts]).rstrip() + "\n"


def commands(command: click.Command, words: str) -> Iterator[tuple[str, click.Command]]:
    """`steps run`, `steps budget grant` …: what can be run, not the groups."""
    if not isinstance(command, click.Group):
        yield words, command
        return
    for name, child in sorted(command.commands.items()):
        yield from commands(child, f"{words} {name}")


def _section(words: str, command: click.Command, everywhere: set[str | None]) -> Iterator[str]:
    arguments = [_argument(each) for each in command.params if isinstance(each, click.Argument)]
    options = [each for each in command.params if isinstance(each, click.Option) and each.name not in everywhere]
    yield f"## `{' '.join([words, *arguments])}`"
    yield ""
    yield inspect.cleandoc(command.help or "")
    yield ""
    if options:
        yield from _table(options)
        yield ""


def _argument(argument: click.Argument) -> str:
    name = argument.make_metavar(click.Context(main))
    return name if name.startswith("[") or argument.required else f"[{name}]"


def _table(options: list[click.Option]) -> Iterator[str]:
    yield "| option | what it does |"
    yield "|---|---|"
    for option in options:
        said, described = option.get_help_record(click.Context(main, show_default=None)) or ("", "")
        yield f"| `{_plain(said)}` | {_plain(described)} |"


def _plain(text: str) -> str:
    """As a person writes it, and a table of Markdown takes it: no bars, no types of Python."""
    return re.sub(r"  +", " ", re.sub(RANGE, "", text).replace("INTEGER RANGE", "N").replace("|", "/")).strip()
