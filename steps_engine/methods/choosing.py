"""Which method: predicted from ε, domain, sets and expected_rows alone. No data, no budget spent on choosing.

What is predicted is the part of the rows that a small margin misplaces; only which one is least matters. Each method
predicts its own (docs/lab/choosing.md).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.spec.method import Groups, MethodSpec, Shares
from schemas.spec.release import LINKED, Release
from steps_engine.methods.protocol import Candidate
from steps_engine.methods.registry import METHODS


class AutoSpec(MethodSpec):
    """The plan takes the method whose error is predicted to be least, and says why."""

    decomposition: Literal["auto"] = Field(default="auto", description="The method whose predicted error is least.")
    order: Groups | None = Field(
        default=None, description="Attributes, most important first, for the methods that take an order."
    )
    shares: Shares | None = Field(
        default=None, description="How ε or ρ is divided among the layers of a tree, if one is taken."
    )

    def named_groups(self) -> tuple[tuple[str, ...], ...]:
        return self.order or ()


def candidates(release: Release) -> tuple[Candidate, ...]:
    """What each method that is to be considered would be asked, with its predicted error.

    Where the domain has a geography whose levels can be measured, the method that measures them: others know nothing of levels.
    """
    linked = release.domain.tables is not None  # of which other methods would release household rows alone
    if not linked and release.domain.geographies and (of_levels := METHODS["places"].candidate(release)) is not None:
        return (of_levels,)
    found = (method.candidate(release) for method in METHODS.values() if (method.name == LINKED) == linked)
    return tuple(candidate for candidate in found if candidate is not None)
