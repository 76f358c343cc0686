"""Everything a statistician needs to judge a synthetic set, as one frozen value that becomes JSON, a table and a page.

It is computed from the original records and paid for by nobody: confidential unless the records are public.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steps_engine.evaluation.coded import Coded, must_compare
from steps_engine.evaluation.comparison import Comparison
from steps_engine.evaluation.measures import MEASURES, Options, Result
from steps_engine.evaluation.section import Section
from steps_engine.noise import Randomness


@dataclass(frozen=True, repr=False)  # never shown by accident: as_json, figures and sections are the ways to see it
class Evaluation:
    rows: tuple[int, ...]  # of the original, then of each synthetic set
    results: Mapping[str, Result]  # by measure, in the registry's order
    regression: Comparison | None

    def as_json(self) -> dict[str, Any]:
        """Plain numbers and words. Scripts rely on specks.ks, specks.null_ks, tvd.1 … 3 and chi_square.0.01 … 0.1."""
        said: dict[str, Any] = {"rows": {"original": self.rows[0], "synthetic": list(self.rows[1:])}}
        for measure, result in self.results.items():
            said[measure] = dict(result.figures())
            for key, more in result.details().items():
                said[key] = said.get(key, {}) | dict(more)
        return {**said, "regression": None, **(self.regression.details() if self.regression else {})}

    def figures(self) -> dict[tuple[str, str], float]:
        """Every figure that is defined, by measure and which of its parts."""
        found = ((measure, which, value) for measure, r in self.results.items() for which, value in r.figures().items())
        return {(measure, which): float(value) for measure, which, value in found if value is not None}

    def sections(self) -> list[Section]:
        """What a page tells, measure by measure."""
        return [result.section() for result in (*self.results.values(), *([self.regression] if self.regression else []))]


def evaluate(
    original: Coded,
    synthetics: Sequence[Coded],
    randomness: Randomness,
    options: Options = Options(),  # noqa: B008  frozen
    regression: Comparison | None = None,
) -> Evaluation:
    """Every measure of the sets; a regression comparison, made on frames with `compare`, is carried along."""
    must_compare(original, synthetics)
    return Evaluation(
        rows=(original.total, *(synthetic.total for synthetic in synthetics)),
        results={
            each.name: each.compare(original, synthetics, randomness, options)
            for each in MEASURES.entries()
            if each.applies(original)
        },
        regression=regression,
    )
