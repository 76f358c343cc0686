"""The verbs for what cannot be undone: what is public is withdrawn or superseded, a charge whose draw is lost is burnt."""

from __future__ import annotations

import click

from flows.commands.answers import Answered, answers, known_home


@click.command()
@click.argument("name")
@click.option("--why", required=True, help="The reason, which is published.")
@answers
def withdraw(name: str, why: str) -> Answered:
    """Take back release NAME, which is public. Its bundle stays, with a signed notice; it stays charged."""
    from flows.output import keeping
    from flows.runtime.telling import server_told
    from tasks.stages.take_back import withdraw as take_back

    with server_told(place := known_home(), name):
        return keeping.notice(take_back(place, name, why)), keeping.show_notice


@click.command()
@click.argument("old")
@click.argument("new")
@answers
def supersede(old: str, new: str) -> Answered:
    """Say that release NEW takes the place of OLD. Both are public; OLD gets a signed notice."""
    from flows.output import keeping
    from flows.runtime.telling import server_told
    from tasks.stages.take_back import supersede as take_back

    with server_told(place := known_home(), old):
        return keeping.notice(take_back(place, old, new)), keeping.show_notice


@click.command()
@click.argument("name")
@click.option("--why", required=True, help="The reason, kept in the ledger.")
@answers
def burn(name: str, why: str) -> Answered:
    """Give up the charge of release NAME, whose sealed draw is lost for good. Running it again needs a new charge."""
    from flows.output import terminal
    from flows.runtime.telling import server_told
    from tasks.stages.burn import burn as give_up

    with server_told(place := known_home(), name):
        left = {"release": name, "state": give_up(place, name, why)}
    return left | {"next": f"run it again to pay and draw anew, or: steps abandon {name}"}, terminal.decision


COMMANDS = (withdraw, supersede, burn)
