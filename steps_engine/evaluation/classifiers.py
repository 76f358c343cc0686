"""Classifiers that tell synthetic from original records: (codes, sizes, zeros, ones) → Scores of every distinct row.

`zeros` and `ones` count the original and the synthetic records on a row. A row with neither is scored, not learnt from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from schemas.errors import SpecError
from steps_engine.evaluation.logistic import MOST_COLUMNS, Scores, columns, design, fit_scores

Classifier = Callable[[np.ndarray, Sequence[int], np.ndarray, np.ndarray], Scores]
SMALLEST_LEAF = 0.001  # of all records: a full-grown tree would only list the cells


def resolve(name: str, sizes: Sequence[int]) -> str:
    """What `auto` stands for on this domain: the richest classifier that can be fitted."""
    fits = {
        "logistic_interactions": columns(sizes, interactions=True) <= MOST_COLUMNS,
        "logistic": columns(sizes, interactions=False) <= MOST_COLUMNS,
        "cart": True,
    }
    if name == "auto":
        return next(known for known, possible in fits.items() if possible)
    if not fits.get(name, True):
        width = columns(sizes, interactions=name == "logistic_interactions")
        raise SpecError(
            f"classifier {name!r} would need {width:,} columns on this domain; at most {MOST_COLUMNS:,} are fitted. "
            "Choose auto, or another classifier."
        )
    return name


def find_classifier(name: str) -> Classifier:
    """The classifier of that name: ours, or a scikit-learn class such as GaussianNB."""
    if name in ("logistic", "logistic_interactions"):
        return partial(_logistic, interactions=name == "logistic_interactions")
    if name == "cart":
        from sklearn.tree import DecisionTreeClassifier

        return partial(_learn, partial(DecisionTreeClassifier, min_weight_fraction_leaf=SMALLEST_LEAF))
    return partial(_learn, _listed(name))


def _logistic(codes: np.ndarray, sizes: Sequence[int], zeros: np.ndarray, ones: np.ndarray, interactions: bool) -> Scores:
    return fit_scores(design(codes, sizes, interactions), zeros, ones)


def _listed(name: str) -> Callable[[], Any]:
    """A class from scikit-learn's own list: a name is looked up, nothing is imported because a spec says so."""
    from sklearn.utils import all_estimators

    known: dict[str, Callable[[], Any]] = dict(all_estimators(type_filter="classifier"))
    if name not in known or not hasattr(known[name], "predict_proba"):
        raise SpecError(
            f"there is no classifier {name!r} with probabilities; use auto, logistic, logistic_interactions, cart, "
            "or the name of a scikit-learn classifier such as RandomForestClassifier"
        )
    return known[name]


def _learn(make: Callable[[], Any], codes: np.ndarray, sizes: Sequence[int], zeros: np.ndarray, ones: np.ndarray) -> Scores:
    """Any scikit-learn classifier on one column per category, weighted where it can be, repeated where it cannot."""
    from sklearn.utils.validation import has_fit_parameter

    x = _one_hot(codes, sizes)
    try:
        model = make()
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
        rows = np.concatenate([np.flatnonzero(zeros), np.flatnonzero(ones)])
        label = np.repeat([0, 1], [np.count_nonzero(zeros), np.count_nonzero(ones)])
        weight = np.concatenate([zeros[zeros > 0], ones[ones > 0]])
        if has_fit_parameter(model, "sample_weight"):
            model.fit(x[rows], label, sample_weight=weight)
        else:
            times = weight.astype(np.int64)
            model.fit(x[np.repeat(rows, times)], np.repeat(label, times))
        probability = model.predict_proba(x)[:, 1]
    except (TypeError, ValueError, AttributeError) as problem:
        # The library's message may quote the data: only its kind is passed on.
        raise SpecError(
            f"this classifier cannot be fitted here ({type(problem).__name__}); choose logistic, cart or another one"
        ) from None
    return Scores(probability, _finished(model), bool(probability.min() < 1e-5 or probability.max() > 1 - 1e-5))


def _one_hot(codes: np.ndarray, sizes: Sequence[int]) -> np.ndarray | sparse.csr_array:
    first = np.concatenate([[0], np.cumsum(sizes)])
    row, column = np.repeat(np.arange(len(codes)), len(sizes)), (codes + first[:-1]).ravel()
    x = sparse.csr_array((np.ones(len(row), np.float32), (row, column)), shape=(len(codes), first[-1]))
    return x.toarray() if len(codes) * first[-1] <= 5e7 else x


def _finished(model: Any) -> bool:
    """Whether an iterative model stopped before its last iteration."""
    done, most = getattr(model, "n_iter_", None), getattr(model, "max_iter", None)
    return done is None or most is None or most < 0 or bool(np.max(done) < most)
