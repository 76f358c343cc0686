"""Geometry of the page's pictures: plain numbers for the template to draw as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from textwrap import wrap
from typing import Any

from steps_engine.accounting.meaning import Curve
from steps_engine.methods.views import Branch, Dependent, Margin, Pair
from tasks.publishing.verdict import trusts

MOST_BARS = 24
LETTER = 7.2  # the width of a letter, at most on average, in the pictures' units
EXTRA = 0.34  # of a row, for every further line of a label
LINE = 24  # letters of a label that stand in one line of a tree


def margin_picture(margin: Margin, labels: Sequence[str] | None = None) -> dict[str, Any]:
    """Bars with 95 % intervals, a band where there are too many categories; places in percent, `labels` in place of codes."""
    low, high = margin.estimate - margin.half, margin.estimate + margin.half
    top = max(float(high.max()), float(margin.synthetic.max()), 1.0)
    rows = [
        {
            "label": label,
            "trust": word,
            "estimate": float(margin.estimate[k]),
            "error": float(margin.half[k]),
            "bar": max(float(margin.estimate[k]), 0.0) / top,
            "low": max(float(low[k]), 0.0) / top,
            "high": max(float(high[k]), 0.0) / top,
            "synthetic": float(margin.synthetic[k]) / top,
        }
        for k, (label, word) in enumerate(zip(labels or margin.labels, trusts(margin), strict=True))
    ]
    return {"kind": "bars" if len(rows) <= MOST_BARS else "band", "rows": rows, "top": top}


def matrix_picture(pairs: Sequence[Pair]) -> dict[str, Any] | None:
    """Attributes down the diagonal; below it a square for every pair, of the class that says what is known of it."""
    names = list(dict.fromkeys(name for pair in pairs for name in (pair.first, pair.second)))
    if len(names) < 2:
        return None
    place, size = {name: number for number, name in enumerate(names)}, 20 if len(names) <= 20 else 14
    squares: dict[str, list[tuple[int, int]]] = {known: [] for known in KNOWN}
    for pair in pairs:
        column, row = sorted((place[pair.first], place[pair.second]))
        squares[class_of(pair)].append((column * size + 1, row * size + 1))
    right = max((number + 1) * size + 8 + LETTER * len(name) for number, name in enumerate(names))
    return {
        "names": names, "size": size, "squares": squares, "width": round(right + 10), "height": len(names) * size + 4,
        "words": {known: text for known, text in KNOWN.items() if squares[known]},
    }  # fmt: skip


KNOWN = {
    "clear": "measured, and clear of noise and chance",
    "noise": "measured, but not to be told from noise and chance",
    "unknown": "measured, with an error that is not known here",
    "through": "not measured: told of by other attributes only",
    "independent": "taken as independent",
}


def class_of(pair: Pair) -> str:
    if pair.told != "measured":
        return "through" if pair.told == "through others" else "independent"
    return "clear" if pair.clear else "unknown" if pair.strength is None else "noise"


def network_picture(network: Sequence[Dependent]) -> dict[str, Any]:
    """Attributes one below another in their order; an arc for every predecessor on which an attribute was split."""
    row = {each.name: number for number, each in enumerate(network)}
    arcs: list[dict[str, Any]] = [
        {"from": row[name], "to": row[each.name], "first": first} for each in network for name, first in each.on
    ]
    left = round(24 + LETTER * max(len(each.name) for each in network))
    for arc in arcs:  # how far its curve is pulled to the right
        arc["pull"] = min(23.4 * (arc["to"] - arc["from"]), 300.0)
    return {"names": network, "arcs": arcs, "left": left, "bulge": round(40 + max((arc["pull"] for arc in arcs), default=0))}


def curve_picture(curve: Curve) -> dict[str, Any]:
    """ε against δ, from the largest δ to the smallest: places as parts of the picture's width and height."""
    first, last = round(curve.points[0][0]), round(curve.points[-1][0])
    top, step = rounded_axis(max(epsilon for _, epsilon in (*curve.points, curve.own)))
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


def rounded_axis(most: float) -> tuple[float, float]:
    """The end of an axis that reaches this far, and the distance of its marks: 1, 2 or 5 times a power of ten.

    >>> rounded_axis(1.4), rounded_axis(0.07)
    ((1.5, 0.5), (0.08, 0.02))
    """
    size = 10.0 ** Decimal(most / 5).adjusted()
    step = next(size * part for part in (1, 2, 5, 10) if size * part * 5 >= most)
    return round(-(-most // step) * step, 12), step


@dataclass
class Shown:
    """A node of the picture; `row` is where it stands, in units of one line."""

    label: str
    lines: list[str]
    value: str
    share: float
    depth: int
    row: float = 0.0
    stub: bool = False
    children: list[Shown] = field(default_factory=list)


def tree_picture(root: Branch, standard_errors: float) -> dict[str, Any]:
    """A tree's branches from left to right."""
    return _laid_out(_shown(root, 0, standard_errors))


def _shown(branch: Branch, depth: int, standard_errors: float) -> Shown:
    value = "" if branch.stub else _with_error(branch.estimate, standard_errors * branch.error)
    children = [_shown(child, depth + 1, standard_errors) for child in branch.children]
    lines = wrap(branch.label, LINE) or [branch.label]
    return Shown(branch.label, lines, value, branch.share, depth, stub=branch.stub, children=children)


def _with_error(estimate: float, half: float) -> str:
    return f"{round(float(estimate)):,} ± {-int(-half // 1):,}".replace("-", "−")


def _laid_out(root: Shown) -> dict[str, Any]:
    """Leaves of the picture one below another, every other node in the middle of its children."""
    placed: list[Shown] = []
    links: list[dict[str, Any]] = []
    next_row = 0.0

    def place(shown: Shown, lines: int = 1) -> None:
        """An only child stands in its parent's row, which has room for the longer of both labels."""
        nonlocal next_row
        lines = max(lines, len(shown.lines))
        for child in shown.children:
            place(child, lines if len(shown.children) == 1 else 1)
        if shown.children:
            shown.row = (shown.children[0].row + shown.children[-1].row) / 2
        else:
            shown.row = next_row + (lines - 1) * EXTRA
            next_row = shown.row + 1
        placed.append(shown)
        links.extend({"parent": shown, "child": child} for child in shown.children)

    place(root)
    columns = 1 + max(shown.depth for shown in placed)
    above = max(15 * (len(shown.lines) - 1) - 46 * shown.row for shown in placed)  # what labels need over the first row
    return {"nodes": placed, "links": links, "rows": next_row, "columns": columns, "above": round(max(above, 0))}
