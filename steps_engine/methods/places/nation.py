"""The nation: the same records without their place, measured and fitted by pairs with a part of the budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np

from schemas.plan import NeededTable, Plan
from steps_engine.domain.counting import Counts
from steps_engine.domain.places import Places
from steps_engine.inference.place_tables import is_of_places


def nation_plan(plan: Plan, places: Places) -> Plan:
    """The draws of the nation as a plan of their own."""
    draws = tuple(draw for draw in plan.draws if not is_of_places(draw))
    kept = tuple(each.model_copy(update={"needs": tuple(_of_nation(each.needs, places))}) for each in plan.analyses)
    cost = sum((draw.cost for draw in draws), Fraction())  # a person meets all of them
    update = {"draws": draws, "analyses": kept, "layers": plan.layers[: _lines(plan)]}
    return plan.model_copy(update=update | {"rho" if plan.rho else "epsilon": str(cost)})


def _of_nation(needs: Sequence[NeededTable], places: Places) -> Iterator[NeededTable]:
    """Tables without a place; of two attributes by place what they have in common in the nation."""
    for table in needs:
        of = places.without(table.of)
        if len(of) > 1 or of == table.of:
            yield table.model_copy(update={"of": of})


def _lines(plan: Plan) -> int:
    """A line of the plan for every draw of one measurement that is no election; those of the nation stand first."""
    of_places = sum(is_of_places(draw) for draw in plan.draws) // plan.measurements
    return len(plan.layers) - of_places


class NationCounts(Counts):
    """CONFIDENTIAL. The cells of all places without their place, of which no more than a block need be held."""

    def __init__(self, places: Places, counts: Counts) -> None:
        object.__setattr__(self, "_others", list(places.others))
        object.__setattr__(self, "_counts", counts)

    _others: list[int]
    _counts: Counts

    def __repr__(self) -> str:
        return f"NationCounts(confidential, {len(self._others)} attributes)"

    @cached_property
    def codes(self) -> np.ndarray:
        return self._without(self._counts).codes

    @cached_property
    def count(self) -> np.ndarray:
        return self._counts.count

    def blocks(self) -> Iterator[Counts]:
        return map(self._without, self._counts.blocks())

    def _without(self, counts: Counts) -> Counts:
        return Counts(counts.codes[:, self._others], counts.count)
