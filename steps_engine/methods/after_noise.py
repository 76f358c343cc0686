"""Everything after the noise: consistent counts and records, from what is published and a seed that follows from it.

Whoever has the structure, the noisy counts and the plan has all of it again, to the row. So nobody can try until a set pleases,
and nothing that was not paid for can hide in rows. It is post-processing, whatever the seed: PRIVACY.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from schemas.contents import content_hash
from schemas.identity import digest
from schemas.manifest import SEEDS_1
from schemas.plan import Plan
from schemas.spec.domain import Domain
from schemas.tables import SYNTHETIC
from steps_engine.methods.blocks import Block, InBlocks, together
from steps_engine.methods.protocol import Linking
from steps_engine.noise import Randomness
from steps_engine.public_randomness import PublicRandomness


class PostProcessing(Protocol):
    """The part of a method that reads nothing but what is published."""

    def correct(self, domain: Domain, plan: Plan, structure: pa.Table, noisy: pa.Table, randomness: Randomness) -> pa.Table: ...

    def synthesize(
        self, domain: Domain, plan: Plan, tables: Mapping[str, pa.Table], which_set: int, randomness: Randomness
    ) -> pa.Table: ...


@dataclass(frozen=True)
class Drawn:
    """What was drawn, and its identity: the hashes that every seed follows from."""

    domain: Domain
    plan: Plan
    structure: pa.Table
    noisy: pa.Table

    def seed(self, stage: str, number: int = 0) -> bytes:
        """SHA-256 over what was sealed before, the stage and the set's number (0: all sets), as canonical JSON."""
        said = {"rule": SEEDS_1, "plan": self.plan.hash, "stage": stage, "set": number}
        return bytes.fromhex(digest(said | {"tree": content_hash(self.structure), "noisy-counts": content_hash(self.noisy)}))

    def correct(self, method: PostProcessing) -> pa.Table:
        """The consistent counts."""
        randomness = PublicRandomness(self.seed("consistent-counts"))
        return method.correct(self.domain, self.plan, self.structure, self.noisy, randomness)

    def synthesize(
        self, method: PostProcessing, consistent: pa.Table, number: int, randomness: Randomness | None = None
    ) -> pa.Table:
        """The records of one set; from another source than its seed where a release was begun without seeds."""
        return together(self.blocks(method, consistent, number, randomness))

    def blocks(
        self, method: PostProcessing, consistent: pa.Table, number: int, randomness: Randomness | None = None
    ) -> list[Block]:
        """The same, so that not all rows need be held: in one block where the method knows no other way."""
        made = {"tree": self.structure, "noisy-counts": self.noisy, "consistent-counts": consistent}
        source = randomness or PublicRandomness(self.seed("synthetic", number))
        if isinstance(method, InBlocks):
            return method.blocks(self.domain, self.plan, made, number, source)
        records = method.synthesize(self.domain, self.plan, made, number, source)
        return [Block(len(records), lambda: records)]

    def linked(
        self, method: PostProcessing, consistent: pa.Table, blocks: Sequence[Block], number: int
    ) -> Iterator[dict[str, pa.Table]]:
        """The tables of one set, block by block: its records (`synthetic`), and those that are linked to them."""
        if not isinstance(method, Linking):
            return ({SYNTHETIC: block.make()} for block in blocks if block.wanted)
        made = {"tree": self.structure, "noisy-counts": self.noisy, "consistent-counts": consistent}
        return method.link(self.domain, self.plan, made, number, blocks, PublicRandomness(self.seed("linked", number)))
