"""One runner for notebooks, studies, benchmarks and tests: a whole release in memory. A real one goes through `steps run`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import steps_engine.methods  # noqa: F401  registers the methods
from schemas.plan import Plan
from schemas.spec.domain import Domain
from schemas.spec.method import MethodSpec
from schemas.spec.release import Privacy, Release, ReleaseSpec, check_names
from steps_engine.domain.counting import Counts
from steps_engine.domain.encoding import count_frame
from steps_engine.methods.after_noise import Drawn
from steps_engine.methods.planning import make_plan
from steps_engine.methods.protocol import Method
from steps_engine.methods.registry import method_named
from steps_engine.methods.tree.election import Utility
from steps_engine.methods.tree.method import TREE
from steps_engine.noise import Randomness, SystemRandomness

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Synthetic:
    """Synthetic records, and the public tables that they were made from: what a bundle would hold."""

    domain: Domain
    method: Method
    plan: Plan
    tables: dict[str, pa.Table]

    @property
    def records(self) -> tuple[pa.Table, ...]:
        return tuple(self.tables[f"synthetic-{i}"] for i in range(1, self.plan.sets + 1))

    @property
    def frames(self) -> tuple[pd.DataFrame, ...]:
        return tuple(table.to_pandas() for table in self.records)

    def counts(self, layer: int) -> pd.DataFrame:
        """Estimates of one layer (or one attribute's tree) with labels and standard errors."""
        return self.method.counts(self.domain, self.plan, self.tables, layer)


def run(release: Release, counts: Counts, randomness: Randomness, method: Method | None = None) -> Synthetic:
    """Plan, build, sanitize, correct and synthesize; `method` stands in for the registered one."""
    plan = make_plan(release, randomness, method)
    return run_plan(release.domain, plan, counts, randomness, method)


def run_plan(domain: Domain, plan: Plan, counts: Counts, randomness: Randomness, method: Method | None = None) -> Synthetic:
    """Everything after the plan."""
    does = method or method_named(plan.decomposition)
    structure = does.build(domain, plan, counts if plan.structure_is_drawn else None, randomness)
    noisy = does.sanitize(domain, plan, counts, structure, randomness)
    tables = {"tree": structure, "noisy-counts": noisy}
    drawn = Drawn(domain, plan, structure, noisy)
    tables["consistent-counts"] = drawn.correct(does)
    for i in range(1, plan.sets + 1):
        blocks = drawn.blocks(does, tables["consistent-counts"], i)
        made = list(drawn.linked(does, tables["consistent-counts"], blocks, i))
        tables |= {f"{name}-{i}": pa.concat_tables(each[name] for each in made) for name in made[0]}
    return Synthetic(domain, does, plan, tables)


def synthesize_frame(
    frame: pd.DataFrame,
    domain: Domain,
    epsilon: float | str | Decimal | None,
    method: MethodSpec,
    privacy: dict[str, Any] | None = None,
    utility: Utility | None = None,
    randomness: Randomness | None = None,
) -> Synthetic:
    """From a frame one may look at to synthetic frames, at ε or, with `privacy` {"delta": …}, at (ε, δ); None: at its "rho".

    `utility` is a user's own, named in method.elect of a tree.
    """
    written = {"epsilon": epsilon, **(privacy or {})}
    numbers = {name: Decimal(str(written[name])) for name in ("epsilon", "rho", "delta") if written.get(name) is not None}
    asked = Privacy.model_validate({**written, **numbers})
    spec = ReleaseSpec(name="notebook", dataset="-", source="-", privacy=asked, method=method)
    check_names(spec, domain)
    release = Release(spec=spec, domain=domain, folder=".")
    return run(release, count_frame(frame, domain), randomness or SystemRandomness(), _knowing(utility, method))


def _knowing(utility: Utility | None, spec: MethodSpec) -> Method | None:
    """The method that was asked for, electing by the user's utility too."""
    if utility is None:
        return None
    if spec.decomposition != TREE.name:
        raise TypeError(f"a utility of one's own needs decomposition: tree; {spec.decomposition} takes none")
    return replace(TREE, utilities={**TREE.utilities, utility.name: utility})
