"""Members given their households: as many of each kind as a household's row says, drawn given its columns.

Each place for a member gets several candidates, which follow the tables that were measured one attribute at a time; weights
with which candidates agree with all tables at once, given the households that there are, decide between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

import numpy as np
import pyarrow as pa

from schemas.spec.domain import Domain
from schemas.spec.flattened import PERSONS
from schemas.tables import SYNTHETIC
from steps_engine.domain.beside import in_order
from steps_engine.domain.counting import no_codes
from steps_engine.domain.encoding import decode
from steps_engine.domain.linked import in_coarsest
from steps_engine.domain.linked_records import linked_tables, members_of
from steps_engine.domain.records import codes_of, column_codes
from steps_engine.inference.reweighting import tables_of
from steps_engine.methods.blocks import Block, stream_of
from steps_engine.methods.cascade.attribute_tree import mixed_radix
from steps_engine.methods.cascade.synthesize import choices, restrict
from steps_engine.methods.households.parts import Part
from steps_engine.methods.pairs.estimate import Estimate, estimate
from steps_engine.methods.pairs.structure import Structure, Table
from steps_engine.methods.pairs.synthesize import by_quota, ungrouped, walk, weights
from steps_engine.methods.pairs.tables import read_measured
from steps_engine.methods.protocol import Tables
from steps_engine.methods.sources import measurement_of
from steps_engine.noise import Randomness, permutation, uniform

CANDIDATES, FEWEST = 16, 4  # for each place of a member, and where there are many places
MOST_BASE = 2**20
AT_A_TIME = MOST_BASE // FEWEST  # members of a set that has several blocks: their candidates are as many as pairs' rows are


@dataclass(frozen=True)
class Members:
    """The other members of one set: what was measured of them is estimated once, and drawn given any household rows."""

    domain: Domain
    structure: Structure
    found: Estimate

    def linked(self, blocks: Sequence[Block], randomness: Randomness) -> Iterator[dict[str, pa.Table]]:
        """Household rows of a set with their households and persons. A set of one block has the stream itself; of a larger one
        the stream draws a seed for every block, and its members are drawn some at a time: no more than these are held.
        """
        alone: list[Callable[[], Randomness]] = [lambda: randomness]
        streams = alone if len(blocks) == 1 else [stream_of(randomness) for _ in blocks]
        first = accumulate((block.rows for block in blocks), initial=0)
        for block, stream, before in zip(blocks, streams, first, strict=False):
            if not block.wanted:
                continue
            more = stream()
            for rows in [block.make()] if len(blocks) == 1 else some_members(self.domain, block.make()):
                yield {SYNTHETIC: rows} | self.link(rows, before, more)
                before += len(rows)

    def link(self, rows: pa.Table, before: int, randomness: Randomness) -> dict[str, pa.Table]:
        """Households and persons of these household rows; so many households came before them."""
        codes = codes_of(rows, self.domain)
        home, kind = members_of(self.domain, codes)
        measured = in_coarsest(self.domain, codes)[home]
        drawn = member_codes(self.domain, self.structure, self.found, measured, kind, randomness)
        own = in_order(self.domain, rows, codes, home, drawn, decode(drawn, self.domain.own, randomness), randomness)
        return linked_tables(self.domain, rows, home, own, before)


def some_members(domain: Domain, rows: pa.Table) -> Iterator[pa.Table]:
    """Household rows in turn, as many at a time as have some members together: as few parts as can be, about alike."""
    ends = np.cumsum(column_codes(rows[PERSONS], domain.attributes[domain.index(PERSONS)]))
    parts = max(1, -(-int(ends[-1]) // AT_A_TIME))
    cuts = np.searchsorted(ends, ends[-1] * np.arange(1, parts) // parts, side="right")
    for first, last in pairwise([0, *cuts.tolist(), len(rows)]):
        yield rows.slice(first, last - first)


def published(domain: Domain, part: Part, tables: Tables, number: int, randomness: Randomness) -> Members:
    """Those of one of the release's own sets."""
    plan = part.plan
    structure, noisy = read_measured(part.domain, plan, part.of(tables))
    split = plan.budget == "split"
    found = estimate(structure, noisy, number - 1 if split else 0, None if split or plan.sets == 1 else randomness)
    return Members(domain, structure, found)


def plausible(domain: Domain, part: Part, tables: Tables, number: int, randomness: Randomness) -> Members:
    """Those of a further set: a plausible draw of everything that was measured; of split sets the estimate."""
    structure, noisy = read_measured(part.domain, part.plan, part.of(tables))
    drawn = randomness if part.plan.measurements == 1 else None
    return Members(domain, structure, estimate(structure, noisy, measurement_of(part.plan, number), drawn))


def member_codes(
    domain: Domain, structure: Structure, found: Estimate, rows: np.ndarray, kind: np.ndarray | None, randomness: Randomness
) -> np.ndarray:
    """Members × own attributes of codes; `rows` are their households', as measured, `kind` their kind where it is settled."""
    assert domain.tables is not None
    first, sizes = len(domain.sizes), domain.counted.sizes
    codes = no_codes(len(rows), domain.own.sizes)
    if not len(rows):
        return codes
    known = list(range(first)) + ([] if kind is None else [domain.counted.index(str(domain.tables.person.kinds))])
    settled = rows if kind is None else np.column_stack([rows, kind])
    each = candidates_of(len(rows))
    base = no_codes(len(rows) * each, structure.sizes)
    for place, j in enumerate(known):
        base[:, j] = np.repeat(structure.group[j][settled[:, place]], each)
    draw_given(structure, found, base, list(known), randomness)
    taken = agreeing(*given_households(structure, found, base, frozenset(known)), base, each, randomness)
    for j in range(first, len(sizes)):
        codes[:, j - first] = kind if j in known else ungrouped(structure, found, j, taken[:, j], randomness)
    return codes


def candidates_of(members: int) -> int:
    """How many there are for the place of each."""
    return max(FEWEST, min(CANDIDATES, MOST_BASE // members))


def draw_given(structure: Structure, found: Estimate, codes: np.ndarray, known: list[int], randomness: Randomness) -> None:
    """Fills in what is not known, one attribute at a time: by the largest table in which all others are known by then."""
    domain, shares_of = structure.margins.domain, dict(zip(structure.tables, found.tables, strict=True))
    steps = walk(structure, found, found.information(structure.tables), tuple(known))[len(known) :]
    for j, above, pair in steps:
        of = max((t for t in structure.tables if len(t) > 2 and j in t and {*t} - {j} <= {*known}), key=len, default=None)
        if of is not None:
            others = tuple(i for i in of if i != j)
            table = np.moveaxis(shares_of[of], of.index(j), -1).reshape(-1, structure.sizes[j])
            parent = mixed_radix(codes, others, structure.sizes)
        else:
            table, parent = pair, np.zeros(len(codes), dtype=np.int64) if above is None else codes[:, above]
        shares = np.where(table.sum(axis=1, keepdims=True) > 0, table, found.coarse[j])
        if structure.sizes[j] == domain.sizes[j]:
            parent, shares = restrict(parent.astype(np.int64), shares, *choices(domain, codes, j, known))
        codes[:, j] = by_quota(parent, shares, randomness)
        known.append(j)


def given_households(
    structure: Structure, found: Estimate, base: np.ndarray, known: frozenset[int]
) -> tuple[Structure, Estimate]:
    """What is wanted of members: each table's shares given what is settled, of the households that there are.

    Where a table has nothing to say of a household that is there, what was drawn stays.
    """
    kept = [i for i, table in enumerate(structure.tables) if not known.issuperset(table)]
    wanted = [_wanted(structure.tables[i], found.tables[i], base, known, structure.sizes) for i in kept]
    tables = tuple(structure.tables[i] for i in kept)
    return replace(structure, tables=tables), replace(found, tables=wanted, variances=[found.variances[i] for i in kept])


def _wanted(of: Table, shares: np.ndarray, base: np.ndarray, known: frozenset[int], sizes: tuple[int, ...]) -> np.ndarray:
    cells = np.bincount(mixed_radix(base, of, sizes), minlength=shares.size).reshape(shares.shape) / len(base)
    drawn = tuple(axis for axis, j in enumerate(of) if j not in known)
    told, there = shares.sum(axis=drawn, keepdims=True), cells.sum(axis=drawn, keepdims=True)
    wanted: np.ndarray = np.where(told > 0, shares / np.where(told > 0, told, 1) * there, cells)
    return wanted


def agreeing(structure: Structure, found: Estimate, base: np.ndarray, each: int, randomness: Randomness) -> np.ndarray:
    """A row for every place, of as many candidates each; then few change again, so that chance moves little.

    What choosing has moved is brought back to what the weights had settled on, as for rows of pairs: the row that was chosen
    stands several times among the candidates of its place.
    """
    weight = _within_places(structure, found, base, each)
    settled = tables_of(base, structure.sizes, structure.tables, weight.ravel())
    aim = replace(found, tables=settled, variances=[np.zeros(table.size) for table in settled])
    chosen = _choose(weight, randomness)
    for others in (max(1, each // 4), 1):
        shift = np.concatenate([np.zeros(each - others, dtype=np.int64), 1 + permutation(each - 1, randomness)[:others]])
        place = (chosen[:, None] + shift) % each + np.arange(len(chosen))[:, None] * each
        rows = np.asfortranarray(base[place.ravel()])
        taken = _choose(_within_places(structure, aim, rows, each), randomness)
        chosen = np.take_along_axis(place, taken[:, None], axis=1)[:, 0] % each
    return np.asarray(base[np.arange(len(chosen)) * each + chosen])


def _within_places(structure: Structure, found: Estimate, base: np.ndarray, each: int) -> np.ndarray:
    """Places × candidates of weights with which all tables agree; of every place they sum to 1."""
    if not structure.tables:
        return np.full((len(base) // each, each), 1 / each)
    weight = weights(structure, found, base, each=each).reshape(-1, each)
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _choose(weight: np.ndarray, randomness: Randomness) -> np.ndarray:
    """A candidate for every place."""
    ladder = np.cumsum(weight, axis=1)
    reached = uniform(len(ladder), randomness)[:, None] * ladder[:, -1:]
    return np.asarray(np.minimum((ladder <= reached).sum(axis=1), weight.shape[1] - 1))
