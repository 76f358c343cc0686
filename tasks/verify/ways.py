"""What one person meets of a plan's draws, and what that costs: the verifier's own arithmetic, the same for every method.

A person whose branch of a tree ends in layer d meets of that tree's draws every election above d, every count of inner nodes
above d, and the count of the leaves of d, for each measurement. What belongs to no tree is met by everybody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from schemas.plan import Draw, Plan

DIGITS = re.compile(r"([0-9]{1,7})(?:\.([0-9]{1,9}))?")
MOST_SETS = 100
MOST_BITS = 10_000  # of the denominator of a sum: that of a plan has a few dozen, a stranger's could grow with every draw


@dataclass(frozen=True)
class TreeDraws:
    """The draws of one tree; None: the only one."""

    tree: str | None
    draws: tuple[Draw, ...]

    @cached_property
    def counts(self) -> tuple[Draw, ...]:
        return tuple(draw for draw in self.draws if draw.kind == "count")

    @cached_property
    def ends(self) -> frozenset[int]:
        """The layers whose leaves are counted: there a branch may end."""
        return frozenset(draw.layer for draw in self.counts if draw.nodes == "leaves")

    @property
    def deepest(self) -> int:
        return max(self.ends, default=0)

    def way(self, end: int) -> list[Draw]:
        """What a person meets whose branch ends in this layer."""
        return [draw for draw in self.draws if (draw.layer == end if _of_leaves(draw) else draw.layer < end)]

    def unheld(self, end: int) -> list[Draw]:
        """The elections below the end of a branch: it takes no part in them."""
        return [draw for draw in self.draws if draw.kind == "election" and draw.layer >= end]

    def unmet(self) -> list[Draw]:
        """What lies below every leaf, so that nobody would pay for it."""
        return [draw for draw in self.draws if not _of_leaves(draw) and draw.layer >= self.deepest]

    def cells(self) -> list[Draw]:
        """The counts of the last layer, one per measurement."""
        return [draw for draw in self.counts if draw.nodes == "leaves" and draw.layer == self.deepest]

    def counted(self, end: int, measurement: int | None) -> bool:
        """Whether a measurement counts the leaves of a layer and, if it counts inner nodes at all, every layer above."""
        mine = [draw for draw in self.counts if draw.set == measurement]
        above = {draw.layer for draw in mine if draw.nodes == "inner" and 1 <= draw.layer < end}
        every = len(above) == end - 1 or all(draw.nodes == "leaves" for draw in self.counts)
        return every and any(draw.nodes == "leaves" and draw.layer == end for draw in mine)


def _of_leaves(draw: Draw) -> bool:
    return draw.kind == "count" and draw.nodes == "leaves"


@dataclass(frozen=True)
class Ways:
    """A plan's draws by tree, and those that everybody meets."""

    trees: tuple[TreeDraws, ...]
    common: tuple[Draw, ...]

    @property
    def names(self) -> frozenset[str | None]:
        return frozenset(tree.tree for tree in self.trees)


def ways_of(plan: Plan) -> Ways:
    """Where trees have names, a draw without one belongs to no tree; otherwise all belong to the only tree."""
    found: dict[str | None, list[Draw]] = {}
    for draw in plan.draws:
        found.setdefault(draw.tree, []).append(draw)
    common = found.pop(None, []) if found.keys() != {None} else []
    return Ways(tuple(TreeDraws(tree, tuple(draws)) for tree, draws in found.items()), tuple(common))


def measurements_of(plan: Plan) -> tuple[int | None, ...]:
    """The set that each measurement serves; None: one measurement serves all."""
    if not 1 <= plan.sets <= MOST_SETS:
        raise ValueError(f"a plan has 1 to {MOST_SETS} sets")
    return tuple(range(1, plan.sets + 1)) if plan.budget == "split" else (None,)


@dataclass(frozen=True)
class Figures:
    """What one person pays on the deepest way: for the structure, for each measurement, and in all."""

    structure: Fraction
    measurements: tuple[Fraction, ...]
    total: Fraction


def figures_of(plan: Plan) -> Figures:
    """Trees read the same records, so their costs add up, and with them what everybody meets."""
    ways = ways_of(plan)
    met = [draw for tree in ways.trees for draw in tree.way(tree.deepest)]
    counts: dict[int | None, list[Draw]] = {}
    for draw in met:
        if draw.kind == "count":
            counts.setdefault(draw.set, []).append(draw)
    structure = cost(ways.common) + cost(draw for draw in met if draw.kind == "election")
    measurements = tuple(cost(counts.get(measurement, ())) for measurement in measurements_of(plan))
    return Figures(structure, measurements, cost(ways.common) + cost(met))


def cost(draws: Iterable[Draw]) -> Fraction:
    total = Fraction()
    for draw in draws:
        total += draw.cost
        if total.denominator.bit_length() > MOST_BITS:
            raise ValueError("the shares have no common denominator of a size that a plan's would have")
    return total


def written_cost(plan: Plan) -> Fraction:
    """What the plan costs in its measure: ρ, or ε."""
    return written("ρ", plan.rho) if plan.measure == "zcdp" else written("ε", plan.epsilon)


def written(symbol: str, text: str | None) -> Fraction:
    """ε or ρ from its decimal digits."""
    digits = DIGITS.fullmatch(text or "")
    if digits is None:
        raise ValueError(f"{symbol} is not written in decimal digits")
    whole, rest = digits[1], digits[2] or ""
    return Fraction(int(whole + rest), 10 ** len(rest))
