"""Checks of a Bayesian network's published tables: those of a cascade, with a network that is elected as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.methods.cascade.check import check_forest, utility_problems
from steps_engine.methods.cascade.tables import Trees
from steps_engine.methods.checked import Checked


def check(domain: Domain, plan: Plan, made: Mapping[str, pa.Table]) -> Checked:
    return check_forest(domain, plan, made, network_problems)


def network_problems(domain: Domain, plan: Plan, trees: Trees) -> Iterator[str]:
    """The first attribute is drawn at random; every further one was elected together with its parents."""
    yield from utility_problems(plan)
    elections = sum(draw.kind == "election" and draw.tree is None for draw in plan.draws)
    if elections != len(trees) - 1:
        yield f"{elections} elections made a network of {len(trees)} attributes; it takes one for each but the first"
