"""More rows than were published, or rows under a condition: from the structure, the noisy counts and a seed, so that whoever
has the bundle makes the same ones. It is post-processing: nothing is charged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from schemas.contents import content_hash
from schemas.errors import SpecError
from schemas.identity import digest
from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.domain.encoding import decode
from steps_engine.methods.registry import method_of
from steps_engine.methods.sources import Inhabiting, Kept, Source, Sourcing
from steps_engine.noise import Randomness
from steps_engine.public_randomness import PublicRandomness

ROWS = "sample"  # what rows are called beside the tables that belong to them
RULE = "steps-sample/1"  # how rows follow from what was drawn and a seed; another way is another name
BLOCK = 2**18  # rows that are held at once
FIRST = 2**14  # rows that are drawn to see how rare a condition is
MOST_DRAWN, TIMES = 2**23, 50  # rows that are drawn for one set under a condition; or so many times those that are asked
SPARE = 1.2  # as many more as are expected to be needed


@dataclass(frozen=True)
class Sampling:
    """What was drawn of a release, and what is asked of it."""

    domain: Domain
    plan: Plan
    tables: Mapping[str, pa.Table]
    kept: Kept
    seed: int

    def blocks(self, number: int, rows: int) -> Iterator[pa.Table]:
        """The records of set 1, 2, …, some at a time."""
        return (made[ROWS] for made in self.linked(number, rows))

    def linked(self, number: int, rows: int) -> Iterator[dict[str, pa.Table]]:
        """The same; of linked tables with the households and persons that belong to these household rows."""
        method = method_of(self.plan)
        if not isinstance(method, Sourcing):
            raise SpecError(f"decomposition {self.plan.decomposition} makes no more rows than it published")
        randomness = PublicRandomness(bytes.fromhex(digest(self._said | {"set": number})))
        source = method.source(self.domain, self.plan, self.tables, number, randomness)
        members = None
        if isinstance(method, Inhabiting):
            members = method.members(self.domain, self.plan, self.tables, number, randomness)
        before = 0
        for codes in self._codes(source, rows, number, randomness):
            records = decode(codes, self.domain, randomness)
            yield {ROWS: records} | (members.link(records, before, randomness) if members is not None else {})
            before += len(codes)

    @property
    def _said(self) -> dict[str, str | int]:
        made = {name: content_hash(self.tables[name]) for name in ("tree", "noisy-counts")}
        return {"rule": RULE, "plan": self.plan.hash, "seed": self.seed, **made}

    def _codes(self, source: Source, rows: int, number: int, randomness: Randomness) -> Iterator[np.ndarray]:
        """Where all rows are to be had: in blocks of one size. Else as many tries as the condition has taken so far."""
        found, drawn, even = 0, 0, math.ceil(rows / math.ceil(rows / BLOCK))
        direct, most = source.selects or not self.kept, max(MOST_DRAWN, TIMES * rows)
        while found < rows:
            wanted = min(even, rows - found) if direct else _tries(rows - found, found, drawn)
            if not direct and drawn and drawn + wanted > most:
                raise _rare(number, found, drawn, rows)
            tried = min(wanted, BLOCK)
            codes = source.rows(tried, self.kept, randomness)[: rows - found]
            if direct and not len(codes):
                raise _nobody(number, bool(self.kept))
            found, drawn = found + len(codes), drawn + tried
            if len(codes):
                yield codes


def _tries(lacking: int, found: int, drawn: int) -> int:
    """How many rows to draw so that as many as lack fulfil the condition, by what was found so far."""
    return FIRST if not drawn else math.ceil(SPARE * lacking * drawn / max(found, 0.5))


def _nobody(number: int, conditional: bool) -> SpecError:
    if not conditional:
        return SpecError(f"set {number} of the release has no row at all: there is nothing to draw more rows from.")
    return SpecError(f"nothing fulfils the condition in set {number}: no row of its table does. Ask for a wider one.")


def _rare(number: int, found: int, drawn: int, rows: int) -> SpecError:
    if not found:
        return SpecError(f"nothing fulfils the condition among {drawn:,} rows of set {number}: ask for a wider one.")
    likely = found / drawn * MOST_DRAWN / SPARE
    return SpecError(
        f"{found:,} of {drawn:,} rows of set {number} fulfil the condition: {rows:,} such rows would take too long to draw. "
        f"Ask for about {max(1, int(likely)):,}, or for a wider condition."
    )
