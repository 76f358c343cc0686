"""What cannot be had is refused before anything is read or charged, with the ε (or ρ) that would do."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import numpy as np

from schemas.budget import UNIT
from schemas.errors import KeyRefused, SpecError
from schemas.plan import AnalysisPlan, Plan
from schemas.spec.attributes import Ranged
from schemas.spec.domain import Domain
from schemas.spec.release import Release
from steps_engine.analyses.design import terms_over
from steps_engine.analyses.measured import Measured
from steps_engine.analyses.predict import reach, variances_of
from steps_engine.analyses.questions import model_of, seen_by
from steps_engine.analyses.ruled_out import always_alike
from steps_engine.evaluation.regression import INTERCEPT, variables

PlanOf = Callable[[Release], Plan]

SURE = 2 * math.log(0.95 / 0.05)  # in log odds: what takes a chance from 5% to 95%
DIGITS = 2  # of the ε that would do
LARGEST_TRIED = 1000 * UNIT  # an ε or ρ beyond it is no answer


def must_be_had(release: Release, plan: Plan, plan_of: PlanOf) -> None:
    """Refuses a plan one of whose analyses cannot be had, or not within what was asked."""
    for place, analysis in enumerate(plan.analyses):
        if (alike := always_alike(analysis, release.domain)) is not None:
            told = f"analysis {analysis.name!r}: {alike}. There is nothing to estimate: ask among other rows, or leave it out."
            raise KeyRefused(f'release "{release.name}", {told}', "analyses", place)
        if (why := shortfall(analysis, release.domain)) is not None:
            found = budget_for(release, plan_of, analysis.name)
            told = f"analysis {analysis.name!r}: {why}. {remedy(release, plan, analysis, found)}"
            raise KeyRefused(f'release "{release.name}", {told}', "analyses", place)


def shortfall(analysis: AnalysisPlan, domain: Domain) -> str | None:
    """Why an analysis cannot be had as planned; None where it can, or where nothing was asked that could be missed."""
    width, within = analysis.expected_width, analysis.within
    if within is not None and not analysis.measured:
        lacking = "; ".join(" × ".join(table.of) for table in analysis.needs if not table.measured)
        return f"± {shown(analysis, float(within))} is asked, and the plan does not measure {lacking}"
    if within is not None and width is None:
        return f"± {shown(analysis, float(within))} is asked; what to expect depends on expected_rows, which the dataset lacks"
    if width is None:
        return None
    if within is not None:
        asked = f"± {shown(analysis, float(within))} is asked and ± {shown(analysis, width)} is to be expected"
        return asked if width > within else None
    says_nothing = _says_nothing(analysis, seen_by(analysis, domain))
    return f"its intervals would be wider than {_whole(analysis)}" if says_nothing else None


def _whole(analysis: AnalysisPlan) -> str:
    return {
        "table": "the average cell is large",
        "linear": "what takes the outcome from one end to the other, for every coefficient",
        "logistic": "what takes a chance from 5% to 95%, for every coefficient",
    }[analysis.kind]


def _says_nothing(analysis: AnalysisPlan, domain: Domain) -> bool:
    """Whether an average cell cannot be told from an empty one, or no coefficient from one that decides the outcome alone."""
    if analysis.kind == "table":
        sizes = (domain.sizes[domain.index(name)] for name in analysis.table)
        return (analysis.expected_width or 0.0) > 1 / math.prod(sizes)
    names, terms = terms_over(analysis, domain)
    spread = np.concatenate([np.ptp(term.values.reshape(-1, len(term.columns)), axis=0) for term in terms])
    place = np.concatenate([np.array(term.columns) for term in terms])
    most = _outcome_range(analysis, domain)
    told = [(names[j], width) for j, width in zip(place, spread, strict=True) if names[j] != INTERCEPT and width > 0]
    return bool(told) and all(analysis.coefficients[name] * width > most for name, width in told)


def _outcome_range(analysis: AnalysisPlan, domain: Domain) -> float:
    if analysis.kind == "logistic":
        return SURE
    outcome, _ = variables(model_of(analysis))
    low, high = cast(Ranged, domain.attributes[domain.index(outcome)]).edge_values[[0, -1]]
    return float(high - low)


def remedy(release: Release, plan: Plan, analysis: AnalysisPlan, found: Plan | None) -> str:
    """What to do: pay as much as the plan that was found, or ask for something else."""
    symbol = "ρ" if release.spec.privacy.rho is not None else "ε"
    if found is not None:
        return f"{symbol} = {found.rho if symbol == 'ρ' else found.epsilon} would do."
    if analysis.expected_width is None:
        return "Say expected_rows in the dataset." if analysis.measured else "Use decomposition: pairs, or leave `within` out."
    least = reach(*_alone(release, plan, analysis), plan.sets, plan.budget)
    return f"No {symbol} would do: sampling people alone gives ± {shown(analysis, least)}. Ask for less, or leave it out."


def _alone(release: Release, plan: Plan, analysis: AnalysisPlan) -> tuple[float, float]:
    """The widest of the variances of sampling, without noise."""
    sampling, _ = variances_of(analysis, Measured.of(release.domain, plan))
    return max(value for name, value in sampling.items() if name != INTERCEPT or len(sampling) == 1), 0.0


def budget_for(release: Release, plan_of: PlanOf, name: str) -> Plan | None:
    """The plan with about the least ε (or ρ, where that is asked) at which an analysis can be had; None: none is found.

    Widths fall as the budget grows, up to a jump where a plan measures other tables: so it is bracketed, halved, rounded up to
    two digits, and tried again as rounded.
    """

    def tried(nanos: int) -> Plan | None:
        try:
            plan = plan_of(paying(release, nanos))
        except SpecError:  # noise too large or too small to draw
            return None
        found = next(each for each in plan.analyses if each.name == name)
        had = found.measured and found.expected_width is not None and shortfall(found, release.domain) is None
        return plan if had else None

    low, high = 1, UNIT
    while tried(high) is None:
        low, high = high, 4 * high
        if high > LARGEST_TRIED:
            return None
    while high > 1.01 * low + 1:
        middle = max(math.isqrt(low * high), low + 1)
        low, high = (low, middle) if tried(middle) is not None else (middle, high)
    return _rounded(high, tried)


def _rounded(nanos: int, tried: Callable[[int], Plan | None]) -> Plan | None:
    """The first of the amounts of two digits, from this on, that does."""
    unit = 10 ** max(len(str(nanos)) - DIGITS, 0)
    amounts = (unit * (-(-nanos // unit) + more) for more in range(5))
    return next((plan for amount in amounts if (plan := tried(amount)) is not None), None)


def paying(release: Release, nanos: int) -> Release:
    """The same release at another ε, or ρ where it asks for ρ."""
    privacy = release.spec.privacy
    changed = privacy.model_copy(update={"epsilon" if privacy.rho is None else "rho": nanos})
    return release.model_copy(update={"spec": release.spec.model_copy(update={"privacy": changed})})


def shown(analysis: AnalysisPlan, width: float) -> str:
    """A width as people read it: a part of all rows in percent, a coefficient as it is.

    >>> shown(AnalysisPlan(name="", kind="table", needs=(), measured=True, share=1, expected_width=None), 0.0123)
    '1.23%'
    """
    return f"{100 * width:.3g}%" if analysis.kind == "table" else f"{width:.3g}"
