"""Geometry of the page's pictures: plain numbers for the template to draw as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from steps_engine.accounting.meaning import Curve
from steps_engine.methods.views import Branch, Dependent, Margin

Z = 1.959964  # 95 % of a normal law lies within ± Z standard errors
MOST_BARS = 24


def margin_picture(margin: Margin) -> dict[str, Any]:
    """Bars with 95 % intervals; a band where there are too many categories for bars."""
    low, high = margin.estimate - Z * margin.error, margin.estimate + Z * margin.error
    top = max(float(high.max()), float(margin.synthetic.max()), 1.0)
    rows = [
        {
            "label": label,
            "estimate": float(margin.estimate[k]),
            "error": Z * float(margin.error[k]),
            "bar": max(float(margin.estimate[k]), 0.0) / top,
            "low": max(float(low[k]), 0.0) / top,
            "high": max(float(high[k]), 0.0) / top,
            "cut": bool(low[k] < 0),
            "synthetic": float(margin.synthetic[k]) / top,
        }
        for k, label in enumerate(margin.labels)
    ]
    return {"kind": "bars" if len(rows) <= MOST_BARS else "band", "rows": rows, "top": top}


def network_picture(network: Sequence[Dependent]) -> dict[str, Any]:
    """Attributes one below another in their order; an arc for every predecessor on which an attribute was split."""
    row = {each.name: number for number, each in enumerate(network)}
    arcs = [{"from": row[name], "to": row[each.name], "first": first} for each in network for name, first in each.on]
    return {"names": network, "arcs": arcs}


def curve_picture(curve: Curve) -> dict[str, Any]:
    """ε against δ, from the largest δ to the smallest: places as parts of the picture's width and height."""
    first, last = round(curve.points[0][0]), round(curve.points[-1][0])
    top, step = _rounded_axis(max(epsilon for _, epsilon in (*curve.points, curve.own)))
    places = [
        {"x": (exponent - first) / (last - first), "y": epsilon / top} for exponent, epsilon in (curve.own, *curve.points)
    ]
    apart = -((first - last) // 6)
    return {
        "own": places[0],
        "points": places[1:],
        "across": [{"x": (e - first) / (last - first), "power": -e} for e in range(first, last + 1) if e % apart == 0],
        "up": [{"y": number * step / top, "label": f"{number * step:,.10g}"} for number in range(round(top / step) + 1)],
        "first": first,
        "last": last,
    }


def _rounded_axis(most: float) -> tuple[float, float]:
    """The end of an axis that reaches this far, and the distance of its marks: 1, 2 or 5 times a power of ten.

    >>> _rounded_axis(1.4), _rounded_axis(0.07)
    ((1.5, 0.5), (0.08, 0.02))
    """
    size = 10.0 ** Decimal(most / 5).adjusted()
    step = next(size * part for part in (1, 2, 5, 10) if size * part * 5 >= most)
    return round(-(-most // step) * step, 12), step


@dataclass
class Shown:
    """A node of the picture; `row` is where it stands, in units of one line."""

    label: str
    value: str
    share: float
    depth: int
    row: float = 0.0
    stub: bool = False
    children: list[Shown] = field(default_factory=list)


def tree_picture(root: Branch) -> dict[str, Any]:
    """A tree's branches from left to right."""
    return _laid_out(_shown(root, 0))


def _shown(branch: Branch, depth: int) -> Shown:
    value = "" if branch.stub else _with_error(branch.estimate, branch.error)
    children = [_shown(child, depth + 1) for child in branch.children]
    return Shown(branch.label, value, branch.share, depth, stub=branch.stub, children=children)


def _with_error(estimate: float, error: float) -> str:
    return f"{round(float(estimate)):,} ± {round(Z * float(error)):,}".replace("-", "−")


def _laid_out(root: Shown) -> dict[str, Any]:
    """Leaves of the picture one below another, every other node in the middle of its children."""
    placed: list[Shown] = []
    links: list[dict[str, Any]] = []
    next_row = 0.0

    def place(shown: Shown) -> None:
        nonlocal next_row
        for child in shown.children:
            place(child)
        if shown.children:
            shown.row = (shown.children[0].row + shown.children[-1].row) / 2
        else:
            shown.row, next_row = next_row, next_row + 1
        placed.append(shown)
        links.extend({"parent": shown, "child": child} for child in shown.children)

    place(root)
    return {"nodes": placed, "links": links, "rows": next_row, "columns": 1 + max(shown.depth for shown in placed)}
