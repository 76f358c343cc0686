"""`steps budget cap`: the most that somebody may lose in a lifetime, over populations that share people."""

from __future__ import annotations

import click

from flows.commands.answers import Answered, answers, home
from schemas.errors import SpecError


@click.command()
@click.argument("population")
@click.argument("epsilon", required=False)
@click.option("--rho", help="Instead of EPSILON: a cap in ρ, in which releases in ε count ε²/2. Needed where a budget is in ρ.")
@click.option("--with", "others", multiple=True, metavar="POPULATION", help="Shares people with it, for good; may be repeated.")
@click.option("--why", required=True, help="The reason, kept in the ledger.")
@answers
def cap(population: str, epsilon: str | None, rho: str | None, others: tuple[str, ...], why: str) -> Answered:
    """Cap what somebody in POPULATION, and in all that share people with it, may lose in a lifetime.

    Which do is said by --with, or by overlaps in a dataset.yaml once it was charged. The last cap on a population counts; of
    several over the same people every one holds.
    """
    from flows.output import json_views, terminal
    from schemas.budget import parse_grant
    from tasks.stages.audit import must_be_current_ledger
    from tasks.stores import acts

    try:
        asked = parse_grant(epsilon, rho, None)
    except ValueError as error:
        raise SpecError(f"{error}.") from None
    ledger = must_be_current_ledger(home())
    acts.cap(ledger, population, asked.nanos, asked.measure, why, others)
    return json_views.account(ledger.account(population)), terminal.account
