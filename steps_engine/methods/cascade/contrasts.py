"""What a cascade's noisy histograms say twice: margins that two trees tell, the number of rows, several measurements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from schemas.plan import Plan
from steps_engine.accounting.mechanisms import CountNoise, noise_of
from steps_engine.inference.noise_test import Contrasts, Groups, Laws, NoiseTest, noise_test
from steps_engine.methods.cascade.attribute_tree import AttributeTree


def tested(plan: Plan, trees: Sequence[AttributeTree], noisy: Sequence[np.ndarray], total: int | None) -> NoiseTest:
    """`noisy` has measurements × leaves × categories of each tree; `total` is the exact number of rows where that is known."""
    histograms = [_Histograms(plan, *each) for each in zip(trees, noisy, strict=True)]
    names = [each.name for each in histograms]
    return noise_test([_between_trees(histograms, total), _between_measurements(histograms)], names)


class _Histograms:
    """One attribute's noisy histograms, and the noise of every leaf."""

    def __init__(self, plan: Plan, tree: AttributeTree, noisy: np.ndarray) -> None:
        self.tree, self.noisy, self.name = tree, noisy, tree.domain.names[tree.attribute]
        place = ("count", self.name, plan.served[0])
        draws = [draw for draw in plan.draws if (draw.kind, draw.tree, draw.set) == place]
        self.noises: dict[int, CountNoise] = {draw.layer: noise_of(draw) for draw in draws}

    def summed(self, cells: np.ndarray) -> tuple[np.ndarray, Laws]:
        """Of every measurement the sum over these cells, and the noises in it."""
        chosen = cells & self.tree.allowed
        held = np.broadcast_to(self.tree.elections[:, None], chosen.shape)[chosen]
        times = {held_: int((held == held_).sum()) for held_ in self.noises}
        return self.noisy[:, chosen].sum(axis=1), tuple((self.noises[h], n) for h, n in times.items() if n)

    def margin(self, attribute: int) -> Iterator[tuple[np.ndarray, Laws]]:
        """Category by category, of its own attribute or of one that its root splits on."""
        fixed = self.tree.branches()[:, attribute]
        for category in range(self.tree.sizes[attribute]):
            own = attribute == self.tree.attribute
            cells = np.zeros(self.tree.allowed.shape, dtype=bool)
            cells[(slice(None), category) if own else (fixed == category,)] = True
            yield self.summed(cells)

    def splits_first_on(self, attribute: int) -> bool:
        return bool(self.tree.layers) and attribute in self.tree.splits[int(self.tree.layers[0][0])]


def _between_trees(histograms: list[_Histograms], total: int | None) -> Groups:
    """Every tree is compared once: contrasts are independent. With one whose attribute it splits on first, or by rows."""
    found, left = Groups(), list(histograms)
    for each in reversed(histograms):
        other = next((o for o in left if o is not each and each.splits_first_on(o.tree.attribute)), None)
        if each in left and other is not None:
            left = [tree for tree in left if tree is not each and tree is not other]
            told = zip(each.margin(other.tree.attribute), other.margin(other.tree.attribute), strict=True)
            named = f"{other.name}, by its own tree and that of {each.name}"
            found[named] = [_less(a, b, (each.name, other.name)) for a, b in told]
    everything = {each.name: each.summed(each.tree.allowed) for each in left}
    names = list(everything)
    if total is not None:
        known = (np.array(total), ())
        return found | {f"rows, by the tree of {name}": [_less(everything[name], known, (name,))] for name in names}
    pairs = zip(names[::2], names[1::2], strict=False)
    return found | {f"rows, by the trees of {a} and {b}": [_less(everything[a], everything[b], (a, b))] for a, b in pairs}


def _less(a: tuple[np.ndarray, Laws], b: tuple[np.ndarray, Laws], of: tuple[str, ...]) -> Contrasts:
    laws = (*a[1], *b[1])
    return Contrasts(a[0] - b[0] if laws else np.zeros(0), laws, of)


def _between_measurements(histograms: list[_Histograms]) -> Groups:
    """The first measurement less the second, the third less the fourth, …"""
    pairs = len(histograms[0].noisy) // 2
    return {f"{each.name}, one measurement against another": list(_apart(each, pairs)) for each in histograms if pairs}


def _apart(each: _Histograms, pairs: int) -> Iterator[Contrasts]:
    apart = each.noisy[: 2 * pairs : 2] - each.noisy[1 : 2 * pairs : 2]
    for held, noise in each.noises.items():
        cells = (each.tree.elections == held)[:, None] & each.tree.allowed
        yield Contrasts(apart[:, cells].ravel(), ((noise, 2),), (each.name,))
