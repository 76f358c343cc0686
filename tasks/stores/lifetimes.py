"""What populations that share people allow: which may be named, and what a charge must leave of a lifetime cap."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from schemas.budget import show_nanos
from schemas.errors import BudgetRefused, SpecError
from steps_engine.accounting.measures import MEASURES

from .charging import ChargeRequest, Price, capping
from .entries import must_be_name
from .waves import Cap, Loss, Waves


def must_be_shareable(waves: Waves, population: str, others: Iterable[str], cap: Cap | None = None) -> frozenset[str]:
    """All who share people with it, these others included: known populations, whose losses have a sum."""
    for other in others:
        must_be_name("population", other)
        if other == population:
            raise SpecError(f'population "{population}" is said to overlap itself; name others, or none.')
        if other not in waves.spent:
            known = ", ".join(sorted(waves.spent)) or "none"
            raise SpecError(
                f'population "{population}" is said to share people with "{other}", which this ledger does not know (it knows '
                f"{known}). Nothing was charged. Correct the name; a population without a grant has lost nothing yet."
            )
    group = waves.group(population, others)
    if (why := waves.unsummable(group, cap)) is not None:
        raise SpecError(f"{_listed(group)} share people, and {why}. Nothing was written.")
    return group


def must_fit(waves: Waves, request: ChargeRequest, price: Price) -> dict[str, Any]:
    """total + cost ≤ cap, over all populations that share people; what the charge's body says of it."""
    group = must_be_shareable(waves, request.population, request.overlaps)
    loss = waves.loss(group, (request.population, price.nanos))
    if loss is None:
        return {}
    if loss.is_too_much:
        raise BudgetRefused(_too_much(request, loss, waves))
    return {"waves": loss.said}


def _too_much(request: ChargeRequest, loss: Loss, waves: Waves) -> str:
    assert loss.cap is not None
    symbol, before = MEASURES[loss.measure].symbol, waves.loss(loss.populations)
    lost = f"{symbol}={show_nanos(before.total if before else 0)}"
    asked = f"{MEASURES[request.measure].symbol}={show_nanos(request.nanos)}"
    return (
        f'release "{request.release}" asks {asked}; with it, a {request.unit} in all of {_listed(loss.populations)} would have '
        f"lost {symbol}={show_nanos(loss.total)} in a lifetime ({lost} so far), where the cap is {show_nanos(loss.cap.nanos)}. "
        f"Nothing was charged. Lower epsilon or rho, or raise the cap: {capping(loss.cap.population, loss.measure)}"
    )


def _listed(populations: Collection[str]) -> str:
    return ", ".join(f'"{name}"' for name in sorted(populations))
