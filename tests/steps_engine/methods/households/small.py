"""A small domain of linked tables, and households in it as codes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np

import steps_engine.methods  # noqa: F401  registers what a spec may name
from schemas.plan import Plan
from schemas.spec.domain import Domain
from schemas.spec.release import Release, ReleaseSpec
from steps_engine.domain.counting import Counts, count_codes
from steps_engine.domain.linked import joined
from steps_engine.methods.planning import make_plan

AT_MOST = 4


def tables(**person: Any) -> dict[str, Any]:
    """Tenure of the household; relation, sex and grade of its persons."""
    attributes = (
        {"name": "relation", "kind": "categorical", "categories": ("head", "child", "other")},
        {"name": "sex", "kind": "categorical", "categories": ("f", "m")},
        {"name": "grade", "kind": "integer", "bounds": (0, 2)},
    )
    return {
        "household": {"key": "hid", "attributes": ({"name": "tenure", "kind": "categorical", "categories": ("own", "rent")},)},
        "person": {
            "parent": "household",
            "column": "hid",
            "at_most": AT_MOST,
            "expected_rows": 900,
            "reference": {"relation": "head"},
            "kinds": "relation",
            "attributes": attributes,
            **person,
        },
    }


def domain(home: dict[str, Any] | None = None, **person: Any) -> Domain:
    linked = tables(**person)
    linked["household"] |= home or {}
    return Domain.model_validate({"name": "d", "population": "p", "expected_rows": 400, "tables": linked})


def release(of: Domain, analyses: tuple[Any, ...] = (), **privacy: Any) -> Release:
    spec = {
        "analyses": analyses,
        "name": "r",
        "dataset": "d",
        "source": {"household": "h", "person": "p"},
        "privacy": {"epsilon": Decimal(1), **privacy},
        "method": {"decomposition": "households", "sets": {"count": 1}},
    }
    return Release(spec=ReleaseSpec.model_validate(spec), domain=of, folder=".")


def plan(of: Domain, analyses: tuple[Any, ...] = (), **privacy: Any) -> Plan:
    return make_plan(release(of, analyses, **privacy))


Household = tuple[int, int, int, list[tuple[int, int, int]]]  # tenure, the head's sex and grade; members' kind, sex and grade


def counted(of: Domain, homes: list[Household]) -> Counts:
    """Exact counts, whatever bound the households break: what lies beyond the numbers of members counts as the highest."""
    rows, members = [], []
    for tenure, sex, grade, others in homes:
        numbers = [min(number, AT_MOST - 1) for number in (len(others), sum(kind == 0 for kind, _, _ in others))]
        row = [tenure, *numbers, sex, grade]
        rows.append(row)
        members += [[*row, *each] for each in others]
    none = np.zeros((0, len(of.counted.sizes)), dtype=np.int64)
    return joined(of, count_codes(np.array(rows)), count_codes(np.array(members) if members else none))


def some_homes(number: int, seed: int = 0) -> list[Household]:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(number):
        others = [tuple(int(each) for each in rng.integers((2, 2, 3))) for _ in range(rng.integers(AT_MOST))]
        found.append((*(int(each) for each in rng.integers((2, 2, 3))), others))
    return found
