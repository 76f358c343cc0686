"""One table that agrees with all trees: the walk uses each histogram for one attribute; here all of them speak at once.

Weights w of the rows minimise  Σ_cells (Σw − y)²/(2V) + τ·KL(w ‖ 1)  over the cells of all trees: y is a noisy
count, projected, V its variance. At the minimum log w = Σ θ_cell with θ = (y − Σw)/(τV), which Newton steps, one tree at a
time, find. Post-processing: it reads noisy counts and public variances.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

TRUST = 1 / 32  # τ: the walk counts as a sample of this part of its rows, since it knows no more than the histograms
SWEEPS = 20
LONGEST_STEP = 0.5  # of log w in one sweep
LARGEST_CHANGE = 20.0  # of w, up or down: a cell that the walk left almost empty cannot blow up


Arrays = Sequence[np.ndarray]


def reweight(cells: Arrays, noisy: Arrays, variance: Arrays) -> np.ndarray:
    """Weights of the rows, of the same total. `cells[t]` is each row's cell in tree t, `noisy[t]` the counts y."""
    weight, angles = np.ones(len(cells[0])), [np.zeros(len(y)) for y in noisy]
    for _ in range(SWEEPS):
        for cell, y, v, angle in zip(cells, noisy, variance, angles, strict=True):
            inside = np.bincount(cell, weights=weight, minlength=len(y))
            strength = 1 / (TRUST * v)
            step = np.clip(((y - inside) * strength - angle) / (1 + inside * strength), -LONGEST_STEP, LONGEST_STEP)
            angle += step
            weight *= np.exp(step).take(cell)
        np.clip(weight, 1 / LARGEST_CHANGE, LARGEST_CHANGE, out=weight)
    weight *= len(weight) / max(weight.sum(), 1e-300)
    return weight
