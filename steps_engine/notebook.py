"""One call from a frame one may look at to synthetic frames, for notebooks and studies. A release goes through `steps run`."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import pandas as pd

from schemas.domain import Domain
from schemas.plan import Plan
from schemas.release import Method, Privacy, Release, ReleaseSpec, check_order
from steps_engine.consistency import ConsistentCounts, correct
from steps_engine.counting import count_codes
from steps_engine.election import UTILITIES, Utility
from steps_engine.encoding import encode
from steps_engine.nodes import Tree
from steps_engine.noise import Source, SystemSource
from steps_engine.planning import make_plan
from steps_engine.sanitize import sanitize
from steps_engine.synthesis import synthesize
from steps_engine.tree import build_tree


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
    source: Source | None = None,
) -> Synthetic:
    """Plan, count, build, sanitize, correct and synthesize in memory. `utility` is a user's own, named in method.elect."""
    asked = Privacy.model_validate({"epsilon": Decimal(str(epsilon)), **(privacy or {})})
    spec = ReleaseSpec(name="notebook", dataset="-", source="-", privacy=asked, method=method)
    check_order(spec, domain, "method")
    utilities = UTILITIES | ({utility.name: utility} if utility else {})
    source = source or SystemSource()
    plan = make_plan(Release(spec=spec, domain=domain, folder="."), source, utilities)
    counts = count_codes(encode(frame, domain))
    tree = build_tree(domain, plan, counts, source, utilities)
    consistent = correct(tree, sanitize(tree, counts, plan, source), plan, source)
    frames = tuple(synthesize(tree, consistent, i, source).to_pandas() for i in range(1, plan.sets + 1))
    return Synthetic(frames, plan, tree, consistent)

