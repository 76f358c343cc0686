"""PrivBayes as published, with the right noise: a baseline. What was sanitized is a cascade of trees of one layer."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from schemas.plan import Plan
from schemas.spec.domain import Domain
from schemas.spec.method import MethodSpec
from schemas.spec.release import Release
from steps_engine.accounting.plans import Allowance, Outline
from steps_engine.domain.counting import Counts
from steps_engine.methods.blocks import Block
from steps_engine.methods.cascade.method import CascadeMethod
from steps_engine.methods.cascade.tables import read_sanitized, trees_table
from steps_engine.methods.checked import Checked
from steps_engine.methods.privbayes import check
from steps_engine.methods.privbayes.network import as_tree, elect_network
from steps_engine.methods.privbayes.plan import outline
from steps_engine.methods.privbayes.spec import PrivBayesSpec
from steps_engine.methods.privbayes.synthesize import sampled, synthesize_privbayes
from steps_engine.methods.protocol import Candidate, Tables
from steps_engine.methods.sources import Drawn, Source, measurement_of
from steps_engine.noise import Randomness


@dataclass(frozen=True)
class PrivBayesMethod(CascadeMethod):
    name: str = "privbayes"
    spec: type[MethodSpec] = PrivBayesSpec

    def outline(self, release: Release, allowance: Allowance, randomness: Randomness | None) -> Outline:
        return outline(release, allowance)

    def candidate(self, release: Release) -> Candidate | None:
        return None  # a baseline is asked for by name

    def build(self, domain: Domain, plan: Plan, counts: Counts | None, randomness: Randomness) -> pa.Table:
        network = elect_network(domain, plan, counts, randomness)
        return trees_table(domain, tuple(as_tree(domain, j, parents) for j, parents in network))

    def check(self, domain: Domain, plan: Plan, tables: Tables) -> Checked:
        return check.check(domain, plan, tables)

    def source(self, domain: Domain, plan: Plan, tables: Tables, number: int, randomness: Randomness) -> Source:
        network, measurement = read_sanitized(domain, tables), measurement_of(plan, number)
        return Drawn(lambda rows, more: sampled(domain, network, measurement, rows, more))

    def blocks(self, domain: Domain, plan: Plan, tables: Tables, which_set: int, randomness: Randomness) -> list[Block]:
        return synthesize_privbayes(domain, plan, read_sanitized(domain, tables), which_set, randomness)


PRIVBAYES = PrivBayesMethod()
