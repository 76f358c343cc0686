"""How the draws of a plan add up for one person.

Nodes of one layer of a tree are disjoint, so a person meets one node per layer: on the way to a leaf in layer d the
elections and inner counts above it, and the leaf's own count. Trees read the same records, so they add up; draws of no
tree, where trees have names, are met by everybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from schemas.manifest import Composition, adds_up
from schemas.plan import Draw, Plan


@dataclass(frozen=True)
class Ways:
    """Of every tree the draws on each way from its root to a leaf, by the leaf's layer; and the draws that everybody meets."""

    common: tuple[Draw, ...]
    trees: dict[str | None, dict[int, tuple[Draw, ...]]]

    @property
    def longest(self) -> tuple[Draw, ...]:
        """The draws that a person meets whose leaves lie deepest."""
        return (*self.common, *(draw for ways in self.trees.values() if ways for draw in ways[max(ways)]))

    @property
    def dearest(self) -> Fraction:
        """What the ways that cost most cost together."""
        dear = (max(map(cost_of, ways.values()), default=Fraction(0)) for ways in self.trees.values())
        return cost_of(self.common) + sum(dear, Fraction(0))

    def cheap_ends(self) -> list[str]:
        """Ends of branches whose way costs less than the deepest, elections that are not held below them included."""
        found = []
        for tree, ways in self.trees.items():
            most = max(map(cost_of, ways.values()), default=Fraction(0))
            elections = {draw.name: draw for way in ways.values() for draw in way if draw.kind == "election"}
            for end, way in ways.items():
                unheld = cost_of(draw for draw in elections.values() if draw.layer >= end)
                if most not in (cost_of(way), cost_of(way) + unheld):
                    found.append(f"layer {end}" + (f" of the tree of {tree}" if tree else ""))
        return found


def ways_of(draws: Sequence[Draw]) -> Ways:
    """The ways that a plan's draws leave open, whatever the records say."""
    of_tree: dict[str | None, list[Draw]] = {}
    for draw in draws:
        of_tree.setdefault(draw.tree, []).append(draw)
    trees = of_tree.keys() - {None} or of_tree.keys()
    return Ways(
        common=tuple(draw for draw in draws if draw.tree not in trees),
        trees={tree: _ways(of_tree[tree]) for tree in sorted(trees, key=str)},
    )


def _ways(draws: Sequence[Draw]) -> dict[int, tuple[Draw, ...]]:
    ends = sorted({draw.layer for draw in draws if draw.kind == "count" and draw.nodes == "leaves"})
    return {end: tuple(draw for draw in draws if _is_met(draw, end)) for end in ends}


def _is_met(draw: Draw, end: int) -> bool:
    """Whether a person whose leaf lies in layer `end` meets the draw."""
    if draw.kind == "election" or draw.nodes == "inner":
        return draw.layer < end
    return draw.layer == end


def cost_of(draws: Iterable[Draw]) -> Fraction:
    return sum((draw.cost for draw in draws), Fraction(0))


def composition_of(plan: Plan) -> Composition:
    """Sums over the longest way; no other way costs more."""
    ways = ways_of(plan.draws)
    counts = [draw for draw in ways.longest if draw.kind == "count" and draw not in ways.common]
    return Composition(
        structure=cost_of(draw for draw in ways.longest if draw not in counts),
        measurements=tuple(cost_of(draw for draw in counts if draw.set == set_) for set_ in plan.served),
        sets=plan.sets,
        total=cost_of(ways.longest),
        sentence=adds_up(plan),
    )
