"""`read_bundle(FOLDER)`: what a notebook asks of a published release. All of it comes from what is published, and is free."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from schemas.counted import counted
from schemas.errors import SpecError
from schemas.plan import Plan
from schemas.spec.domain import Domain
from tasks.answers.opened import DRAWN, Opened, open_bundle

if TYPE_CHECKING:
    import pandas as pd

    from steps_engine.answers.sample import Sampling
    from tasks.answers.frames import Answer

Where = Mapping[str, Any] | None


class Bundle:
    """A published release. `fit`, `table` and `sample` answer; `frames` are its synthetic sets."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened

    def __repr__(self) -> str:
        promised, plan = self._opened.manifest.guarantee, self.plan
        names = ", ".join((*self.domain.names, *(each.name for each in self.domain.derived)))
        told = "".join(f"\nWARNING: {notice}" for notice in self.notices)
        return (
            f"{self.name}: {counted(plan.sets, 'synthetic set')} by {plan.decomposition}, ε = {promised.epsilon}\n{names}{told}"
        )

    @property
    def name(self) -> str:
        return self._opened.manifest.release

    @property
    def domain(self) -> Domain:
        return self._opened.domain

    @property
    def plan(self) -> Plan:
        return self._opened.plan

    @property
    def notices(self) -> tuple[str, ...]:
        """What the publisher has said of the release since: that it was withdrawn, or superseded."""
        return tuple(f"This release {notice}" for notice in self._opened.notices)

    @property
    def frames(self) -> list[pd.DataFrame]:
        """The synthetic sets."""
        return [self._opened.records(number).to_pandas() for number in range(1, self.plan.sets + 1)]

    @property
    def households(self) -> list[pd.DataFrame]:
        """Of linked tables: the households of each set, by their keys."""
        return self._linked("household")

    @property
    def persons(self) -> list[pd.DataFrame]:
        """Of linked tables: the persons of each set, by the keys of their households."""
        return self._linked("person")

    def _must_be_linked(self, kinds: str) -> None:
        if self.domain.tables is None:
            raise SpecError(f"{self.name} has one table, `frames`; there are no {kinds}")

    def _must_be_of_households(self, where: Mapping[str, Any]) -> None:
        """Whole households are made: a condition is on what a household's row has."""
        tables = self.domain.tables
        person = (*tables.person.names, *(each.name for each in tables.person.derived)) if tables is not None else ()
        if named := [name for name in where if name in person]:
            own = ", ".join(self.domain.names)
            raise SpecError(f"where names {named[0]!r}, of a person; whole households are made. Name a column of theirs: {own}")

    def _linked(self, kind: str) -> list[pd.DataFrame]:
        self._must_be_linked(f"{kind}s")
        return [self._opened.linked(kind, number).to_pandas() for number in range(1, self.plan.sets + 1)]

    def fit(self, formula: str, kind: Literal["linear", "logistic"] | None = None, where: Where = None) -> Answer:
        """A regression on all sets, combined by the release's own rule: `fit("voted ~ age + college", where={"age": 18})`."""
        from steps_engine.analyses.questions import model_question
        from steps_engine.answers.conditions import codes_where, labels_where
        from steps_engine.answers.fit import columns_of, fit_sets
        from steps_engine.domain.columns import with_derived
        from steps_engine.evaluation.regression import Model, variables
        from tasks.answers.frames import fit_answer

        outcome, predictors = variables(Model(formula, formula, kind or "linear"))
        domain = self._opened.asked_of({outcome, *predictors, *(where or {})})
        codes_where(where or {}, domain)  # refuses what nothing fulfils
        asked = model_question(formula, kind, labels_where(where or {}, domain), with_derived(domain))
        sets = self._opened.sets(columns_of(asked))
        with self._opened.reading("a set cannot be read:"):
            found = fit_sets(asked, domain, self.plan, self._opened.counts(*DRAWN), sets)
        return fit_answer(found, self._facts, self.notices)

    def table(self, *names: str, where: Where = None, all: bool = False) -> Answer:
        """Counts and shares by some attributes with standard errors and intervals, from the noisy counts where they tell."""
        from steps_engine.answers.conditions import labels_where
        from steps_engine.answers.table import question_of, table_of
        from tasks.answers.frames import must_be_worth_looking_at, table_answer

        domain = self._opened.asked_of({*names, *(where or {})})
        asked = question_of(names, where or {}, domain)
        must_be_worth_looking_at(asked.asked.cells(domain), names, all)
        tables = self._opened.counts(*DRAWN, "consistent-counts")
        columns = [domain.names[j] for j in sorted(asked.asked.all)]
        with self._opened.reading("a set cannot be read:"):
            found = table_of(asked, domain, self.plan, tables, lambda: self._opened.sets(columns))
        return table_answer(found, names, labels_where(where or {}, domain), self._facts, self.notices)

    def sample(
        self, rows: int | None = None, where: Where = None, sets: int | None = None, seed: int = 0
    ) -> list[pd.DataFrame]:
        """More rows, or rows under a condition: `rows` of them in each of so many sets. The same seed makes the same rows.

        Of linked tables these are household rows; `sample_linked` has the households and persons that belong to them.
        """
        import pyarrow as pa

        asked = self.sampling(where, seed)
        numbers = range(1, (sets or self.plan.sets) + 1)
        return [pa.concat_tables(asked.blocks(number, rows or self.rows)).to_pandas() for number in numbers]

    def sample_linked(
        self, rows: int | None = None, where: Where = None, sets: int | None = None, seed: int = 0
    ) -> list[dict[str, pd.DataFrame]]:
        """Of linked tables more households: of each set {"household": …, "person": …}, by their keys."""
        import pyarrow as pa

        self._must_be_linked("households")
        asked = self.sampling(where, seed)
        made = (list(asked.linked(number, rows or self.rows)) for number in range(1, (sets or self.plan.sets) + 1))
        kinds = ("household", "person")
        return [{kind: pa.concat_tables(block[kind] for block in blocks).to_pandas() for kind in kinds} for blocks in made]

    def sampling(self, where: Where, seed: int) -> Sampling:
        """What `sample` draws from."""
        from steps_engine.answers.conditions import codes_where
        from steps_engine.answers.sample import Sampling

        self._must_be_of_households(where or {})
        kept = codes_where(where or {}, self.domain)
        return Sampling(self.domain.self_weighting(), self.plan, self._opened.counts(*DRAWN), kept, seed)

    @property
    def rows(self) -> int:
        """About how many a set has."""
        return max(1, self._opened.rows // self.plan.sets)

    @property
    def _facts(self) -> dict[str, Any]:
        return {"release": self.name, "folder": str(self._opened.folder)}


def read_bundle(folder: Path | str, key: Path | str | None = None) -> Bundle:
    """A published bundle, once its signature holds; with the publisher's key, by that one. Withdrawn, it warns."""
    found = Bundle(open_bundle(folder, Path(key) if key is not None else None))
    for notice in found.notices:
        warnings.warn(f"{found.name}: {notice}", stacklevel=2)
    return found
