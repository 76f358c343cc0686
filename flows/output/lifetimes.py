"""What somebody in several populations has lost, for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from steps_engine.accounting.measures import MEASURES


def lines(accounts: Iterable[dict[str, Any]]) -> Iterator[str]:
    """One for each group of populations."""
    told = {tuple(each["lifetime"]["populations"]): each for each in accounts if "lifetime" in each}
    for populations, each in told.items():
        loss = each["lifetime"]
        symbol = MEASURES[loss["measure"]].symbol
        at = f" (ε {loss['total_epsilon']} at δ = {loss['delta']})" if "delta" in loss else ""
        cap = f", of at most {loss['cap']}" if loss["cap"] else "; no lifetime cap (steps budget cap)"
        who = f"in {populations[0]}" if len(populations) == 1 else f"in all of {', '.join(populations)}"
        yield f"a {each['unit']} {who} has lost {symbol} = {loss['total']}{at} in all{cap}"
