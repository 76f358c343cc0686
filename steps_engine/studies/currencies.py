"""What a study's ε and δ are worth in ρ."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import pandas as pd

from schemas.budget import UNIT, show_nanos
from steps_engine.accounting.conversion import rho_of


def currencies(epsilons: Iterable[str], deltas: Iterable[str]) -> pd.DataFrame:
    """At each (ε, δ) the largest ρ that promises it: what methods under zero-concentrated privacy spend.

    >>> currencies(["1"], ["1e-9"]).to_dict("records")
    [{'epsilon': '1', 'delta': '1e-9', 'rho': '0.014973057'}]
    """
    pairs = [(epsilon, delta) for delta in deltas for epsilon in epsilons]
    rows = [(epsilon, delta, show_nanos(int(UNIT * rho_of(Fraction(epsilon), float(delta)).value))) for epsilon, delta in pairs]
    return pd.DataFrame(rows, columns=["epsilon", "delta", "rho"])
