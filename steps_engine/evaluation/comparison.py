"""The same regression on the original and on m synthetic sets: do the intervals agree?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from schemas.errors import SpecError
from steps_engine.evaluation.combining import Sets, combine, interval, overlap
from steps_engine.evaluation.regression import Model, fit, with_same_categories


@dataclass(frozen=True)
class Interval:
    """An estimate within its 95% interval."""

    low: float
    estimate: float
    high: float


@dataclass(frozen=True)
class Coefficient:
    """One coefficient of the original and of the sets combined; None where it cannot be estimated.

    `separated`: the original or a synthetic set bounds it on one side only, so its intervals show no knowledge.
    """

    name: str
    original: Interval | None
    synthetic: Interval | None
    overlap: float | None
    separated: bool


@dataclass(frozen=True)
class Comparison:
    model: str
    kind: str
    sets: str
    m: int
    coefficients: tuple[Coefficient, ...]
    mean_overlap: float | None
    mean_overlap_without_separated: float | None
    converged: bool
    between_variance_known: bool  # False with one set: its interval leaves out the noise of the release


def compare(
    model: Model,
    original: pd.DataFrame,
    synthetics: Sequence[pd.DataFrame],
    sets: Sets = "split",
    sampling: np.ndarray | None = None,
) -> Comparison:
    """Fit on every table, combine the synthetic ones, and overlap the intervals (Karr et al. 2006)."""
    if not synthetics:
        raise SpecError("no synthetic set was given; name at least one to compare with the original")
    reference, *fits = (fit(model, frame) for frame in with_same_categories(model, [original, *synthetics]))
    combined = combine(
        np.array([estimates.value for estimates in fits]),
        np.array([estimates.variance for estimates in fits]),
        sets,
        sampling,
    )
    # Linear fits have residual degrees of freedom; the sets' combined ones cannot exceed the smallest of them.
    freedom = np.minimum(combined.freedom, min(estimates.freedom for estimates in fits))
    ours = interval(reference.value, reference.variance, reference.freedom)
    theirs = interval(combined.value, combined.variance, freedom)
    shares = overlap(*ours, *theirs)
    separated = np.any([estimates.separated for estimates in (reference, *fits)], axis=0)
    rows = zip(
        reference.names, _intervals(reference.value, ours), _intervals(combined.value, theirs), shares, separated, strict=True
    )
    return Comparison(
        model.name,
        model.kind,
        sets,
        len(fits),
        tuple(Coefficient(n, a, b, float(s) if a and b else None, bool(out)) for n, a, b, s, out in rows),
        _mean(shares),
        _mean(shares[~separated]),
        all(estimates.converged for estimates in (reference, *fits)),
        combined.between,
    )


def _intervals(value: np.ndarray, ends: tuple[np.ndarray, np.ndarray]) -> list[Interval | None]:
    rows = np.stack([ends[0], value, ends[1]], axis=1)
    return [
        Interval(*row) if finite else None for row, finite in zip(rows.tolist(), np.isfinite(rows).all(axis=1), strict=True)
    ]


def _mean(shares: np.ndarray) -> float | None:
    known = shares[np.isfinite(shares)]
    return float(known.mean()) if len(known) else None
