"""The verbs before a release: a first spec from what is public, and whether the records fit it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from flows.commands.answers import Answered, answers, home
from schemas.errors import SpecError


@click.command()
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--from", "described", metavar="FILE", type=click.Path(path_type=Path), help="A codebook, a schema or a table.")
@click.option("--out", metavar="DIR", type=click.Path(path_type=Path), help="The same as FOLDER.  [default: this folder]")
@click.option("--table", metavar="NAME", help="Which one, where FILE describes several.")
@click.option("--only", metavar="NAME,…", default="", help="Variables to release; the others are ignored.  [default: all]")
@click.option("--name", help="Of the data set.  [default: as FILE says]")
@click.option("--population", help="Whose budget is spent.  [default: the data set's name]")
@click.option("--source", metavar="PATH", help="Where the records lie.  [default: as FILE says]")
@click.option("--epsilon", default=None, help="ε of a release.  [default: 1.0]")
@answers
def init(folder: Path | None, described: Path | None, out: Path | None, table: str | None, **asked: Any) -> Answered:
    """Write a first dataset.yaml and release.yaml, from what is public.

    FILE is a Frictionless table schema or data package, CSVW metadata (csvw-eo too), a DDI codebook, a JSON Schema, or a file
    of Stata, SPSS or SAS, of which labels are read and never values. Of CSV and Parquet names and types are taken. What FILE
    does not say is left as a gap, which steps plan refuses with its line. Without --from it asks, in a terminal. Nothing is
    overwritten.
    """
    from flows.output import starting as output
    from tasks.describing.formats import describe
    from tasks.describing.start import choose, must_be_free, start

    if folder and out and folder != out:
        raise SpecError(f"two folders are given, {folder} and {out}; give one.")
    place = folder or out or Path()
    must_be_free(place)
    if described is None:
        described, asked = _ask(place, asked)
    found = describe(described, table) if described else None
    asked["only"] = tuple(name.strip() for name in asked["only"].split(",") if name.strip())
    _must_be_amount(asked["epsilon"])
    return output.started(start(place, found, choose(found, place, **asked))), output.show_started


def _must_be_amount(epsilon: str | None) -> None:
    from schemas.budget import parse_grant

    if epsilon is not None:
        try:
            parse_grant(epsilon, None, None)
        except ValueError as error:
            raise SpecError(f"--epsilon: {error}.") from None


def _ask(place: Path, asked: dict[str, Any]) -> tuple[Path | None, dict[str, Any]]:
    """What no option said, asked in a terminal; what is answered with a blank line is left as it would be."""
    from tasks.describing.naming import slug

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise SpecError("steps init asks in a terminal, and this is none; give a codebook, a schema or a table: --from FILE.")
    click.echo("A blank line keeps what stands in brackets.", err=True)
    described = _answer("A codebook, a schema or a table that describes the data", "")
    if described and not Path(described).is_file():
        raise SpecError(f"there is no file {described}; give the path of a codebook, a schema or a table.")
    first = slug(Path(described).name.split(".")[0] if described else place.resolve().name)
    name = asked["name"] or _answer("A name for the data", first)
    answered = {
        "name": name,
        "population": asked["population"] or _answer("Whose budget is spent (people, not files)", name),
        "who": _answer("Whose privacy: person, household, …", "person"),
        "person": _answer("The column that says whose row it is (blank: one row each)", ""),
        "source": asked["source"] or _answer("Where the records lie (blank: as described)", ""),
        "expected_rows": _number("About how many rows, as far as is public (blank: unknown)"),
        "epsilon": asked["epsilon"] or _answer("ε of a release", "1.0"),
    }
    if answered["person"]:
        answered["rows_per_person"] = _number(f"At most how many rows of one {answered['who']}", "1")
    records = str(answered["source"] or "")
    described = described or (records if Path(records).is_file() else "")
    return (Path(described) if described else None), asked | answered


def _answer(question: str, default: str) -> str:
    return str(click.prompt(question, default=default, show_default=bool(default), err=True)).strip()


def _number(question: str, default: str = "") -> int | None:
    while (answer := _answer(question, default)) and not (answer.isdigit() and int(answer)):
        click.echo(f"{answer} is no whole number above 0.", err=True)
    return int(answer) if answer else None


@click.command()
@click.argument("release", metavar="release.yaml", type=click.Path(path_type=Path))
@click.option("--period", metavar="PERIOD", help="2026q4, 2026-11 or 2026: fills {year}, {quarter}, {month}.")
@click.option(
    "--suite", metavar="OUT.json", type=click.Path(path_type=Path), help="Write a suite for suppliers; reads no data."
)
@answers
def validate(release: Path, period: str | None, suite: Path | None) -> Answered:
    """Whether the records fit the domain, before anything is paid: no ledger, no charge, no counts kept.

    What is found stays on a page under confidential/; warnings refuse nothing. With --suite no record is read: a public file is
    written instead, with which a supplier checks a file by Great Expectations alone.
    """
    from flows.output import starting as output
    from flows.runtime.boundary import fit_for_public
    from tasks.specs import load_release
    from tasks.stages.door import look_at_source
    from tasks.stages.validate import check, write_suite

    asked = load_release(release, period)
    if suite is not None:
        return output.suite_written(asked, suite, write_suite(asked, suite)), output.show_suite
    seen = look_at_source(asked)
    verdict = fit_for_public("validate", check)(home(), asked)
    return output.validated(asked, seen, verdict), output.shown_with(verdict)


COMMANDS = (init, validate)
