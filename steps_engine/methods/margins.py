"""Margins that pages and listings show: the numbers of `steps table`, by everything that was measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from schemas.spec.domain import Domain
from steps_engine.domain.blocks import one_way_counts
from steps_engine.domain.columns import Column, columns_of
from steps_engine.methods.tabulated import Asked, Tabulated
from steps_engine.methods.views import Margin

ESTIMATED_BY = "Counts by least squares over everything that was measured,"


def margins_of(
    domain: Domain, tabulated: Callable[[Asked], Tabulated | str], sets: Sequence[Any]
) -> tuple[tuple[Margin, ...], tuple[Margin, ...]]:
    """Of every attribute, and of what follows from one, as far as the counts tell; `sets` are tables, in memory or not."""
    told = [(column, tabulated(_alone(column))) for column in columns_of(domain)]
    synthetic = synthetic_counts(sets, domain)
    return apart(
        [_margin(column, found, synthetic[column.source]) for column, found in told if isinstance(found, Tabulated)], domain
    )


def synthetic_counts(sets: Sequence[Any], domain: Domain) -> list[np.ndarray]:
    """Of every attribute how many rows each category has, in the mean of the sets."""
    mean = np.mean([np.concatenate(one_way_counts(each, domain)) for each in sets], axis=0)
    return np.split(mean, np.cumsum(domain.sizes)[:-1])


def _alone(column: Column) -> Asked:
    return Asked((column.source,), {}, {column.source: tuple(column.codes.tolist())})


def apart(found: Sequence[Margin], domain: Domain) -> tuple[tuple[Margin, ...], tuple[Margin, ...]]:
    """Margins of attributes, and of what is derived."""
    own = tuple(margin for margin in found if margin.attribute in domain.names)
    return own, tuple(margin for margin in found if margin.attribute not in domain.names)


def _margin(column: Column, found: Tabulated, synthetic: np.ndarray) -> Margin:
    labels = column.attribute.labels
    rows = np.bincount(column.codes, weights=synthetic, minlength=len(labels))
    return Margin(column.attribute.name, labels, found.estimate, np.sqrt(found.variance), rows, found.half)
