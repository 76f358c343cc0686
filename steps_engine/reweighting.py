"""One table that agrees with all trees: the walk uses each histogram for one attribute; here all of them speak at once.

Weights w of the distinct rows minimise  Σ_cells (Σw − y)²/(2V) + τ·KL(w ‖ walk)  over the cells of all trees: y is a noisy
count, V its variance. At the minimum log(w/walk) = Σ θ_cell with θ = (y − Σw)/(τV), which Newton steps, one tree at a
time, find. Post-processing: it reads noisy counts and public variances.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

TRUST = 1 / 32  # τ: the walk counts as a sample of this part of its rows, since it knows no more than the histograms
SWEEPS = 20
LONGEST_STEP, LARGEST_CHANGE = 0.5, 3.0  # of log(w/walk): a cell that the walk left almost empty cannot blow up


Arrays = Sequence[np.ndarray]


def reweight(count: np.ndarray, cells: Arrays, noisy: Arrays, variance: Arrays) -> np.ndarray:
    """New weights of distinct rows, of the same total. `cells[t]` is each row's cell in tree t, `noisy[t]` the counts y."""
    change, angles = np.zeros(len(count)), [np.zeros(len(y)) for y in noisy]
    weight = count.astype(float)
    for _ in range(SWEEPS):
        for cell, y, v, angle in zip(cells, noisy, variance, angles, strict=True):
            inside = np.bincount(cell, weights=weight, minlength=len(y))
            strength = 1 / (TRUST * v)
            step = np.clip(((y - inside) * strength - angle) / (1 + inside * strength), -LONGEST_STEP, LONGEST_STEP)
            angle += step
            change = np.clip(change + step[cell], -LARGEST_CHANGE, LARGEST_CHANGE)
            weight = count * np.exp(change)
    return weight * (count.sum() / max(weight.sum(), 1e-300))
