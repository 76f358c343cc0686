"""Every method as a small release for the verifier's tests, and its tables made by the real engine in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from schemas.plan import Plan
from schemas.spec.domain import Domain
from schemas.spec.release import Release
from steps_engine.domain.counting import Counts
from steps_engine.methods.registry import method_of
from steps_engine.methods.tree import plan as planning
from steps_engine.noise import SeededRandomness
from tests.tasks.publishing.making import POLL, a_release

METHODS: dict[str, dict[str, Any]] = {
    "given": {"decomposition": "tree", "order": ("voted", "age")},
    "elected": {"decomposition": "tree", "elect": {"layers": 2}},
    "groups": {"decomposition": "tree", "elect": {"layers": 2, "what": "groups", "mechanism": "exponential"}},
    "bic": {"decomposition": "tree", "elect": {"layers": 5, "utility": "bic"}},
    "stopping": {"decomposition": "tree", "elect": {"layers": 4, "utility": "uneven", "stop": True}},
    "flat": {"decomposition": "flat"},
    "uh": {"decomposition": "uh", "layers": 3, "shares": "cube_root"},
    "sampled": {"decomposition": "tree", "order": ("voted", "age")},
    "sampled, flat": {"decomposition": "flat"},
    "sampled, elected": {"decomposition": "tree", "elect": {"layers": 2}},
    "cascade": {"decomposition": "cascade"},
    "cascade, order elected": {"decomposition": "cascade", "order": "elected"},
    "cascade, rows not public": {"decomposition": "cascade"},
    "privbayes": {"decomposition": "privbayes"},
    "pairs": {"decomposition": "pairs", "pairs": "all"},
    "pairs, elected": {"decomposition": "pairs", "pairs": 4},
}


def domain_of(name: str, rows_per_person: int = 1) -> Domain:
    public = {"expected_rows": None} if "not public" in name else {}
    unit = POLL.unit.model_copy(update={"rows_per_person": rows_per_person})
    return POLL.model_copy(update={"unit": unit, **public})


def release_of(name: str, rows_per_person: int = 1, sets: dict[str, Any] | None = None, **privacy: Any) -> Release:
    method = METHODS[name] | ({"sets": sets} if sets else {})
    return a_release(domain_of(name, rows_per_person), method, **privacy)


@contextmanager
def room_for(name: str) -> Iterator[None]:
    """So little memory that the cells of a sampled release are too many to list."""
    with pytest.MonkeyPatch.context() as small:
        if name.startswith("sampled"):
            small.setattr(planning, "MOST_BYTES", planning.bytes_of(40, 1))
            small.setattr(planning, "MOST_KEPT", 20)
        yield


def tables_of(domain: Domain, plan: Plan, counts: Counts, seed: int = 3) -> dict[str, pa.Table]:
    method, source = method_of(plan), SeededRandomness(seed)
    tree = method.build(domain, plan, counts, source)
    noisy = method.sanitize(domain, plan, counts, tree, source)
    return {"tree": tree, "noisy-counts": noisy, "consistent-counts": method.correct(domain, plan, tree, noisy, source)}
