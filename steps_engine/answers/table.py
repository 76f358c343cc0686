"""A table that somebody asks of a release: from the noisy counts where they tell, else from the sets, and which it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from schemas.errors import SpecError
from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.analyses.honesty import combining_of, of_persons
from steps_engine.answers.conditions import codes_where
from steps_engine.domain.blocks import blocks_of
from steps_engine.domain.cells import possible_cells
from steps_engine.domain.columns import Column, column_of
from steps_engine.domain.records import codes_of
from steps_engine.evaluation.combining import combine, interval, variance_of_shares
from steps_engine.methods.registry import method_of
from steps_engine.methods.tabulated import Asked, Tabulated, Tabulating
from steps_engine.methods.weighted import table_in_people

PEOPLE, OF_IT = "people of the population", " of the population"  # what weighted counts are of
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
    whole: float  # the number of rows that the shares are of; with weights, as all counts here, of people
    source: Literal["measured", "sets"]
    why: str  # why the sets were asked; how they were combined
    grouped: tuple[str, ...] = ()  # attributes whose categories were counted in groups
    of: str = "rows"  # what counts are of


@dataclass(frozen=True)
class Question:
    """A table by some columns of a release: what that asks of the counts of attributes, and what its rows are called."""

    asked: Asked
    columns: tuple[Column, ...]


def question_of(names: Sequence[str], where: Mapping[str, Any], domain: Domain) -> Question:
    """Columns by name, among the rows that fulfil a condition."""
    columns, kept = tuple(column_of(name, domain) for name in names), codes_where(where, domain)
    if not names:
        raise SpecError("a table names one attribute or more, and none is named")
    if twice := next((name for name in names if list(names).count(name) > 1), None):
        raise SpecError(f"a table names every attribute once; {twice!r} stands twice. Name it once.")
    axes = tuple(dict.fromkeys(column.source for column in columns))
    classes = {j: _classes([each.codes for each in columns if each.source == j], kept.get(j)) for j in axes}
    return Question(Asked(axes, {j: held for j, held in kept.items() if j not in axes}, classes), columns)


def _classes(codes: Sequence[np.ndarray], kept: Sequence[int] | None) -> tuple[int, ...]:
    """Categories with the same codes in all columns are one class, the first column slowest; −1: not asked for."""
    held = list(range(len(codes[0])) if kept is None else kept)
    found = np.full(len(codes[0]), -1)
    found[held] = np.unique(np.stack(codes)[:, held], axis=1, return_inverse=True)[1].ravel()
    return tuple(found.tolist())


def table_of(
    question: Question, domain: Domain, plan: Plan, tables: Mapping[str, pa.Table], sets: Callable[[], Sequence[Any]]
) -> Table:
    """`tables` are what was measured and made consistent; `sets`, in memory or not, are read where needed."""
    method, asked = method_of(plan), question.asked
    found = method.tabulate(domain, plan, tables, asked) if isinstance(method, Tabulating) else SILENT
    if isinstance(found, str):
        return _from_sets(question, domain, plan, sets(), found)
    return _as_measured(question, domain, table_in_people(found, asked, domain))


def _as_measured(question: Question, domain: Domain, found: Tabulated) -> Table:
    asked = question.asked
    there, half = found.possible, found.half
    counts = Quantity(found.estimate, np.sqrt(found.variance), found.estimate - half, found.estimate + half)
    asked_rows = asked.shape(domain)
    merged = [j for j, group, rows in zip(asked.attributes, found.group, asked_rows, strict=True) if group.max() + 1 < rows]
    return Table(
        _labels(question, found.group, there), _only(counts, there), _only(shares_of(found), there), found.whole, "measured",
        "", tuple(domain.names[j] for j in merged), what_of(domain),
    )  # fmt: skip


def what_of(domain: Domain) -> str:
    """What counts are of."""
    if domain.tables is not None:
        return "households" + weighted_of(domain)
    return PEOPLE if domain.weight else "rows"


def weighted_of(domain: Domain) -> str:
    """Behind what is counted: empty where it is not the population."""
    return OF_IT if domain.weight else ""


def _labels(question: Question, group: Sequence[np.ndarray], there: np.ndarray) -> tuple[tuple[str, ...], ...]:
    """Of every cell that there is, one per column."""
    place = np.unravel_index(np.flatnonzero(there), tuple(int(rows.max()) + 1 for rows in group))
    listed = []
    for column in question.columns:
        axis = question.asked.attributes.index(column.source)
        listed.append([*map(group_labels(column.labels, group[axis]).__getitem__, place[axis])])
    return tuple(zip(*listed, strict=True))


def group_labels(labels: Sequence[str], group: np.ndarray) -> list[str]:
    """
    >>> group_labels(["18", "19", "20", "21"], np.array([0, 0, 0, 1]))
    ['18 … 20', '21']
    """
    ends = ((int(np.argmax(group == k)), int(np.flatnonzero(group == k)[-1])) for k in range(int(group.max()) + 1))
    return [labels[a] if labels[a] == labels[b] else f"{labels[a]} … {labels[b]}" for a, b in ends]


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


def _from_sets(question: Question, domain: Domain, plan: Plan, sets: Sequence[Any], why: str) -> Table:
    """Shares and counts in every set, combined as the release's sets are; the chance of who was asked is in the intervals."""
    asked, seen = question.asked, sorted(question.asked.all)
    narrow = domain.model_copy(update={"attributes": tuple(domain.attributes[j] for j in seen), "rules": (), "derived": ()})
    counts = np.array([_in_set(asked, seen, records, narrow, domain) for records in sets], dtype=float)
    rows = counts.sum(axis=1, keepdims=True)
    if not rows.all():
        raise _nobody(asked.is_conditional, int((rows == 0).sum()), len(sets), why)
    share = counts / rows
    possible = np.stack(np.nonzero(possible_cells(domain, seen)), axis=1)
    there = _counted(asked, seen, possible, domain) > 0
    inflation, people = domain.inflation, float(domain.weighing.step) if domain.weighing else 1.0
    within = variance_of_shares(counts, there)
    left = 1.0 if domain.unit.rows_per_person > 1 and not domain.unit.exactly else 1 - share  # or the number of rows varies too
    combined = [
        combine(share, inflation * within, plan.budget),
        combine(people * counts, inflation * people**2 * np.maximum(counts * left, rows**2 * within), plan.budget),
    ]
    made = [Quantity(c.value, np.sqrt(c.variance), *interval(c.value, c.variance, c.freedom)) for c in combined]
    shares = Quantity(made[0].value, made[0].error, np.clip(made[0].low, 0, 1), np.clip(made[0].high, 0, 1))
    return Table(
        _labels(question, [asked.class_of(j, domain) for j in asked.attributes], there),
        _only(made[1], there), _only(shares, there), people * float(rows.mean()), "sets",
        f"{why}; {combining_of(plan, of_persons(domain, plan))}",
        of="persons" + weighted_of(domain) if of_persons(domain, plan) else what_of(domain),
    )  # fmt: skip


def _nobody(conditional: bool, empty: int, sets: int, why: str) -> SpecError:
    told = f"in {empty} of {sets} sets, from which this table is counted: {why}."
    if conditional:
        return SpecError(f"nobody fulfils the condition {told} Leave a part of the condition out.")
    return SpecError(f"there is no row at all {told} There is nothing to tell.")


def _in_set(asked: Asked, seen: Sequence[int], records: Any, narrow: Domain, domain: Domain) -> np.ndarray:
    """Rows of a set in every cell, a block at a time."""
    counts = np.zeros(asked.cells(domain), dtype=np.int64)
    for block in blocks_of(records, narrow.names):
        counts += _counted(asked, seen, codes_of(block, narrow), domain)
    return counts


def _counted(asked: Asked, seen: Sequence[int], codes: np.ndarray, domain: Domain) -> np.ndarray:
    """Rows in every cell; `seen` are the attributes of the columns."""
    cell = asked.cell_of(lambda j: codes[:, seen.index(j)], len(codes), domain)
    return np.bincount(cell[cell >= 0], minlength=asked.cells(domain))
