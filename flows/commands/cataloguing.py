"""`steps catalogue`: a static site over everything that is published."""

from __future__ import annotations

from pathlib import Path

import click

from flows.commands.answers import Answered, answers, known_home


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--address", default="", metavar="URL", help="Where it will lie: links in the feeds begin with it.")
@click.option(
    "--deployments",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A prefect.yaml, for what is scheduled.  [default: the server of PREFECT_API_URL, or prefect.yaml in this folder]",
)
@answers
def catalogue(out: Path, address: str, deployments: Path | None) -> Answered:
    """Write a site over all that is published to folder OUT, or bring it up to date. It needs no server and no network."""
    from flows.output.cataloguing import show
    from flows.runtime.cataloguing import write_catalogue

    return write_catalogue(known_home(), out, address, deployments), show
