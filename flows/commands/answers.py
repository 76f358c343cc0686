"""How a command answers: for people or as JSON, with our errors as exit codes; and what a person may wish of any command."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

from flows.runtime.installation import must_be_installed_for
from schemas.errors import EvidenceBroken, StepsError
from schemas.visible import visible

if TYPE_CHECKING:
    from tasks.stores.home import Home

P = ParamSpec("P")
R = TypeVar("R")

Answer = dict[str, Any]  # one JSON object
Answered = tuple[Answer, Callable[[Answer], None]]  # and how to print it for people


class Steps(click.Group):
    """All commands. What Click says of wrong words shows no character that moves a cursor or turns a line around."""

    def make_context(self, *given: Any, **more: Any) -> click.Context:
        with _shown():
            return super().make_context(*given, **more)

    def invoke(self, context: click.Context) -> Any:
        with _shown():
            return super().invoke(context)


@contextmanager
def _shown() -> Iterator[None]:
    try:
        yield
    except click.UsageError as error:
        if visible(text := error.format_message()) == text:
            raise
        raise click.UsageError(visible(text), error.ctx) from None


@dataclass
class Wishes:
    """What the person wants of any command: where state lives, who acts, and whether a program reads the answer."""

    home: str | None = None
    as_json: bool = False
    signer: str | None = None


def _wish(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    wishes = context.ensure_object(Wishes)
    if value:
        setattr(wishes, parameter.name, value)


def wishes(command: Callable[P, R]) -> Callable[P, R]:
    """--home, --json and --as, before or after the command's name."""
    wish = functools.partial(click.option, callback=_wish, expose_value=False, is_eager=True)
    at = wish("--home", metavar="DIR", help="Where state lives (or STEPS_HOME; default .steps).")
    as_json = wish("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
    signer = wish("--as", "signer", metavar="KEY", help="Whose private key signs: a file, or pkcs11:… (or STEPS_KEY).")
    return at(as_json(signer(command)))


def version(command: Callable[P, R]) -> Callable[P, R]:
    """--version, as text or with --json: package, version and, in a work tree, the commit."""

    def tell(context: click.Context, _: click.Parameter, asked: bool) -> None:
        if not asked:
            return
        from tasks.publishing.code import version_facts

        facts = version_facts()
        commit = f" (commit {facts['commit']})" if facts["commit"] else ""
        as_json = context.ensure_object(Wishes).as_json
        click.echo(json.dumps(facts) if as_json else f"{facts['package']} {facts['version']}{commit}")
        context.exit()

    return click.option("--version", is_flag=True, expose_value=False, callback=tell, help="Which version this is.")(command)


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

    return wishes(run)


def _refuse(why: str, exit_code: int, as_json: bool) -> None:
    """The text for people on standard error, and for a program as JSON on standard output."""
    click.echo(f"steps: {why}", err=True)
    if as_json:
        click.echo(json.dumps({"error": why, "exit_code": exit_code}, ensure_ascii=False))


def home() -> Home:
    """Where the command works, and with whose key."""
    from tasks.stores.home import Home, key_place

    wishes = click.get_current_context().ensure_object(Wishes)
    found = Home.from_environment(wishes.home)
    return replace(found, key_file=key_place(wishes.signer)) if wishes.signer else found


def known_home() -> Home:
    """The home of a command that looks at what is there, or decides about it. Grants, plans and runs alone begin one."""
    from tasks.stores.home import must_be_there

    found = home()
    if not found.ledger_url:  # the tables of a database are made by whoever looks first, who must own them
        must_be_there(found)
    return found
