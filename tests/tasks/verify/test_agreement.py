"""The planner and the verifier were written apart, and agree on every method; what is changed in a plan, the verifier finds."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from schemas.errors import SpecError
from schemas.plan import Draw, Plan
from schemas.spec.domain import Domain
from steps_engine.methods.planning import make_plan
from steps_engine.noise import SeededRandomness
from tasks.publishing.publication import publish
from tasks.verify.accounts import domain_problems, plan_problems
from tasks.verify.bundle import verify_bundle
from tasks.verify.tables import CHECKS
from tasks.verify.ways import figures_of, ways_of
from tests.tasks.publishing.making import a_release, make, some_counts
from tests.tasks.verify.methods import METHODS, domain_of, release_of, room_for, tables_of

ASKED = {"ε": {"epsilon": "0.7"}, "ρ": {"rho": "0.02", "delta": "1e-9"}, "ε at δ": {"epsilon": "0.7", "delta": "1e-9"}}
SETS = {"one": None, "split": {"count": 2}, "shared": {"count": 2, "budget": "shared"}}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("sets", SETS)
@pytest.mark.parametrize(("neighbours", "rows"), [("add_remove", 1), ("add_remove", 3), ("substitute", 1), ("substitute", 3)])
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.whole
def test_planner_and_verifier_agree_on_every_method(name, sets, neighbours, rows, asked):
    release = release_of(name, rows, SETS[sets], **ASKED[asked], neighbours=neighbours)
    with room_for(name):
        plan = make_plan(release, SeededRandomness(1))
    checked = CHECKS[plan.decomposition].check(release.domain, plan, tables_of(release.domain, plan, _counts(release.domain)))
    assert checked.findings == () and checked.ends is not None
    assert list(plan_problems(plan, checked.ends)) == [] == list(domain_problems(plan, release.domain))
    assert figures_of(plan).total == Fraction(plan.cost) and (plan.cost == "0.7") == (asked == "ε")
    assert any(draw.threshold for draw in plan.draws) == name.startswith("sampled")


def _counts(domain: Domain):
    return some_counts(domain, 400)


@pytest.mark.parametrize("asked", ["ε", "ε at δ"])
@pytest.mark.parametrize(
    "name", ["groups", "cascade, rows not public", "cascade, order elected", "privbayes", "pairs", "pairs, elected"]
)
@pytest.mark.whole
def test_a_person_with_three_rows_is_protected_through_the_whole_bundle(tmp_path, name, asked):
    release = release_of(name, 3, SETS["split"], **ASKED[asked], neighbours="substitute")
    made = make(tmp_path / "home", release, some_counts(domain_of(name), 400))
    folder = publish(*made.arguments).folder
    assert verify_bundle(folder, made.home.keys / "signing-key.pub") == []


def test_a_single_attribute_has_no_order_and_no_split_to_elect():
    release = a_release(_domain([4], 1, 1000), {"decomposition": "cascade", "order": "elected"})
    plan = make_plan(release)
    assert plan.election is None and {draw.kind for draw in plan.draws} == {"count"}
    assert list(plan_problems(plan, {"a0": frozenset({0})})) == []


# Any spec


def _domain(sizes: list[int], rows_per_person: int, expected_rows: int | None) -> Domain:
    named = [
        {"name": f"a{j}", "kind": "categorical", "categories": tuple(f"c{k}" for k in range(size))}
        for j, size in enumerate(sizes)
    ]
    plain = {"name": "d", "population": "p", "attributes": tuple(named), "expected_rows": expected_rows}
    return Domain.model_validate(plain | {"unit": {"rows_per_person": rows_per_person}})


@st.composite
def methods(draw: st.DrawFn, attributes: int) -> dict[str, Any]:
    layers = draw(st.integers(1, attributes))
    what = draw(st.sampled_from(["attributes", "groups"]))
    utility = draw(st.sampled_from(["aic", "bic", "uneven"]))
    share = draw(st.sampled_from([Decimal("0.1"), Decimal("0.37")]))
    mechanism = draw(st.sampled_from(["permute_and_flip", "exponential"]))
    elect = {"layers": layers, "what": what, "utility": utility, "share": share, "mechanism": mechanism}
    elect |= {"stop": True} if what == "attributes" and utility == "uneven" and draw(st.booleans()) else {}
    return draw(
        st.sampled_from(
            [
                {"decomposition": "tree", "elect": elect},
                {"decomposition": "tree", "order": tuple(f"a{j}" for j in range(layers))},
                {"decomposition": "uh", "layers": layers, "shares": draw(st.sampled_from(["equal", "cube_root"]))},
                {"decomposition": "flat"},
                {"decomposition": "cascade"},
                {"decomposition": "cascade", "order": "elected"},
                {"decomposition": "privbayes"},
                {"decomposition": "pairs", "pairs": draw(st.sampled_from([None, "all", 1, 2]))},
            ]
        )
    )


FIGURES = [{"epsilon": epsilon} for epsilon in ("0.000000001", "0.3", "1", "12.75")]
FIGURES += [{"epsilon": epsilon, "delta": delta} for epsilon, delta in (("0.05", "1e-9"), ("1", "1e-9"), ("40", "3.7e-30"))]
FIGURES += [{"rho": rho, "delta": delta} for rho, delta in (("0.000000001", "1e-9"), ("0.3", "1.5e-10"), ("100", "1e-300"))]


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    domain = _domain(sizes, draw(st.integers(1, 3)), draw(st.sampled_from([None, 1000])))
    sets = {"count": draw(st.integers(1, 4)), "budget": draw(st.sampled_from(["split", "shared"]))}
    method = draw(methods(len(sizes))) | {"sets": sets}
    privacy = {"neighbours": draw(st.sampled_from(["add_remove", "substitute"])), **draw(st.sampled_from(FIGURES))}
    try:
        return make_plan(a_release(domain, method, **privacy), SeededRandomness(1))
    except SpecError:
        assume(False)
        raise


@settings(max_examples=300)
@given(plans())
@pytest.mark.whole
def test_no_plan_of_any_spec_is_found_wrong(plan):
    assert list(plan_problems(plan, None)) == []
    assert figures_of(plan).total == Fraction(plan.cost)
    assert sum(figures_of(plan).measurements) + figures_of(plan).structure == Fraction(plan.cost)


CHANGES = {
    "half the noise": lambda draw: [_with(draw, scale=draw.scale / 2)],
    "a tenth less noise": lambda draw: [_with(draw, scale=draw.scale * 9 / 10)],
    "twice the share": lambda draw: [_with(draw, **_share(draw, 2), scale=draw.scale / 2)],
    "half the share": lambda draw: [_with(draw, **_share(draw, Fraction(1, 2)), scale=2 * draw.scale)],
    "half the sensitivity": lambda draw: [_with(draw, sensitivity=draw.sensitivity / 2, scale=draw.scale / 2)],
    "no share": lambda draw: [_with(draw, **_share(draw, 0))],
    "paid in the other measure": lambda draw: [_with(draw, epsilon=draw.rho, rho=draw.epsilon)],
    "paid in both measures": lambda draw: [_with(draw, epsilon=draw.cost, rho=draw.cost)],
    "dropped": lambda draw: [],
    "doubled": lambda draw: [draw, draw],
    "put out of the way": lambda draw: [_with(draw, layer=draw.layer + 100)],
    "for another set": lambda draw: [_with(draw, set=101)],
    "for a tree that is not there": lambda draw: [_with(draw, tree="nowhere")],
    "with another mechanism": lambda draw: [
        _with(draw, mechanism="two_sided_geometric" if draw.kind == "election" else "exponential")
    ],
}


def _share(draw: Draw, times: Fraction | int) -> dict[str, Fraction]:
    return {"epsilon" if draw.rho is None else "rho": times * draw.cost}


def _with(draw: Draw, **change: Any) -> Draw:
    return draw.model_copy(update=change)


@settings(max_examples=400)
@given(plans(), st.data())
@pytest.mark.whole
def test_whatever_is_changed_in_one_draw_is_found(plan, data):
    """`published` are the ends of the honest plan: the structure is there for everyone to see."""
    published = {tree.tree: tree.ends for tree in ways_of(plan).trees}
    place = data.draw(st.integers(0, len(plan.draws) - 1))
    change = data.draw(st.sampled_from(sorted(CHANGES)))
    assume(change != "put out of the way" or plan.draws[place] not in ways_of(plan).common)  # everybody meets it anywhere
    draws = (*plan.draws[:place], *CHANGES[change](plan.draws[place]), *plan.draws[place + 1 :])
    assert list(plan_problems(plan.model_copy(update={"draws": draws}), published))
