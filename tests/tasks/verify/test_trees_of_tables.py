"""Everybody is in every table that is measured: a plan that puts two of them into layers of one tree, as if a person were in
one of them alone, would be paid once and spend as often as there are tables. The verifier finds it, whatever the method.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from schemas.plan import Plan, read_plan
from schemas.spec.domain import Domain
from schemas.spec.release import Release
from schemas.spec.weights import Weight
from steps_engine.methods.planning import make_plan
from tasks.verify.accounts import plan_problems
from tests.steps_engine.methods.households import small
from tests.steps_engine.methods.households.surveyed import surveyed
from tests.tasks.publishing.making import POLL, a_release

Json = dict[str, Any]
MEASURES = {"ε": {"epsilon": Decimal(1)}, "ρ": {"rho": Decimal("0.05"), "delta": Decimal("1e-9")}}
PLACES = Domain.model_validate(
    {
        "name": "d",
        "population": "p",
        "expected_rows": 4000,
        "attributes": (
            {
                "name": "tract",
                "kind": "categorical",
                "geography": {"levels": ("region", "tract"), "table": tuple((f"r{i // 2}", f"t{i}") for i in range(4))},
            },
            {"name": "sex", "kind": "categorical", "categories": ("f", "m")},
            {"name": "age", "kind": "integer", "bounds": (0, 3)},
        ),
    }
)
WEIGHT = Weight.model_validate({"column": "w", "bounds": (Decimal("0.5"), Decimal(8)), "total": 8000, "step": Decimal(2)})


def release_of(kind: str, measure: str) -> Release:
    if kind == "households":
        asked = small.release(small.domain())
    elif kind == "weighted households":
        asked = small.release(surveyed())
    elif kind in ("places", "weighted places"):
        domain = PLACES.model_copy(update={"weight": WEIGHT}) if kind == "weighted places" else PLACES
        asked = a_release(domain, {"decomposition": "places"})
    else:
        domain = POLL.model_copy(update={"weight": WEIGHT}) if kind == "weights" else POLL
        asked = a_release(domain, {"decomposition": "pairs", "pairs": "all"})
    privacy = type(asked.spec.privacy).model_validate(MEASURES[measure])
    return asked.model_copy(update={"spec": asked.spec.model_copy(update={"privacy": privacy})})


def price(draw: Json) -> str:
    return "epsilon" if "epsilon" in draw else "rho"


def pays(draw: Json, cost: Fraction) -> None:
    """So much, with the noise that goes with it."""
    draw["scale"] = str(Fraction(draw["scale"]) * Fraction(draw[price(draw)]) / cost)
    draw[price(draw)] = str(cost)


def into_one_tree(plan: Json) -> None:
    """Of every set the tables are leaves of one tree, each in a layer of its own: each of them pays for all."""
    of_tables = [draw for draw in plan["draws"] if "of" in draw]
    layers = {tree: layer for layer, tree in enumerate(dict.fromkeys(draw["tree"] for draw in of_tables), 1)}
    first = of_tables[0]["set"]
    total = sum((Fraction(draw[price(draw)]) for draw in of_tables if draw["set"] == first), Fraction())
    for draw in of_tables:
        draw.update(layer=layers[draw["tree"]], tree="all of them")
        pays(draw, total)


def lied(plan: Plan) -> Plan:
    document = plan.model_dump(mode="json")
    into_one_tree(document)
    return read_plan(document)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("kind", ["pairs", "weights", "places", "weighted places", "households", "weighted households"])
def test_tables_that_are_layers_of_one_tree_are_found(kind, measure):
    plan = make_plan(release_of(kind, measure))
    assert not list(plan_problems(plan, None))
    told = lied(plan)
    assert sum(draw.cost for draw in told.draws) > Fraction(plan.cost)  # everybody meets all of them
    (problem,) = plan_problems(told, None)  # nothing else would find it
    assert "the tree of all of them holds several tables" in problem


def test_a_table_that_hides_above_the_leaves_of_a_tree_of_places_is_found():
    """Counts of places end in the finest level: what is a leaf further up would be met by nobody whose way goes on."""
    plan = make_plan(release_of("places", "ρ"))
    document = plan.model_dump(mode="json")
    *others, last = [draw for draw in document["draws"] if "of" in draw and draw["set"] == 1]
    of_places = [draw for draw in document["draws"] if draw["tree"] == "tract" and draw["set"] == 1]
    pays(others[-1], Fraction(others[-1]["rho"]) + Fraction(last["rho"]))
    last.update(tree="tract", layer=1)
    pays(last, sum((Fraction(draw["rho"]) for draw in of_places), Fraction()))
    assert "the tree of tract holds several tables" in " ".join(plan_problems(read_plan(document), None))
