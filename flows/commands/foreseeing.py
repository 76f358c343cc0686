"""`steps budget forecast`: what the schedules will ask of each budget, and when it runs dry."""

from __future__ import annotations

from pathlib import Path

import click

from flows.commands.answers import Answered, answers, home


@click.command()
@click.option("--picture", metavar="FILE.svg", type=click.Path(dir_okay=False, path_type=Path), help="Draw the balances there.")
@click.option(
    "--deployments",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A prefect.yaml.  [default: the server of PREFECT_API_URL; without one, prefect.yaml in this folder]",
)
@answers
def forecast(picture: Path | None, deployments: Path | None) -> Answered:
    """What the schedules will ask of each population in two years, and when its budget runs dry. Charges nothing."""
    from flows.output import forecast as shown
    from flows.runtime import foreseen

    answer = foreseen.foresee(home(), deployments)
    if picture is not None:
        from flows.output.forecast_picture import draw

        answer["picture"] = draw(answer, picture)
    return answer, shown.show
