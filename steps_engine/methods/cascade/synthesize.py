"""From a cascade's noisy histograms to records: the trees are walked in order, all rows at once. Reads nothing confidential."""

from __future__ import annotations

import numpy as np

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine import noise
from steps_engine.accounting.mechanisms import noise_of
from steps_engine.domain.cells import Component, Space
from steps_engine.domain.counting import most_rows, no_codes
from steps_engine.inference.posterior import Prior
from steps_engine.inference.reweighting import reweight
from steps_engine.methods.blocks import Block, decoded
from steps_engine.methods.cascade.attribute_tree import AttributeTree, mixed_radix
from steps_engine.methods.cascade.plan import LARGEST_BLOCK, tree_draws
from steps_engine.methods.cascade.sanitize import Cascade
from steps_engine.methods.sources import Drawn, measurement_of, plausible_plan

LARGEST_KEY = 2**62
LEAST_VARIANCE = 1e-9  # of a count whose noise is practically 0


def synthesize_cascade(
    domain: Domain, plan: Plan, cascade: Cascade, which_set: int, randomness: noise.Randomness
) -> list[Block]:
    """The records of one set (1…m)."""
    codes = walk(domain, plan, cascade, which_set, randomness)
    return decoded(codes.__getitem__, len(codes), domain, randomness)


def walk(domain: Domain, plan: Plan, cascade: Cascade, which_set: int, randomness: noise.Randomness) -> np.ndarray:
    """Rows × attributes of codes: as many as were counted."""
    sanitized = measurements(plan, cascade, which_set, randomness)
    rows = total_rows(plan, cascade, which_set)
    return walk_blocks(domain, cascade, sanitized, rows, rows, randomness)


def walk_blocks(
    domain: Domain, cascade: Cascade, sanitized: list[Sanitized], rows: int, counted: int, randomness: noise.Randomness
) -> np.ndarray:
    """So many rows, block by block: each made to agree with the part of every count that it is of all that were counted."""
    codes, blocks = no_codes(rows, domain.sizes), -(-rows // LARGEST_BLOCK)
    for ends in range(1, blocks + 1):
        block = slice(rows * (ends - 1) // blocks, rows * ends // blocks)
        part = (block.stop - block.start) / counted
        shares = [(noisy * part, variance * part) for noisy, variance in sanitized]
        codes[block] = walk_block(domain, cascade, shares, block.stop - block.start, randomness)
    return codes


def walk_block(
    domain: Domain, cascade: Cascade, sanitized: list[Sanitized], rows: int, randomness: noise.Randomness
) -> np.ndarray:
    """Each attribute in turn follows the distribution of the leaf that its row is in; then all histograms speak at once."""
    codes, known, cells = no_codes(rows, domain.sizes), list[int](), list[np.ndarray]()
    for tree, (noisy, _) in zip(cascade.trees, sanitized, strict=True):
        leaf = tree.descend(codes)
        shares = nearest_shares(noisy, np.bincount(leaf, minlength=tree.leaves), tree.allowed)
        group, shares = restrict(leaf, shares, *choices(domain, codes, tree.attribute, known))
        codes[:, tree.attribute] = draw_categories(group, shares, randomness)
        cells.append(leaf * tree.categories + codes[:, tree.attribute])
        known.append(tree.attribute)
    return agreeing(cascade, sanitized, codes, cells, randomness)


def source(domain: Domain, plan: Plan, cascade: Cascade, number: int, randomness: noise.Randomness) -> Drawn:
    """Of more rows: a plausible table of one set, walked again for as many as are asked."""
    which, plan = measurement_of(plan, number) + 1, plausible_plan(plan, sets=2)
    sanitized, counted = measurements(plan, cascade, which, randomness), max(1, total_rows(plan, cascade, which))
    return Drawn(lambda rows, more: walk_blocks(domain, cascade, sanitized, rows, counted, more))


Sanitized = tuple[np.ndarray, np.ndarray]  # noisy histograms (leaves × categories), and each leaf's variance of a cell


def measurements(plan: Plan, cascade: Cascade, which_set: int, randomness: noise.Randomness) -> list[Sanitized]:
    """A set's own noisy histograms; sets that share a measurement each get a plausible one, drawn given what was sanitized.

    What differs between such sets is what the measurement leaves open, which is what combining them has to know.
    """
    number = _measurement(plan, which_set)
    sanitized = [(noisy[number], leaf_variances(tree, plan)) for tree, noisy in zip(cascade.trees, cascade.noisy, strict=True)]
    if plan.budget == "split" or plan.sets == 1:
        return sanitized
    return [
        (plausible(tree, noisy, plan, randomness), variance)
        for tree, (noisy, variance) in zip(cascade.trees, sanitized, strict=True)
    ]


def plausible(tree: AttributeTree, noisy: np.ndarray, plan: Plan, randomness: noise.Randomness) -> np.ndarray:
    """One draw of a tree's exact histograms; its cells with the same noise are exchangeable (posterior.py)."""
    drawn = noisy.copy()
    for draw in tree_draws(plan, tree.domain.names[tree.attribute]).counts[0]:
        cells = (tree.elections == draw.layer)[:, None] & tree.allowed
        drawn[cells] = Prior.fit(noisy[cells], noise_of(draw)).draw(noisy[cells], randomness)
    return drawn


def _measurement(plan: Plan, which_set: int) -> int:
    return which_set - 1 if plan.budget == "split" else 0


def agreeing(
    cascade: Cascade, sanitized: list[Sanitized], codes: np.ndarray, cells: list[np.ndarray], randomness: noise.Randomness
) -> np.ndarray:
    """As many rows in random order, taken from the walk so that they agree with all histograms: systematic sampling."""
    wanted = [nearest_histograms(tree, noisy).ravel() for tree, (noisy, _) in zip(cascade.trees, sanitized, strict=True)]
    weight = reweight(cells, wanted, [np.repeat(variance, noisy.shape[1]) for noisy, variance in sanitized])
    order = [tree.attribute for tree in cascade.trees]
    alike = np.argsort(leading_key(codes, order, cascade.domain.sizes), kind="stable")
    ends = np.cumsum(weight[alike])
    place = (noise.permutation(len(codes), randomness) + noise.uniform(1, randomness)) * (ends[-1] / len(codes))
    taken = alike[np.minimum(np.searchsorted(ends, place, side="right"), len(codes) - 1)]
    for j in order:
        codes[:, j] = codes[taken, j]
    return codes


def nearest_histograms(tree: AttributeTree, noisy: np.ndarray) -> np.ndarray:
    """Each leaf's histogram projected on {x ≥ 0, Σx = its own noisy total}: what noise alone put into empty cells goes."""
    total = np.maximum(np.where(tree.allowed, noisy, 0).sum(axis=1), 0)
    nearest: np.ndarray = nearest_shares(noisy, total, tree.allowed) * total[:, None]
    return nearest


def leading_key(codes: np.ndarray, order: list[int], sizes: tuple[int, ...]) -> np.ndarray:
    """Equal for rows that agree in the first attributes: as many as 64 bits hold."""
    key, reach = np.zeros(len(codes), dtype=np.int64), 1
    for j in order:
        reach *= sizes[j]
        if reach > LARGEST_KEY:
            break
        key *= sizes[j]
        key += codes[:, j]
    return key


def total_rows(plan: Plan, cascade: Cascade, which_set: int) -> int:
    """n̂: the inverse-variance mean of the trees' totals, rounded, 0 to most_rows; or the exact number where it is known."""
    if cascade.total is not None:
        return cascade.total
    totals = np.array([noisy[_measurement(plan, which_set)].sum() for noisy in cascade.noisy])
    weight = 1 / np.array([leaf_variances(tree, plan) @ tree.allowed.sum(axis=1) for tree in cascade.trees])
    mean = round(float(totals @ weight / weight.sum()), 6)  # a half is a half on every machine
    return min(most_rows(cascade.domain), max(0, round(mean)))


def leaf_variances(tree: AttributeTree, plan: Plan) -> np.ndarray:
    """Variance of the noise in each cell of a leaf."""
    draws = tree_draws(plan, tree.domain.names[tree.attribute]).counts[0]
    variance = {draw.layer: max(noise_of(draw).variance, LEAST_VARIANCE) for draw in draws}
    of_leaves: np.ndarray = np.array([variance.get(held, 0.0) for held in range(max(variance) + 1)])[tree.elections]
    return of_leaves


def nearest_shares(values: np.ndarray, totals: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Each row projected on {x ≥ 0, Σx ≤ total}, x = max(h − τ, 0) (Held et al. 1974), as shares; even where total is 0.

    Where nothing is positive, on {x ≥ 0, Σx = total}.
    """
    positive = np.where(allowed, np.maximum(values, 0), 0).sum(axis=1)
    totals = np.where(positive > 0, np.minimum(positive, totals), totals)
    ranked = -np.sort(-np.where(allowed, values, -np.inf), axis=1)
    with np.errstate(invalid="ignore"):
        tau = (np.cumsum(ranked, axis=1) - totals[:, None]) / np.arange(1, values.shape[1] + 1)
        size = np.maximum((ranked > tau).sum(axis=1), 1)
    chosen = tau[np.arange(len(tau)), size - 1]
    kept = np.where(allowed & (totals > 0)[:, None], np.maximum(values - chosen[:, None], 0), 0.0)
    total = kept.sum(axis=1, keepdims=True)
    return np.where(total > 0, kept / np.where(total > 0, total, 1), 1 / values.shape[1])


def choices(domain: Domain, codes: np.ndarray, attribute: int, known: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Per row a number, and per number the categories with which some completion of the row is allowed."""
    for component in Space(domain).components:
        if attribute in component.attributes:
            return _choices_in(component, domain, codes, attribute, known)
    return np.zeros(len(codes), dtype=np.int64), np.ones((1, domain.sizes[attribute]), dtype=bool)


def _choices_in(
    component: Component, domain: Domain, codes: np.ndarray, attribute: int, known: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    tied = tuple(j for j in component.attributes if j in known)
    kept = [j for j in component.attributes if j in tied or j == attribute]
    possible = component.completable(tuple(a for a, j in enumerate(component.attributes) if j not in kept))
    possible = np.moveaxis(possible, kept.index(attribute), -1).reshape(-1, domain.sizes[attribute])
    return mixed_radix(codes, tied, domain.sizes), possible


def restrict(leaf: np.ndarray, shares: np.ndarray, choice: np.ndarray, possible: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Groups of rows with one distribution each: that of the leaf, on the categories that are possible for the row."""
    if len(possible) == 1:
        pairs, group = np.arange(len(shares)), leaf
    else:
        pairs, group = np.unique(leaf.astype(np.int64) * len(possible) + choice, return_inverse=True)  # codes are narrow
    mask = possible[pairs % len(possible)]
    restricted = shares[pairs // len(possible)] * mask
    total = restricted.sum(axis=1, keepdims=True)
    return group, np.where(total > 0, restricted / np.where(total > 0, total, 1), mask / mask.sum(axis=1, keepdims=True))


def draw_categories(group: np.ndarray, shares: np.ndarray, randomness: noise.Randomness) -> np.ndarray:
    """A category for every row from the distribution of its group: an even pick that stands or gives way to its alias."""
    keep, alias = aliases(shares)
    picked = noise.uniform(len(group), randomness) * shares.shape[1]
    category = picked.astype(np.int32)
    picked -= category
    place = group * shares.shape[1] + category
    drawn: np.ndarray = np.where(picked < keep.ravel()[place], category, alias.ravel()[place])
    return drawn


def aliases(shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each row (Walker 1977): with which probability a category stands, and which takes the rest of its 1/K."""
    rows, categories = np.arange(len(shares)), shares.shape[1]
    mass = shares / shares.sum(axis=1, keepdims=True) * categories
    keep, alias, is_open = np.ones(mass.shape), np.zeros(mass.shape, dtype=np.int32), np.ones(mass.shape, dtype=bool)
    for _ in range(categories - 1):
        least = np.where(is_open, mass, np.inf).argmin(axis=1)
        most = np.where(is_open, mass, -np.inf).argmax(axis=1)
        keep[rows, least], alias[rows, least], is_open[rows, least] = mass[rows, least], most, False
        mass[rows, most] -= 1 - mass[rows, least]
    return keep, alias
