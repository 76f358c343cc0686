"""One-way margins of a release with their exact standard errors (variances.py), from published counts alone."""

from __future__ import annotations

import itertools

import numpy as np

from schemas.plan import Plan
from steps_engine.accounting.mechanisms import noise_of
from steps_engine.domain.columns import columns_of
from steps_engine.inference.reach import reach_of, standard_errors
from steps_engine.inference.strength import Beyond, strength
from steps_engine.methods.relations import Two
from steps_engine.methods.tree.branches import Branches
from steps_engine.methods.tree.variances import margin_variances, noise_variances
from steps_engine.methods.views import Margin

MOST_NUMBERS = 50_000_000  # categories × inner nodes that are held at once
MOST_WORK = 500_000_000  # pairs × ends of branches that are looked at


def margins(branches: Branches, plan: Plan, estimate: np.ndarray, whole: np.ndarray) -> list[Margin]:
    """Every column with a choice that the tree counts, what is derived last.

    `estimate` and `whole` (sets × nodes) are per node, root first.
    """
    domain, widest = branches.space.domain, max([1, *(len(nodes) for nodes in branches.layers[:-1])])
    end_estimate, end_whole = estimate[1:][branches.end_row], whole.mean(axis=0)[1:][branches.end_row]
    columns, found = columns_of(domain), []
    follow = [column for column in columns[len(domain.sizes) :] if column.source in branches.fixed]
    for column in [*(columns[j] for j in branches.fixed), *follow]:
        attribute = column.attribute
        if attribute.size == 1 or attribute.size * widest > MOST_NUMBERS:
            continue
        digit = column.codes[branches.space.digit(branches.ends, column.source)]
        sums = [np.bincount(digit, weights=weights, minlength=attribute.size) for weights in (end_estimate, end_whole)]
        error = np.sqrt(margin_variances(branches, plan, digit, attribute.size) / plan.measurements)
        reach = reaches(plan, digit, attribute.size) if is_plain_sum(branches, plan) else standard_errors(plan) * error
        found.append(Margin(attribute.name, attribute.labels, sums[0], error, sums[1], reach))
    return found


def is_plain_sum(branches: Branches, plan: Plan) -> bool:
    """Whether nothing but the leaves was counted: then least squares weighs nothing, and a margin is a sum of their counts."""
    return len(branches.layers) == 1 and bool(branches.layers[0].leaf.all()) and plan.total == "estimated"


def reaches(plan: Plan, digit: np.ndarray, size: int) -> np.ndarray:
    noise, m = noise_of(plan.count_draw(1, 1, "leaves")), plan.measurements
    return np.array(
        [reach_of(((noise, m * int(leaves)),), m) if leaves else 0.0 for leaves in np.bincount(digit, minlength=size)]
    )


def strengths(branches: Branches, plan: Plan, estimate: np.ndarray) -> dict[Two, Beyond | None]:
    """Of every pair of attributes that the tree counts; None where that would take too long."""
    domain, chosen = branches.space.domain, [j for j in branches.fixed if branches.space.domain.sizes[j] > 1]
    pairs = list(itertools.combinations(sorted(chosen), 2))
    work, nodes = len(pairs) * len(branches.ends), sum(len(layer) for layer in branches.layers)
    if work > MOST_WORK:
        return dict.fromkeys(pairs)
    digits = {j: branches.space.digit(branches.ends, j) for j in chosen}
    end_estimate, found = estimate[1:][branches.end_row], dict[Two, Beyond | None]()
    bound = _leaf_noise(branches, plan)
    for i, j in pairs:
        shape = domain.sizes[i], domain.sizes[j]
        cell, size = digits[i] * shape[1] + digits[j], shape[0] * shape[1]
        exact = len(pairs) * nodes * size <= MOST_NUMBERS
        variance = margin_variances(branches, plan, cell, size) if exact else np.bincount(cell, bound, size)
        table = np.bincount(cell, end_estimate, size).reshape(shape)
        found[i, j] = strength(table, variance.reshape(shape) / plan.measurements)
    return found


def _leaf_noise(branches: Branches, plan: Plan) -> np.ndarray:
    """V of every end of a branch: what least squares can only make less."""
    depths = enumerate(branches.layers, start=1)
    noise: np.ndarray = np.concatenate([noise_variances(nodes, plan, depth) for depth, nodes in depths])[branches.end_row]
    return noise
