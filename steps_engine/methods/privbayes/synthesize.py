"""From a network's noisy tables to records: negative counts cut to 0, rows sampled independently, as published."""

from __future__ import annotations

import numpy as np

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine import noise
from steps_engine.domain.counting import no_codes
from steps_engine.methods.blocks import Block, decoded
from steps_engine.methods.cascade.sanitize import Cascade
from steps_engine.methods.cascade.synthesize import choices, draw_categories, restrict, total_rows


def synthesize_privbayes(
    domain: Domain, plan: Plan, network: Cascade, which_set: int, randomness: noise.Randomness
) -> list[Block]:
    """The records of one set (1…m), attribute by attribute in the order of the network."""
    codes = sample(domain, plan, network, which_set, randomness)
    order = noise.permutation(len(codes), randomness)
    return decoded(lambda part: codes[order[part]], len(codes), domain, randomness)


def sample(domain: Domain, plan: Plan, network: Cascade, which_set: int, randomness: noise.Randomness) -> np.ndarray:
    """Rows × attributes of codes: as many as were counted."""
    measurement = which_set - 1 if plan.budget == "split" else 0
    return sampled(domain, network, measurement, total_rows(plan, network, which_set), randomness)


def sampled(domain: Domain, network: Cascade, measurement: int, rows: int, randomness: noise.Randomness) -> np.ndarray:
    """Independent draws from each conditional distribution, rules kept."""
    codes = no_codes(rows, domain.sizes)
    known: list[int] = []
    for tree, noisy in zip(network.trees, network.noisy, strict=True):
        shares = _conditional(noisy[measurement])
        group, shares = restrict(tree.descend(codes), shares, *choices(domain, codes, tree.attribute, known))
        codes[:, tree.attribute] = draw_categories(group, shares, randomness)
        known.append(tree.attribute)
    return codes


def _conditional(noisy: np.ndarray) -> np.ndarray:
    """Negative counts cut to 0, each row scaled to 1; a row without counts is uniform."""
    cut = np.maximum(noisy, 0).astype(float)
    total = cut.sum(axis=1, keepdims=True)
    shares: np.ndarray = np.where(total > 0, cut / np.where(total > 0, total, 1), 1 / noisy.shape[1])
    return shares
