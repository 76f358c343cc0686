"""What a model sees of a set: the rows that a condition keeps and that lack no value, of many rows the distinct ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from schemas.plan import Analysis
from schemas.spec.attributes import Named
from schemas.spec.domain import Domain
from schemas.tables import COUNT
from steps_engine.analyses.questions import factors_of, model_of
from steps_engine.domain.blocks import blocks_of
from steps_engine.domain.records import codes_of, numbers_in
from steps_engine.evaluation.regression import variables

if TYPE_CHECKING:
    import pandas as pd

MOST_FITTED = 2**22  # rows that a fit holds: more would move an interval by less than its width bears


@dataclass(frozen=True)
class Seen:
    """A set as a model sees it. No fit needs more than the distinct rows and how often each stands in the set."""

    frame: pd.DataFrame
    weight: np.ndarray | None  # for how many rows each one stands; None: for itself
    fulfilling: int  # rows that the condition keeps, whether they lack a value or not
    read: int  # rows of the set that were looked at: all, unless too many of them differ

    @property
    def rows(self) -> int:
        return len(self.frame) if self.weight is None else int(self.weight.sum())


def seen_of(analysis: Analysis, domain: Domain, records: Any, most: int = MOST_FITTED) -> Seen:
    """All rows of a set, a block at a time; where more than so many differ, the first ones, which are a sample of the set.

    A set of one block is seen row by row. Rows of a set are in random order.
    """
    import pandas as pd

    blocks, held = blocks_of(records, domain.names), list[pd.DataFrame]()
    fulfilling = read = distinct = 0
    for block in blocks:
        frame, kept = _seen(analysis, domain, block)
        fulfilling, read = fulfilling + kept, read + len(block)
        if read == records.num_rows and not held:
            return Seen(frame, None, fulfilling, read)
        held.append(_distinct(frame.assign(**{COUNT: 1})))
        if sum(map(len, held)) > max(most, 2 * distinct):  # joined so seldom that each row is joined about twice
            held = [_distinct(pd.concat(held, ignore_index=True))]
            distinct = len(held[0])
            if distinct > most:
                break
    whole = _distinct(pd.concat(held, ignore_index=True))
    return Seen(whole.drop(columns=COUNT), whole[COUNT].to_numpy(float), fulfilling, read)


def _distinct(frame: pd.DataFrame) -> pd.DataFrame:
    """Every row once, with the sum of its counts."""
    names = [name for name in frame.columns if name != COUNT]
    return frame.groupby(names, observed=True, sort=False, as_index=False)[[COUNT]].sum()


def _seen(analysis: Analysis, domain: Domain, block: pa.Table) -> tuple[pd.DataFrame, int]:
    codes = codes_of(block, domain)
    return frame_of(analysis, domain, block, codes), int(_kept(analysis, domain, codes).sum())


def first_seen(analysis: Analysis, domain: Domain, records: pa.Table, codes: np.ndarray) -> Seen:
    """Rows in memory, whose codes are known."""
    return Seen(frame_of(analysis, domain, records, codes), None, int(_kept(analysis, domain, codes).sum()), len(codes))


def first_rows(records: Any, columns: Sequence[str]) -> pa.Table:
    """Those that a declared model is fitted to: a set's rows are in random order, so that the first ones are a sample of it."""
    found, rows = list[pa.Table](), 0
    for block in blocks_of(records, columns):
        found.append(block.slice(0, MOST_FITTED - rows))
        rows += len(found[-1])
        if rows == MOST_FITTED:
            break
    return pa.concat_tables(found)


def _kept(analysis: Analysis, domain: Domain, codes: np.ndarray) -> np.ndarray:
    """The rows that fulfil `where`."""
    kept = np.ones(len(codes), bool)
    for name, labels in analysis.where.items():
        j = domain.index(name)
        kept &= np.isin(codes[:, j], [domain.attributes[j].labels.index(label) for label in labels])
    return kept


def frame_of(analysis: Analysis, domain: Domain, records: pa.Table, codes: np.ndarray) -> pd.DataFrame:
    """What a model sees of rows: those that `where` keeps and that lack no value; categories by all their labels."""
    import pandas as pd

    outcome, predictors = variables(model_of(analysis))
    kept, columns = _kept(analysis, domain, codes), dict[str, pd.Series]()
    for name in (outcome, *predictors):
        j = domain.index(name)
        attribute = domain.attributes[j]
        kept &= codes[:, j] < attribute.present
        if isinstance(attribute, Named) or name in factors_of(analysis):
            present = np.where(codes[:, j] < attribute.present, codes[:, j], -1)
            columns[name] = pd.Series(pd.Categorical.from_codes(present, pd.Index(attribute.present_labels)))
        else:
            columns[name] = pd.Series(numbers_in(records[name], attribute).astype(float))  # rows without a value are not kept
    return pd.DataFrame(columns)[kept]
