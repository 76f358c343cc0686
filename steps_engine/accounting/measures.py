"""A measure of privacy loss: the currency in which draws are paid. Costs of draws that meet the same person add up."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Measure:
    """What a cost is called and what it promises."""

    name: str
    symbol: str
    definition: str


PURE = Measure("pure", "ε", "pure differential privacy")
ZCDP = Measure("zcdp", "ρ", "zero-concentrated differential privacy")
MEASURES = {measure.name: measure for measure in (PURE, ZCDP)}
