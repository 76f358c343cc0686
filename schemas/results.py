"""What a release says of the analyses that it was asked for."""

from __future__ import annotations

from schemas.plan import Frozen


class Estimate(Frozen):
    """One number of an analysis, combined over the sets, with its 95% interval; None where the sets do not determine it."""

    name: str
    estimate: float | None
    low: float | None
    high: float | None


class AnalysisResult(Frozen):
    """What a release says of an analysis that it was asked for: how it was measured, and what the sets say."""

    name: str
    measured: bool
    honest: bool  # whether the intervals cover the truth as often as they say
    why: str
    combining: str
    expected_width: float | None  # half of a 95% interval, as the plan has it
    achieved_width: float | None  # mean over cells, or of the widest coefficient
    estimates: tuple[Estimate, ...]
