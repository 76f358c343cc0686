"""What a whole run takes beside its method: the start, reading, publication, and the evaluation that follows.

Seconds of one quiet core and bytes of one process, fitted to measured runs (docs/lab/performance.md). They are told, never
promised: no hash holds them, and nothing is decided by them but whether a plan is out of all proportion.
"""

from __future__ import annotations

import math

from schemas.spec.domain import Domain

ASSUMED_ROWS = 10**5  # where expected_rows is not public
START_SECONDS, START_BYTES = 10.0, 2**28  # Prefect and its server, Great Expectations, drawing: whatever the data are
READ_PER_VALUE, PUBLISHED_PER_VALUE, COMPARED_PER_VALUE, COMPARED_PER_MARGIN = 2.4e-7, 8e-8, 1e-7, 1.25e-8  # seconds
COMPARED_BYTES = 60  # of a value that is compared
LEFT_BYTES, LEFT_PER_VALUE, BLOCK = 256, 8, 2**20  # of a row, that stages which hold a block leave behind for those after them
LEAST_COUNTING, COUNTED_BYTES, WORD = 2**29, 5, 63  # bytes: of any counting, and of a word of a cell's codes; its bits
MOST_COMPARED = 2 * 10**7  # values of a table: of a larger one the evaluation takes a sample
MOST_TRIPLES = 1_000  # margins of three attributes that are compared


def seconds_around(domain: Domain, sets: int) -> float:
    """Start, validation and counting, publication and evaluation of so many sets; of linked tables that of both.

    >>> from schemas.spec.domain import Domain
    >>> coin = {"name": "coin", "kind": "categorical", "categories": ("heads", "tails")}
    >>> few, many = (Domain(name="d", population="d", expected_rows=rows, attributes=(coin,)) for rows in (300, 10**8))
    >>> round(seconds_around(few, 1)), round(seconds_around(many, 1))
    (10, 46)
    """
    return START_SECONDS + sum(_seconds(flat, sets) for flat in _tables(domain))


def _tables(domain: Domain) -> list[Domain]:
    """The flat tables that are counted, published and compared."""
    return [domain] if domain.tables is None else [domain, domain.counted]


def _seconds(domain: Domain, sets: int) -> float:
    read, rows, attributes = domain.expected_rows or ASSUMED_ROWS, domain.expected_units or ASSUMED_ROWS, len(domain.sizes)
    margins = 5 * math.comb(attributes, 2) + 2 * min(math.comb(attributes, 3), MOST_TRIPLES)
    per_row = attributes * COMPARED_PER_VALUE + margins * COMPARED_PER_MARGIN
    compared = min(rows, MOST_COMPARED // attributes) * (sets + 1) * per_row
    return attributes * (read * READ_PER_VALUE + rows * sets * PUBLISHED_PER_VALUE) + compared


def counting_bytes(domain: Domain) -> int:
    """What DuckDB may hold while it counts occupied cells; beyond, it spills, but not without a part of them in memory.

    >>> from schemas.spec.domain import Domain
    >>> coin = {"name": "coin", "kind": "categorical", "categories": ("heads", "tails")}
    >>> day = {"name": "day", "kind": "integer", "bounds": (0, 10**9), "bins": 10**5}
    >>> of = lambda *given: Domain(name="d", population="d", expected_rows=10**9, attributes=given)
    >>> counting_bytes(of(coin)), counting_bytes(of(coin, day, {**day, "name": "night"}))
    (536870912, 5000000000)
    """
    rows, cells = domain.expected_rows or ASSUMED_ROWS, math.prod(domain.sizes)
    return max(LEAST_COUNTING, COUNTED_BYTES * math.ceil(cells.bit_length() / WORD) * min(rows, cells))


def bytes_around(domain: Domain) -> int:
    """What counting holds, or the evaluation, beside the start: the larger of both, since DuckDB gives back all of its own.

    The evaluation holds a sample, however many rows there are, beside what the allocator kept of earlier stages' blocks: codes
    of one of them, of tables with many attributes.

    >>> from schemas.spec.domain import Domain
    >>> coin = {"name": "coin", "kind": "categorical", "categories": ("heads", "tails")}
    >>> few, many, more = (Domain(name="d", population="d", expected_rows=n, attributes=(coin,)) for n in (1, 10**8, 10**9))
    >>> bytes_around(few) < bytes_around(many) == bytes_around(more) < 2**31
    True
    """
    left = max(_left_behind(flat) for flat in _tables(domain))
    values = max((flat.expected_units or ASSUMED_ROWS) * len(flat.sizes) for flat in _tables(domain))
    compared, counting = min(values, MOST_COMPARED) * COMPARED_BYTES, counting_bytes(domain.counted)
    return 2**27 + max(compared + left, counting if counting > LEAST_COUNTING else 0)


def _left_behind(domain: Domain) -> int:
    return min(domain.expected_units or ASSUMED_ROWS, BLOCK) * max(LEFT_BYTES, LEFT_PER_VALUE * len(domain.sizes))
