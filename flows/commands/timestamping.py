"""`steps budget timestamp`: a timestamp authority's word that the ledger's head exists. Nothing is sent from here."""

from __future__ import annotations

from pathlib import Path

import click

from flows.commands.answers import Answered, answers, known_home
from schemas.errors import SpecError

FILE = click.Path(dir_okay=False, path_type=Path)
KNOWN = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option("--request", metavar="OUT.tsq", type=FILE, help="Write a request (RFC 3161) for the present head there.")
@click.option("--response", metavar="IN.tsr", type=KNOWN, help="Check the authority's answer, and keep it.")
@click.option("--chain", metavar="CA.pem", type=KNOWN, help="With --response: its certificates.  [default: as the last time]")
@answers
def timestamp(request: Path | None, response: Path | None, chain: Path | None) -> Answered:
    """Have the ledger's head timestamped. A person or cron carries the request to an authority, and its answer back.

    Without an option: which timestamps are kept. `steps budget verify` checks all of them against the ledger.
    """
    from flows.output import timestamps
    from tasks.stages.timestamp import accept_response, write_request

    if request and response or chain and not response:
        raise SpecError("a request is made, or a response checked (with --chain its certificates): one of them at a time.")
    if request:
        return timestamps.asked(write_request(known_home(), request), request), timestamps.show_asked
    if response:
        return timestamps.witness(accept_response(known_home(), response, chain)), timestamps.show_witness
    return timestamps.listed(known_home()), timestamps.show_listed
