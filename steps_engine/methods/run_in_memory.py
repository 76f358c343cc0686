"""One call from a frame one may look at to synthetic frames, for notebooks and studies. A release goes through `steps run`."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import pandas as pd

from schemas.plan import Plan
from schemas.spec.domain import Domain
from schemas.spec.release import Method, Privacy, Release, ReleaseSpec, check_order
from steps_engine.domain.counting import count_codes
from steps_engine.domain.encoding import encode
from steps_engine.domain.nodes import Tree
from steps_engine.methods.tree.correct import ConsistentCounts, correct
from steps_engine.methods.tree.election import UTILITIES, Utility
from steps_engine.methods.tree.plan import make_plan
from steps_engine.methods.tree.sanitize import sanitize
from steps_engine.methods.tree.structure import build_tree
from steps_engine.methods.tree.synthesize import synthesize
from steps_engine.noise import Randomness, SystemRandomness


@dataclass(frozen=True)
class Synthetic:
    """Synthetic frames, and the consistent counts with standard errors that they were made from."""

    frames: tuple[pd.DataFrame, ...]
    plan: Plan
    tree: Tree
    consistent: ConsistentCounts

    def counts(self, layer: int) -> pd.DataFrame:
        """The nodes of one layer: the categories their branch fixes, the estimate and its standard error."""
        columns = {}
        for attribute, codes in zip(self.tree.domain.attributes, self.tree.branches(layer).T, strict=True):
            if (codes >= 0).any():
                columns[attribute.name] = pd.Categorical.from_codes(codes, list(attribute.labels))
        columns |= {"estimate": self.consistent.estimates[layer], "standard_error": self.consistent.errors[layer]}
        return pd.DataFrame(columns)


def synthesize_frame(
    frame: pd.DataFrame,
    domain: Domain,
    epsilon: float | str | Decimal,
    method: Method,
    privacy: dict | None = None,
    utility: Utility | None = None,
    randomness: Randomness | None = None,
) -> Synthetic:
    """Plan, count, build, sanitize, correct and synthesize in memory. `utility` is a user's own, named in method.elect."""
    asked = Privacy.model_validate({"epsilon": Decimal(str(epsilon)), **(privacy or {})})
    spec = ReleaseSpec(name="notebook", dataset="-", source="-", privacy=asked, method=method)
    check_order(spec, domain, "method")
    utilities = UTILITIES | ({utility.name: utility} if utility else {})
    randomness = randomness or SystemRandomness()
    plan = make_plan(Release(spec=spec, domain=domain, folder="."), randomness, utilities)
    counts = count_codes(encode(frame, domain))
    tree = build_tree(domain, plan, counts, randomness, utilities)
    consistent = correct(tree, sanitize(tree, counts, plan, randomness), plan, randomness)
    frames = tuple(synthesize(tree, consistent, i, randomness).to_pandas() for i in range(1, plan.sets + 1))
    return Synthetic(frames, plan, tree, consistent)
