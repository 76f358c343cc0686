"""`steps …`: the command line. Heavy imports happen in the commands that use them, so that `steps --help` is quick."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import click

from flows.commands import (
    asking,
    capping,
    cataloguing,
    foreseeing,
    keeping,
    people,
    server,
    starting,
    taking_back,
    timestamping,
    upgrading,
)
from flows.commands.answers import Answered, Steps
from flows.commands.answers import answers as _answers
from flows.commands.answers import home as _home
from flows.commands.answers import known_home as _known_home
from flows.commands.answers import version as _version
from flows.commands.answers import wishes as _wishes
from schemas.errors import SpecError


@click.group(cls=Steps)
@_wishes
@_version
def main() -> None:
    """Release differentially private synthetic microdata, within a budget that cannot be overspent."""
    gc.set_threshold(10_000, 10, 10)  # commands import much that stays: looking through it again and again took a tenth


for _command in (
    *starting.COMMANDS,
    *asking.COMMANDS,
    *taking_back.COMMANDS,
    *keeping.COMMANDS,
    people.people,
    server.server,
    cataloguing.catalogue,
):
    main.add_command(_command)


PERIOD = click.option("--period", metavar="PERIOD", help="2026q4, 2026-11 or 2026: fills {year}, {quarter}, {month}.")
SPEC = click.argument("release", metavar="release.yaml", type=click.Path(path_type=Path))


@main.command()
@SPEC
@PERIOD
@click.option("--wanted", metavar="TEXT", help='Which budget this needs instead: "voted by age ±1%", or a formula with ±0.1.')
@_answers
def plan(release: Path, period: str | None, wanted: str | None) -> Answered:
    """What a release will draw, its expected error and its cost. Reads no data, charges nothing.

    Also the size of the domain, the balance and whether it covers the plan, memory and time of the whole run, and of a budget
    in ρ the ε at a few δ.
    """
    from flows.output import json_views, planned

    if wanted is not None:
        return json_views.describe_wanted(release, period, wanted), planned.wanted
    return json_views.describe_plan(_home(), release, period), planned.plan


@main.command()
@SPEC
@PERIOD
@_answers
def run(release: Path, period: str | None) -> Answered:
    """The whole release, from plan to evaluation. Running it again resumes, or returns what was released.

    Embedded: no server is needed. Where PREFECT_API_URL names one, it records the run.
    """
    from flows.output import terminal
    from flows.runtime import embedded

    return embedded.run_release(_home(), release, period), terminal.outcome


@main.group()
@_wishes
def budget() -> None:
    """Grants and charges per population."""


budget.add_command(foreseeing.forecast)
budget.add_command(capping.cap)
budget.add_command(timestamping.timestamp)
budget.add_command(upgrading.migrate)


@budget.command()
@click.argument("population")
@click.argument("epsilon", required=False)
@click.option("--rho", help="Instead of EPSILON: a budget in ρ of zero-concentrated differential privacy.")
@click.option("--delta", help="With --rho: where ε is quoted, from now on.  [default: as before; 1e-9 at first]")
@click.option("--why", required=True, help="The reason, kept in the ledger.")
@click.option("--neighbours", type=click.Choice(["add_remove", "substitute"]), default="add_remove", show_default=True)
@click.option("--unit", default="person", show_default=True, help="Whose privacy the budget protects.")
@click.option("--key", help="A name for this grant, made once.  [default: from its amount and reason]")
@_answers
def grant(population: str, epsilon: str | None, rho: str | None, delta: str | None, **terms: Any) -> Answered:
    """Add EPSILON, or --rho, to what may be spent on POPULATION. Cannot be undone; the first grant fixes which of the two.

    Run again, it finds the grant and adds nothing: a second equal one has another reason, or a --key of its own.
    """
    from flows.output import json_views, people_views, terminal
    from schemas.budget import parse_grant
    from tasks.stages.grant import grant as grant_once
    from tasks.stores.ledger import open_ledger

    try:
        asked = parse_grant(epsilon, rho, delta)
    except ValueError as error:
        raise SpecError(f"{error}.") from None
    account, found = grant_once(_home(), population, asked, **terms)
    answer = json_views.account(account) | ({"found": json_views.entry(found)} if found else {})
    return answer, people_views.saying_nobody(open_ledger(_home()).people(), terminal.account)


@budget.command()
@click.argument("population", required=False)
@_answers
def show(population: str | None) -> Answered:
    """What was granted, charged and is left."""
    from flows.output import json_views, people_views, terminal
    from tasks.stores.ledger import open_ledger

    ledger = open_ledger(_known_home())
    accounts, people = [json_views.account(each) for each in ledger.accounts()], ledger.people()
    if population is None:
        return {"accounts": accounts}, people_views.saying_nobody(people, terminal.accounts)
    found = next((each for each in accounts if each["population"] == population), None)
    if found is None:
        raise SpecError(f'population "{population}" has no grant. See: steps budget show')
    return found, people_views.saying_nobody(people, terminal.account)


@budget.command()
@click.argument("population", required=False)
@_answers
def log(population: str | None) -> Answered:
    """Every entry of the ledger, oldest first."""
    from flows.output import json_views, terminal
    from tasks.stores.ledger import open_ledger

    entries = open_ledger(_known_home()).entries(population=population)
    if population is not None and not entries:
        raise SpecError(f'the ledger has no entry of population "{population}". See: steps budget show')
    return {"entries": [json_views.entry(each) for each in entries]}, terminal.entries


@budget.command("verify")
@_answers
def verify_ledger() -> Answered:
    """Walk the chain, check signatures; compare it with the anchor, kept timestamps and the heads in published manifests."""
    from flows.output import terminal
    from flows.output.findings import findings
    from tasks.stages.audit import check_ledger
    from tasks.stores.witnesses import witnesses

    return findings(check_ledger(home := _known_home()), witnesses(home)[0]), terminal.findings


@budget.command("anchor")
@click.option("--why", required=True, help="The reason, kept in the ledger.")
@_answers
def new_anchor(why: str) -> Answered:
    """Begin a new anchor at the ledger's head, where the old one is lost or moved on purpose."""
    from flows.output import terminal
    from tasks.stages.grant import begin_anchor

    return begin_anchor(_known_home(), why), terminal.anchored


def _decision(verdict: str, text: str) -> None:
    @main.command(verdict, help=text)
    @click.argument("name")
    @click.option("--why", default="", help="The reason, kept in the ledger.")
    @_answers
    def decide(name: str, why: str) -> Answered:
        from flows.output import terminal
        from flows.runtime import embedded

        return embedded.decide(_known_home(), name, verdict, why), terminal.decision


_decision("approve", "Let release NAME be published; what waits for it goes on.")
_decision("reject", "Never publish release NAME. It stays charged.")
_decision("abandon", "Give up release NAME and delete its exact counts. It stays charged.")


@main.command()
@_answers
def releases() -> Answered:
    """What was released, in which state, by whom, when, at what cost."""
    from flows.output import json_views, terminal
    from tasks.stores.ledger import open_ledger

    return {"releases": [json_views.release(each) for each in open_ledger(_known_home()).releases()]}, terminal.releases


@main.command("show")
@click.argument("name")
@_answers
def show_release(name: str) -> Answered:
    """The trail of one release: who, when, what, hashes."""
    from flows.output import json_views, terminal

    return json_views.trail(_known_home(), name), terminal.trail


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--key", type=click.Path(path_type=Path), help="The signer's public key (PEM), from a source you trust.")
@click.option(
    "--recompute",
    is_flag=True,
    help="Make every count and row again from the noisy counts, and what tells of them, and compare.",
)
@_answers
def verify(folder: Path, key: Path | None, recompute: bool) -> Answered:
    """Re-check a published bundle offline; its noise too, where something was measured twice."""
    from flows.output import terminal
    from flows.output.findings import verdict

    if recompute:
        from tasks.verify.recompute import verify_again as check
    else:
        from tasks.verify.bundle import examine as check
    return verdict(check(folder, key)), terminal.verdict


@main.command()
@click.argument("original", type=click.Path(path_type=Path))
@click.argument("synthetic", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("--domain", required=True, type=click.Path(path_type=Path), help="The dataset.yaml of both.")
@click.option("--classifier", default="auto", show_default=True, help="logistic, cart, or one of scikit-learn.")
@click.option("--cross-fit", type=click.IntRange(min=0), default=0, metavar="K", help="Folds; default: in-sample.")
@click.option("--model", metavar="FORMULA", help='A regression to compare, such as "pay ~ age * sex", or did_voter.')
@click.option("--kind", type=click.Choice(["linear", "ridge", "logistic"]), help="Of --model; default: linear.")
@click.option("--sets", type=click.Choice(["split", "shared"]), help="How the sets were made; default: split.")
@click.option("--page", type=click.Path(path_type=Path), help="Write a page with pictures there.")
@_answers
def evaluate(original: Path, synthetic: tuple[Path, ...], domain: Path, page: Path | None, **asked: Any) -> Answered:
    """Compare synthetic sets with their original. For data one may look at: the answer is not private."""
    from flows.output import comparison
    from steps_engine.evaluation.measures import Options
    from tasks.stages.compare import compare_files, find_regression

    options = Options(asked["classifier"], asked["cross_fit"])
    regression = find_regression(asked["model"], asked["kind"], asked["sets"])
    return compare_files(original, synthetic, domain, options, regression, page), comparison.evaluation


@main.command()
@click.argument("name", type=click.Choice(["youth-voter"]))
@click.argument("out", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--rows", type=click.IntRange(min=1), help="Default: as many as the paper's file.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@_answers
def data(name: str, out: Path, rows: int | None, seed: int) -> Answered:
    """Write a public stand-in (CSV or Parquet by suffix)."""
    from flows.output import terminal
    from tasks.studies.standin import write_standin

    return write_standin(out, rows, seed), terminal.written


@main.command()
@click.argument("name", type=click.Choice(["voter", "simulation"]))
@click.option("--repeats", type=click.IntRange(min=1), help="Default: as many as the paper's (10, 200).")
@click.option("--epsilon", multiple=True, metavar="ε", help="Repeat it for several; default: the paper's.")
@click.option("--delta", multiple=True, metavar="δ", help="Every method under zCDP too, at (ε, δ); such as 1e-9.")
@click.option("--method", multiple=True, metavar="NAME", help="Repeat it for several; default: all.")
@click.option("--out", type=click.Path(file_okay=False), help="Default: studies/NAME. Finished points there are kept.")
@click.option("--data", type=click.Path(exists=True), help="Voter records instead of the stand-in; with --domain.")
@click.option("--domain", type=click.Path(exists=True, dir_okay=False), help="The dataset.yaml of --data.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@_answers
def study(**asked: Any) -> Answered:
    """Run one of the paper's studies on public data; run again, it goes on where it was."""
    from flows.runtime import embedded_study as study_embedded

    return study_embedded.run_study(_home(), asked), study_embedded.show


if __name__ == "__main__":
    main(prog_name="steps")
