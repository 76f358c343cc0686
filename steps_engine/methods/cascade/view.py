"""What people are shown of a cascade or a Bayesian network: a tree per attribute, its share, and on what it was split."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from schemas.plan import Draw, Plan
from schemas.spec.domain import Domain
from steps_engine.accounting.measures import MEASURES
from steps_engine.accounting.mechanisms import noise_of
from steps_engine.inference.reach import standard_errors
from steps_engine.inference.strength import Beyond, strength
from steps_engine.methods.cascade.attribute_tree import AttributeTree
from steps_engine.methods.cascade.sanitize import Cascade
from steps_engine.methods.cascade.synthesize import leaf_variances
from steps_engine.methods.cascade.tables import read_sanitized, read_trees, total_with_error
from steps_engine.methods.cascade.tabulate import tabulated
from steps_engine.methods.margins import ESTIMATED_BY, margins_of
from steps_engine.methods.protocol import Tables
from steps_engine.methods.relations import Two, pairs_of
from steps_engine.methods.views import Dependent, Sketch, SketchRow, Total, View

if TYPE_CHECKING:
    import pandas as pd


def sketch(plan: Plan) -> Sketch:
    rows = []
    for layer in plan.layers:
        name = layer.attributes[0] if layer.attributes else ""
        mine = [draw for draw in plan.draws if draw.kind == "count" and draw.tree == name]
        nodes = ("≤ " if layer.nodes_are == "at most" else "") + f"{layer.nodes:,}"
        deepest = [draw for draw in mine if draw.layer == mine[-1].layer]  # of every set the leaves that most elections led to
        share = f"{float(sum(draw.cost for draw in deepest) / Fraction(plan.cost)):.2%}"
        widest = noise_of(mine[-1]).length if mine else None
        rows.append(SketchRow(layer.layer, name, nodes, share, widest, layer.expected_error))
    whole = sum(draw.cost for draw in plan.draws if draw.kind == "count" and draw.tree is None) / Fraction(plan.cost)
    remark = f"rows      {float(whole):.2%} of {MEASURES[plan.measure].symbol} counts how many there are"
    said_of = {draw.name: said(draw) for draw in plan.draws}
    return Sketch("tree", "of", tuple(rows), "shares", said_of, (remark,) if whole else ())


def said(draw: Draw) -> str:
    """What a draw sanitizes or elects.

    >>> draw = Draw(name="", kind="count", mechanism="two_sided_geometric", layer=2, set=None, tree="age", nodes="leaves",
    ...             sensitivity=1, epsilon=1, scale=1)
    >>> said(draw)
    'age: histograms below 2 elections'
    """
    if draw.tree is None:
        return f"election {draw.layer + 1} over all attributes" if draw.kind == "election" else "number of rows"
    what = f"election {draw.layer + 1}" if draw.kind == "election" else f"histograms below {draw.layer} elections"
    return f"{draw.tree}: {what}"


def view(domain: Domain, plan: Plan, tables: Tables) -> View:
    """Margins from all trees that tell of them, and who was split on whom."""
    sanitized = read_sanitized(domain, tables)
    sets = [tables[f"synthetic-{i}"] for i in range(1, plan.sets + 1)]
    total, error = total_with_error(plan, sanitized)
    margins, derived = margins_of(domain, partial(tabulated, domain, plan, sanitized), sets)
    pure = "" if plan.measure == "pure" else "a pure "
    return View(
        total=Total(total, error, tuple(each.num_rows for each in sets), standard_errors(plan) * error),
        margins=margins,
        derived=derived,
        estimated_by=ESTIMATED_BY,
        heading="The trees",
        text="Every attribute has a tree of its own over the attributes above it: the groups of predecessors on which it "
        f"depends most were elected privately with a share of {MEASURES[plan.measure].symbol}, and its histogram was measured "
        "at the leaves. Every leaf got noise, empty ones too.",
        caption="A full arc: the attribute's tree is first split on that predecessor. A dashed one: some branch of it is split "
        "on that one later. On the right, how many histograms of how many categories were measured.",
        network=tuple(_dependent(domain, tree) for tree in sanitized.trees),
        pairs=pairs_of(domain, _strengths(plan, sanitized)),
        standard_errors=standard_errors(plan),
        warning="The trees of this release leave some dependence out, and no interval knows of that: in simulations, 95 % "
        f"intervals from such sets covered as they say at {pure}ε = 10 and clearly less at {pure}ε = 2.",
    )


def _strengths(plan: Plan, sanitized: Cascade) -> dict[Two, Beyond | None]:
    """Of every pair that some tree was split on: from the leaves whose branch fixes the predecessor."""
    found: dict[Two, Beyond | None] = {}
    for tree, noisy in zip(sanitized.trees, sanitized.noisy, strict=True):
        branches, mean = tree.branches(), noisy.mean(axis=0)
        noise = leaf_variances(tree, plan)[:, None] * tree.allowed / plan.measurements
        for j in np.flatnonzero((branches >= 0).any(axis=0)).tolist():
            table, variance = np.zeros((2, tree.sizes[j], tree.categories))
            fixed = branches[:, j] >= 0
            np.add.at(table, branches[fixed, j], mean[fixed])
            np.add.at(variance, branches[fixed, j], noise[fixed])
            found[min(j, tree.attribute), max(j, tree.attribute)] = strength(table, variance)
    return found


def _dependent(domain: Domain, tree: AttributeTree) -> Dependent:
    layers = reversed([*enumerate(tree.layers)])  # the first layer that splits on j wins
    depth_of = {j: depth for depth, layer in layers for split in np.unique(layer) for j in tree.splits[split]}
    on = tuple((domain.names[j], depth == 0) for j, depth in sorted(depth_of.items()))
    return Dependent(domain.names[tree.attribute], on, tree.leaves, tree.categories)


def tree_counts(domain: Domain, plan: Plan, tables: Tables, number: int) -> pd.DataFrame:
    """The histograms of one attribute's tree (1, 2, … in order): what a leaf's branch fixes, the category, estimate and
    error.
    """

    import pandas as pd

    table = tables["consistent-counts"].to_pandas().query("tree == @number")
    tree = read_trees(domain, tables["tree"])[number - 1]
    branches, columns = tree.branches()[table["leaf"].to_numpy()], {}
    for attribute, codes in zip(domain.attributes, branches.T, strict=True):
        if (codes >= 0).any():
            columns[attribute.name] = pd.Categorical.from_codes(codes, pd.Index(attribute.labels))
    own = domain.attributes[tree.attribute]
    columns[own.name] = pd.Categorical.from_codes(table["category"].to_numpy(), pd.Index(own.labels))
    return pd.DataFrame(columns | {name: table[name].to_numpy() for name in ("estimate", "standard_error")})
