"""What a run shows in the Prefect UI: plan, budget, tree, bundle, and why a release was refused. All of it public."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from prefect import get_client, runtime
from prefect.artifacts import (
    create_image_artifact,
    create_link_artifact,
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
)
from prefect.events import emit_event

from flows.output import forecast, json_views
from flows.output.plan_picture import tree_uri
from schemas.budget import show_nanos
from schemas.counted import many
from schemas.errors import BudgetRefused
from schemas.plan import AnalysisPlan, Plan
from schemas.spec.release import Release
from steps_engine.accounting.meaning import promises_of
from steps_engine.accounting.measures import MEASURES
from steps_engine.analyses.refusing import shown
from steps_engine.methods.registry import method_of
from tasks.stages.plan import load_plan
from tasks.stages.references import PlanReference
from tasks.stores.artifacts import Store
from tasks.stores.charging import Account
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger


def _key(kind: str, name: str) -> str:
    """Prefect's keys know a–z, 0–9 and dashes only."""
    return f"{kind}-{name.replace('_', '-')}"


def tag_run(release: Release) -> None:
    """Tags the flow run, so that the UI finds it by release and population."""
    with get_client(sync_client=True) as client:
        ours = {release.name, release.domain.population}
        client.update_flow_run(runtime.flow_run.id, tags=sorted({*runtime.flow_run.tags, *ours}))


def trail_of_run() -> dict[str, Any]:
    """Which run this is and what runs it, for the ledger."""
    versions = {name: version(name) for name in ("steps-release", "prefect", "numpy", "pyarrow", "duckdb")}
    return {"flow_run": str(runtime.flow_run.id), "deployment": runtime.deployment.id, "versions": versions}


def ask_for_signatures(name: str, folder: Path, who: str) -> None:
    """What to do about a release that waits, where people are registered: nothing that is typed here decides."""
    text = (
        f"**{name}** waits. What would be published lies in `{folder}`: see `index.html` and `manifest.json`.\n\n"
        f'{who}\n\n    steps approve {name} --as FILE\n    steps reject {name} --as FILE --why "…"\n\n'
        "The run goes on by itself where PREFECT_API_URL is set; otherwise resume it here afterwards."
    )
    create_markdown_artifact(text, key=_key("approval", name), description=f"who has to approve {name}, and how")


def show_forecast(foreseen: dict[str, Any]) -> None:
    """What the schedules will ask of each budget, and when it runs dry."""
    rows = [forecast.row(each) for each in foreseen["populations"]]
    create_table_artifact(rows, key="budget-forecast", description="what the schedules ask, and when budgets run dry")


def show_plan(home: Home, plan: PlanReference) -> None:
    """The plan as a table and as a picture; numbers as text, as they were computed."""
    planned = load_plan(Store(home), plan)
    sketch, symbol = method_of(planned).sketch(planned), MEASURES[planned.measure].symbol
    rows = [
        {
            sketch.row: str(row.number),
            sketch.splits: row.what,
            "nodes": row.nodes,
            f"share of {symbol}": row.share,
            "expected error": f"± {row.expected_error:.4g}",
        }
        for row in sketch.rows
    ]
    cost = f"{planned.release} costs {symbol} = {planned.cost} of {planned.population}{_told(planned)}{_charged(home, planned)}"
    create_table_artifact(rows, key=_key("plan", planned.release), description=f"{cost}: {many(planned.cells)} cells")
    if planned.analyses:
        create_table_artifact(
            [_analysis_row(each, symbol) for each in planned.analyses],
            key=_key("analyses", planned.release),
            description="what the analyses that the release names will get; widths are halves of 95% intervals, "
            "expected for attributes that are balanced and independent",
        )
    create_image_artifact(
        tree_uri(planned),
        key=_key("tree", planned.release),
        description="what is drawn, layer by layer",
    )


def _analysis_row(analysis: AnalysisPlan, symbol: str) -> dict[str, str]:
    width = analysis.expected_width
    return {
        "analysis": analysis.name,
        "kind": analysis.kind,
        "measured": "yes" if analysis.measured else "no",
        f"share of {symbol}": f"{float(analysis.share):.1%}",
        "expected width": "not known" if width is None else f"± {shown(analysis, width)}",
    }


def _told(plan: Plan) -> str:
    """What ρ promises, at a few δ."""
    promises = ", ".join(f"ε = {promise.epsilon} at δ = {promise.delta}" for promise in promises_of(plan))
    return f" ({promises})" if promises else ""


def _charged(home: Home, plan: Plan) -> str:
    """What a budget that is kept in another measure than the plan's is charged."""
    account = _account(home, plan.population)
    if account is None or account.measure == plan.measure:
        return ""
    price = json_views.price(account, plan)
    return f", charged as {account.symbol} = {price}" if price else f", which a budget in {account.symbol} cannot pay"


def _account(home: Home, population: str) -> Account | None:
    return next((account for account in open_ledger(home).accounts() if account.population == population), None)


def show_budget(home: Home, release: Release) -> None:
    """How much of the population's grant is spent; in ρ, also as the ε that it is at the grant's δ."""
    account = open_ledger(home).account(release.domain.population)
    said = json_views.account(account)
    text = f"{account.symbol} = {said['charged']} of {said['granted']} is spent; {said['balance']} is left"
    if account.delta:
        text += f" (at δ = {account.delta}: ε = {said['charged_epsilon']} spent, {said['granted_epsilon']} granted)"
    percent = round(100 * account.charged / account.granted, 1)
    create_progress_artifact(percent, key=_key("budget", account.population), description=text)


@contextmanager
def refusals_told(home: Home, plan: PlanReference) -> Iterator[None]:
    """What the budget refuses is told in the UI, before it ends the run."""
    try:
        yield
    except BudgetRefused as refusal:
        _tell_refusal(home, plan, refusal)
        raise


def _tell_refusal(home: Home, plan: PlanReference, refusal: BudgetRefused) -> None:
    """An event that automations can act on, its amounts in the measure of the budget, and a note that a person understands."""
    asked = load_plan(Store(home), plan)
    account = _account(home, asked.population)
    emit_event(
        event="steps.budget.refused",
        resource={
            "prefect.resource.id": f"steps.population.{asked.population}",
            "prefect.resource.name": asked.population,
            "steps.release": asked.release,
        },
        payload={
            "measure": account.measure if account else asked.measure,
            "asked": json_views.price(account, asked) if account else asked.cost,
            "left": show_nanos(account.balance) if account else "0",
            "granted": show_nanos(account.granted) if account else "0",
        },
    )
    create_markdown_artifact(f"## Refused by the budget\n\n{refusal}", key=_key("refused", asked.release))


def show_bundle(folder: Path) -> None:
    """Where the page of what was published lies."""
    create_link_artifact((folder / "index.html").as_uri(), "the published page", key=_key("bundle", folder.name))
