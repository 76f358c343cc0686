"""The door: what costs next to nothing to see is looked at first, before records are validated, counted or paid for."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from schemas.budget import UNIT
from schemas.errors import BudgetRefused, DataInvalid, SpecError
from schemas.plan import Plan
from schemas.spec.release import Release
from schemas.supplied import load_supplied, suite_of
from steps_engine.accounting.mechanisms import COUNTS
from steps_engine.accounting.plans import allowance_of, promise_of
from tasks.reading.fitting import Look, look_at_release
from tasks.stores.charging import ChargeRequest, no_grant
from tasks.stores.home import Home
from tasks.stores.identity import must_be_ours
from tasks.stores.ledger import Ledger, ledger_if_any, open_ledger
from tasks.stores.releases import FINISHED, UNDONE, state_of

LARGE_EPSILON = 10
NO_NOISE = 1e-6  # whole-number noise of this variance is 0 but once in a million draws


def look_first(home: Home, release: Release) -> Look | None:
    """Refuses what can be seen without reading a record: budgets, caps, a missing reason, lost keys, the source, its columns.

    The charge's own transaction decides about the budget again. A release that has come to its end reads nothing: None.
    """
    ledger = open_ledger(home)
    if state_of(ledger.entries(release=release.name)) in FINISHED | UNDONE:
        return None
    if not is_paid(ledger, release):
        must_say_why(release)
        ledger.must_afford(_asked(release))
    must_be_ours(home, ledger)
    return look_at_source(release)


def why_not_covered(home: Home, release: Release) -> str | None:
    """What a charge would be refused for, were it made now; None where it would be paid, or was."""
    ledger = ledger_if_any(home)
    if ledger is None:
        return no_grant(release.domain.population)
    try:
        if not is_paid(ledger, release):
            ledger.must_afford(_asked(release))
    except (BudgetRefused, SpecError) as error:
        return str(error)
    return None


def look_at_source(release: Release) -> Look:
    """Refuses a source whose files or columns cannot be the domain's, and a supplier's expectations that cannot be run."""
    seen = look_at_release(release)
    if seen.problems:
        raise DataInvalid(f"source {' and '.join(map(str, release.sources))}: {'; '.join(seen.problems)}. No record was read.")
    for asked, domain in release.expectations:
        if asked:
            suite_of(load_supplied(asked, domain), asked)
    return seen


def must_be_private(home: Home, release: Release, plan: Plan) -> None:
    """A guarantee that hardly is one needs a reason, and noise; what was paid for under earlier rules stays as it is."""
    ledger = ledger_if_any(home)
    if ledger is None or not is_paid(ledger, release):
        must_say_why(release)
        must_have_noise(plan)


def is_paid(ledger: Ledger, release: Release) -> bool:
    return state_of(ledger.entries(release=release.name)) not in ("uncharged", "burnt")


def must_say_why(release: Release) -> None:
    """ε above 10 allows what one sees to be e¹⁰, or 22,026 times, as likely with somebody as without."""
    epsilon = Decimal(promise_of(release)["epsilon"])
    if epsilon > LARGE_EPSILON and release.spec.privacy.why is None:
        raise SpecError(
            f'release "{release.name}" asks ε={epsilon:f}; above {LARGE_EPSILON} the guarantee promises a '
            f"{release.domain.unit.who} very little. "
            "Lower epsilon, or say why it may be as large: privacy: {why: …}."
        )


def must_have_noise(plan: Plan) -> None:
    """A draw whose noise is next to never anything but 0 publishes the exact counts."""
    for draw in plan.draws:
        if draw.mechanism in COUNTS and COUNTS[draw.mechanism].variance(Fraction(draw.scale)) < NO_NOISE:
            raise SpecError(
                f'release "{plan.release}" asks ε={plan.epsilon}; the noise of "{draw.name}" would be 0 but once in a million '
                "counts, so that exact counts would be published. No reason serves for that: lower epsilon."
            )


def _asked(release: Release) -> ChargeRequest:
    """What the release will ask to pay: all of its ε or ρ, whatever its plan does with it."""
    allowance = allowance_of(release)
    return ChargeRequest(
        release=release.name,
        population=release.domain.population,
        nanos=int(allowance.total * UNIT),
        measure=allowance.measure.name,
        neighbours=release.spec.privacy.neighbours,
        unit=release.domain.unit.who,
        plan_hash="",
        spec_hash="",
        fingerprint="",
        overlaps=release.domain.overlaps,
    )
