"""What people are shown of a tree: its layers before anything is drawn, its margins and largest branches afterwards."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from schemas.plan import Draw, Plan
from schemas.spec.domain import Domain
from steps_engine.accounting.measures import MEASURES
from steps_engine.accounting.mechanisms import noise_of
from steps_engine.domain.nodes import Tree
from steps_engine.inference.reach import standard_errors
from steps_engine.inference.strength import Beyond
from steps_engine.methods.margins import ESTIMATED_BY, apart
from steps_engine.methods.protocol import Tables
from steps_engine.methods.relations import Two, pairs_of
from steps_engine.methods.tree.branches import Branches, read_branches
from steps_engine.methods.tree.check import held_and_sampled
from steps_engine.methods.tree.correct import ConsistentCounts
from steps_engine.methods.tree.margins import margins, strengths
from steps_engine.methods.tree.plan import are_likely
from steps_engine.methods.tree.sparse import is_sampled, threshold_of
from steps_engine.methods.tree.tables import read_tree
from steps_engine.methods.views import Branch, Sketch, SketchRow, Total, View

if TYPE_CHECKING:
    import pandas as pd

ALIKE, ONE_BY_ONE, BY_PAIRS = "as many as any other", "what each attribute alone implies", "what pairs of attributes imply"
OF_ONE_LAYER = "Every combination of the categories of all attributes was counted, and every count got noise, empty ones too."
SHRUNK = "What attributes have in common is kept as far as it stands out from the noise: that pulls every set the same way too."
MOST_CHILDREN, MOST_ROWS, CROWD = 5, 18, 60  # of the branches that are shown


def sketch(plan: Plan) -> Sketch:
    rows, counted = [], 1 - (plan.election.share if plan.election else 0)  # layers divide what elections leave
    for layer in plan.layers:
        mine = [draw for draw in plan.draws if (draw.kind, draw.layer) == ("count", layer.layer)]
        what = "elected" if layer.attributes is None else ", ".join(layer.attributes) or "everyone"
        nodes = ("≤ " if layer.nodes_are == "at most" else "") + f"{layer.nodes:,}"
        scale = noise_of(mine[0]).length if mine else None
        share = f"{float(layer.share * counted):.2%}"
        rows.append(SketchRow(layer.layer, what, nodes, share, scale, layer.expected_error))
    threshold = max((draw.threshold or 0 for draw in plan.draws), default=0)
    remark = f"cells     too many to list: sampled, only noisy counts of {threshold:,} and more are kept"
    draws = {draw.name: _said(draw, plan) for draw in plan.draws}
    return Sketch("layer", "splits on", tuple(rows), "layers", draws, (remark,) if threshold else ())


def _said(draw: Draw, plan: Plan) -> str:
    if draw.kind == "election":
        return f"election below layer {draw.layer}"
    early = draw.layer < len(plan.layers) and draw.nodes == "leaves"
    rest = ", branches that end here" if early else f", kept from {draw.threshold:,}" if draw.threshold else ""
    return f"counts of layer {draw.layer}{rest}"


def view(domain: Domain, plan: Plan, tables: Tables) -> View:
    branches = read_branches(domain, plan, tables["tree"])
    counts, _ = held_and_sampled(tables["consistent-counts"], plan)
    estimate, error = counts["estimate"].to_numpy(), counts["standard_error"].to_numpy()
    whole = np.stack([counts[f"whole_{i}"].to_numpy() for i in range(1, plan.sets + 1)])
    factor = standard_errors(plan)
    likely, divided = are_likely(len(plan.layers), plan.budget), sum(size > 1 for size in domain.sizes)
    own, derived = apart(margins(branches, plan, estimate, whole), domain)
    order = (
        "in an order fixed before the records were read"
        if plan.election is None
        else f"which were elected privately with a share of {MEASURES[plan.measure].symbol}"
    )
    return View(
        total=Total(float(estimate[0]), float(error[0]), tuple(int(row[0]) for row in whole), factor * float(error[0])),
        margins=own,
        derived=derived,
        estimated_by=ESTIMATED_BY,
        heading="The tree" if len(plan.layers) > 1 else "The table",
        text=(_of_layers(order) if len(plan.layers) > 1 else OF_ONE_LAYER)
        + (" The cells below it are not shown." if is_sampled(plan) else "")
        + (_of_likely_cells(divided) if likely else ""),
        caption=f"The largest branches, with estimated counts and 95 % intervals. In all: {_layers(plan)}",
        tree=largest_branches(branches, estimate, error),
        remarks=(_sampled(domain, plan, branches),) if is_sampled(plan) else (),
        pairs=pairs_of(domain, _told(domain, branches, plan, estimate)),
        warning=SHRUNK if likely and divided > 1 else "",
        standard_errors=factor,
    )  # fmt: skip


def _of_likely_cells(divided: int) -> str:
    """What rows were made of, by what `likely_cells` fits to a table of so many attributes."""
    about = {0: ALIKE, 1: ALIKE, 2: ONE_BY_ONE}.get(divided, BY_PAIRS)
    return (
        f" Of each set rows hold what cells are likely to hold, given all noisy counts: about {about}, and more or less as far "
        "as counts stand out from the noise."
    )


def _of_layers(order: str) -> str:
    return (
        f"Records were counted layer by layer, each node split by the attributes of the next layer, {order}. Every node "
        "got noise, empty ones too; children were then made to sum to their parents."
    )


def _told(domain: Domain, branches: Branches, plan: Plan, estimate: np.ndarray) -> dict[Two, Beyond | None]:
    """Cells hold every pair. Where they are too many to list, nothing is known of the error of what the tree does not count."""
    chosen = [j for j, size in enumerate(domain.sizes) if size > 1]
    return dict.fromkeys(itertools.combinations(chosen, 2)) | strengths(branches, plan, estimate)


def _layers(plan: Plan) -> str:
    said = []
    for layer in plan.layers:
        names = "" if layer.attributes is None else f"({_some(layer.attributes, 3)}) "
        at_most = "at most " if layer.nodes_are == "at most" else ""
        said.append(f"layer {layer.layer} {names}has {at_most}{layer.nodes:,} nodes")
    return "; ".join(said) + "."


def _some(names: tuple[str, ...], most: int) -> str:
    return ", ".join(names) if len(names) <= most else f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"


def _sampled(domain: Domain, plan: Plan, branches: Branches) -> str:
    """What a reader must know of cells that were too many to list."""
    threshold = threshold_of(plan.count_draw(len(plan.layers), 1, "leaves"))
    names = tuple(name for j, name in enumerate(domain.names) if j not in branches.fixed)
    return (
        f"The cells of this table, {plan.cells:,} of them, are too many to list. Every one got its noise, but only noisy "
        f"counts of {threshold:,} and more were kept. For {_some(names, 6)} there is therefore no margin with a known error: "
        "in the rows, combinations that few people have in common are mostly noise."
    )


def largest_branches(branches: Branches, estimate: np.ndarray, error: np.ndarray) -> Branch:
    """The top of the tree: the largest children of each node, as many layers as can be taken in, and how many more there
    are.
    """
    starts = np.cumsum([0, 1, *(len(nodes) for nodes in branches.layers)])
    shown = _shown_layers(branches, estimate, starts)
    total = max(float(estimate[0]), 1.0)

    def below(depth: int, node: int) -> tuple[Branch, ...]:
        children = _children(branches, depth, node)
        if depth == shown:
            what = "cells" if depth + 1 == len(branches.layers) else "nodes"
            return (_stub(f"{len(children):,} {what}"),) if len(children) else ()
        chosen = _largest(children, estimate[starts[depth + 1] :])
        found = [made(depth, int(child)) for child in chosen]
        more = len(children) - len(chosen)
        return (*found, _stub(f"{more:,} more")) if more else tuple(found)

    def made(depth: int, child: int) -> Branch:
        at = int(starts[depth + 1]) + child
        under = below(depth + 1, child) if depth + 1 < len(branches.layers) else ()
        share = max(float(estimate[at]), 0.0) / total
        return Branch(_label(branches, depth, child), float(estimate[at]), float(error[at]), share, under)

    return Branch("everyone", float(estimate[0]), float(error[0]), 1.0, below(0, 0))


def _stub(label: str) -> Branch:
    return Branch(label, 0.0, 0.0, 0.0, stub=True)


def _shown_layers(branches: Branches, estimate: np.ndarray, starts: np.ndarray) -> int:
    """How many layers can be taken in: no node with a crowd of children, and not too many lines in all."""
    front = np.zeros(1, dtype=np.int64)
    for depth in range(len(branches.layers)):
        families = [_children(branches, depth, int(node)) for node in front]
        crowded = any(len(children) > CROWD for children in families)
        if crowded or (depth and sum(min(len(children), MOST_CHILDREN) for children in families) > MOST_ROWS):
            return depth
        chosen = [_largest(children, estimate[starts[depth + 1] :]) for children in families]
        front = np.concatenate(chosen) if chosen else front[:0]
    return len(branches.layers)


def _children(branches: Branches, depth: int, node: int) -> np.ndarray:
    """All children of a node in the layer below."""
    return np.arange(*np.searchsorted(branches.layers[depth].parent, [node, node + 1]))


def _largest(children: np.ndarray, estimate: np.ndarray) -> np.ndarray:
    """The largest few, in their own order."""
    return np.sort(children[np.argsort(-estimate[children], kind="stable")[:MOST_CHILDREN]])


def _label(branches: Branches, depth: int, child: int) -> str:
    """The categories that tell a node from its siblings, such as `voted: yes`."""
    nodes, domain = branches.layers[depth], branches.space.domain
    code, parts = int(nodes.code[child]), list[str]()
    for j in reversed(branches.splits[int(nodes.split[child])]):
        code, digit = divmod(code, domain.sizes[j])
        parts.insert(0, f"{domain.names[j]}: {domain.attributes[j].shown_labels[digit]}")
    return " · ".join(parts) or "everyone, measured"


def layer_counts(domain: Domain, plan: Plan, tables: Tables, layer: int) -> pd.DataFrame:
    """The nodes of one layer: the categories their branch fixes, the estimate and its standard error."""

    import pandas as pd

    tree: Tree = read_tree(domain, tables["tree"], is_sampled(plan))
    consistent = ConsistentCounts.from_table(tables["consistent-counts"], is_sampled(plan))
    columns: dict[str, object] = {}
    for attribute, codes in zip(domain.attributes, tree.branches(layer).T, strict=True):
        if (codes >= 0).any():
            columns[attribute.name] = pd.Categorical.from_codes(codes, pd.Index(attribute.labels))
    columns |= {"estimate": consistent.estimates[layer], "standard_error": consistent.errors[layer]}
    return pd.DataFrame(columns)
