"""The forecast of budgets, for programs, people and the Prefect UI. Public: schedules, prices and balances."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

from flows.output.terminal import say, shown_table
from schemas.budget import show_nanos
from schemas.counted import counted
from steps_engine.accounting.measures import MEASURES
from tasks.stages.foresee import Lifetime, Outlook

MOST_RUNS = 12  # of a population that a terminal shows


def describe(
    outlooks: list[Outlook], source: str, unread: dict[str, str], now: datetime.datetime, capped: Sequence[Lifetime] = ()
) -> dict[str, Any]:
    """One JSON object; amounts as decimal strings."""
    left = [{"release": release, "why": why} for release, why in unread.items()]
    told = [_population(each) for each in outlooks]
    shared = {"lifetimes": [_lifetime(each) for each in capped]} if capped else {}
    return {"schedule": source, "at": now.isoformat(), "populations": told, **shared, "unread": left}


def _lifetime(each: Lifetime) -> dict[str, Any]:
    """What somebody in all of these populations will have lost, and when a cap refuses a run."""
    reached = each.reached_on.isoformat() if each.reached_on else None
    return {**each.loss.said, "runs": [run.release for run in each.runs], "reached_on": reached}


def _population(outlook: Outlook) -> dict[str, Any]:
    runs = [
        {"release": run.release, "due": run.due.isoformat(), "cost": None if run.cost is None else show_nanos(run.cost)}
        for run in outlook.runs
    ]
    return {
        "population": outlook.population,
        "measure": outlook.measure,
        "balance": show_nanos(outlook.balance) if outlook.granted else None,
        "runs": runs,
        "covers": outlook.covers,
        "dry_on": outlook.dry_on.isoformat() if outlook.dry_on else None,
    }


def show(answer: dict[str, Any]) -> None:
    """One line for each population, then its runs."""
    say(f"schedule  {answer['schedule']}", *(f"not read  {each['release']}: {each['why']}" for each in answer["unread"]))
    if answer["populations"]:
        names = ("population", "balance", "runs", "covered", "runs dry")
        shown_table(names, [list(row(each).values()) for each in answer["populations"]], right=names[1:4])
    for each in answer["populations"]:
        shown_runs(each)
    say(*(_capped(each) for each in answer.get("lifetimes", ())))
    if answer["unread"]:
        say(
            "          releases are looked for in the folder that worker.yaml in --home names; without one, beside the schedule"
        )
    elif not any(each["runs"] for each in answer["populations"]):
        say("no release that is still to be paid is scheduled: give a deployment of flows/release.py:release a schedule")
    if "picture" in answer:
        say(f"picture   {answer['picture']}")


def _capped(lifetime: dict[str, Any]) -> str:
    symbol, names = MEASURES[lifetime["measure"]].symbol, ", ".join(lifetime["populations"])
    lost = f"lifetime  {names}: {symbol} = {lifetime['total']} of at most {lifetime['cap']} is lost; "
    refused = lifetime["reached_on"]
    return lost + (
        f"the run of {refused[:10]} will be refused" if refused else f"{counted(len(lifetime['runs']), 'run')} can be paid"
    )


def row(population: dict[str, Any]) -> dict[str, str]:
    """A population as a row of a table, here and in the Prefect UI."""
    symbol = MEASURES[population["measure"]].symbol
    return {
        "population": population["population"],
        "balance": "no grant yet" if population["balance"] is None else f"{symbol} = {population['balance']}",
        "runs": str(len(population["runs"])),
        "covered": str(population["covers"]),
        "runs dry": (population["dry_on"] or "not in the next two years")[:25].partition("T")[0],
    }


def shown_runs(population: dict[str, Any]) -> None:
    runs, symbol = population["runs"], MEASURES[population["measure"]].symbol
    for place, run in enumerate(runs[:MOST_RUNS]):
        price = f"{symbol} = {run['cost']}" if run["cost"] else f"has no price in {symbol}, and will be refused"
        dry = "   not covered" if population["dry_on"] and run["due"] >= population["dry_on"] else ""
        heading = population["population"] if place == 0 else ""
        say(f"{heading:<24}  {run['due'][:16].replace('T', ' ')}  {run['release']}  {price}{dry}")
    if len(runs) > MOST_RUNS:
        say(f"{'':<24}  … and {len(runs) - MOST_RUNS} more; --json lists all of them")
    if population["dry_on"]:
        say(f"{'':<24}  before {population['dry_on'][:10]} extend the grant, or take releases off the schedule")
