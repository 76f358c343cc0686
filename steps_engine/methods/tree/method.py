"""One tree over all attributes: the tree of STEPS, the flat table (one layer) and the universal histogram (a random order)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from schemas.plan import Plan
from schemas.spec.domain import Domain
from schemas.spec.release import Release
from steps_engine.accounting.plans import Allowance, Outline
from steps_engine.domain.counting import Counts
from steps_engine.domain.nodes import Tree
from steps_engine.methods.blocks import Block, together
from steps_engine.methods.checked import Checked
from steps_engine.methods.protocol import Candidate, Tables
from steps_engine.methods.sources import Source
from steps_engine.methods.tabulated import Asked, Tabulated
from steps_engine.methods.tree import check, predict, tabulate, view
from steps_engine.methods.tree.correct import ConsistentCounts, correct
from steps_engine.methods.tree.election import UTILITIES, Utility
from steps_engine.methods.tree.plan import outline
from steps_engine.methods.tree.sanitize import NoisyCounts, sanitize
from steps_engine.methods.tree.source import source
from steps_engine.methods.tree.sparse import is_sampled
from steps_engine.methods.tree.spec import FlatSpec, LayeredSpec, TreeSpec, UhSpec
from steps_engine.methods.tree.structure import build_tree
from steps_engine.methods.tree.synthesize import synthesize
from steps_engine.methods.tree.tables import read_tree, schemas_of, tree_table
from steps_engine.methods.views import Sketch, View
from steps_engine.noise import Randomness

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class TreeMethod:
    """A tree under one of its names. A user's utilities, and the paper's correction as printed, are exchanged here."""

    name: str
    spec: type[LayeredSpec]
    predicted: Callable[[Release], Candidate | None] = lambda release: None
    utilities: Mapping[str, Utility] = field(default_factory=lambda: UTILITIES)
    correction: Callable[[Tree, NoisyCounts, Plan, Randomness], ConsistentCounts] = correct

    def outline(self, release: Release, allowance: Allowance, randomness: Randomness | None) -> Outline:
        return outline(release, allowance, randomness, self.utilities)

    def candidate(self, release: Release) -> Candidate | None:
        return self.predicted(release)

    def build(self, domain: Domain, plan: Plan, counts: Counts | None, randomness: Randomness) -> pa.Table:
        return tree_table(build_tree(domain, plan, counts, randomness, self.utilities))

    def sanitize(self, domain: Domain, plan: Plan, counts: Counts, structure: pa.Table, randomness: Randomness) -> pa.Table:
        return sanitize(read_tree(domain, structure, is_sampled(plan)), counts, plan, randomness).to_table()

    def correct(self, domain: Domain, plan: Plan, structure: pa.Table, noisy: pa.Table, randomness: Randomness) -> pa.Table:
        tree, drawn = read_tree(domain, structure, is_sampled(plan)), NoisyCounts.from_table(noisy, is_sampled(plan))
        return self.correction(tree, drawn, plan, randomness).to_table()

    def synthesize(self, domain: Domain, plan: Plan, tables: Tables, which_set: int, randomness: Randomness) -> pa.Table:
        return together(self.blocks(domain, plan, tables, which_set, randomness))

    def blocks(self, domain: Domain, plan: Plan, tables: Tables, which_set: int, randomness: Randomness) -> list[Block]:
        consistent = ConsistentCounts.from_table(tables["consistent-counts"], is_sampled(plan))
        return synthesize(read_tree(domain, tables["tree"], is_sampled(plan)), consistent, which_set, randomness)

    def schemas(self, plan: Plan) -> dict[str, pa.Schema]:
        return schemas_of(plan)

    def check(self, domain: Domain, plan: Plan, tables: Tables) -> Checked:
        return check.check(domain, plan, tables)

    def view(self, domain: Domain, plan: Plan, tables: Tables) -> View:
        return view.view(domain, plan, tables)

    def sketch(self, plan: Plan) -> Sketch:
        return view.sketch(plan)

    def source(self, domain: Domain, plan: Plan, tables: Tables, number: int, randomness: Randomness) -> Source:
        return source(domain, plan, tables, number, randomness)

    def lacking(self, domain: Domain, plan: Plan, tables: Tables, asked: Sequence[Sequence[int]]) -> list[tuple[str, ...]]:
        return tabulate.lacking(domain, plan, tables, asked)

    def tabulate(self, domain: Domain, plan: Plan, tables: Tables, asked: Asked) -> Tabulated | str:
        return tabulate.tabulate(domain, plan, tables, asked)

    def counts(self, domain: Domain, plan: Plan, tables: Tables, layer: int) -> pd.DataFrame:
        return view.layer_counts(domain, plan, tables, layer)


FLAT = TreeMethod("flat", FlatSpec, predict.flat_candidate)
TREE = TreeMethod("tree", TreeSpec, predict.tree_candidate)
UH = TreeMethod("uh", UhSpec)
