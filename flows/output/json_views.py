"""What the commands answer, as plain JSON values: ε as decimal strings, nothing confidential."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemas.budget import UNIT, as_fraction, show_nanos
from schemas.errors import InfrastructureFault, SpecError
from tasks.stores.acts import waves_of
from tasks.stores.approvals import signer_of
from tasks.stores.charging import Account, asked_by, cost_in
from tasks.stores.entries import Entry
from tasks.stores.home import Home, evaluation_page
from tasks.stores.ledger import DEFAULT_DELTA, ledger_if_any, open_ledger
from tasks.stores.releases import TAKEN_BACK, ReleaseState

if TYPE_CHECKING:
    from schemas.plan import Plan
    from schemas.spec.release import Release


def describe_plan(home: Home, path: Path, period: str | None) -> dict[str, Any]:
    """The plan of a release with what is left of its population's budget; balance is null without a grant."""
    from steps_engine.analyses.ruled_out import remarks_on
    from steps_engine.methods.planning import make_plan
    from steps_engine.methods.registry import method_of
    from steps_engine.methods.weighted import sketch_in_units
    from steps_engine.noise import SystemRandomness
    from tasks.specs import load_release, refusals_naming
    from tasks.stages.door import must_be_private, why_not_covered

    asked = load_release(path, period)
    with refusals_naming(path):
        made = make_plan(asked, SystemRandomness())
        must_be_private(home, asked, made)
    why_not = why_not_covered(home, asked)
    return {
        "measure": made.measure,
        "rho": made.rho,
        "delta": made.delta,
        **made.model_dump(mode="json"),
        **_meaning(made),
        "hash": made.hash,
        **_payable(home, made, asked.domain.overlaps),
        "covered": why_not is None,
        "why_not_covered": why_not,
        "source": _readable(asked),
        **({"remarks": remarks} if (remarks := [*asked.domain.remarks, *remarks_on(made.analyses, asked.domain)]) else {}),
        "sketch": asdict(sketch_in_units(method_of(made).sketch(made), made)),
    }


def describe_wanted(path: Path, period: str | None, wanted: str) -> dict[str, Any]:
    """About the least budget at which the release would give one analysis as accurately as wanted."""
    from steps_engine.analyses.ruled_out import remarks_on
    from steps_engine.analyses.wanted import budget_wanted
    from steps_engine.methods.planning import plan_with_analyses
    from tasks.specs import load_release, refusals_naming

    asked = load_release(path, period)
    with refusals_naming(path):
        made, found = budget_wanted(asked, wanted, plan_with_analyses)
    return {
        "wanted": wanted,
        "analysis": found.name,
        "kind": found.kind,
        "rows_of": found.rows_of,
        "measure": made.measure,
        "epsilon_needed": made.epsilon,
        "rho_needed": made.rho,
        "delta": made.delta,
        "expected_width": found.expected_width,
        "share": str(found.share),
        **({"remarks": list(remarks)} if (remarks := remarks_on([found], asked.domain)) else {}),
    }


def _meaning(plan: Plan) -> dict[str, Any]:
    """What ρ promises at its own and other δ, and about what as much noise would cost in pure ε."""
    from steps_engine.accounting.meaning import promises_of, pure_epsilon_of_same_noise

    same = pure_epsilon_of_same_noise(plan) if plan.rho else None
    return {"promises": [asdict(promise) for promise in promises_of(plan)], "pure_epsilon_of_same_noise": same}


def _payable(home: Home, plan: Plan, overlaps: tuple[str, ...]) -> dict[str, Any]:
    """What is left of the population's budget, in its measure, and what the plan would cost there; null: it cannot be paid.

    Where it shares people with others, as the spec will have said: what somebody in all of them has lost so far.
    """
    ledger = ledger_if_any(home)
    found = next((each for each in ledger.accounts() if each.population == plan.population), None) if ledger else None
    if ledger is None or found is None:
        return {"balance": None, "balance_measure": None, "charge": None}
    waves = waves_of(ledger)
    waves.join(plan.population, (name for name in overlaps if name in waves.spent))
    group = waves.group(plan.population)
    shared = replace(found, loss=waves.loss(group) if waves.unsummable(group) is None else None)
    paid = {"balance": show_nanos(found.balance), "balance_measure": found.measure, "charge": price(found, plan)}
    return paid | _lifetime(shared)


def _readable(release: Release) -> dict[str, Any]:
    """What would be read, from names, headers and footers alone; a plan is made whether it is there or not."""
    from tasks.reading.fitting import look_at_release

    try:
        seen = look_at_release(release)
    except (SpecError, InfrastructureFault) as error:
        return {"files": None, "words": None, "problems": [str(error)]}
    return {"files": len(seen.files), "words": seen.words, "problems": list(seen.problems)}


def price(account: Account, plan: Plan) -> str | None:
    """What a plan costs an account, in the account's measure; None: nothing that can be paid there."""
    nanos = cost_in(account.measure, asked_by(plan))
    return None if nanos is None else show_nanos(nanos)


def account(found: Account) -> dict[str, Any]:
    """A budget in its measure; one in ρ also as the ε that it is at its δ, which is no sum: see docs/operations.md."""
    return {
        "population": found.population,
        "granted": show_nanos(found.granted),
        "charged": show_nanos(found.charged),
        "balance": show_nanos(found.balance),
        "neighbours": found.neighbours,
        "unit": found.unit,
        "measure": found.measure,
        **_epsilons(found),
        **_lifetime(found),
    }


def _epsilons(found: Account) -> dict[str, str]:
    """What ρ promises at the account's δ: the whole grant, all charges together, and what is left, each by itself."""
    if found.delta is None:
        return {}
    from steps_engine.accounting.conversion import epsilon_of

    delta = float(found.delta)
    amounts = {"granted": found.granted, "charged": found.charged, "balance": found.balance}
    promised = {name: epsilon_of(as_fraction(nanos), delta).value for name, nanos in amounts.items()}
    return {"delta": found.delta} | {f"{name}_epsilon": show_nanos(int(value * UNIT)) for name, value in promised.items()}


def _lifetime(found: Account) -> dict[str, Any]:
    """Under the key `lifetime`; nothing where a population shares nobody and has no cap."""
    if (loss := found.loss) is None:
        return {}
    said = {"cap": None, "capped_by": loss.cap.population if loss.cap else None} | loss.said
    if loss.measure == "zcdp":
        from steps_engine.accounting.conversion import epsilon_of

        delta = found.delta or DEFAULT_DELTA
        epsilon = epsilon_of(as_fraction(loss.total), float(delta)).value
        said |= {"delta": delta, "total_epsilon": show_nanos(int(epsilon * UNIT))}
    return {"lifetime": said}


def _amount(nanos: int, measure: str) -> dict[str, str | None]:
    """An amount under the name of its measure."""
    shown = show_nanos(nanos) if nanos else None
    return {"measure": measure, "epsilon": None, "rho": None} | {"epsilon" if measure == "pure" else "rho": shown}


def entry(found: Entry) -> dict[str, Any]:
    """An entry without the keyed hashes that stay in the ledger; `actor` is an account, `signer` who was registered or null."""
    details = {name: value for name, value in found.details.items() if name not in ("fingerprint", "digest", "id")}
    return {
        "seq": found.seq,
        "at": found.at,
        "actor": found.actor,
        "signer": signer_of(found),
        "kind": found.kind,
        "population": found.population,
        "release": found.release,
        **_amount(found.amount, found.measure or "pure"),
        "balance_after": show_nanos(found.granted_after - found.charged_after),
        "details": details,
        "hash": found.hash,
    }


def release(found: ReleaseState) -> dict[str, Any]:
    return {
        "release": found.name,
        "state": found.state,
        "population": found.population,
        "unit": found.unit,
        **_amount(found.amount, found.measure),
        "charged": show_nanos(found.charged),
        "charges": found.attempt,
        "actor": found.actor,
        "signer": found.signer,
        "at": found.at,
        "approver": found.approver,
        "hashes": found.hashes,
    }


def trail(home: Home, name: str) -> dict[str, Any]:
    """One release with every entry that concerns it, and where its bundle lies."""
    ledger = open_ledger(home)
    found = next((each for each in ledger.releases() if each.name == name), None)
    if found is None:
        raise SpecError(f'there is no release "{name}" in {home.path}. See: steps releases')
    folder = home.path / "public" / name
    return {
        **release(found),
        "folder": str(folder) if folder.is_dir() else None,
        "notices": [text for each in ledger.entries(release=name) if (text := _notice(each))],
        "trail": [entry(each) for each in ledger.entries(release=name)],
    }


def _notice(found: Entry) -> str | None:
    """What was said of a release that is public."""
    if found.kind == "withdraw":
        return f"withdrawn on {found.at[:10]}: {found.details['why']}"
    return f"superseded on {found.at[:10]} by {found.details['by']}" if found.kind == "supersede" else None


def outcome(home: Home, release: Release, folder: Path, charged: bool, charges: int) -> dict[str, Any]:
    """What a run answers: what was released, what it cost, what is left, and where everything lies."""
    ledger = open_ledger(home)
    paid = next(each for each in ledger.releases() if each.name == release.name)
    return {
        "release": release.name,
        "folder": str(folder),
        "page": str(folder / "index.html"),
        **_promised(release),
        **({"rho": show_nanos(paid.amount)} if paid.measure == "zcdp" else {}),
        "charged": charged,
        "charges": charges,
        "population": release.domain.population,
        "unit": paid.unit,
        "balance": show_nanos(ledger.account(release.domain.population).balance),
        "evaluation": str(page) if (page := evaluation_page(home, release.name)).exists() else None,
        **({"taken_back": paid.state} if paid.state in TAKEN_BACK else {}),
    }


def _promised(release: Release) -> dict[str, Any]:
    """ε, or ρ with the ε that holds at δ. (A pure release that a budget in ρ pays has a `rho` too, and no `measure`.)"""
    from steps_engine.accounting.plans import promise_of

    promised = promise_of(release)
    return {name: promised[name] for name in ("measure", "epsilon", "rho", "delta") if name in promised}
