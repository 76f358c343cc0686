"""A picture of the plan's tree for the Prefect UI: layers as rows of nodes. Drawn from the plan alone, so it is public."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape

from schemas.plan import LayerPlan, Plan
from steps_engine.accounting.measures import MEASURES
from steps_engine.methods.registry import method_of
from steps_engine.methods.views import SketchRow

WIDTH, ROW, MOST = 720, 70, 24  # pixels, and nodes shown per layer
SMALLEST = 0.01  # percent: shares are written so


def tree_uri(plan: Plan) -> str:
    """The picture as a data URI."""
    svg = tree_svg(plan)
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def tree_svg(plan: Plan) -> str:
    sketch = method_of(plan).sketch(plan)
    return _layers_svg(plan) if sketch.picture == "layers" else _shares_svg(sketch.rows, MEASURES[plan.measure].symbol)


def _shares_svg(rows: Sequence[SketchRow], paid: str) -> str:
    """The lines of the plan that `steps plan` prints, as long as their share of what is paid."""
    shares = [float(row.share.rstrip("%")) for row in rows]
    lengths = [WIDTH * share / max(*shares, SMALLEST) for share in shares]
    lines = [
        f'<text x="190" y="{24 + 26 * i}" text-anchor="end">{escape(row.what)}</text>'
        f'<rect x="200" y="{12 + 26 * i}" width="{length:.1f}" height="14" fill="#2b5c8a"/>'
        f'<text x="{212 + length:.1f}" y="{24 + 26 * i}">{row.share} of {paid}</text>'
        for i, (row, length) in enumerate(zip(rows, lengths, strict=True))
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + 420} {26 * len(lines) + 16}" font-family="sans-serif" '
        f'font-size="13"><rect width="100%" height="100%" fill="#fff"/><g fill="#333">{"".join(lines)}</g></svg>'
    )


def _layers_svg(plan: Plan) -> str:
    rows = [[WIDTH / 2], *([_place(i, layer) for i in range(_shown(layer))] for layer in plan.layers)]
    lines = [
        f'<line x1="{above[i * len(above) // len(below)]:.1f}" y1="{_y(depth)}" x2="{x:.1f}" y2="{_y(depth + 1)}"/>'
        for depth, (above, below) in enumerate(zip(rows, rows[1:], strict=False))
        for i, x in enumerate(below)
    ]
    nodes = [f'<circle cx="{x:.1f}" cy="{_y(depth)}" r="5"/>' for depth, row in enumerate(rows) for x in row]
    words = [f'<text x="{WIDTH + 20}" y="{_y(layer.layer) + 4}">{escape(_words(layer))}</text>' for layer in plan.layers]
    height = _y(len(plan.layers)) + 30
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + 420} {height}" font-family="sans-serif" font-size="13">'
        f'<rect width="100%" height="100%" fill="#fff"/><g stroke="#b9c4d0">{"".join(lines)}</g>'
        f'<g fill="#2b5c8a">{"".join(nodes)}</g><g fill="#333">{"".join(words)}</g></svg>'
    )


def _shown(layer: LayerPlan) -> int:
    return min(layer.nodes, MOST)


def _place(i: int, layer: LayerPlan) -> float:
    return WIDTH * (i + 0.5) / _shown(layer)


def _y(depth: int) -> int:
    return 30 + ROW * depth


def _words(layer: LayerPlan) -> str:
    names = ", ".join(layer.attributes[:3]) + (" …" if len(layer.attributes) > 3 else "") if layer.attributes else "elected"
    return f"{names}: {'at most ' if layer.nodes_are == 'at most' else ''}{layer.nodes:,} nodes"
