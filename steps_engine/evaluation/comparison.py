"""The same regression on the original and on m synthetic sets: do the intervals agree?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from schemas.errors import SpecError
from steps_engine.evaluation.combining import Sets, combine, interval, overlap
from steps_engine.evaluation.regression import Model, fit, with_same_categories
from steps_engine.evaluation.section import Headline, Interval, Intervals, Listing, Section, figure

if TYPE_CHECKING:
    import pandas as pd

FAR = 10.0  # log odds beyond which a picture ends


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

    def figures(self) -> dict[str, float | None]:
        return {name: getattr(self, name) for name in ("mean_overlap", "mean_overlap_without_separated")}

    def details(self) -> dict[str, dict[str, Any]]:
        return {"regression": asdict(self)}

    def section(self) -> Section:
        drawn = [c for c in self.coefficients if c.original or c.synthetic]
        names = [c.name + (" (separated)" if c.separated else "") for c in drawn]
        rows = tuple((n, c.original, c.synthetic, not c.separated) for n, c in zip(names, drawn, strict=True))
        return Section(
            title=f"Regression: {self.model}",
            headlines=(Headline(self.mean_overlap, "mean overlap of 95% intervals", digits=2),),
            text=self._explained(),
            picture=Intervals(
                rows, "coefficient, 95% interval (clipped to the picture)", FAR if self.kind == "logistic" else None
            ),
            listings=(_listed(self.coefficients),),
        )

    def _explained(self) -> str:
        several = "s" if len(self.coefficients) > 1 else ""
        sentences = [
            f"{self.kind.capitalize()}, {len(self.coefficients)} coefficient{several}, sets combined as {self.sets}.",
            f"Mean overlap of the 95% intervals {figure(self.mean_overlap)}; without separated coefficients "
            f"{figure(self.mean_overlap_without_separated)}.",
        ]
        if not self.between_variance_known:
            sentences.append("With one set the variance between sets is unknown: its intervals are too narrow.")
        if not self.converged:
            sentences.append("At least one fit did not converge.")
        return " ".join(sentences)


def _listed(coefficients: Sequence[Coefficient]) -> Listing:
    rows = [
        (c.name, _shown(c.original), _shown(c.synthetic), c.overlap, "separated" if c.separated else "") for c in coefficients
    ]
    return Listing(("coefficient", "original", "synthetic", "overlap", ""), tuple(rows), title="All coefficients")


def _shown(found: Interval | None) -> str:
    return f"{figure(found.estimate)} [{figure(found.low)}, {figure(found.high)}]" if found else "not estimable"


def compare(
    model: Model,
    original: pd.DataFrame,
    synthetics: Sequence[pd.DataFrame],
    sets: Sets = "split",
    sampling: np.ndarray | None = None,
    weight: np.ndarray | None = None,
    inflation: float = 1.0,
    rows_per_person: int = 1,
) -> Comparison:
    """Fit on every table, combine the synthetic ones, and overlap the intervals (Karr et al. 2006).

    `weight` is that of the original's rows; `inflation` what it and several rows of a person make of the variances within
    synthetic sets. Of the original's variance such rows make as much, at most: like is compared with like.
    """
    if not synthetics:
        raise SpecError("no synthetic set was given; name at least one to compare with the original")
    first, *others = with_same_categories(model, [original, *synthetics])
    reference, fits = fit(model, first, weight), [fit(model, frame) for frame in others]
    combined = combine(
        np.array([estimates.value for estimates in fits]),
        inflation * np.array([estimates.variance for estimates in fits]),
        sets,
        sampling,
    )
    # Linear fits have residual degrees of freedom; the sets' combined ones cannot exceed the smallest of them.
    freedom = np.minimum(combined.freedom, min(estimates.freedom for estimates in fits))
    ours = interval(reference.value, rows_per_person * reference.variance, reference.freedom)
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
