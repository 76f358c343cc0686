"""`steps server …`: Prefect's server and the worker beside it, for one home."""

from __future__ import annotations

import click

from flows.commands.answers import Answered, answers, home, wishes


@click.group()
@wishes
def server() -> None:
    """Prefect's server: its login, what is deployed on it, and the worker that runs it."""


@server.command()
@click.option("--port", type=click.IntRange(1, 65535), default=4200, show_default=True)
@click.option("--origin", metavar="URL", help="Where browsers find it, if a proxy of yours stands before it.")
@answers
def start(port: int, origin: str | None) -> Answered:
    """Start Prefect's server on loopback, behind the login; pages of other origins get nothing from it."""
    from flows.runtime import serving

    serving.start(home(), port, origin)


@server.command()
@answers
def login() -> Answered:
    """Print the login of the server, made on first use: what the UI asks for, and PREFECT_API_AUTH_STRING elsewhere."""
    from tasks.stores.keys import LOGIN, server_login

    place = home()
    return {"login": server_login(place), "file": str(place.keys / LOGIN)}, lambda answer: click.echo(answer["login"])


@server.command()
@click.option(
    "--notify", metavar="URL", help="A webhook that is told what needs a person; or STEPS_NOTIFY.", envvar="STEPS_NOTIFY"
)
@answers
def install(notify: str | None) -> Answered:
    """Put work pool, automations and everything in prefect.yaml on the server of PREFECT_API_URL; again, it updates them."""
    from flows.runtime import serving

    return serving.install(home(), notify), serving.show


@server.command()
@answers
def work() -> Answered:
    """Run what the server asks for, as far as worker.yaml in the home owns it. Ends with Ctrl-C or SIGTERM."""
    from flows.runtime import serving

    return serving.work(home()), lambda answer: click.echo(f"steps: worker {answer['worker']} stopped", err=True)
