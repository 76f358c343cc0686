"""Speed of SPECKS' logistic fit, as ratios measured in one run: scikit-learn and statsmodels on the stacked records.

Run with `python -m benchmarks.specks [FILE.parquet]` (coded categories from 0; without a file the stand-in is generated).
CPU seconds of the process: ours median of five from codes to KS distance, scikit-learn median of three, statsmodels once;
theirs without the time to build the design. 2 × 44,821 records, 501 columns and the intercept.
"""

from __future__ import annotations

import statistics
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd

from steps_engine.evaluation.coded import Coded, resample
from steps_engine.evaluation.logistic import design
from steps_engine.evaluation.measures.specks import specks
from steps_engine.noise import SeededRandomness, permutation
from steps_engine.studies.standin import ROWS, TRAITS, youth_voter


def measure(file: str | None = None, slowest: bool = True) -> dict[str, float]:
    """CPU seconds, KS distances and ratios, on a bootstrap of the original and on independent margins."""
    randomness = SeededRandomness("specks benchmark")
    original = _read(file) if file else _standin(randomness)
    apart = np.column_stack([column[permutation(len(column), randomness)] for column in original.codes.T])
    figures = _case("bootstrap", original, _repeated(resample(original, original.total, randomness)), slowest)
    figures |= _case("independent", original, Coded(original.names, original.sizes, apart), slowest=False)
    tracemalloc.start()
    _ours(original, Coded(original.names, original.sizes, apart))
    return figures | {"peak MiB": tracemalloc.get_traced_memory()[1] / 2**20}


def _case(name: str, original: Coded, synthetic: Coded, slowest: bool) -> dict[str, float]:
    ours, ks = _timed(lambda: _ours(original, synthetic), 5)
    x = design(np.concatenate([original.codes, synthetic.codes]), original.sizes, interactions=True)[:, 1:]
    y = np.repeat([0, 1], [original.total, synthetic.total])
    figures = {f"{name}: ours s": ours, f"{name}: ours KS": ks}
    rivals = {"sklearn lbfgs tol 1e-4": (1e-4, 3), "sklearn lbfgs tol 1e-6": (1e-6, 1)}
    for rival, (tolerance, repeats) in rivals.items():
        seconds, their_ks = _timed(lambda tolerance=tolerance: _sklearn(x, y, tolerance), repeats)
        figures |= {f"{name}: {rival} s": seconds, f"{name}: {rival} KS": their_ks, f"{name}: {rival} / ours": seconds / ours}
    if slowest:
        dense = _independent(x)
        seconds, their_ks = _timed(lambda: _statsmodels(dense, y), 1)
        figures |= {f"{name}: statsmodels s": seconds, f"{name}: statsmodels KS": their_ks}
        figures |= {f"{name}: statsmodels / ours": seconds / ours}
    return figures


def _ours(original: Coded, synthetic: Coded) -> float:
    return specks(original, [synthetic], SeededRandomness(0), "logistic_interactions", null=0).ks


def _sklearn(x, y: np.ndarray, tolerance: float) -> float:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=np.inf, solver="lbfgs", tol=tolerance, max_iter=10_000).fit(x, y)
    return _ks(model.predict_proba(x)[:, 1], y)


def _independent(x) -> np.ndarray:
    """The intercept and the columns that are no combination of others: statsmodels refuses a singular design."""
    from scipy.linalg import qr

    dense = np.column_stack([np.ones(x.shape[0]), x.toarray()])
    _, triangle, order = qr(dense.T @ dense, pivoting=True)
    return dense[:, order[np.abs(triangle.diagonal()) > 1e-6]]


def _statsmodels(x: np.ndarray, y: np.ndarray) -> float:
    from statsmodels.api import Logit

    return _ks(Logit(y, x).fit(disp=False, maxiter=100).predict(), y)


def _ks(score: np.ndarray, y: np.ndarray) -> float:
    from scipy.stats import ks_2samp

    score = score.round(12)
    return float(ks_2samp(score[y == 0], score[y == 1], method="asymp").statistic)


def _timed(work: Callable[[], float], repeats: int) -> tuple[float, float]:
    seconds = []
    for _ in range(repeats):
        started = time.process_time()
        value = work()
        seconds.append(time.process_time() - started)
    return statistics.median(seconds), value


def _standin(randomness) -> Coded:
    frame, categories = youth_voter(ROWS, randomness), {trait.name: trait.categories for trait in TRAITS}
    codes = [pd.Categorical(frame[name], categories=categories[name]).codes for name in frame]
    return Coded(tuple(frame), tuple(len(categories[name]) for name in frame), np.column_stack(codes).astype(np.int32))


def _read(file: str) -> Coded:
    codes = pd.read_parquet(file).astype(np.int32)
    return Coded(tuple(codes), tuple((codes.max() + 1).tolist()), codes.to_numpy())


def _repeated(table: Coded) -> Coded:
    return Coded(table.names, table.sizes, np.repeat(table.codes, table.counts, axis=0))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for figure, value in measure(*sys.argv[1:2]).items():
        print(f"{figure:45s}{value:12.4f}")
