"""Plans are made and checked here, once for all methods: what is charged is what is drawn, and everything planned can be drawn.

A method outlines its layers and asks an allowance for draws, by their cost; scales follow from the price of the mechanism.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from schemas.budget import LARGEST, UNIT, as_fraction, show_nanos
from schemas.errors import SpecError, StepsError
from schemas.manifest import guarantee_of
from schemas.plan import Considered, Draw, ElectionPlan, LayerPlan, Plan, Table, WeightPlan, lowest_format
from schemas.spec.domain import Domain
from schemas.spec.release import Release
from steps_engine.accounting.composition import ways_of
from steps_engine.accounting.conversion import Converted, epsilon_of, rho_of
from steps_engine.accounting.effort import START_BYTES, bytes_around, seconds_around
from steps_engine.accounting.measures import MEASURES, PURE, ZCDP, Measure
from steps_engine.accounting.mechanisms import (
    COUNTING,
    COUNTS,
    ELECTING,
    ELECTIONS,
    MAX_NORM,
    contrast_noise,
    length_of,
    mechanism_of,
)
from steps_engine.cube import MOST_DIMENSIONS
from steps_engine.domain.cells import Space
from steps_engine.noise import GRID
from steps_engine.scores import widened

MOST_MEMORY = 2**38  # bytes that a plan may expect to need
MOST_SECONDS = 30 * 86_400


@dataclass(frozen=True)
class Allowance:
    """What a plan may spend, in which measure, and what one person can change."""

    measure: Measure
    total: Fraction
    rows: int  # per person; of records with weights, units
    replaced: bool  # whether these are removed and as many others added
    served: tuple[int | None, ...]  # the set that each measurement serves; None serves all

    @property
    def electing(self) -> Literal["permute_and_flip", "exponential"]:
        """The mechanism of elections unless another is asked for."""
        return ELECTING[self.measure.name].name

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
        mechanism = COUNTING[self.measure.name]
        sensitivity = mechanism.sensitivity(self.rows, self.replaced)
        return Draw(
            name=name, kind="count", mechanism=mechanism.name, layer=layer, set=set_, tree=tree, nodes=nodes,
            sensitivity=sensitivity, scale=mechanism.prices[self.measure.name].scale(sensitivity, cost), threshold=threshold,
            **self._paid(cost),
        )  # fmt: skip

    def interaction(
        self,
        name: str,
        cost: Fraction,
        *,
        of: tuple[str, ...] | Literal["elected", "again"],
        tree: str,
        set_: int | None,
        layer: int = 1,
    ) -> Draw:
        """Noise on the contrast of a table; two rows change it by at most twice the length of one (inference/contrasts.py)."""
        mechanism = COUNTING[self.measure.name]
        sensitivity = mechanism.sensitivity((2 if self.replaced else 1) * self.rows, False)
        return Draw(
            name=name, kind="count", mechanism=mechanism.name, layer=layer, set=set_, tree=tree, nodes="leaves", of=of,
            sensitivity=sensitivity, scale=mechanism.prices[self.measure.name].scale(sensitivity, cost), **self._paid(cost),
        )  # fmt: skip

    def joint(self, name: str, cost: Fraction, *, of: tuple[Table, ...], tree: str, set_: int | None, layer: int = 1) -> Draw:
        """Noise by the max norm on contrasts of tables that all cross the same cells with attributes of two categories."""
        sensitivity = MAX_NORM.sensitivity(self.rows, self.replaced)
        return Draw(
            name=name, kind="count", mechanism=MAX_NORM.name, layer=layer, set=set_, tree=tree, nodes="leaves", of=of,
            sensitivity=sensitivity, scale=MAX_NORM.prices[self.measure.name].scale(sensitivity, cost), **self._paid(cost),
        )  # fmt: skip

    def election(
        self,
        name: str,
        cost: Fraction,
        spread: Fraction,
        *,
        layer: int,
        tree: str | None = None,
        mechanism: str | None = None,
        error: Fraction = GRID,
    ) -> Draw:
        """An election at disjoint nodes: one row moves all scores by amounts at most `spread` apart.

        `error` is what double precision may add to or take from a score; what exceeds the grid widens the spread, of every row:
        rows of a person may lie in nodes of their own.
        """
        held = ELECTIONS[mechanism or self.electing]
        sensitivity = (2 if self.replaced else 1) * self.rows * widened(spread, error)
        return Draw(
            name=name, kind="election", mechanism=held.name, layer=layer, set=None, tree=tree, nodes="inner",
            sensitivity=sensitivity, scale=held.prices[self.measure.name].scale(sensitivity, cost), **self._paid(cost),
        )  # fmt: skip

    def _paid(self, cost: Fraction) -> dict[str, Any]:
        return {"rho" if self.measure is ZCDP else "epsilon": cost}


def allowance_of(release: Release) -> Allowance:
    """All of the release's ε or ρ; k rows of a person, or units of their weights."""
    spec, sets = release.spec, release.spec.method.sets
    served = (None,) if sets.budget == "shared" else tuple(range(1, sets.count + 1))
    measure, total = (PURE, as_fraction(spec.privacy.epsilon or 0)) if spec.privacy.measure == "pure" else (ZCDP, _rho(release))
    return Allowance(measure, total, release.domain.units_per_person, spec.privacy.neighbours == "substitute", served)


def allowance_in(plan: Plan) -> Allowance:
    """The one that a plan was made with."""
    return Allowance(
        MEASURES[plan.measure], Fraction(plan.cost), plan.units_per_person, plan.neighbours == "substitute", plan.served
    )


def _rho(release: Release) -> Fraction:
    """ρ as asked, or the largest that promises the asked (ε, δ)."""
    asked = release.spec.privacy
    if asked.rho is not None:
        return as_fraction(asked.rho)
    rho = rho_of(as_fraction(asked.epsilon or 0), float(asked.delta or 0)).value
    if rho == 0:
        raise SpecError(
            f'release "{release.name}": epsilon: {show_nanos(asked.epsilon or 0)} at delta: {asked.delta} needs a ρ below '
            "0.000000001, the least that can be charged. Raise epsilon or delta."
        )
    return rho


def promise_of(release: Release) -> dict[str, Any]:
    """What a plan says of its guarantee: ε alone, or ρ with the ε that holds at δ and the order that proves it."""
    asked = release.spec.privacy
    if asked.measure == "pure":
        return {"epsilon": show_nanos(asked.epsilon or 0)}
    rho = _rho(release)
    found: Converted = epsilon_of(rho, float(asked.delta or 0))
    return {
        "measure": asked.measure,
        "epsilon": show_nanos(asked.epsilon or int(found.value * UNIT)),
        "rho": show_nanos(int(rho * UNIT)),
        "delta": asked.delta,
        "delta_why": asked.delta_why,
        "order": found.order,
    }


@dataclass(frozen=True)
class Outline:
    """What a method decided before data: its layers, its draws, and what the method itself takes, from tree to records."""

    layers: tuple[LayerPlan, ...]
    draws: tuple[Draw, ...]
    memory_bytes: int
    seconds: float
    election: ElectionPlan | None = None


def plan_of(release: Release, outline: Outline, spec_hash: str, considered: tuple[Considered, ...] = ()) -> Plan:
    """The plan of an outline, or why it cannot be carried out."""
    domain, spec, sets = release.domain, release.spec, release.spec.method.sets
    weight = weight_of(domain)
    plan = Plan(
        format=lowest_format(spec.privacy.measure, outline.draws, weight=weight), weight=weight,
        release=spec.name, population=domain.population, decomposition=spec.method.decomposition,
        neighbours=spec.privacy.neighbours, rows_per_person=domain.unit.rows_per_person, unit=domain.unit.who,
        at_most=domain.tables.person.at_most if domain.tables is not None else None,
        total=spec.privacy.total, **promise_of(release), sets=sets.count, budget=sets.budget, cells=Space(domain).count(),
        layers=outline.layers, election=outline.election, draws=outline.draws, considered=considered,
        memory_bytes=max(outline.memory_bytes, bytes_around(domain)) + START_BYTES,
        seconds=round(outline.seconds + seconds_around(domain, sets.count), 1),
        spec_hash=spec_hash,
    )  # fmt: skip
    _must_be_sayable(plan)
    _must_be_drawable(plan, domain)
    _must_cost(plan, allowance_of(release))
    _must_fit(plan)
    return plan


def weight_of(domain: Domain) -> WeightPlan | None:
    """What a plan says of its records' weights."""
    if (found := domain.weighing) is None:
        return None
    return WeightPlan(highest=found.high, step=found.step, units_per_row=found.units_per_row, inflation=found.inflation)


def _cost(plan: Plan) -> str:
    return f"ρ={plan.rho}" if plan.rho else f"ε={plan.epsilon}"


def _must_be_sayable(plan: Plan) -> None:
    """What is promised must be a promise, with a sentence that can be written after the charge."""
    guarantee_of(plan)
    if Fraction(plan.epsilon) * UNIT > LARGEST:
        raise SpecError(f"{_cost(plan)} promises an ε above a million at δ={plan.delta}: no protection at all. Lower it.")


def _must_be_drawable(plan: Plan, domain: Domain) -> None:
    """No scale beyond what noise.py draws: a draw that fails after the charge would cost ε and give nothing."""
    levels = {each.derived.name: each.attribute.size for each in domain.followings[: len(domain.coarser)]}
    sizes = dict(zip(domain.counted.names, domain.counted.sizes, strict=True)) | levels
    for draw in (draw for draw in plan.draws if draw.kind == "count"):
        if len(draw.tables) > MOST_DIMENSIONS:
            raise SpecError(
                f"{len(draw.tables):,} tables would get their noise together; at most {MOST_DIMENSIONS:,} can. Measure fewer "
                "pairs (pairs: 1000, say), or leave attributes out."
            )
        if _drawn_scale(draw, sizes) > (MAX_NORM if draw.is_joint else COUNTS[draw.mechanism]).largest_scale:
            raise SpecError(
                f"{_cost(plan)} over {len(plan.draws)} draws needs noise of scale {length_of(draw):.3g}, more than "
                f"can be drawn. Raise {'rho' if plan.rho else 'epsilon'}, or ask for fewer sets or layers."
            )
        if draw.threshold is not None and draw.scale < COUNTS[draw.mechanism].least_sampled:
            raise SpecError(
                f"{_cost(plan)} gives noise of scale {length_of(draw):.3g} on cells that are too many to list, less than "
                f"can be sampled. Lower {'rho' if plan.rho else 'epsilon'}: at this one hardly anything is protected."
            )


def _drawn_scale(draw: Draw, size: dict[str, int]) -> Fraction:
    """What the sampler is asked for: of a contrast the scale of the longest that the draw can be of."""
    if draw.is_joint:
        return draw.scale * (len(draw.tables) + 1)
    if draw.of is None:
        return draw.scale
    sizes = sorted(size.values())[-2:] if isinstance(draw.of, str) else [size[name] for name in draw.tables[0]]
    return contrast_noise(draw, sizes).scale


def _must_cost(plan: Plan, allowance: Allowance) -> None:
    """Every draw is paid by its share, and the dearest way through all draws costs what is charged, exactly."""
    for draw in plan.draws:
        prices = mechanism_of(draw).prices
        if draw.cost <= 0 or prices[allowance.measure.name].cost(draw.sensitivity, draw.scale) > draw.cost:
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
