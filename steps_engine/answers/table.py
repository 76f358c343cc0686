"""A table that somebody asks of a release: from the noisy counts where they tell, else from the sets, and which it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
import pyarrow as pa

from schemas.errors import SpecError
from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.analyses.honesty import combining_of
from steps_engine.domain.records import codes_of
from steps_engine.evaluation.combining import combine, interval
from steps_engine.methods.registry import method_of
from steps_engine.methods.tabulated import Asked, Tabulated, Tabulating, cells, possible_cells

SILENT = "its method does not say what its counts tell of tables"


@dataclass(frozen=True)
class Quantity:
    """Estimates with standard errors and 95 % intervals."""

    value: np.ndarray
    error: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Table:
    """Counts and shares of every cell that the rules allow, the first attribute slowest."""

    labels: tuple[tuple[str, ...], ...]  # of each cell, one per attribute
    counts: Quantity
    shares: Quantity
    whole: float  # the number of rows that the shares are of
    source: Literal["measured", "sets"]
    why: str  # why the sets were asked; how they were combined
    grouped: tuple[str, ...] = ()  # attributes whose categories were counted in groups


def table_of(
    asked: Asked, domain: Domain, plan: Plan, tables: Mapping[str, pa.Table], sets: Callable[[], Sequence[pa.Table]]
) -> Table:
    """`tables` are what was measured and made consistent; `sets` reads the columns that are asked for, where needed."""
    method = method_of(plan)
    found = method.tabulate(domain, plan, tables, asked) if isinstance(method, Tabulating) else SILENT
    if isinstance(found, str):
        return _from_sets(asked, domain, plan, sets(), found)
    return _as_measured(asked, domain, found)


def _as_measured(asked: Asked, domain: Domain, found: Tabulated) -> Table:
    attributes = [domain.attributes[j] for j in asked.attributes]
    labels = [group_labels(each.labels, group) for each, group in zip(attributes, found.group, strict=True)]
    grouped = tuple(a.name for a, group in zip(attributes, found.group, strict=True) if group[-1] + 1 < a.size)
    there, half = found.possible, found.half
    counts = Quantity(found.estimate, np.sqrt(found.variance), found.estimate - half, found.estimate + half)
    return Table(
        tuple(cell for cell, possible in zip(product(*labels), there, strict=True) if possible),
        _only(counts, there), _only(shares_of(found), there), found.whole, "measured", "", grouped,
    )  # fmt: skip


def group_labels(labels: Sequence[str], group: np.ndarray) -> list[str]:
    """
    >>> group_labels(["18", "19", "20", "21"], np.array([0, 0, 0, 1]))
    ['18 … 20', '21']
    """
    ends = [(int(np.argmax(group == k)), int(np.flatnonzero(group == k)[-1])) for k in range(int(group[-1]) + 1)]
    return [labels[a] if a == b else f"{labels[a]} … {labels[b]}" for a, b in ends]


def _only(quantity: Quantity, there: np.ndarray) -> Quantity:
    return Quantity(*(getattr(quantity, name)[there] for name in ("value", "error", "low", "high")))


def shares_of(found: Tabulated) -> Quantity:
    """Each cell as a part of the sum, with Fieller's interval (1954).

    c − p·n has variance V − 2pX + p²W, as a sum of noises that `factor` standard errors hold 95 % of; so the p for which it
    is no further from 0 hold the true share as often. Where n itself may be 0, they are all shares there are.
    """
    n, k2 = found.whole, found.factor**2
    if n <= 0:
        nothing = np.full(len(found.estimate), np.nan)
        return Quantity(nothing, nothing, np.zeros_like(nothing), np.ones_like(nothing))
    value = found.estimate / n
    variance = found.variance - 2 * value * found.cross + value**2 * found.whole_variance
    a = n**2 - k2 * found.whole_variance
    b = n * found.estimate - k2 * found.cross
    root = np.sqrt(np.maximum(b**2 - a * (found.estimate**2 - k2 * found.variance), 0.0))
    low, high = ((b - root) / a, (b + root) / a) if a > 0 else (np.zeros_like(value), np.ones_like(value))
    return Quantity(value, np.sqrt(np.maximum(variance, 0.0)) / n, np.clip(low, 0, 1), np.clip(high, 0, 1))


def _from_sets(asked: Asked, domain: Domain, plan: Plan, sets: Sequence[pa.Table], why: str) -> Table:
    """Shares and counts in every set, combined as the release's sets are; the chance of who was asked is in the intervals."""
    seen = sorted(asked.all)
    narrow = domain.model_copy(update={"attributes": tuple(domain.attributes[j] for j in seen), "rules": (), "derived": ()})
    size = cells(domain, asked.attributes)
    counts = np.array([_counted(asked, seen, codes_of(records, narrow), domain) for records in sets], dtype=float)
    rows = counts.sum(axis=1, keepdims=True)
    if not rows.all():
        raise SpecError("a set has no row that fulfils the condition; ask for a wider one")
    share = counts / rows
    kept = [np.array(held) for held in asked.kept.values()]
    possible = possible_cells(domain, asked.all)[np.ix_(*(np.arange(domain.sizes[j]) for j in asked.attributes), *kept)]
    there = possible.reshape(size, -1).any(axis=1)
    labels = product(*(domain.attributes[j].labels for j in asked.attributes))
    combined = [combine(share, share * (1 - share) / rows, plan.budget), combine(counts, counts * (1 - share), plan.budget)]
    made = [Quantity(c.value, np.sqrt(c.variance), *interval(c.value, c.variance, c.freedom)) for c in combined]
    shares = Quantity(made[0].value, made[0].error, np.clip(made[0].low, 0, 1), np.clip(made[0].high, 0, 1))
    return Table(
        tuple(cell for cell, allowed in zip(labels, there, strict=True) if allowed),
        _only(made[1], there), _only(shares, there), float(rows.mean()), "sets", f"{why}; {combining_of(plan)}",
    )  # fmt: skip


def _counted(asked: Asked, seen: Sequence[int], codes: np.ndarray, domain: Domain) -> np.ndarray:
    """Cells of one set; `seen` are the attributes of its columns."""
    kept = np.ones(len(codes), dtype=bool)
    for j, held in asked.kept.items():
        kept &= np.isin(codes[:, seen.index(j)], held)
    cell = np.zeros(int(kept.sum()), dtype=np.int64)
    for j in asked.attributes:
        cell = cell * domain.sizes[j] + codes[kept, seen.index(j)]
    return np.bincount(cell, minlength=cells(domain, asked.attributes))
