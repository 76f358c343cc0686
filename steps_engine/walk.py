"""From a cascade's noisy histograms to records: the trees are walked in order, all rows at once. Reads nothing confidential."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from schemas.domain import Domain
from schemas.plan import Plan
from steps_engine import noise
from steps_engine.attribute_tree import AttributeTree, mixed_radix
from steps_engine.cascade import Cascade
from steps_engine.cascade_plan import tree_draws
from steps_engine.cells import Component, Space
from steps_engine.encoding import decode
from steps_engine.posterior import Prior
from steps_engine.reweighting import reweight

GOLDEN = (math.sqrt(5) - 1) / 2
LEAST_VARIANCE = 1e-9  # of a count whose noise is practically 0


def synthesize_cascade(domain: Domain, plan: Plan, cascade: Cascade, which_set: int, source: noise.Source) -> pa.Table:
    """The records of one set (1…m)."""
    codes = walk(domain, plan, cascade, which_set, source)
    return decode(codes[noise.permutation(len(codes), source)], domain, source)


def walk(domain: Domain, plan: Plan, cascade: Cascade, which_set: int, source: noise.Source) -> np.ndarray:
    """Rows × attributes of codes: each attribute in turn follows the distribution of the leaf that its row is in."""
    measured, sizes = measurements(plan, cascade, which_set, source), domain.sizes
    rows = total_rows(plan, cascade, which_set)
    codes, known = np.zeros((rows, len(sizes)), dtype=np.int32), []
    prefix = np.zeros(rows, dtype=np.int64)  # equal for rows that agree so far, in lexicographic order
    for tree, (noisy, variance) in zip(cascade.trees, measured, strict=True):
        leaf = tree.descend(codes)
        shares = distributions(tree, noisy, variance, np.bincount(leaf, minlength=tree.leaves))
        group, shares = restrict(leaf, shares, *choices(domain, codes, tree.attribute, known))
        codes[:, tree.attribute] = deal(group, shares, prefix, source)
        known.append(tree.attribute)
        prefix = np.unique(prefix * sizes[tree.attribute] + codes[:, tree.attribute], return_inverse=True)[1]
    return agreeing(cascade, measured, codes, prefix, source)


Measured = tuple[np.ndarray, np.ndarray]  # noisy histograms (leaves × categories), and each leaf's variance of a cell


def measurements(plan: Plan, cascade: Cascade, which_set: int, source: noise.Source) -> list[Measured]:
    """A set's own noisy histograms; sets that share a measurement each get a plausible one, drawn given what was measured.

    The spread between such sets is what the measurement leaves open, which is what combining them has to know.
    """
    number = _measurement(plan, which_set)
    measured = [(noisy[number], leaf_variances(tree, plan)) for tree, noisy in zip(cascade.trees, cascade.noisy, strict=True)]
    if plan.budget == "split" or plan.sets == 1:
        return measured
    return [
        (plausible(tree, noisy, plan, source), variance)
        for tree, (noisy, variance) in zip(cascade.trees, measured, strict=True)
    ]


def plausible(tree: AttributeTree, noisy: np.ndarray, plan: Plan, source: noise.Source) -> np.ndarray:
    """One draw of a tree's exact histograms; its cells with the same noise are exchangeable (posterior.py)."""
    drawn = noisy.copy()
    for draw in tree_draws(plan, tree.domain.names[tree.attribute]).counts[0]:
        cells = (tree.elections == draw.layer)[:, None] & tree.allowed
        drawn[cells] = Prior.fit(noisy[cells], draw.scale).draw(noisy[cells], source)
    return drawn


def _measurement(plan: Plan, which_set: int) -> int:
    return which_set - 1 if plan.budget == "split" else 0


def agreeing(
    cascade: Cascade, measured: list[Measured], codes: np.ndarray, row: np.ndarray, source: noise.Source
) -> np.ndarray:
    """As many rows, taken from the walk so that they agree with all histograms: systematic sampling of distinct rows."""
    if not len(codes):
        return codes
    _, first, count = np.unique(row, return_index=True, return_counts=True)
    distinct = codes[first]
    cells = [tree.descend(distinct) * tree.categories + distinct[:, tree.attribute] for tree in cascade.trees]
    noisy = [histograms.ravel().astype(float) for histograms, _ in measured]
    variance = [np.repeat(variances, histograms.shape[1]) for histograms, variances in measured]
    ends = np.cumsum(reweight(count, cells, noisy, variance))
    wanted = (np.arange(len(codes)) + noise.uniform(1, source)) * (ends[-1] / len(codes))
    return distinct[np.minimum(np.searchsorted(ends, wanted, side="right"), len(first) - 1)]


def total_rows(plan: Plan, cascade: Cascade, which_set: int) -> int:
    """n̂: the inverse-variance mean of the trees' totals, rounded, at least 0; or the exact number where it is known."""
    if cascade.total is not None:
        return cascade.total
    totals = np.array([noisy[_measurement(plan, which_set)].sum() for noisy in cascade.noisy])
    weight = 1 / np.array([leaf_variances(tree, plan) @ tree.allowed.sum(axis=1) for tree in cascade.trees])
    return max(0, round(float(totals @ weight / weight.sum())))


def leaf_variances(tree: AttributeTree, plan: Plan) -> np.ndarray:
    """Variance of the noise in each cell of a leaf."""
    draws = tree_draws(plan, tree.domain.names[tree.attribute]).counts[0]
    variance = {draw.layer: max(noise.variance(draw.scale), LEAST_VARIANCE) for draw in draws}
    return np.array([variance.get(held, 0.0) for held in range(max(variance) + 1)])[tree.elections]


def distributions(tree: AttributeTree, noisy: np.ndarray, variance: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Leaves × categories: top-down, each family's deviations from its parent shrunk by what noise explains of them.

    f = max(0, 1 − expected/observed sum of squares), the positive-part rule of James and Stein (1961).
    """
    allowed = tree.allowed
    values, spread, rows, possible = [noisy.astype(float)], [variance * allowed.sum(axis=1)], [inside.astype(float)], [allowed]
    for fanout in reversed(tree.fanouts):
        first = np.cumsum(fanout) - fanout
        for sums in (values, spread, rows):
            sums.insert(0, np.add.reduceat(sums[0], first, axis=0))
        possible.insert(0, np.logical_or.reduceat(possible[0], first, axis=0))
    shares = nearest_shares(values[0], rows[0], possible[0], possible[0] / possible[0].sum())
    for depth, fanout in enumerate(tree.fanouts, start=1):
        base = np.repeat(shares, fanout, axis=0)
        fitted = level(values[depth], rows[depth], possible[depth])
        deviation = np.where(possible[depth], fitted - rows[depth][:, None] * base, 0.0)
        factor = _shrinkage(deviation, spread[depth], fanout)
        shares = nearest_shares(rows[depth][:, None] * base + factor[:, None] * deviation, rows[depth], possible[depth], base)
    return shares


def _shrinkage(deviation: np.ndarray, spread: np.ndarray, fanout: np.ndarray) -> np.ndarray:
    """One factor per family, repeated for its members; a family of m has m − 1 free deviations, a histogram of K K − 1."""
    first, categories = np.cumsum(fanout) - fanout, deviation.shape[1]
    observed = np.add.reduceat((deviation**2).sum(axis=1), first)
    expected = np.add.reduceat(spread, first) * (1 - 1 / fanout) * (1 - 1 / categories)
    return np.repeat(np.clip(1 - expected / np.maximum(observed, 1e-9), 0, 1), fanout)


def level(values: np.ndarray, totals: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Each row shifted, over its allowed cells, to the wanted total."""
    cells = np.maximum(allowed.sum(axis=1), 1)
    return np.where(allowed, values + ((totals - np.where(allowed, values, 0).sum(axis=1)) / cells)[:, None], 0.0)


def nearest_shares(values: np.ndarray, totals: np.ndarray, allowed: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """Each row projected on {x ≥ 0, Σx = total}, x = max(h − τ, 0) (Held et al. 1974), as shares; `otherwise` if total is 0."""
    ranked = -np.sort(-np.where(allowed, values, -np.inf), axis=1)
    count = np.arange(1, values.shape[1] + 1)
    with np.errstate(invalid="ignore"):
        tau = (np.cumsum(ranked, axis=1) - totals[:, None]) / count
        size = np.maximum((ranked > tau).sum(axis=1), 1)
    chosen = tau[np.arange(len(tau)), size - 1]
    kept = np.where(allowed & (totals > 0)[:, None], np.maximum(values - chosen[:, None], 0), 0.0)
    total = kept.sum(axis=1, keepdims=True)
    return np.where(total > 0, kept / np.where(total > 0, total, 1), otherwise)


def choices(domain: Domain, codes: np.ndarray, attribute: int, known: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Per row a number, and per number the categories with which some completion of the row is allowed."""
    for component in Space(domain).components:
        if attribute in component.attributes:
            return _choices_in(component, domain, codes, attribute, known)
    return np.zeros(len(codes), dtype=np.int64), np.ones((1, domain.sizes[attribute]), dtype=bool)


def _choices_in(component: Component, domain: Domain, codes: np.ndarray, attribute: int, known: list[int]):
    tied = tuple(j for j in component.attributes if j in known)
    kept = [j for j in component.attributes if j in tied or j == attribute]
    possible = component.allowed.any(axis=tuple(a for a, j in enumerate(component.attributes) if j not in kept))
    possible = np.moveaxis(possible, kept.index(attribute), -1).reshape(-1, domain.sizes[attribute])
    return mixed_radix(codes, tied, domain.sizes), possible


def restrict(leaf: np.ndarray, shares: np.ndarray, choice: np.ndarray, possible: np.ndarray):
    """Groups of rows with one distribution each: that of the leaf, on the categories that are possible for the row."""
    pairs, group = np.unique(leaf * len(possible) + choice, return_inverse=True)
    mask = possible[pairs % len(possible)]
    restricted = shares[pairs // len(possible)] * mask
    total = restricted.sum(axis=1, keepdims=True)
    return group, np.where(total > 0, restricted / np.where(total > 0, total, 1), mask / mask.sum(axis=1, keepdims=True))


def deal(group: np.ndarray, shares: np.ndarray, prefix: np.ndarray, source: noise.Source) -> np.ndarray:
    """A category for every row: each group's counts are within 1 of its shares, and so, nearly, are those of any part of it.

    Rows of a group are put in lexicographic order and numbered i; the fractions of i·golden + u are spread evenly over
    every run of neighbours (Weyl 1916), so dealing by their ranks leaves no more association than the leaf prescribes.
    """
    if not len(group):
        return np.zeros(0, dtype=np.int32)
    sorted_rows = np.lexsort((prefix, group))
    start = np.flatnonzero(np.diff(group[sorted_rows], prepend=-1))
    length = np.diff(start, append=len(group))
    place = np.arange(len(group)) - np.repeat(start, length)
    number, offset = np.repeat(np.arange(len(start)), length), np.repeat(noise.uniform(len(start), source), length)
    order = sorted_rows[np.argsort(number + (place * GOLDEN + offset) % 1, kind="stable")]
    quantile = (place + np.repeat(noise.uniform(len(start), source), length)) / np.repeat(length, length)
    return _quantiles(order, number, np.minimum(quantile, 1 - 1e-9), shares)


def _quantiles(order: np.ndarray, group: np.ndarray, quantile: np.ndarray, shares: np.ndarray) -> np.ndarray:
    running = np.cumsum(shares, axis=1)
    steps = (running / running[:, -1:] + 2 * np.arange(len(shares))[:, None]).ravel()
    category = np.searchsorted(steps, quantile + 2 * group, side="right") - group * shares.shape[1]
    result = np.empty(len(order), dtype=np.int32)
    result[order] = category
    return result
