"""Looking after a home: how it stands, what may be forgotten, its keys, its backup."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from flows.commands.answers import Answered, answers, home, known_home, wishes
from schemas.errors import SpecError

PASSPHRASE = click.option(
    "--passphrase-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Its first line encrypts the keys; without it, a terminal asks.",
)
WHY = click.option("--why", required=True, help="The reason, kept in the ledger.")


@click.command()
@answers
def status() -> Answered:
    """Releases running, waiting and stopped with what to do next, exact counts lying about; if ledger and home are sound."""
    from flows.output import keeping
    from tasks.stages.status import status as look

    return look(home()), keeping.show_status


@click.command()
@click.argument("name", required=False)
@answers
def forget(name: str | None) -> Answered:
    """Delete exact counts that no run is using: of release NAME, or of all. Whoever runs it again counts again."""
    from flows.output import keeping
    from tasks.stages.forget import forget_leftovers

    return forget_leftovers(known_home(), name), keeping.show_forgotten


@click.command()
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
@PASSPHRASE
@answers
def backup(out: Path, passphrase_file: Path | None) -> Answered:
    """Write the ledger, the anchor, keys (encrypted), sealed artifacts and bundles to OUT, while runs may go on."""
    from flows.output import keeping
    from tasks.stores.backup import back_up, must_be_writable

    must_be_writable(at := known_home(), out)
    return back_up(at, out, _passphrase(passphrase_file, new=True)), keeping.show_backup


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@PASSPHRASE
@answers
def restore(file: Path, passphrase_file: Path | None) -> Answered:
    """Bring a backup back into --home, which must be new. Refused where a charge would be forgotten."""
    from flows.output import keeping
    from tasks.stages.restore import restore as bring_back

    return bring_back(home(), file, _passphrase(passphrase_file)), keeping.show_restored


def _passphrase(file: Path | None, new: bool = False) -> str:
    if file is not None:
        return file.read_text(encoding="utf-8").split("\n", 1)[0].removesuffix("\r")
    try:
        asked: str = click.prompt("Passphrase of the keys", hide_input=True, confirmation_prompt=new, err=True)
    except click.Abort as error:
        raise SpecError(
            "no passphrase was given, so nothing was written. Type one, or name a file: --passphrase-file"
        ) from error
    return asked


@click.group()
@wishes
def keys() -> None:
    """Keys with which people sign (new); the key that signs releases, and its history."""


@keys.command("show")
@answers
def show_keys() -> Answered:
    """The public key, and every change of it."""
    from flows.output import keeping

    return keeping.key_history(known_home()), keeping.show_keys


@keys.command()
@WHY
@click.option("--revoke", is_flag=True, help="The old key is not to be trusted any more: what it signed no longer verifies.")
@click.option("--key", help="A name for this rotation, made once.  [default: from its reason and the day]")
@answers
def rotate(**asked: Any) -> Answered:
    """Sign with a new key from now on. The old one signs it, so that whoever has either verifies both's releases.

    Run again on the same day, it finds the rotation and changes nothing: a second one has another reason, or a --key of its
    own.
    """
    from flows.output import keeping
    from tasks.stages.audit import must_be_current_ledger
    from tasks.stores.rotation import rotate as change
    from tasks.stores.rotation import rotated_before

    place = known_home()
    ledger = must_be_current_ledger(place)
    found = rotated_before(place, ledger, **asked)
    change(place, ledger, **asked)
    return keeping.key_history(place) | ({"found": found.details["link"]} if found else {}), keeping.show_keys


@keys.command()
@WHY
@answers
def replace(why: str) -> Answered:
    """Make keys anew that are lost and have no backup. Releases under way may have to be abandoned."""
    from flows.output import keeping
    from tasks.stages.audit import must_be_current_ledger
    from tasks.stores.rotation import replace as make_anew

    place = known_home()
    make_anew(place, must_be_current_ledger(place), why)
    return keeping.key_history(place), keeping.show_keys


COMMANDS = (status, forget, backup, restore, keys)
