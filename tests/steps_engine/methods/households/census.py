"""A small domain of households that lie in tracts, counties and regions, and households in it as codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from schemas.spec.domain import Domain
from steps_engine.domain.counting import Counts, count_codes
from steps_engine.domain.linked import joined
from tests.steps_engine.methods.households.small import AT_MOST, Household, domain, some_homes

TRACTS = 12
TABLE = tuple((f"r{t // 6}", f"c{t // 3}", f"t{t}") for t in range(TRACTS))
TENURE = {"name": "tenure", "kind": "categorical", "categories": ("own", "rent")}
Placed = tuple[int, Household]  # the tract, and who lives there


def census(rows: int = 2_000, missing: str = "forbid", home: dict[str, Any] | None = None, **person: Any) -> Domain:
    """Tenure and tract of the household; relation, sex and grade of its persons."""
    geography = {"levels": ("region", "county", "tract"), "table": TABLE}
    tract = {"name": "tract", "kind": "categorical", "geography": geography, "missing": missing}
    found = domain({"attributes": (TENURE, tract), **(home or {})}, expected_rows=round(2.5 * rows), **person)
    return found.model_copy(update={"expected_rows": rows})


def some_placed(number: int, seed: int = 0, places: int = TRACTS - 1) -> list[Placed]:
    """The last tract is empty; in r1 households are larger, and members of a higher grade."""
    rng, found = np.random.default_rng(seed), []
    for tenure, sex, grade, others in some_homes(number, seed):
        tract = int(rng.integers(places))
        if tract >= 6:
            others = [(kind, s, max(g, 1)) for kind, s, g in (others + [(1, sex, 2)])[: AT_MOST - 1]]
        found.append((tract, (tenure, sex, grade, others)))
    return found


def counted_in(of: Domain, homes: list[Placed]) -> Counts:
    """Exact counts, whatever bound the households break: what lies beyond the numbers of members counts as the highest."""
    rows, members = [], []
    for tract, (tenure, sex, grade, others) in homes:
        numbers = [min(number, AT_MOST - 1) for number in (len(others), sum(kind == 0 for kind, _, _ in others))]
        rows.append([tenure, tract, *numbers, sex, grade])
        members += [[*rows[-1], *each] for each in others]
    none = np.zeros((0, len(of.counted.sizes)), dtype=np.int64)
    return joined(of, count_codes(np.array(rows)), count_codes(np.array(members) if members else none))
