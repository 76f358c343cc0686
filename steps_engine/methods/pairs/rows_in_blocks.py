"""The records of one set, block by block."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from steps_engine.domain.encoding import decode
from steps_engine.methods.blocks import Block, in_blocks
from steps_engine.methods.pairs.implied import estimated
from steps_engine.methods.pairs.structure import Structure
from steps_engine.methods.pairs.synthesize import codes_of
from steps_engine.noise import Randomness


def blocks(structure: Structure, noisy: list[np.ndarray], which_set: int, randomness: Randomness) -> list[Block]:
    """The records of one set (1…m), block by block: the estimate is made once, and every block agrees with all of it."""
    plan, domain = structure.margins.plan, structure.margins.domain
    found = estimated(structure, noisy, which_set, randomness)
    rows = round(found.total) if plan.total == "estimated" else int(structure.margins.total[0])

    def records(part: slice, more: Randomness) -> pa.Table:
        return decode(codes_of(structure, found, part.stop - part.start, more), domain, more)

    return in_blocks(records, rows, randomness)
