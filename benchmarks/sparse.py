"""Cells too many to list: a release of 10^12 cells against one of 1.29 million, and what sampling loses against listing.

`python -m benchmarks.sparse`
"""

from __future__ import annotations

from decimal import Decimal
from unittest import mock

import numpy as np

from benchmarks.tree import VOTER_METHOD, cpu, voter_counts
from schemas.spec.domain import Domain
from schemas.spec.method import MethodSpec, method_spec
from schemas.spec.release import Privacy, Release, ReleaseSpec
from steps_engine.domain.counting import Counts, count_codes
from steps_engine.domain.encoding import encode
from steps_engine.evaluation.coded import Coded
from steps_engine.evaluation.measures.margins import margins
from steps_engine.evaluation.measures.specks import specks
from steps_engine.methods.planning import make_plan
from steps_engine.methods.run_in_memory import run_plan
from steps_engine.methods.tree import plan as planning
from steps_engine.methods.tree.sparse import is_sampled
from steps_engine.noise import SeededRandomness, SystemRandomness, integers_below

FLAT, TREE = method_spec(decomposition="flat"), method_spec(decomposition="tree", order=("voted", "college"))
LOSS = (("flat, ε = e²", FLAT, "7.389"), ("tree, ε = e²", TREE, "7.389"), ("tree, ε = 1", TREE, "1"))


def blown_up(domain: Domain, counts: Counts) -> tuple[Domain, Counts]:
    """The same records with two more attributes, so that there are over 10^12 allowed cells."""
    more = tuple({"name": name, "kind": "integer", "bounds": (0, size - 1)} for name, size in (("zone", 1000), ("area", 800)))
    known = {name: getattr(domain, name) for name in Domain.model_fields}
    wide = Domain.model_validate(known | {"attributes": (*domain.attributes, *more)})
    rows = np.repeat(counts.codes, counts.count, axis=0)
    zone = integers_below(40, len(rows), SeededRandomness("zone"))[:, None] ** 2 % 1000
    return wide, count_codes(np.hstack([rows, zone, zone // 3]))


def plan_of(domain: Domain, method: MethodSpec, epsilon: str = "1"):
    spec = ReleaseSpec(name="bench", dataset="-", source="-", privacy=Privacy(epsilon=Decimal(epsilon)), method=method)
    return make_plan(Release(spec=spec, domain=domain, folder="."))


def run(domain: Domain, counts: Counts, plan, randomness) -> list:
    """All stages from the tree to the records."""
    return list(run_plan(domain, plan, counts, randomness).records)


def loss(domain: Domain, counts: Counts, method: MethodSpec, epsilon: str) -> list[tuple[float, float]]:
    """SPECKS KS and mean 3-way distance of one set, cells listed and cells sampled."""
    original = Coded(domain.names, domain.sizes, np.repeat(counts.codes, counts.count, axis=0).astype(np.int64))
    found = []
    for held in (planning.MOST_BYTES, planning.bytes_of(1000, 1)):
        with mock.patch.object(planning, "MOST_BYTES", held):
            plan = plan_of(domain, method, epsilon)
        (records,) = run(domain, counts, plan, SeededRandomness(1))
        made = [Coded(domain.names, domain.sizes, encode(records.to_pandas(), domain).astype(np.int64))]
        found.append((specks(original, made, SeededRandomness(0), null=0).ks, margins(original, made, 3).mean))
    return found


def measure() -> dict[str, float | str]:
    domain, counts = voter_counts()
    wide, wide_counts = blown_up(domain, counts)
    listed, sampled = plan_of(domain, VOTER_METHOD), plan_of(wide, VOTER_METHOD)
    assert is_sampled(sampled) and not is_sampled(listed) and sampled.cells > 10**12
    seconds = [
        cpu(lambda a=a: run(*a, SystemRandomness()), 3) for a in ((domain, counts, listed), (wide, wide_counts, sampled))
    ]
    figures: dict[str, float | str] = {"10^12 cells sampled / 1.29 million listed, CPU (at most 3)": seconds[1] / seconds[0]}
    for name, method, epsilon in LOSS:
        (ks, three), (sampled_ks, sampled_three) = loss(domain, counts, method, epsilon)
        figures[f"{name}: KS listed, sampled"] = f"{ks:.3f}, {sampled_ks:.3f}"
        figures[f"{name}: 3-way TVD listed, sampled"] = f"{three:.4f}, {sampled_three:.4f}"
    return figures


if __name__ == "__main__":
    for what, value in measure().items():
        print(f"{what}: {value if isinstance(value, str) else f'{value:.3g}'}")
