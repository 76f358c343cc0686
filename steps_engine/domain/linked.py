"""Counts of linked tables: household rows and rows of their other members, in one table. CONFIDENTIAL.

A household's row has in every column of members the code behind the last category: nobody.
"""

from __future__ import annotations

import numpy as np

from schemas.spec.domain import Domain
from steps_engine.domain.counting import Counts, no_codes


def joined(domain: Domain, households: Counts, members: Counts) -> Counts:
    """Both as one, in the order of their codes."""
    sizes = domain.counted.sizes
    codes = no_codes(len(households.count) + len(members.count), sizes)
    first = len(domain.sizes)
    codes[: len(households.count), :first] = households.codes
    codes[: len(households.count), first:] = sizes[first:]
    codes[len(households.count) :] = members.codes
    count = np.concatenate([households.count, members.count])
    order = np.lexsort(codes.T[::-1])
    return Counts(np.asfortranarray(codes[order]), count[order])


def parted(domain: Domain, counts: Counts) -> tuple[Counts, Counts]:
    """Household rows, and rows of other members."""
    first = len(domain.sizes)
    alone = counts.codes[:, first] == domain.counted.sizes[first]
    households = Counts(np.asfortranarray(counts.codes[alone, :first]), counts.count[alone])
    return households, Counts(np.asfortranarray(counts.codes[~alone]), counts.count[~alone])
