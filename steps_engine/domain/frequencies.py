"""How frequent categories are thought to be where nothing is known of them."""

from __future__ import annotations

import numpy as np


def zipf(size: int) -> np.ndarray:
    """Shares of so many categories, as 1, ½, ⅓, …

    >>> zipf(3).round(3).tolist()
    [0.545, 0.273, 0.182]
    """
    frequency = 1 / np.arange(1.0, size + 1)
    shares: np.ndarray = frequency / frequency.sum()
    return shares
