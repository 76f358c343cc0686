"""What a model sees of an attribute, and the columns that its terms become: the same before data and on synthetic sets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from schemas.errors import SpecError
from schemas.plan import Analysis
from schemas.spec.attributes import Attribute, Named
from schemas.spec.domain import Domain
from steps_engine.analyses.questions import factors_of, model_of, names_in
from steps_engine.domain.values import moments
from steps_engine.evaluation.regression import MOST_COEFFICIENTS, variables
from steps_engine.inference.contrasts import interaction

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Term:
    """The columns of one term of a model over all combinations of its attributes' categories: (categories …) × columns."""

    names: tuple[str, ...]
    columns: tuple[int, ...]
    values: np.ndarray

    def component(self, part: frozenset[str]) -> np.ndarray:
        """What the columns add to their margins along some of the attributes: (combinations of these) × columns."""
        others = tuple(i for i, name in enumerate(self.names) if name not in part)
        table = np.moveaxis(self.values.mean(axis=others), -1, 0)
        return np.stack([interaction(column).ravel() for column in table], axis=1)

    def given(self, kept: frozenset[str], shares: Mapping[str, np.ndarray]) -> np.ndarray:
        """Expected columns given some of the attributes, the others having these shares: (categories of these …) × columns."""
        found = self.values
        for axis in reversed(range(len(self.names))):
            if self.names[axis] not in kept:
                found = np.tensordot(shares[self.names[axis]], found, axes=(0, axis))
        return found


def values_of(analysis: Analysis, attribute: Attribute) -> pd.Series:
    """One per category that is not missing: its label, or of a number that is not said to be C(…) the mean of its bin."""

    import pandas as pd

    if isinstance(attribute, Named) or attribute.name in factors_of(analysis):
        labels = attribute.present_labels
        return pd.Series(pd.Categorical(labels, categories=labels))
    return pd.Series(moments(attribute)[0])


def terms_over(analysis: Analysis, domain: Domain) -> tuple[tuple[str, ...], list[Term]]:
    """The names of all coefficients, and every term's columns over its own attributes; others stay at their first value."""
    import patsy

    _, predictors = variables(model_of(analysis))
    values = {name: values_of(analysis, domain.attributes[domain.index(name)]) for name in predictors}
    info = patsy.dmatrix(analysis.formula.partition("~")[2], _rows(values, {}, 1)).design_info
    if not 0 < len(info.column_names) <= MOST_COEFFICIENTS:
        found = f"{len(info.column_names):,} coefficients"
        raise SpecError(f"formula {analysis.formula!r} has {found}; 1 to {MOST_COEFFICIENTS:,} can be fitted")
    terms = []
    for term, place in ((term, place) for term, place in info.term_slices.items() if place.stop > place.start):
        free = tuple(name for name in predictors if name in names_in(term))
        shape = tuple(len(values[name]) for name in free)
        codes = dict(zip(free, np.indices(shape).reshape(len(free), math.prod(shape)), strict=True))
        columns = tuple(range(place.start, place.stop))
        matrix = patsy.build_design_matrices([info], _rows(values, codes, math.prod(shape)))[0]
        terms.append(Term(free, columns, np.asarray(matrix)[:, list(columns)].reshape(*shape, len(columns))))
    return tuple(info.column_names), terms


def _rows(values: dict[str, pd.Series], codes: dict[str, np.ndarray], rows: int) -> pd.DataFrame:
    import pandas as pd

    first = np.zeros(rows, np.int64)
    taken = {name: value.take(codes.get(name, first)).reset_index(drop=True) for name, value in values.items()}
    return pd.DataFrame(taken, index=range(rows))
