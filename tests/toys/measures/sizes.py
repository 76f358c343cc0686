"""A toy measure in one file: how far the synthetic sets are from having as many rows as the original."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from steps_engine.evaluation.coded import Coded
from steps_engine.evaluation.measures import Measure, Options
from steps_engine.evaluation.section import Distributions, Headline, Listing, Section
from steps_engine.noise import Randomness


@dataclass(frozen=True)
class Sizes:
    missing: float
    extra: float

    def figures(self) -> dict[str, float | None]:
        return {"missing": self.missing, "extra": self.extra, "undefined": None}

    def details(self) -> dict[str, dict[str, Any]]:
        return {"sizes": {"unit": "rows"}, "sizes_in_words": {"said": "as many as <could be>"}}

    def section(self) -> Section:
        shares = {"original": (1.0, 0.0), "synthetic": (self.missing, self.extra)}
        return Section(
            title="Sizes <of the sets>",
            headlines=(Headline(self.missing, "share of the rows that are missing"),),
            picture=Distributions(shares, "too few, too many", "share"),
            listings=(Listing(("", "share"), (("missing", self.missing), ("extra", self.extra))),),
        )


def compare(original: Coded, synthetics: Sequence[Coded], randomness: Randomness, options: Options) -> Sizes:
    ratios = [synthetic.total / original.total - 1 for synthetic in synthetics]
    return Sizes(max(0.0, -min(ratios)), max(0.0, *ratios))


ENTRY = Measure("sizes", 10, compare)
