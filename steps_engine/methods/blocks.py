"""Synthetic rows in blocks: each can be made by itself, by whom and in which order one likes, and is always the same.

A set of no more than a block has the set's own stream. Of a larger one the stream draws a seed for every block, in order, once
everything that blocks share is drawn. Each block agrees with its part of every table up to one row in a cell, at random, so
that of B blocks chance leaves about √B rows; n independent rows would leave √(n·p).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.domain.blocks import ends_of_blocks
from steps_engine.domain.encoding import decode
from steps_engine.noise import Randomness
from steps_engine.public_randomness import PublicRandomness

Make = Callable[[slice, Randomness], pa.Table]  # the records of these places in a set, from a stream


@dataclass(frozen=True)
class Block:
    """Some of a set's records, not made before they are asked for."""

    rows: int
    make: Callable[[], pa.Table]
    wanted: bool = True  # or another worker makes it


@runtime_checkable
class InBlocks(Protocol):
    """A method that needs not hold all rows of a set. One that says `blocks_apart` makes a block without the work of others, so
    that workers can share a set.
    """

    def blocks(
        self, domain: Domain, plan: Plan, tables: Mapping[str, pa.Table], which_set: int, randomness: Randomness
    ) -> list[Block]:
        """The records of one set (1…m), in order."""
        ...


def in_blocks(make: Make, rows: int, randomness: Randomness) -> list[Block]:
    """So many rows from what was estimated: one block from the stream itself, or several, each from a seed of its own."""
    parts = [slice(*ends) for ends in pairwise(ends_of_blocks(rows))]
    if len(parts) == 1:
        return [Block(rows, lambda: make(parts[0], randomness))]
    streams = [stream_of(randomness) for _ in parts]
    return [_seeded(make, part, stream) for part, stream in zip(parts, streams, strict=True)]


def stream_of(randomness: Randomness) -> Callable[[], Randomness]:
    """A stream of its own, from its beginning whenever it is asked for: its seed is drawn now."""
    return partial(PublicRandomness, randomness.words(4, np.uint64).astype("<u8").tobytes())


def _seeded(make: Make, part: slice, stream: Callable[[], Randomness]) -> Block:
    return Block(part.stop - part.start, lambda: make(part, stream()))


def decoded(codes: Callable[[slice], np.ndarray], rows: int, domain: Domain, randomness: Randomness) -> list[Block]:
    """Rows whose codes are known, as narrow as they come: what is wide, records, is made block by block."""
    return in_blocks(lambda part, more: decode(codes(part), domain, more), rows, randomness)


def together(blocks: Iterable[Block]) -> pa.Table:
    return pa.concat_tables([block.make() for block in blocks])
