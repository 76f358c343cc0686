"""Awkward domains and random records that every engine test can use."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np

from schemas.spec.domain import Domain
from schemas.spec.method import MethodSpec, method_spec
from schemas.spec.release import Release, ReleaseSpec
from steps_engine.domain.counting import Counts, count_codes
from steps_engine.methods.tree.election import Utility
from steps_engine.methods.tree.method import TREE, TreeMethod


def domain(*sizes: int, rules: tuple = (), **more) -> Domain:
    attributes = tuple({"name": f"x{j}", "kind": "integer", "bounds": (0, size - 1)} for j, size in enumerate(sizes))
    return Domain.model_validate({"name": "d", "population": "p", "attributes": attributes, "rules": rules, **more})


def never(**values) -> dict:
    return {"never": values}


SHAPES = {
    "one attribute": domain(5),
    "one cell": domain(1),
    "a category without choice": domain(3, 1, 2),
    "binary": domain(2, 2, 2),
    "uneven": domain(2, 7, 3, 5),
    "a rule": domain(2, 3, 4, rules=(never(x0=1, x1=0),)),
    "rules that end branches early": domain(2, 3, 2, rules=(never(x0=1, x1=(1, 2)), never(x0=1, x2=1))),
    "chained rules": domain(3, 3, 3, 2, rules=(never(x0=0, x1=(0, 1)), never(x1=2, x2=2), never(x2=0, x3=1, x0=2))),
}


def placed(missing: str = "forbid", rules: tuple = ()) -> Domain:
    """Two regions, three counties, six tracts."""
    table = tuple(("ab"[t > 3], f"c{t // 2}", f"t{t}") for t in range(6))
    place = {"name": "tract", "kind": "categorical", "missing": missing}
    place["geography"] = {"levels": ("region", "county", "tract"), "table": table}
    attributes = [{"name": name, "kind": "integer", "bounds": (0, most)} for name, most in (("x0", 1), ("x2", 2), ("x3", 0))]
    known = {"name": "d", "population": "p", "expected_rows": 300, "rules": rules}
    return Domain.model_validate(known | {"attributes": (attributes[0], place, *attributes[1:])})


PLACED = placed()
RULED = placed(
    "category",
    (never(tract="t1", x2=(0, 1)), never(county="c1", x0=1), never(region="b", x2=2, x0=0), never(region=None, x2=0)),
)

METHODS = {
    "flat": method_spec(decomposition="flat"),
    "tree, one layer given": method_spec(decomposition="tree", order=("x0",)),
    "tree, elected": method_spec(decomposition="tree", elect={"layers": 1}),
    "uh": method_spec(decomposition="uh", layers=1),
}


def electing_by(*utilities: Utility) -> TreeMethod:
    """The tree method with these utilities alone."""
    return replace(TREE, utilities={utility.name: utility for utility in utilities})


def allowed_cells(of: Domain) -> list[tuple[int, ...]]:
    """Brute force: every combination of codes that breaks no rule."""
    every = [tuple(int(c) for c in cell) for cell in np.ndindex(*of.sizes)]
    return [cell for cell in every if not any(all(cell[j] in codes for j, codes in rule.items()) for rule in of.forbidden)]


def records(of: Domain, rows: int, seed: int = 0) -> np.ndarray:
    cells = np.array(allowed_cells(of))
    rng = np.random.default_rng(seed)
    return cells[rng.choice(len(cells), size=rows, p=rng.dirichlet(np.full(len(cells), 0.5)))]


def counted(of: Domain, rows: int, seed: int = 0) -> Counts:
    return count_codes(records(of, rows, seed))


def release(of: Domain, method: MethodSpec, epsilon: str = "1", **privacy) -> Release:
    spec = {"name": "r", "dataset": "d", "source": "s", "privacy": {"epsilon": Decimal(epsilon), **privacy}, "method": method}
    return Release(spec=ReleaseSpec.model_validate(spec), domain=of, folder=".")
