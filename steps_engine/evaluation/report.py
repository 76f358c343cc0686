"""Everything a statistician needs to judge a synthetic set, as one frozen value that becomes JSON.

It is computed from the original records and paid for by nobody: confidential unless the records are public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from steps_engine.evaluation.association import CLASSES, Association, association
from steps_engine.evaluation.coded import Coded, must_compare
from steps_engine.evaluation.comparison import Comparison
from steps_engine.evaluation.margins import Margins, margins, scatter
from steps_engine.evaluation.specks import Specks, specks


@dataclass(frozen=True)
class Options:
    """Classifier of SPECKS, folds (0: in-sample as in the paper), and bootstraps behind the null values."""

    classifier: str = "auto"
    cross_fit: int = 0
    null: int = 10


@dataclass(frozen=True, repr=False)  # never shown by accident: as_json and the page are the ways to see it
class Evaluation:
    rows: tuple[int, ...]  # of the original, then of each synthetic set
    specks: Specks
    margins: tuple[Margins, ...]
    association: Association
    regression: Comparison | None
    scatter: dict[str, tuple[tuple[float, float], ...]]  # shares of cells of the first set, by ways

    def as_json(self) -> dict[str, Any]:
        """Plain numbers and words. Scripts rely on specks.ks, specks.null_ks, tvd.1 … 3 and chi_square.0.01 … 0.1."""
        return {
            "rows": {"original": self.rows[0], "synthetic": list(self.rows[1:])},
            "specks": asdict(self.specks),
            "tvd": {str(margin.ways): margin.mean for margin in self.margins},
            "margins": {str(margin.ways): asdict(margin) for margin in self.margins},
            "chi_square": dict(self.association.agreement),
            "association": asdict(self.association) | {"class_names": CLASSES},
            "regression": asdict(self.regression) if self.regression else None,
        }


def evaluate(
    original: Coded,
    synthetics: Sequence[Coded],
    randomness,
    options: Options = Options(),  # noqa: B008  frozen
    regression: Comparison | None = None,
) -> Evaluation:
    """SPECKS, margins and χ² of the sets; a regression comparison, made on frames with `compare`, is carried along."""
    must_compare(original, synthetics)
    return Evaluation(
        rows=(original.total, *(synthetic.total for synthetic in synthetics)),
        specks=specks(original, synthetics, randomness, options.classifier, options.cross_fit, options.null),
        margins=tuple(margins(original, synthetics, ways) for ways in (1, 2, 3)),
        association=association(original, synthetics),
        regression=regression,
        scatter={str(k): tuple(map(tuple, scatter(original, synthetics[0], k).round(6).tolist())) for k in (1, 2)},
    )
