"""The plan of pairs: the number of rows, margins, elections where few pairs are measured, and tables, with what each costs.

Tables read the same records, so their costs add up; in one table every row changes the contrast by the same length.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

from schemas.errors import SpecError
from schemas.nearest import meant
from schemas.plan import Draw, ElectionPlan, LayerPlan
from schemas.spec.domain import Domain
from schemas.spec.release import Release
from schemas.spec.weights import LARGEST_SET
from steps_engine.accounting.measures import PURE
from steps_engine.accounting.mechanisms import contrast_variance
from steps_engine.accounting.plans import Allowance, Outline
from steps_engine.analyses.needed import needed_tables, of_first_order
from steps_engine.domain.blocks import BLOCK
from steps_engine.domain.cells import Space
from steps_engine.domain.settled import is_settled
from steps_engine.inference import exchanging
from steps_engine.inference.contrasts import PAIR, is_counted, residual_variance
from steps_engine.inference.reweighting import SWEEPS
from steps_engine.methods.pairs.balance import balanced
from steps_engine.methods.pairs.division import (
    ASSUMED_ROWS,
    VOTES,
    Division,
    Matter,
    blocks,
    candidates,
    division,
    shares_of,
    weights,
)
from steps_engine.methods.pairs.draws import again_draws, election_draws, margin_draws, table_draws
from steps_engine.methods.pairs.kept_back import Again, kept_back
from steps_engine.methods.pairs.rows_in_blocks import SWEPT as SWEPT_IN_BLOCKS
from steps_engine.methods.pairs.spec import PairsSpec
from steps_engine.methods.pairs.structure import Table
from steps_engine.methods.pairs.synthesize import AGAIN, base_size
from steps_engine.methods.pairs.triples import Triples, triples

COUNTED_PER_ROW_AND_TABLE, SECONDS_PER_TABLE = 3e-9, 7e-3  # of counting; of its lines on the page and their check
BYTES_PER_VALUE = 14  # of a block and its base (docs/lab/performance.md)
SECONDS_PER_ROW, SECONDS_PER_ROW_AND_TABLE = 3e-8, 1e-9  # each time that rows are weighed
SECONDS_PER_VALUE = 2.5e-7  # of drawing and writing rows
SWEPT_BASE, SWEPT_ROWS = SWEEPS, 3 * AGAIN  # times that the base and the rows taken from it are weighed
SWEPT_BLOCK = SWEPT_IN_BLOCKS + 2  # of several blocks: with their beginning, and with the tables that they settled on


def outline(release: Release, allowance: Allowance, among: frozenset[int] | None = None, alone: bool = False) -> Outline:
    """The draws of pairs: number of rows, margins, elections where few pairs are measured, tables.

    `among`: pairs without any of these attributes are not measured, where all others are. `alone`: not within another method,
    whose figures are those of the plan as it was: margins may get more, and some pairs be measured again.
    """
    domain, method = release.domain, pairs_spec(release)
    declared = declared_tables(release, allowance)
    divided = division(domain, allowance, method.pairs, declared)
    matter = matter_of(release, declared)
    asked_for = of_analyses(domain, allowance, divided, matter, declared) if alone else []
    paid = sum((draw.cost for draw in asked_for), Fraction(0))
    rest = replace(allowance, total=allowance.total - paid)
    if alone:
        divided = balanced(domain, rest, divided, method.pairs, () if asked_for else declared)
        divided = replace(divided, elected=min(divided.elected, _undeclared(domain, declared)))
    possible = [pair for pair in candidates(domain) if among is None or among.intersection(pair)]
    pairs = [] if divided.elected else untold(possible, declared, allowance)
    tables = tuple(dict.fromkeys([*pairs, *declared]))
    third = paying(domain, allowance, divided, method.pairs, declared)
    each = rest.total / len(allowance.served)
    measured = bool(tables or divided.elected)
    counted = release.spec.privacy.total == "estimated" or max(domain.sizes) == 1  # something must be there to count
    draws = [*margin_draws(domain, matter, divided.margins * each if measured else each, counted, allowance)]
    left = (1 - divided.margins) * rest.total
    if divided.elected:
        votes = VOTES[allowance.measure.name]
        draws += election_draws(divided.elected, votes * left, allowance)
        left *= 1 - votes
    if measured:
        each = left / len(allowance.served)
        waits = kept_back(domain, allowance, divided, method.pairs) if alone and not declared else Again()
        of_pairs = (1 - third.part) * each
        beside = () if asked_for else tables
        draws += table_draws(domain, matter, beside, divided.elected, (1 - waits.part) * of_pairs, allowance)
        draws += asked_for
        draws += again_draws(waits, of_pairs, allowance)
        draws += table_draws(domain, matter, third.tables, 0, third.part * each, allowance) if third.tables else []
    number = len(tables) + len(third.tables) + divided.elected
    rows = min(domain.expected_units or ASSUMED_ROWS, LARGEST_SET)
    larger, shared = third.tables or any(len(table) > PAIR for table in declared), method.sets.count > len(allowance.served)
    near = () if larger or shared else (number,)  # of rows that are exchanged the base is larger where tables are few
    return Outline(
        layers=tuple(_layers(domain, draws, allowance)),
        draws=tuple(draws),
        memory_bytes=bytes_of(min(rows, BLOCK), len(domain.sizes), *near),
        seconds=_seconds(rows, domain.sizes, number, method.sets.count, *near),
        election=_election(divided, allowance, 1 - paid / allowance.total, _undeclared(domain, declared)),
    )


def of_analyses(
    domain: Domain, allowance: Allowance, divided: Division, matter: Matter, declared: Sequence[Table]
) -> list[Draw]:
    """What analyses need, where pairs are elected under ε: with as much of the budget as `division` gives it.

    Margins and elected pairs then divide the rest by what leaves least wrong (balance.py), as if nothing were declared: a
    small table that somebody names does not take from all margins what they have without it.
    """
    if allowance.measure is not PURE or not divided.elected:
        return []
    of_tables = (1 - VOTES[allowance.measure.name]) * (1 - divided.margins) * allowance.total / len(allowance.served)
    drawn = table_draws(domain, matter, declared, divided.elected, of_tables, allowance)
    return [draw for draw in drawn if draw.of != "elected"]


def matter_of(release: Release, declared: Sequence[Table]) -> Matter:
    """How much each table matters: by `importance`, and by what analyses need at first order."""
    domain = release.domain
    vital = of_first_order(release, [tuple(domain.names[j] for j in table) for table in declared])
    of = importance_of(domain, pairs_spec(release))
    return Matter(tuple(of), frozenset(tuple(map(domain.index, names)) for names in vital))


def _undeclared(domain: Domain, declared: Sequence[Table]) -> int:
    """How many pairs may be elected."""
    return len(set(candidates(domain)).difference(declared))


def bytes_of(rows: int, attributes: int, *tables: int) -> int:
    """What so many rows take while they are made, held at once with their base."""
    return 2**28 + base_size(rows, *tables) * attributes * BYTES_PER_VALUE


def _seconds(rows: int, sizes: Sequence[int], tables: int, sets: int, *near: int) -> float:
    """Tables are counted once; every set draws a base of rows, weighs it, takes rows from it and may exchange some."""
    weighed = swept(rows, *near) * (SECONDS_PER_ROW + tables * SECONDS_PER_ROW_AND_TABLE)
    once = tables * (rows * COUNTED_PER_ROW_AND_TABLE + SECONDS_PER_TABLE)
    exchanged = exchanging.seconds(rows, sizes) if near and rows <= BLOCK else 0.0
    made = weighed + _drawn_rows(rows, *near) * len(sizes) * SECONDS_PER_VALUE + exchanged
    return round(3 + once + sets * made, 1)


def swept(rows: int, *tables: int) -> int:
    """Rows of a set, each as often as it is weighed. Of several blocks each is weighed a few times, from angles that are fitted
    once to as many rows as one has.
    """
    once = _drawn_rows(rows, *tables) * SWEPT_BASE + rows * SWEPT_ROWS
    return once if rows <= BLOCK else BLOCK * SWEPT_BASE + rows * SWEPT_BLOCK


def _drawn_rows(rows: int, *tables: int) -> int:
    return max(rows, base_size(min(rows, BLOCK), *tables))


def declared_tables(release: Release, allowance: Allowance) -> tuple[Table, ...]:
    """What analyses need, without attributes that have no choice; under ρ a table's interactions, and so those of its parts.

    There an interaction that follows from the rules is not measured: smaller ones tell all of it. (Under ε they would not be
    cheaper than the counts, which have no noise where no row can be.)
    """
    domain, space = release.domain, Space(release.domain)
    found = (tuple(domain.index(name) for name in names) for names in needed_tables(release))
    with_choice = [tuple(j for j in table if domain.sizes[j] > 1) for table in found]
    if allowance.measure is not PURE:
        parts = (part for table in with_choice for size in range(2, len(table) + 1) for part in combinations(table, size))
        with_choice = [part for part in dict.fromkeys(parts) if len(part) == 2 or not is_settled(space, part)]
    return tuple(dict.fromkeys(table for table in with_choice if len(table) > 1))


def paying(
    domain: Domain, allowance: Allowance, divided: Division, asked: int | str | None, declared: Sequence[Table]
) -> Triples:
    """Tables of three attributes that nobody asked for; none where pairs are elected or their number is given.

    Those that declared tables or the rules tell of are left out, and their part of the budget stays with the tables.
    """
    if divided.elected or asked is not None or not divided.margins < 1:
        return Triples()
    cost = float(allowance.total) / len(allowance.served)
    found = triples(domain, allowance, cost, float(divided.margins))
    space, others = Space(domain), untold(found.tables, declared, allowance)
    left = [table for table in others if table not in declared and not is_settled(space, table)]
    if not left:
        return Triples()
    each = shares_of(weights(blocks(found.tables, domain.sizes, allowance), domain.sizes, Matter.alike(domain), allowance))
    kept = sum(share for table, share in zip(found.tables, each, strict=True) if table in left)
    return Triples(tuple(left), found.part * kept)


def untold(tables: Sequence[Table], declared: Sequence[Table], allowance: Allowance) -> list[Table]:
    """Tables that are not within a larger one which is counted: its counts tell of them."""
    larger = [set(table) for table in declared if is_counted(table, allowance.measure is not PURE)]
    return [table for table in tables if not any(held.issuperset(table) for held in larger)]


def pairs_spec(release: Release) -> PairsSpec:
    assert isinstance(release.spec.method, PairsSpec)
    return release.spec.method


def importance_of(domain: Domain, method: PairsSpec) -> list[float]:
    """1 unless the author says otherwise."""
    for name in method.importance:
        if name not in domain.names:
            raise SpecError(f"importance names {name!r}; {meant(name, domain.names, 'the domain has')}")
    return [float(method.importance.get(name, 1)) for name in domain.names]


def _layers(domain: Domain, draws: list[Draw], allowance: Allowance) -> Iterator[LayerPlan]:
    """One line per draw of a measurement: its cells, its part of the budget, one cell's error."""
    first = [draw for draw in draws if draw.of is not None and draw.set == allowance.served[0]]
    size = dict(zip(domain.names, domain.sizes, strict=True))
    for number, draw in enumerate(first, start=1):
        of = draw.tables[-1] if draw.tables else None
        sizes = tuple(size[name] for name in of) if of is not None else _widest(domain)
        variance = contrast_variance(draw, sizes) * residual_variance(sizes, allowance.measure is not PURE)
        named = None if of is None else tuple(dict.fromkeys(name for table in draw.tables for name in table))
        yield LayerPlan(
            layer=number,
            attributes=named,
            nodes=sum(math.prod(size[name] for name in table) for table in draw.tables) or math.prod(sizes),
            nodes_are="at most" if len(sizes) > 1 else "exact",
            share=draw.cost * len(allowance.served) / allowance.total,
            expected_error=float(f"{math.sqrt(variance):.6g}"),
        )


def _widest(domain: Domain) -> tuple[int, ...]:
    return tuple(sorted(domain.sizes, reverse=True)[:2])


def _election(divided: Division, allowance: Allowance, part: Fraction, candidates: int) -> ElectionPlan | None:
    if not divided.elected:
        return None
    return ElectionPlan(
        utility="misfit", what="pairs", mechanism=allowance.electing, layers=divided.elected,
        share=VOTES[allowance.measure.name] * (1 - divided.margins) * part, candidates=candidates,
    )  # fmt: skip
