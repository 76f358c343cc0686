"""How a command answers: one JSON object or a text for people, our errors as exit codes; and where it finds its home."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

from flows.runtime.installation import must_be_installed_for
from schemas.errors import EvidenceBroken, StepsError

if TYPE_CHECKING:
    from tasks.stores.home import Home

P = ParamSpec("P")
R = TypeVar("R")

Answer = dict[str, Any]  # one JSON object
Answered = tuple[Answer, Callable[[Answer], None]]  # and how to print it for people


@dataclass
class Wishes:
    """What the person wants of any command: where state lives, and whether a program reads the answer."""

    home: str | None = None
    as_json: bool = False


def _wish(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    wishes = context.ensure_object(Wishes)
    if value:
        setattr(wishes, parameter.name, value)


def with_wishes(command: Callable[P, R]) -> Callable[P, R]:
    """--home and --json, before or after the command's name."""
    wish = functools.partial(click.option, callback=_wish, expose_value=False)
    home = wish("--home", metavar="DIR", help="Where state lives (or STEPS_HOME; default .steps).")
    as_json = wish("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
    return home(as_json(command))


def answers(command: Callable[P, Answered]) -> Callable[P, None]:
    """A command returns its answer and how to print it for people; our errors become exit codes."""

    @click.pass_context
    @functools.wraps(command)
    def run(context: click.Context, /, *arguments: P.args, **options: P.kwargs) -> None:
        wishes = context.ensure_object(Wishes)
        try:
            must_be_installed_for(context.command_path.partition(" ")[2])
            answer, show = command(*arguments, **options)
        except StepsError as error:
            _refuse(str(error), error.exit_code, wishes.as_json)
            context.exit(error.exit_code)
        if wishes.as_json:
            click.echo(json.dumps(answer, ensure_ascii=False))
        else:
            show(answer)
        context.exit(EvidenceBroken.exit_code if answer.get("ok") is False else 0)

    return with_wishes(run)


def _refuse(why: str, exit_code: int, as_json: bool) -> None:
    """The text for people on standard error, and for a program as JSON on standard output."""
    click.echo(f"steps: {why}", err=True)
    if as_json:
        click.echo(json.dumps({"error": why, "exit_code": exit_code}, ensure_ascii=False))


def home_asked() -> Home:
    from tasks.stores.home import Home

    return Home.from_environment(click.get_current_context().ensure_object(Wishes).home)
