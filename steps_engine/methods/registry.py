"""The ways to decompose a table, as one shape: plan, build, sanitize, correct, synthesize, from tables to tables.

Stages store what these return and hand it to the next one, so a stage does not know which decomposition it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from schemas import tables
from schemas.identity import spec_hash
from schemas.plan import Plan
from schemas.spec.domain import Domain
from schemas.spec.release import Release
from steps_engine.domain.counting import Counts
from steps_engine.methods import choosing
from steps_engine.methods.cascade import growth as cascade
from steps_engine.methods.cascade import synthesize as walk
from steps_engine.methods.cascade import tables as forest
from steps_engine.methods.cascade.plan import make_cascade_plan
from steps_engine.methods.privbayes import network as privbayes
from steps_engine.methods.tree import correct as consistency
from steps_engine.methods.tree import plan as planning
from steps_engine.methods.tree import sanitize
from steps_engine.methods.tree import structure as tree
from steps_engine.methods.tree import synthesize as synthesis
from steps_engine.noise import Randomness


@dataclass(frozen=True)
class Decomposition:
    """`counts` are confidential and read by build (only if the plan elects) and sanitize alone."""

    plan: Callable[[Release, Randomness | None], Plan]
    build: Callable[[Domain, Plan, Counts | None, Randomness], pa.Table]
    sanitize: Callable[[Domain, Plan, Counts, pa.Table, Randomness], pa.Table]
    correct: Callable[[Domain, Plan, pa.Table, pa.Table, Randomness], pa.Table]
    synthesize: Callable[[Domain, Plan, dict[str, pa.Table], int, Randomness], pa.Table]
    schemas: Callable[[Plan], dict[str, pa.Schema]]


def decomposition_of(plan: Plan) -> Decomposition:
    return DECOMPOSITIONS[plan.decomposition]


def make_plan(release: Release, randomness: Randomness | None = None) -> Plan:
    """The plan of a release; `auto` takes the decomposition whose error is predicted to be least."""
    if release.spec.method.decomposition != "auto":
        return DECOMPOSITIONS[release.spec.method.decomposition].plan(release, randomness)
    considered = choosing.consider(release)
    best = min(considered, key=lambda each: each.predicted_error).decomposition
    plan = DECOMPOSITIONS[best].plan(choosing.decided(release, best), randomness)
    return plan.model_copy(update={"considered": considered, "spec_hash": spec_hash(release)})


# One tree over all attributes


def _build_tree(domain: Domain, plan: Plan, counts: Counts | None, randomness: Randomness) -> pa.Table:
    return tree.build_tree(domain, plan, counts, randomness).to_table()


def _sanitize_tree(domain: Domain, plan: Plan, counts: Counts, grown: pa.Table, randomness: Randomness) -> pa.Table:
    return sanitize.sanitize(tree.read_tree(domain, grown, plan.sparse), counts, plan, randomness).to_table()


def _correct_tree(domain: Domain, plan: Plan, grown: pa.Table, noisy: pa.Table, randomness: Randomness) -> pa.Table:
    drawn = sanitize.NoisyCounts.from_table(noisy, plan.sparse)
    return consistency.correct(tree.read_tree(domain, grown, plan.sparse), drawn, plan, randomness).to_table()


def _synthesize_tree(domain: Domain, plan: Plan, made: dict[str, pa.Table], which_set: int, randomness: Randomness) -> pa.Table:
    counts = consistency.ConsistentCounts.from_table(made["consistent-counts"], plan.sparse)
    return synthesis.synthesize(tree.read_tree(domain, made["tree"], plan.sparse), counts, which_set, randomness)


def _tree_schemas(plan: Plan) -> dict[str, pa.Schema]:
    noisy, consistent = tables.noisy_counts(plan.measurements, plan.sparse), tables.consistent_counts(plan.sets, plan.sparse)
    return {"tree": tables.TREE, "noisy-counts": noisy, "consistent-counts": consistent}


# One tree per attribute


def _grow(domain: Domain, plan: Plan, counts: Counts | None, randomness: Randomness) -> pa.Table:
    return forest.trees_table(domain, cascade.grow(domain, plan, counts, randomness))


def _elect_network(domain: Domain, plan: Plan, counts: Counts | None, randomness: Randomness) -> pa.Table:
    network = privbayes.elect_network(domain, plan, counts, randomness)
    return forest.trees_table(domain, tuple(privbayes.as_tree(domain, j, parents) for j, parents in network))


def _measure(domain: Domain, plan: Plan, counts: Counts, grown: pa.Table, randomness: Randomness) -> pa.Table:
    trees = forest.read_trees(domain, grown)
    total = None if plan.total == "estimated" else int(counts.count.sum())
    return forest.noisy_table(cascade.Cascade(domain, trees, cascade.measure(trees, plan, counts, randomness), total))


def _estimate(domain: Domain, plan: Plan, grown: pa.Table, noisy: pa.Table, randomness: Randomness) -> pa.Table:
    return forest.estimates_table(plan, forest.read_noisy(domain, forest.read_trees(domain, grown), noisy))


def _measured(domain: Domain, made: dict[str, pa.Table]) -> cascade.Cascade:
    return forest.read_noisy(domain, forest.read_trees(domain, made["tree"]), made["noisy-counts"])


def _walk(domain: Domain, plan: Plan, made: dict[str, pa.Table], which_set: int, randomness: Randomness) -> pa.Table:
    return walk.synthesize_cascade(domain, plan, _measured(domain, made), which_set, randomness)


def _sample(domain: Domain, plan: Plan, made: dict[str, pa.Table], which_set: int, randomness: Randomness) -> pa.Table:
    return privbayes.synthesize_privbayes(domain, plan, _measured(domain, made), which_set, randomness)


def _forest_schemas(plan: Plan) -> dict[str, pa.Schema]:
    noisy = tables.forest_noisy(plan.measurements)
    return {"tree": tables.FOREST, "noisy-counts": noisy, "consistent-counts": tables.FOREST_COUNTS}


_TREE = Decomposition(planning.make_plan, _build_tree, _sanitize_tree, _correct_tree, _synthesize_tree, _tree_schemas)
DECOMPOSITIONS = {
    "tree": _TREE,
    "flat": _TREE,
    "uh": _TREE,
    "cascade": Decomposition(lambda release, _: make_cascade_plan(release), _grow, _measure, _estimate, _walk, _forest_schemas),
    "privbayes": Decomposition(
        lambda release, _: privbayes.make_privbayes_plan(release), _elect_network, _measure, _estimate, _sample, _forest_schemas
    ),
}
