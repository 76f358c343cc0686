"""Geometry of the page's pictures: plain numbers for the template to draw as SVG."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from schemas.spec.domain import Domain
from steps_engine.methods.cascade.tables import Trees
from steps_engine.methods.tree.branches import Branches
from tasks.publishing.margins import Margin

Z = 1.959964  # 95 % of a normal law lies within ± Z standard errors
MOST_BARS = 24
MOST_CHILDREN, MOST_ROWS, CROWD = 5, 18, 60  # of the tree's picture


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


def network_picture(domain: Domain, trees: Trees) -> dict[str, Any]:
    """Attributes one below another in their order; an arc for every predecessor on which an attribute's tree is split."""
    row = {tree.attribute: number for number, tree in enumerate(trees)}
    arcs = []
    for tree in trees:
        layers = reversed([*enumerate(tree.layers)])  # the first layer that splits on j wins
        deep = {j: depth for depth, layer in layers for split in np.unique(layer) for j in tree.splits[split]}
        arcs += [{"from": row[j], "to": row[tree.attribute], "first": depth == 0} for j, depth in sorted(deep.items())]
    names = [{"name": domain.names[tree.attribute], "leaves": tree.leaves, "categories": tree.categories} for tree in trees]
    return {"names": names, "arcs": arcs}


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


def tree_picture(branches: Branches, estimate: np.ndarray, error: np.ndarray) -> dict[str, Any]:
    """The top of the tree: the largest children of each node, as many layers as fit, and how many more there are."""
    starts = np.cumsum([0, 1, *(len(nodes) for nodes in branches.layers)])
    total = max(float(estimate[0]), 1.0)
    root = Shown("everyone", _with_error(estimate[0], error[0]), 1.0, 0)
    front, depth = [(root, 0)], 0
    while depth < len(branches.layers):
        grown = [(shown, *_children(branches, depth, node, estimate[starts[depth + 1] :])) for shown, node in front]
        crowded = any(len(children) > CROWD for _, children, _ in grown)
        if crowded or (depth and sum(min(len(children), MOST_CHILDREN) for _, children, _ in grown) > MOST_ROWS):
            what = "cells" if depth + 1 == len(branches.layers) else "nodes"
            for shown, children, _ in grown:
                shown.children = [Shown(f"{len(children):,} {what}", "", 0.0, depth + 1, stub=True)] if len(children) else []
            break
        front = []
        for shown, children, largest in grown:
            for child in sorted(largest.tolist()):
                at = int(starts[depth + 1]) + child
                label = _label(branches, depth, child)
                one = Shown(label, _with_error(estimate[at], error[at]), max(float(estimate[at]), 0.0) / total, depth + 1)
                shown.children.append(one)
                front.append((one, child))
            if len(children) > len(largest):
                shown.children.append(Shown(f"{len(children) - len(largest):,} more", "", 0.0, depth + 1, stub=True))
        depth += 1
    return _laid_out(root)


def _children(branches: Branches, depth: int, node: int, estimate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All children of a node in the layer below, and the largest few of them."""
    parent = branches.layers[depth].parent
    children = np.arange(*np.searchsorted(parent, [node, node + 1]))
    return children, children[np.argsort(-estimate[children], kind="stable")[:MOST_CHILDREN]]


def _label(branches: Branches, depth: int, child: int) -> str:
    """The categories that tell a node from its siblings, such as `voted: yes`."""
    nodes, domain = branches.layers[depth], branches.space.domain
    code, parts = int(nodes.code[child]), []
    for j in reversed(branches.splits[int(nodes.split[child])]):
        code, digit = divmod(code, domain.sizes[j])
        parts.insert(0, f"{domain.names[j]}: {domain.attributes[j].labels[digit]}")
    return " · ".join(parts) or "everyone, measured"


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
