"""What a bundle says of populations that share people: as far as one charge can tell, it must be possible."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from schemas.manifest import ChargeEntry
from schemas.manifest_1 import ChargeEntry1
from schemas.spec.domain import Domain

NANOS = 10**9


def overlap_problems(charge: ChargeEntry | ChargeEntry1, domain: Domain) -> Iterator[str]:
    """The charge was made for the overlaps that the domain names; format 1 knows none."""
    if tuple(sorted(domain.overlaps)) != (charge.shown.overlaps if isinstance(charge, ChargeEntry) else ()):
        yield "the charge names other overlapping populations than the domain"


def wave_problems(charge: ChargeEntry) -> Iterator[str]:
    """The loss of somebody in all waves is no less than what the own population was charged, and within the cap."""
    said = charge.shown.waves
    if said is None:
        if charge.shown.overlaps:
            yield "the charge names overlapping populations, and not what somebody in all of them has lost"
        return
    if list(said.populations) != sorted(set(said.populations)) or not {charge.population, *charge.shown.overlaps} <= {
        *said.populations
    }:
        yield "the populations that share people leave out one that the charge names"
    if said.measure == "pure" and charge.measure is not None:
        yield "a loss in ρ is told in ε, in which it has no price"
        return
    total, least = Fraction(said.total), _own(charge, said.measure)
    if total < least:
        yield f"somebody in all waves is said to have lost {said.total}, less than this population's charges alone"
    if said.cap is not None and total > Fraction(said.cap):
        yield f"somebody in all waves has lost {said.total}, more than the lifetime cap of {said.cap}"


def _own(charge: ChargeEntry, measure: str) -> Fraction:
    """At least so much was lost by the own population's charges; of those in ε before this one only the sum is known."""
    if measure == "pure" or charge.measure is not None:
        return Fraction(charge.charged_after, NANOS)
    return Fraction(charge.amount, NANOS) ** 2 / 2
