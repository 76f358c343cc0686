"""SPECKS (Bowen, Liu and Su): how far a classifier's scores of original and synthetic records lie apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from schemas.errors import SpecError
from steps_engine.evaluation.classifiers import Classifier, find_classifier, resolve
from steps_engine.evaluation.coded import Coded, Stack, must_compare, resample, stack
from steps_engine.evaluation.measures import Measure, Options
from steps_engine.evaluation.section import Distributions, Headline, Listing, Section, figure
from steps_engine.noise import Randomness, permutation

BINS = 50  # of the scores' histogram
DIGITS = 12  # scores that agree to so many decimals are one score


@dataclass(frozen=True)
class Specks:
    """Means over the synthetic sets. A ratio near 1 says: as close as another sample of the same people."""

    classifier: str
    cross_fit: int
    ks: float
    null_ks: float | None
    ratio: float | None
    pmse: float
    null_pmse: float | None
    pmse_ratio: float | None
    converged: bool
    separated: bool
    ks_of_sets: tuple[float, ...]
    histogram: dict[str, tuple[float, ...]]

    def figures(self) -> dict[str, float | None]:
        return {name: value for name, value in asdict(self).items() if value is None or isinstance(value, int | float)}

    def details(self) -> dict[str, dict[str, Any]]:
        rest = asdict(self)
        return {"specks": {name: rest[name] for name in ("classifier", "ks_of_sets", "histogram")}}

    def section(self) -> Section:
        return Section(
            title="Can a classifier tell the records apart? (SPECKS)",
            headlines=(
                Headline(self.ks, f"SPECKS: KS distance; {figure(self.null_ks)} for an honest sample"),
                Headline(self.pmse_ratio, "pMSE ratio; 1 for an honest sample", digits=1),
            ),
            text=self._explained(),
            picture=Distributions(self.histogram, "score: estimated probability of being synthetic", "share of the records"),
            listings=(Listing(("set", *(str(i + 1) for i in range(len(self.ks_of_sets)))), (("KS", *self.ks_of_sets),)),),
            notes=self._cautions(),
        )

    def _explained(self) -> str:
        way = f"in {self.cross_fit} cross-fitting folds" if self.cross_fit else "in-sample"
        text = (
            f"The classifier {self.classifier} was fitted {way}. KS is the largest difference of the two score distributions: "
            "0 when they cannot be told apart, 1 when every record gives itself away."
        )
        if self.null_ks is None:
            return text
        null, ratio = figure(self.null_ks), figure(self.ratio, 2)
        return f"{text} Bootstraps of the original of this size have {null}, so the ratio is {ratio}."

    def _cautions(self) -> str:
        null = "" if self.null_pmse is None else f", null value {figure(self.null_pmse, 5)}"
        fits = "All fits converged." if self.converged else "At least one fit did not converge: read the figures with care."
        sure = "Some records are told apart with certainty (separation); a tiny ridge keeps the fit finite."
        return f"pMSE {figure(self.pmse, 5)}{null}. {fits}{' ' + sure if self.separated else ''}"


@dataclass(frozen=True)
class _Fit:
    """Scores with the records of either kind that have them."""

    score: np.ndarray
    original: np.ndarray
    synthetic: np.ndarray
    converged: bool
    separated: bool


def specks(
    original: Coded,
    synthetics: Sequence[Coded],
    randomness: Randomness,
    classifier: str = "auto",
    cross_fit: int = 0,
    null: int = 10,
) -> Specks:
    """Fit on the stacked records (in-sample as in the paper, or cross-fitted in `cross_fit` folds), compare the scores.

    null_ks is what two honest samples give: the mean over `null` bootstraps of the original, of a synthetic set's size.
    """
    must_compare(original, synthetics)
    if cross_fit == 1 or cross_fit < 0 or null < 0:
        raise SpecError(f"cross_fit is 0 (in-sample) or at least 2 folds, null at least 0; got {cross_fit} and {null}")
    name = resolve(classifier, original.sizes)
    learn = find_classifier(name)
    fits = [_fit(stack(original, synthetic), learn, cross_fit, randomness) for synthetic in synthetics]
    size = round(np.mean([synthetic.total for synthetic in synthetics]))
    nulls = [_fit(stack(original, resample(original, size, randomness)), learn, cross_fit, randomness) for _ in range(null)]
    distances = [_ks(fit) for fit in fits]
    ks, pmse = float(np.mean(distances)), float(np.mean([_pmse(fit) for fit in fits]))
    null_ks, null_pmse = (float(np.mean([f(fit) for fit in nulls])) if nulls else None for f in (_ks, _pmse))
    return Specks(
        classifier=name,
        cross_fit=cross_fit,
        ks=ks,
        null_ks=null_ks,
        ratio=ks / null_ks if null_ks else None,
        pmse=pmse,
        null_pmse=null_pmse,
        pmse_ratio=pmse / null_pmse if null_pmse else None,
        converged=all(fit.converged for fit in fits + nulls),
        separated=any(fit.separated for fit in fits),
        ks_of_sets=tuple(distances),
        histogram=_histogram(fits),
    )


def _fit(rows: Stack, learn: Classifier, folds: int, randomness: Randomness) -> _Fit:
    if folds:
        return _cross_fit(rows, learn, folds, randomness)
    scores = learn(rows.codes, rows.sizes, rows.original, rows.synthetic)
    return _Fit(scores.probability, rows.original, rows.synthetic, scores.converged, scores.separated)


def _cross_fit(rows: Stack, learn: Classifier, folds: int, randomness: Randomness) -> _Fit:
    """Each record is scored by a fit on the other folds' records."""
    if min(rows.original.sum(), rows.synthetic.sum()) < folds:
        raise SpecError(f"{folds} folds need at least {folds} records in the original and in each synthetic set")
    zeros, ones = (_deal(count, folds, randomness) for count in (rows.original, rows.synthetic))
    all_scores = [
        learn(rows.codes, rows.sizes, rows.original - zeros[fold], rows.synthetic - ones[fold]) for fold in range(folds)
    ]
    return _Fit(
        np.concatenate([scores.probability for scores in all_scores]),
        zeros.ravel(),
        ones.ravel(),
        all(scores.converged for scores in all_scores),
        any(scores.separated for scores in all_scores),
    )


def _deal(count: np.ndarray, folds: int, randomness: Randomness) -> np.ndarray:
    """Records of each distinct row in each fold: the records are shuffled and dealt in turn."""
    row = np.repeat(np.arange(len(count)), count.astype(np.int64))
    fold = permutation(len(row), randomness) % folds
    return np.bincount(fold * len(count) + row, minlength=folds * len(count)).reshape(folds, -1).astype(float)


def _ks(fit: _Fit) -> float:
    """sup |F_original − F_synthetic| over the scores."""
    values, place = np.unique(np.round(fit.score, DIGITS), return_inverse=True)
    below = [np.cumsum(np.bincount(place, count, len(values))) for count in (fit.original, fit.synthetic)]
    return float(np.abs(below[0] / below[0][-1] - below[1] / below[1][-1]).max())


def _pmse(fit: _Fit) -> float:
    """Mean squared distance of the scores from the synthetic records' share (Woo et al. 2009, Snoke et al. 2018)."""
    weight = fit.original + fit.synthetic
    share = fit.synthetic.sum() / weight.sum()
    return float(weight @ (fit.score - share) ** 2 / weight.sum())


def _histogram(fits: Sequence[_Fit]) -> dict[str, tuple[float, ...]]:
    """Shares of the records in equal bins of the score from 0 to 1, mean over sets."""
    shares = {}
    for name in ("original", "synthetic"):
        counts = [np.histogram(fit.score, BINS, (0.0, 1.0), weights=getattr(fit, name))[0] for fit in fits]
        shares[name] = tuple(np.mean([count / count.sum() for count in counts], axis=0).round(6).tolist())
    return shares


def _asked(original: Coded, synthetics: Sequence[Coded], randomness: Randomness, options: Options) -> Specks:
    return specks(original, synthetics, randomness, options.classifier, options.cross_fit, options.null)


ENTRY = Measure("specks", 1, _asked)
