"""Tables from a tree's counts: sums of the consistent counts of its leaves, whose variances follow in one pass up the tree."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.inference.reach import standard_errors
from steps_engine.methods.protocol import Tables
from steps_engine.methods.tabulated import Asked, Tabulated
from steps_engine.methods.tree.branches import Branches, read_branches
from steps_engine.methods.tree.check import held_and_sampled
from steps_engine.methods.tree.margins import MOST_NUMBERS, is_plain_sum, reaches
from steps_engine.methods.tree.sparse import is_sampled
from steps_engine.methods.tree.variances import Spread, spreads


def lacking(domain: Domain, plan: Plan, tables: Tables, asked: Sequence[Sequence[int]]) -> list[tuple[str, ...]]:
    """Where cells are too many to list, counts tell of attributes that every branch above them fixes."""
    if not is_sampled(plan):
        return [() for _ in asked]
    branches = read_branches(domain, plan, tables["tree"])
    return [_not_fixed(branches, of) for of in asked]


def _not_fixed(branches: Branches, of: Sequence[int]) -> tuple[str, ...]:
    domain = branches.space.domain
    return tuple(domain.names[j] for j in of if j not in branches.fixed and domain.sizes[j] > 1)


def tabulate(domain: Domain, plan: Plan, tables: Tables, asked: Asked) -> Tabulated | str:
    branches = read_branches(domain, plan, tables["tree"])
    if unknown := _not_fixed(branches, asked.all):
        return f"cells are too many to list, and no count above them tells of {', '.join(unknown)}"
    counts, _ = held_and_sampled(tables["consistent-counts"], plan)
    estimate, size = counts["estimate"].to_numpy()[1:][branches.end_row], asked.cells(domain)
    cell = asked.cell_of(partial(_digit, branches), len(branches.ends), domain)
    inside = cell >= 0
    spread, m = _spread(branches, plan, cell, size, inside), plan.measurements
    held = cell[inside]
    return Tabulated(
        group=tuple(asked.class_of(j, domain) for j in asked.attributes),
        estimate=np.bincount(held, estimate[inside], size),
        variance=spread.variance / m,
        cross=spread.cross / m,
        whole=float(estimate[inside].sum()),
        whole_variance=spread.whole / m,
        possible=np.bincount(held, minlength=size) > 0,
        factor=standard_errors(plan),
        reach=reaches(plan, held, size) if is_plain_sum(branches, plan) else None,
    )


def _digit(branches: Branches, attribute: int) -> np.ndarray:
    return branches.space.digit(branches.ends, attribute)


def _spread(branches: Branches, plan: Plan, cell: np.ndarray, size: int, inside: np.ndarray) -> Spread:
    """Some cells at a time, so that what is held of every inner node stays small: cells do not need each other."""
    widest = max([1, *(len(nodes) for nodes in branches.layers[:-1])])
    step = max(1, MOST_NUMBERS // (5 * widest))
    parts = []
    for first in range(0, size, step):
        last = min(first + step, size)
        chosen = np.where((cell >= first) & (cell < last), cell - first, -1)
        parts.append(spreads(branches, plan, chosen, last - first, inside))
    variance, cross = (np.concatenate([getattr(part, name) for part in parts]) for name in ("variance", "cross"))
    return Spread(variance, cross, parts[0].whole)
