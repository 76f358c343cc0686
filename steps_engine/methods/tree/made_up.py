"""How a flat table or a tree does on a table that is made up, by which `auto` predicts how it would do.

Nothing is known of the records but the domain and how many there are, so that the made-up ones are the plainest: categories as
frequent as Zipf's, 1, ½, ⅓, …, and attributes independent. Their counts get noise by the quantiles of its law, are made
consistent and projected, or taken for what is likely, as those of a release are, and small margins are compared. All of it is
public, and always the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate, combinations

import numpy as np

from steps_engine.accounting.mechanisms import CountNoise
from steps_engine.domain.frequencies import zipf
from steps_engine.inference.likely_cells import likely_cells
from steps_engine.noise import Randomness, SeededRandomness, uniform

MOST_CELLS = 2**20  # a larger table stands for itself by fewer attributes, with as many rows a cell
CELLS_IN_ALL = 2**11  # smaller tables are made up several times, so that chance decides little
MOST_MARGINS = 20  # of each number of attributes that are compared, evenly spaced
REACH, STEPS = 20, 2**11  # how many lengths of noise from nought, and in how many steps either way


@dataclass(frozen=True)
class Layers:
    """The sizes of the attributes of every layer, the last being the cells', and the noise of each layer's counts."""

    sizes: tuple[tuple[int, ...], ...]
    noises: tuple[CountNoise, ...]
    likely: bool = False  # whether cells hold what is likely, or are projected

    def nodes(self) -> list[int]:
        return list(accumulate((math.prod(sizes) for sizes in self.sizes), lambda above, below: above * below))

    def smaller(self) -> Layers:
        """As many cells as can be held: the last layer leaves out attributes, though never all, and as little as will do.

        A table of fewer attributes is less concentrated, so that noise spoils more of it: one far smaller says too much.
        """
        above, last = math.prod(map(math.prod, self.sizes[:-1])), list(self.sizes[-1])
        while len(last) > 1 and (excess := above * math.prod(last) / MOST_CELLS) > 1:
            last.remove(min((size for size in last if size >= excess), default=max(last)))
        return replace(self, sizes=(*self.sizes[:-1], tuple(last)))


def distances(layers: Layers, rows_per_cell: float, known: bool) -> tuple[float, float]:
    """Mean distance of two- and of three-way margins; `known`: the number of rows is published as it is."""
    layers, randomness = layers.smaller(), SeededRandomness("a table that is made up")
    sizes = [size for of_layer in layers.sizes for size in of_layer]
    expected = reduce(np.multiply.outer, [zipf(size) for size in sizes]).ravel() * rows_per_cell * math.prod(sizes)
    found = []
    for _ in range(max(1, CELLS_IN_ALL // len(expected))):
        exact = np.floor(expected + uniform(len(expected), randomness))
        made = _made(layers, exact, known, randomness)
        compared = (exact / max(exact.sum(), 1.0) - made / max(made.sum(), 1.0)).reshape(sizes)
        found.append((_distance(compared, 2), _distance(compared, 3)))
    two, three = np.mean(found, axis=0).tolist()
    return two, three


def _made(layers: Layers, exact: np.ndarray, known: bool, randomness: Randomness) -> np.ndarray:
    """Counts of cells after noise, least squares (every family of a layer is alike) and projection, top-down, or likely."""
    nodes = layers.nodes()
    noisy = [
        exact.reshape(width, -1).sum(axis=1) + _spread(noise, width, randomness)
        for width, noise in zip(nodes, layers.noises, strict=True)
    ]
    best, left = [noisy[-1]], layers.noises[-1].variance
    for width, below, y, noise in zip(nodes[-2::-1], nodes[:0:-1], noisy[-2::-1], layers.noises[-2::-1], strict=True):
        left *= below / width
        own = left / (left + noise.variance) if left else 0.0
        best.insert(0, own * y + (1 - own) * best[0].reshape(width, -1).sum(axis=1))
        left = own * noise.variance
    estimate = total = np.array([exact.sum() if known else max(best[0].sum(), 0.0)])
    for z in best:
        families = z.reshape(len(estimate), -1)
        estimate = (families + (estimate - families.sum(axis=1))[:, None] / families.shape[1]).ravel()
        total = projected(estimate.reshape(len(total), -1), total).ravel()
    if layers.likely:
        (sizes,), (noise,) = layers.sizes, layers.noises
        cells, strides = np.arange(len(total)), [math.prod(sizes[j + 1 :]) for j in range(len(sizes))]
        return likely_cells(noisy[0].astype(np.int64), noise, total, lambda j: cells // strides[j] % sizes[j], sizes)
    return total


def _spread(noise: CountNoise, size: int, randomness: Randomness) -> np.ndarray:
    """Quantiles of a law at so many places."""
    step = max(1, math.ceil(REACH * noise.length / STEPS))
    values = np.arange(-STEPS, STEPS + 1) * step
    below = noise.chance_below(values[1:] - (step - 1) // 2)
    found: np.ndarray = values[np.searchsorted(below, uniform(size, randomness), side="right")]
    return found


def projected(values: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """The nearest rows with x ≥ 0 and Σx = total: max(h − τ, 0), τ of as many of the largest as stay above it."""
    falling = -np.sort(-values, axis=1)
    excess = (np.cumsum(falling, axis=1) - totals[:, None]) / np.arange(1, values.shape[1] + 1)
    kept = np.maximum((falling > excess).sum(axis=1), 1)
    nearest: np.ndarray = np.maximum(values - excess[np.arange(len(values)), kept - 1][:, None], 0.0)
    return nearest


def _distance(compared: np.ndarray, ways: int) -> float:
    axes = [axis for axis, size in enumerate(compared.shape) if size > 1]
    every: Sequence[tuple[int, ...]] = list(combinations(axes, min(ways, len(axes))))
    chosen = every[:: -(-len(every) // MOST_MARGINS)]
    others = (tuple(axis for axis in range(compared.ndim) if axis not in of) for of in chosen)
    return float(np.mean([np.abs(compared.sum(axis=rest)).sum() / 2 for rest in others]))
