"""What a whole run takes beside its method: the start, reading, publication, and the evaluation that follows.

Seconds of one quiet core and bytes of one process, fitted to measured runs (docs/lab/performance.md). They are told, never
promised: no hash holds them, and nothing is decided by them but whether a plan is out of all proportion.
"""

from __future__ import annotations

from math import comb

from schemas.spec.domain import Domain

ASSUMED_ROWS = 10**5  # where expected_rows is not public
START_SECONDS, START_BYTES = 10.0, 2**28  # Prefect and its server, Great Expectations, drawing: whatever the data are
READ_PER_VALUE, PUBLISHED_PER_VALUE, COMPARED_PER_VALUE, COMPARED_PER_MARGIN = 6e-8, 2.5e-7, 1e-7, 9e-9  # seconds
MOST_COMPARED = 2 * 10**7  # values of a table: of a larger one the evaluation takes a sample
MOST_TRIPLES = 1_000  # margins of three attributes that are compared


def seconds_around(domain: Domain, sets: int) -> float:
    """Start, validation and counting, publication and evaluation of so many sets.

    >>> from schemas.spec.domain import Domain
    >>> coin = {"name": "coin", "kind": "categorical", "categories": ("heads", "tails")}
    >>> few, many = (Domain(name="d", population="d", expected_rows=rows, attributes=(coin,)) for rows in (300, 10**8))
    >>> round(seconds_around(few, 1)), round(seconds_around(many, 1))
    (10, 45)
    """
    rows, attributes = domain.expected_rows or ASSUMED_ROWS, len(domain.sizes)
    margins = 2 * comb(attributes, 2) + 3 * min(comb(attributes, 3), MOST_TRIPLES)
    per_row = attributes * COMPARED_PER_VALUE + margins * COMPARED_PER_MARGIN
    compared = min(rows, MOST_COMPARED // attributes) * (sets + 1) * per_row
    return START_SECONDS + rows * attributes * (READ_PER_VALUE + sets * PUBLISHED_PER_VALUE) + compared
