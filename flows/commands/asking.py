"""What a published bundle is asked: `steps fit`, `steps table`, `steps sample`. The base is enough; nothing is charged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flows.commands.answers import Answered, answers

if TYPE_CHECKING:
    from tasks.answers.bundle import Bundle
    from tasks.answers.frames import Answer

FOLDER = click.argument("folder", type=click.Path(path_type=Path))
KEY = click.option("--key", type=click.Path(path_type=Path), help="The publisher's public key (PEM), from a source you trust.")
WHERE = click.option(
    "--where", multiple=True, metavar="NAME=VALUE", help="Only such rows: age=18, age=18..24, sector=public,private. Repeat it."
)
CSV = click.option("--csv", type=click.Path(path_type=Path, dir_okay=False), help="Write every number there.")
PICTURE = click.option(
    "--picture", type=click.Path(path_type=Path, dir_okay=False), help="Draw the intervals there: .svg, .png or .pdf."
)


@click.command()
@FOLDER
@click.argument("formula")
@click.option("--kind", type=click.Choice(["logistic", "linear"]), help="Default: logistic where the outcome has categories.")
@WHERE
@CSV
@PICTURE
@KEY
@answers
def fit(folder: Path, formula: str, kind: Any, **asked: Any) -> Answered:
    """Fit a regression such as "voted ~ age + college" to all sets of a bundle, combined as they must be."""
    from flows.output import answered

    found = _bundle(folder, asked["key"])
    return _written(found.fit(formula, kind, _where(asked["where"])), asked), answered.fit


@click.command()
@FOLDER
@click.argument("attributes", nargs=-1, required=True)
@WHERE
@click.option("--all", "everything", is_flag=True, help="Show a table of many cells too.")
@CSV
@PICTURE
@KEY
@answers
def table(folder: Path, attributes: tuple[str, ...], everything: bool, **asked: Any) -> Answered:
    """Counts and shares by ATTRIBUTES of a bundle, from its noisy counts, with standard errors and intervals."""
    from flows.output import answered

    found = _bundle(folder, asked["key"])
    made = found.table(*attributes, where=_where(asked["where"]), all=everything or asked["csv"] is not None)
    return _written(made, asked), answered.brief if asked["csv"] is not None and not everything else answered.table


@click.command()
@FOLDER
@click.option("--rows", type=click.IntRange(min=1), help="In each set; default: about as many as a set of the release has.")
@click.option("--sets", type=click.IntRange(min=1), help="Default: as many as the release has.")
@WHERE
@click.option(
    "--seed", type=click.IntRange(min=0, max=2**53 - 1), default=0, show_default=True, help="The same one makes the same rows."
)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="A new folder; default: NAME-sample, here.")
@click.option("--format", "form", type=click.Choice(["parquet", "csv"]), default="parquet", show_default=True)
@KEY
@answers
def sample(folder: Path, where: tuple[str, ...], key: Path | None, out: Path | None, **asked: Any) -> Answered:
    """Make more rows, or rows under a condition, from what a bundle published. Nothing is charged."""
    from flows.output import answered
    from tasks.answers.sampling import write_sample

    found = _bundle(folder, key)
    place = out or Path(f"{found.name}-sample")
    return write_sample(
        found, asked["rows"], _where(where), asked["sets"], asked["seed"], place, asked["form"]
    ), answered.more_rows


def _where(texts: tuple[str, ...]) -> dict[str, str]:
    from steps_engine.answers.conditions import read_conditions

    return read_conditions(texts)


def _bundle(folder: Path, key: Path | None) -> Bundle:
    from tasks.answers.bundle import Bundle
    from tasks.answers.opened import open_bundle

    return Bundle(open_bundle(folder, key))


def _written(answer: Answer, asked: dict[str, Any]) -> dict[str, Any]:
    """The answer as plain values, with the files that it was written to."""
    from tasks.answers.writing import write_csv, write_picture

    if asked["csv"] is not None:
        answer.document["csv"] = str(write_csv(answer, asked["csv"]))
    if asked["picture"] is not None:
        answer.document["picture"] = str(write_picture(answer, asked["picture"]))
    return answer.document


COMMANDS = (fit, table, sample)
