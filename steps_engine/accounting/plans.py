"""Plans are made and checked here, once for all methods: what is charged is what is drawn, and everything planned can be drawn.

A method outlines its layers and asks an allowance for draws, by their cost; scales follow from the price of the mechanism.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from schemas.budget import as_fraction, show_nanos
from schemas.errors import SpecError, StepsError
from schemas.plan import Considered, Draw, ElectionPlan, LayerPlan, Plan
from schemas.spec.release import Release
from steps_engine.accounting.composition import ways_of
from steps_engine.accounting.measures import PURE, Measure
from steps_engine.accounting.mechanisms import COUNTS, ELECTIONS, PERMUTE_AND_FLIP, TWO_SIDED_GEOMETRIC, Price
from steps_engine.domain.cells import Space
from steps_engine.noise import GRID
from steps_engine.scores import widened

MOST_MEMORY = 2**38  # bytes that a plan may expect to need
MOST_SECONDS = 30 * 86_400


@dataclass(frozen=True)
class Allowance:
    """What a plan may spend, in which measure, and how many rows of a node or a score one person can change."""

    measure: Measure
    total: Fraction
    rows: int  # per person; a substitution removes and adds that many
    served: tuple[int | None, ...]  # the set that each measurement serves; None serves all

    def count(
        self,
        name: str,
        cost: Fraction,
        *,
        layer: int,
        set_: int | None,
        tree: str | None = None,
        nodes: Literal["inner", "leaves"] = "leaves",
        threshold: int | None = None,
    ) -> Draw:
        """Noise on counts of disjoint nodes: one row changes one of them by 1."""
        sensitivity, mechanism = Fraction(self.rows), TWO_SIDED_GEOMETRIC
        return Draw(
            name=name, kind="count", mechanism=mechanism.name, layer=layer, set=set_, tree=tree, nodes=nodes, epsilon=cost,
            sensitivity=sensitivity, scale=self._price(mechanism.prices).scale(sensitivity, cost), threshold=threshold,
        )  # fmt: skip

    def election(
        self,
        name: str,
        cost: Fraction,
        spread: Fraction,
        *,
        layer: int,
        tree: str | None = None,
        mechanism: str = PERMUTE_AND_FLIP.name,
        error: Fraction = GRID,
    ) -> Draw:
        """An election at disjoint nodes: one row moves all scores by amounts at most `spread` apart.

        `error` is what double precision may add to or take from a score; what exceeds the grid widens the spread.
        """
        sensitivity = widened(self.rows * spread, error)
        return Draw(
            name=name, kind="election", mechanism=mechanism, layer=layer, set=None, tree=tree, nodes="inner", epsilon=cost,
            sensitivity=sensitivity, scale=self._price(ELECTIONS[mechanism].prices).scale(sensitivity, cost),
        )  # fmt: skip

    def _price(self, prices: Mapping[str, Price]) -> Price:
        return prices[self.measure.name]


def allowance_of(release: Release) -> Allowance:
    """All of the release's ε; k rows of a person, twice that under substitution."""
    spec, sets = release.spec, release.spec.method.sets
    rows = release.domain.unit.rows_per_person * (2 if spec.privacy.neighbours == "substitute" else 1)
    served = (None,) if sets.budget == "shared" else tuple(range(1, sets.count + 1))
    return Allowance(PURE, as_fraction(spec.privacy.epsilon), rows, served)


@dataclass(frozen=True)
class Outline:
    """What a method decided before data: its layers, its draws, and what they take."""

    layers: tuple[LayerPlan, ...]
    draws: tuple[Draw, ...]
    memory_bytes: int
    seconds: float
    election: ElectionPlan | None = None


def plan_of(release: Release, outline: Outline, spec_hash: str, considered: tuple[Considered, ...] = ()) -> Plan:
    """The plan of an outline, or why it cannot be carried out."""
    domain, spec, sets = release.domain, release.spec, release.spec.method.sets
    plan = Plan(
        release=spec.name, population=domain.population, decomposition=spec.method.decomposition,
        neighbours=spec.privacy.neighbours, rows_per_person=domain.unit.rows_per_person, unit=domain.unit.who,
        total=spec.privacy.total,
        epsilon=show_nanos(spec.privacy.epsilon), sets=sets.count, budget=sets.budget, cells=Space(domain).count(),
        layers=outline.layers, election=outline.election, draws=outline.draws, considered=considered,
        memory_bytes=outline.memory_bytes, seconds=outline.seconds, spec_hash=spec_hash,
    )  # fmt: skip
    _must_be_drawable(plan)
    _must_cost(plan, allowance_of(release))
    _must_fit(plan)
    return plan


def _must_be_drawable(plan: Plan) -> None:
    """No scale beyond what noise.py draws: a draw that fails after the charge would cost ε and give nothing."""
    counts = [draw for draw in plan.draws if draw.kind == "count"]
    for draw in counts:
        if draw.scale > COUNTS[draw.mechanism].largest_scale:
            raise SpecError(
                f"ε={plan.epsilon} over {len(plan.draws)} draws needs noise of scale {float(draw.scale):.3g}, more than "
                "can be drawn. Raise epsilon, or ask for fewer sets or layers."
            )
        if draw.threshold is not None and draw.scale < COUNTS[draw.mechanism].least_sampled:
            raise SpecError(
                f"ε={plan.epsilon} gives noise of scale {float(draw.scale):.3g} on cells that are too many to list, less than "
                "can be sampled. Lower epsilon: at this one hardly anything is protected."
            )


def _must_cost(plan: Plan, allowance: Allowance) -> None:
    """Every draw is paid by its share, and the dearest way through all draws costs what is charged, exactly."""
    for draw in plan.draws:
        prices = (COUNTS if draw.kind == "count" else ELECTIONS)[draw.mechanism].prices
        if draw.epsilon <= 0 or prices[allowance.measure.name].cost(draw.sensitivity, draw.scale) > draw.epsilon:
            raise StepsError(f"{plan.decomposition}: draw {draw.name!r} is not paid by its share. Nothing was charged.")
    ways = ways_of(plan.draws)
    if (dearest := ways.dearest) != allowance.total:
        raise StepsError(
            f"{plan.decomposition}: the draws that one person can meet cost {dearest}, and {allowance.total} would be charged. "
            "Nothing was charged; the method's plan must be mended."
        )
    if cheap := ways.cheap_ends():
        raise StepsError(
            f"{plan.decomposition}: branches that end in {', '.join(cheap)} spend less than others, though no election is left "
            "out. Nothing was charged; the method's plan must be mended."
        )


def _must_fit(plan: Plan) -> None:
    if plan.memory_bytes > MOST_MEMORY or plan.seconds > MOST_SECONDS:
        raise SpecError(
            f'release "{plan.release}" would need {plan.memory_bytes / 2**30:,.0f} GiB and {plan.seconds / 3600:,.0f} hours; '
            f"at most {MOST_MEMORY / 2**30:,.0f} GiB and {MOST_SECONDS / 3600:,.0f} hours are planned for. Ask for fewer sets, "
            "attributes or categories."
        )
