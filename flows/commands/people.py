"""`steps people …` and `steps keys …`: who may act on a ledger, and with which key."""

from __future__ import annotations

from pathlib import Path

import click

from flows.commands.answers import Answered, answers, home, known_home, wishes
from flows.commands.keeping import keys

WHY = click.option("--why", default="", help="The reason, kept in the ledger.")


@click.group()
@wishes
def people() -> None:
    """Who may grant, run and approve: registered in the ledger, each with a key, from then on needed for all of it."""


@people.command("add")
@click.argument("name")
@click.option("--role", "roles", multiple=True, required=True, metavar="ROLE", help="approver, operator, or a group's name.")
@click.option("--key", "public", required=True, type=click.Path(path_type=Path), help="The person's public key (.pub).")
@WHY
@answers
def add(name: str, roles: tuple[str, ...], public: Path, why: str) -> Answered:
    """Register NAME, or give NAME another key or other roles. The first person is an approver and signs with the own key.

    An approver signs (--as). Where there are two or more, a second one says the same before it counts.
    """
    from flows.output import people_views
    from tasks.stages.people import add_person

    return people_views.changed(add_person(home(), name, roles, public, why)), people_views.show_changed


@people.command("remove")
@click.argument("name")
@WHY
@answers
def remove(name: str, why: str) -> Answered:
    """Revoke NAME's key. What it signed before stays valid. Two approvers, where there are two."""
    from flows.output import people_views
    from tasks.stages.people import remove_person

    return people_views.changed(remove_person(known_home(), name, why)), people_views.show_changed


@people.command("list")
@answers
def list_people() -> Answered:
    """Who is registered, and what waits for a second approver."""
    from flows.output import people_views
    from tasks.stores.ledger import open_ledger

    return people_views.people(open_ledger(known_home()).people()), people_views.show_people


@keys.command("new")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--passphrase", is_flag=True, help="Ask for one (or STEPS_KEY_PASSPHRASE), and lock the file with it.")
@answers
def new(file: Path, passphrase: bool) -> Answered:
    """Make a signing key: FILE for its owner alone, FILE.pub to be registered."""
    import os

    from flows.output import people_views
    from tasks.stores.signatures import PASSPHRASE, new_key, read_public

    said = os.environ.get(PASSPHRASE)
    if said is None and passphrase:
        said = click.prompt("Passphrase", hide_input=True, confirmation_prompt=True)
    public = new_key(file, said)
    return {"private": str(file), "public": str(public), "key": read_public(public)}, people_views.show_key


@keys.command("public")
@click.argument("file", metavar="FILE.pub", type=click.Path(path_type=Path, dir_okay=False))
@answers
def public(file: Path) -> Answered:
    """Write the public half of the key that --as (or STEPS_KEY) names, to be registered: of one on a token, for example."""
    from flows.output import people_views
    from schemas.errors import SpecError
    from tasks.stores.signatures import read_signer, write_public

    place = home().key_file
    if place is None:
        raise SpecError("no key was named. Say which: --as FILE, --as pkcs11:token=…;object=…, or STEPS_KEY.")
    signer = read_signer(place)
    return {"private": str(place), "public": str(write_public(signer, file)), "key": signer.public}, people_views.show_key
