"""The plan of places: the nation by pairs, counts of the places of every level, and of attributes by place as deep as they go.

Every table reads the same records, so that costs add up: of levels, of attributes, and of the nation. The counts of one table
are of disjoint places and categories.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np

from schemas.errors import SpecError
from schemas.plan import Draw, LayerPlan
from schemas.spec.release import Release
from schemas.spec.weights import LARGEST_SET
from steps_engine.accounting.mechanisms import noise_of
from steps_engine.accounting.plans import Allowance, Outline
from steps_engine.domain.blocks import BLOCK
from steps_engine.domain.cells import Component, possible_cells
from steps_engine.domain.places import Places, places_of
from steps_engine.inference.least_squares import least_squares_weights
from steps_engine.inference.place_tables import BY, Of, names_of, sizes_of, tree_name
from steps_engine.methods.pairs.division import ASSUMED_ROWS
from steps_engine.methods.pairs.plan import bytes_of, swept
from steps_engine.methods.pairs.plan import outline as outline_of_pairs
from steps_engine.methods.places.asked import nation_release, wanted_levels
from steps_engine.methods.places.shares import level_shares, parts

BYTES_PER_CELL, SECONDS_PER_CELL = 100, 4e-6  # of place tables: noisy, joined, shrunk, raked, listed
SECONDS_PER_ROW_AND_TABLE = 4e-9  # by place, each time that rows are weighed (docs/lab/places.md)


def outline(release: Release, allowance: Allowance) -> Outline:
    places = places_of(release.domain)
    must_be_possible(places)
    wanted = wanted_levels(release, places)
    divided = parts(places, allowance, wanted)
    nation = outline_of_pairs(nation_release(release, places), replace(allowance, total=divided.nation * allowance.total))
    draws, layers, election = list[Draw](), list[LayerPlan](), nation.election
    for of, (share, deepest) in [((), (divided.places, places.finest)), *divided.tables.items()]:
        each = share * allowance.total / len(allowance.served)
        costs = [part * each for part in level_shares(places, of, deepest, wanted, allowance.measure.name)]
        own = list(_draws(places, of, costs, allowance))
        first = [draw for draw in own if draw.set == allowance.served[0]]
        layers += _layers(places, of, first, allowance, len(nation.layers) + len(layers))
        draws += own
    expected = min(release.domain.expected_units or ASSUMED_ROWS, LARGEST_SET)
    columns = len(release.domain.sizes) + places.finest - 1  # coarser levels are columns too
    cells = sum(layer.nodes for layer in layers) * len(allowance.served)
    by_place = sum(deepest for _, deepest in divided.tables.values())
    seconds = swept(expected) * by_place * SECONDS_PER_ROW_AND_TABLE + cells * SECONDS_PER_CELL
    return Outline(
        layers=(*(each.model_copy(update={"share": each.share * divided.nation}) for each in nation.layers), *layers),
        draws=(*nation.draws, *draws),
        memory_bytes=bytes_of(min(expected, BLOCK), columns) + cells * BYTES_PER_CELL,
        seconds=round(nation.seconds + seconds * release.spec.method.sets.count, 1),
        election=election and election.model_copy(update={"share": election.share * divided.nation}),
    )


def must_be_possible(places: Places) -> None:
    """There is something to be told of places, and rules that name them leave somebody everywhere, and everybody somewhere."""
    if all(places.domain.sizes[j] == 1 for j in places.others):
        raise SpecError(
            f"decomposition: places needs an attribute of two or more categories beside {places.name}; for places alone, order "
            "a tree by them."
        )
    if any(places.attribute in each.places for each in places.domain.comparisons):
        raise SpecError(
            f"a rule compares {places.name} with another attribute, and decomposition: places keeps rules of places that say "
            f"never. Leave the rule out{'' if places.domain.tables else ', or choose decomposition: pairs'}."
        )
    if places.tied is not None:
        _must_leave_somebody(places, places.tied)


def _must_leave_somebody(places: Places, tied: Component) -> None:
    """A place that rules empty, or a combination that they forbid everywhere, is better said without a rule of places."""
    axis = tied.attributes.index(places.attribute)
    others = tuple(j for j in tied.attributes if j != places.attribute)
    inhabited = tied.completable(tuple(a for a in range(tied.allowed.ndim) if a != axis))
    if not inhabited.all():
        label = places.labels[-1][int(np.argmin(inhabited))]
        raise SpecError(
            f"rules leave nobody in {places.name} {label!r}. Leave its line out of the table of places, or mend the rules."
        )
    somewhere = tied.completable((axis,))
    nowhere = ~somewhere & possible_cells(places.nation, tuple(map(places.others.index, others)))
    if nowhere.any():
        codes = np.argwhere(nowhere)[0].tolist()
        said = " with ".join(
            f"{places.domain.names[others[a]]} = {places.domain.attributes[others[a]].labels[codes[a]]}"
            for a in _enough(somewhere, codes)
        )
        raise SpecError(f"rules leave {said} in no {places.name} at all. Say that in a rule of its own, without places.")


def _enough(somewhere: np.ndarray, codes: Sequence[int]) -> tuple[int, ...]:
    """The fewest axes whose categories, whatever the others are, are met nowhere."""
    every = range(somewhere.ndim)
    subsets = (of for size in every for of in combinations(every, size + 1))
    return next(of for of in subsets if not somewhere[tuple(codes[a] if a in of else slice(None) for a in every)].any())


def _draws(places: Places, of: Of, costs: Sequence[Fraction], allowance: Allowance) -> Iterator[Draw]:
    """One per level and measurement: a record lies in one place of each level, so that levels add up."""
    for set_ in allowance.served:
        for level, cost in enumerate(costs, start=1):
            what = BY.join((*names_of(places, of), places.levels[level - 1]))
            yield allowance.count(
                f"{'all sets' if set_ is None else f'set {set_}'}: {what}", cost,
                layer=level, set_=set_, tree=tree_name(places, of), nodes="leaves" if level == len(costs) else "inner",
            )  # fmt: skip


def _layers(places: Places, of: Of, draws: Sequence[Draw], allowance: Allowance, before: int) -> Iterator[LayerPlan]:
    """A line per level: its cells, its part of the budget, the error of a mean place once levels are joined."""
    noise = [np.inf, *(noise_of(draw).variance for draw in draws)]
    variance = [np.full(places.sizes[level], each) for level, each in enumerate(noise)]
    found = least_squares_weights(places.down_to(len(draws)), variance).variance
    for number, draw in enumerate(draws, start=1):
        yield LayerPlan(
            layer=before + number,
            attributes=(*names_of(places, of), places.levels[number - 1]),
            nodes=places.sizes[number] * math.prod(sizes_of(places, of)),
            nodes_are="exact",
            share=draw.cost * len(allowance.served) / allowance.total,
            expected_error=float(f"{np.sqrt(found[number].mean()):.6g}"),
        )
