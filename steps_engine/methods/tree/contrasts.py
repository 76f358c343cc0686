"""What a tree's noisy counts say twice: a parent and its children together, a node in several measurements."""

from __future__ import annotations

import numpy as np

from schemas.plan import Plan
from steps_engine.domain.nodes import Layer, Tree, kinds_of_nodes
from steps_engine.inference.least_squares import noises_of
from steps_engine.inference.noise_test import Contrasts, Groups, Laws, NoiseTest, noise_test
from steps_engine.methods.tree.sanitize import NoisyCounts


def tested(tree: Tree, plan: Plan, noisy: NoisyCounts) -> NoiseTest:
    return noise_test(contrasts_of(tree, plan, noisy), [_named(depth) for depth in range(1, len(tree.layers) + 1)])


def _named(depth: int) -> str:
    return f"layer {depth}"


def contrasts_of(tree: Tree, plan: Plan, noisy: NoisyCounts) -> list[Groups]:
    """Families of groups that are independent within: of every second layer, and between measurements."""
    by_layer = {depth: _below(tree, plan, noisy, depth) for depth in range(1, len(tree.layers) + 1)}
    alternate = [{f"layer {d} against layer {d - 1}": by_layer[d] for d in by_layer if d % 2 == odd} for odd in (1, 0)]
    return [*alternate, between_measurements(tree, plan, noisy)]


def _below(tree: Tree, plan: Plan, noisy: NoisyCounts, depth: int) -> list[Contrasts]:
    """Of every parent above this layer: its own noisy count less those of its children."""
    layer, above = tree.layers[depth - 1], noisy.layers[depth - 2] if depth > 1 else None
    if above is None and noisy.total is None:
        return []
    parents = np.full((plan.measurements, 1), noisy.total) if above is None else above
    sums = np.add.reduceat(noisy.layers[depth - 1], layer.first, axis=1)
    values, own = parents[:, layer.families] - sums, _own(tree, plan, depth - 1)
    leaves = np.add.reduceat((layer.cell >= 0).astype(np.int64), layer.first)
    kinds, which = np.unique(np.stack([layer.fanout - leaves, leaves]), axis=1, return_inverse=True)
    of = noises_of(layer, depth, plan)
    found = []
    for number, (inner, ends) in enumerate(kinds.T.tolist()):
        children = [(of[name][1], times) for name, times in (("inner", inner), ("leaves", ends)) if times]
        found.append(
            Contrasts(values[:, which.ravel() == number].ravel(), (*own, *children), (_named(depth), _named(depth - 1)))
        )
    return found


def _own(tree: Tree, plan: Plan, depth: int) -> Laws:
    """The noise of a node with children; none in the exact number of rows."""
    return ((noises_of(tree.layers[depth - 1], depth, plan)["inner"][1], 1),) if depth else ()


def between_measurements(tree: Tree, plan: Plan, noisy: NoisyCounts) -> Groups:
    """The first measurement less the second, the third less the fourth, …"""
    pairs = plan.measurements // 2
    if not pairs:
        return {}
    return {
        f"layer {depth}, one measurement against another": _apart(layer, depth, plan, counts[: 2 * pairs])
        for depth, (layer, counts) in enumerate(zip(tree.layers, noisy.layers, strict=True), start=1)
    }


def _apart(layer: Layer, depth: int, plan: Plan, counts: np.ndarray) -> list[Contrasts]:
    apart, of = counts[::2] - counts[1::2], noises_of(layer, depth, plan)
    kinds = kinds_of_nodes(layer).items()
    return [Contrasts(apart[:, nodes].ravel(), ((of[kind][1], 2),), (_named(depth),)) for kind, nodes in kinds]
