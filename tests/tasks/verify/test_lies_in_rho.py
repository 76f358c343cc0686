"""Planted lies of releases in ρ: each is told by plan, manifest, charge and signature alike, and nothing else is wrong."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from schemas.errors import EvidenceBroken
from schemas.manifest import adds_up
from steps_engine.accounting import mechanisms, plans
from steps_engine.accounting.conversion import epsilon_of
from tasks.publishing import bundle
from tasks.publishing.publication import publish
from tasks.verify.bundle import verify_bundle
from tests.tasks.publishing.making import Made, edit_json, forge_charge, forge_plan, make, sign_again, some_counts
from tests.tasks.verify.methods import release_of
from tests.tasks.verify.test_bundle import HOSTILE_TEXTS, must_find_in_plan, must_find_only, problems_of

pytestmark = pytest.mark.whole

PlanJson = dict[str, Any]
RHO = {"rho": "0.02", "delta": "1e-9"}

# By name: the method, rows per person, what is asked, and the measure of the account.
HONEST: dict[str, tuple[str, int, dict[str, str], str]] = {
    "given": ("given", 1, RHO, "zcdp"),
    "three rows": ("given", 3, RHO, "zcdp"),
    "replaced": ("given", 1, RHO | {"neighbours": "substitute"}, "zcdp"),
    "elected": ("elected", 1, RHO, "zcdp"),
    "elected, replaced": ("elected", 1, RHO | {"neighbours": "substitute"}, "zcdp"),
    "cascade": ("cascade", 1, {"epsilon": "1", "delta": "1e-9"}, "zcdp"),
    "with a reason": ("flat", 1, {"rho": "0.02", "delta": "2e-4", "delta_why": "a study of public records"}, "zcdp"),
    "pure, paid in ρ": ("elected", 1, {"epsilon": "0.7"}, "zcdp"),
    "pure": ("given", 1, {"epsilon": "0.7"}, "pure"),
}


@pytest.fixture(scope="module")
def bundles(tmp_path_factory) -> Callable[[str], Made]:
    """Honest bundles by name, each made when first asked for. Not to be changed."""
    made: dict[str, Made] = {}

    def get(name: str) -> Made:
        if name not in made:
            method, rows, asked, account = HONEST[name]
            release = release_of(method, rows, {"count": 2}, **asked)
            counts = some_counts(release.domain, 4003)
            made[name] = make(tmp_path_factory.mktemp("lies") / "home", release, counts, account=account)
            publish(*made[name].arguments)
        return made[name]

    return get


@pytest.fixture
def copied(bundles, tmp_path) -> Callable[[str], tuple[Path, Made]]:
    """A copy of an honest bundle, which verifies."""

    def get(name: str) -> tuple[Path, Made]:
        made = bundles(name)
        folder = Path(shutil.copytree(made.home.public / made.release.name, tmp_path / "copy"))
        assert problems_of(folder) == []
        return folder, made

    return get


@pytest.mark.parametrize("name", HONEST)
def test_every_honest_release_verifies(bundles, name):
    made = bundles(name)
    folder = made.home.public / made.release.name
    assert verify_bundle(folder, made.home.keys / "signing-key.pub") == []
    manifest = json.loads((folder / bundle.MANIFEST).read_bytes())
    assert manifest["format"] == ("steps-release/2" if name == "pure" else "steps-release/3")
    assert manifest["ledger"]["charge"].get("measure") == (None if name == "pure" else "zcdp")
    assert json.loads((folder / bundle.PLAN).read_bytes())["format"] == (2 if "pure" in name else 3)


# Lies of the plan


def _times(draws: list[dict[str, Any]], factor: Fraction, *keys: str) -> None:
    for draw in draws:
        draw.update({key: str(Fraction(draw[key]) * factor) for key in keys})


def _drawn(plan: PlanJson, kind: str) -> list[dict[str, Any]]:
    return [draw for draw in plan["draws"] if draw["kind"] == kind]


def noise_too_small_by_a_fifth(plan: PlanJson) -> None:
    _times(_drawn(plan, "count")[:1], Fraction(4, 5), "scale")


def k_in_place_of_its_square(plan: PlanJson) -> None:
    _times(plan["draws"], Fraction(1, 3), "sensitivity", "scale")


def a_replacement_at_the_price_of_a_removal(plan: PlanJson) -> None:
    _times(_drawn(plan, "count"), Fraction(1, 2), "sensitivity", "scale")


def an_elections_replacement_at_the_price_of_a_removal(plan: PlanJson) -> None:
    _times(_drawn(plan, "election"), Fraction(1, 2), "sensitivity", "scale")


def an_election_at_twice_the_rate(plan: PlanJson) -> None:
    _times(_drawn(plan, "election")[:1], Fraction(1, 2), "scale")


def permute_and_flip_at_an_eighth(plan: PlanJson) -> None:
    plan["election"]["mechanism"] = "permute_and_flip"
    for draw in _drawn(plan, "election"):
        draw["mechanism"] = "permute_and_flip"


def gaussian_noise_called_geometric(plan: PlanJson) -> None:
    """At scale 6 it costs (1/6)²/2 = 1/72."""
    for draw in _drawn(plan, "count"):
        draw.update(mechanism="two_sided_geometric", scale="6")


def an_epsilon_that_is_understated(plan: PlanJson) -> None:
    plan["epsilon"] = "1.16"


def a_delta_that_is_understated(plan: PlanJson) -> None:
    plan["delta"] = "1e-10"


def an_order_that_proves_less(plan: PlanJson) -> None:
    plan["order"] = 29.5


def an_order_that_proves_nothing(plan: PlanJson) -> None:
    plan["order"] = 1


def a_draw_dropped(plan: PlanJson) -> None:
    plan["draws"].remove(_drawn(plan, "election")[0])


LIES: dict[Callable[[PlanJson], None], tuple[str, str]] = {
    noise_too_small_by_a_fifth: ("given", "by discrete_gaussian at its scale it costs ρ="),
    k_in_place_of_its_square: ("three rows", "has sensitivity 3; one person can change it by 9"),
    a_replacement_at_the_price_of_a_removal: ("replaced", "has sensitivity 1; one person can change it by 2"),
    an_elections_replacement_at_the_price_of_a_removal: (
        "elected, replaced",
        "has sensitivity 2; one person can change it by 4",
    ),
    an_election_at_twice_the_rate: ("elected", "by exponential at its scale it costs ρ="),
    permute_and_flip_at_an_eighth: ("elected", "by permute_and_flip at its scale it costs ρ="),
    gaussian_noise_called_geometric: ("given", "by two_sided_geometric at its scale it costs ρ=0.0138888889"),
    an_epsilon_that_is_understated: ("given", "ε=1.16 is promised at δ=1e-9; of ρ=0.02 the order"),
    a_delta_that_is_understated: ("given", "is promised at δ=1e-10; of ρ=0.02 the order"),
    an_order_that_proves_less: ("given", "the order 29.5 proves ε=1.16"),
    an_order_that_proves_nothing: ("given", "only a finite one above 1 proves an ε"),
}


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
def test_a_lie_that_plan_manifest_charge_and_signature_agree_on_is_found(copied, lie):
    name, words = LIES[lie]
    folder, made = copied(name)
    forge_plan(folder, made.home, lie)
    must_find_in_plan(folder, words)


def test_a_plan_that_costs_more_than_it_says_is_found(copied):
    """The charge agrees with what is said: the draws do not."""
    folder, made = copied("given")
    forge_plan(folder, made.home, lambda plan: plan.update(rho="0.01"), amount=10_000_000)
    must_find_only(folder, "plan.json", "sum to 1/50, not to ρ=0.01")


def test_a_draw_that_nobody_lists_is_found(copied):
    folder, made = copied("cascade")
    forge_plan(folder, made.home, a_draw_dropped)
    assert any(problem.file == "plan.json" for problem in problems_of(folder))


def test_gaussian_noise_that_is_called_pure_is_found(copied):
    """The whole release says ε where it said ρ: no ε alone bounds Gaussian noise."""

    def call_it_pure(plan: PlanJson) -> None:
        for key in ("measure", "rho", "delta", "delta_why", "order"):
            del plan[key]
        for draw in plan["draws"]:
            draw["epsilon"] = draw.pop("rho")
        plan.update(format=2, epsilon="0.02")

    folder, made = copied("given")
    forge_plan(folder, made.home, call_it_pure, measure=None)
    must_find_only(folder, "plan.json", "discrete_gaussian has no price in ε")


# What the planner itself believes in


def _planned_with(wrong: pytest.MonkeyPatch, name: str, **change: Any) -> None:
    for table in (mechanisms.COUNTS, mechanisms.ELECTIONS, mechanisms.COUNTING, mechanisms.ELECTING):
        for key, mechanism in table.items():
            if mechanism.name == name:
                wrong.setitem(table, key, dataclasses.replace(mechanism, **change))


def _rows_without_their_square(wrong: pytest.MonkeyPatch) -> None:
    _planned_with(wrong, "discrete_gaussian", sensitivity=lambda rows, replaced: Fraction((2 if replaced else 1) * rows))


def _noise_a_fifth_too_small(wrong: pytest.MonkeyPatch) -> None:
    cheap = mechanisms.Price(lambda square, scale: square * 2 / (5 * scale), lambda square, cost: square * 2 / (5 * cost))
    _planned_with(wrong, "discrete_gaussian", prices={"zcdp": cheap})


def _elections_at_twice_the_rate(wrong: pytest.MonkeyPatch) -> None:
    _planned_with(wrong, "exponential", prices={"zcdp": mechanisms._by_square(32)})


def _an_epsilon_of_another_conversion(wrong: pytest.MonkeyPatch) -> None:
    """As if δ were a thousand times what it is."""
    wrong.setattr(plans, "epsilon_of", lambda rho, delta: epsilon_of(rho, 1000 * delta))


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (_rows_without_their_square, "has sensitivity 3; one person can change it by 9"),
        (_noise_a_fifth_too_small, "by discrete_gaussian at its scale it costs ρ="),
        (_elections_at_twice_the_rate, "by exponential at its scale it costs ρ="),
        (_an_epsilon_of_another_conversion, "is promised at δ=1e-9; of ρ=0.02 the order"),
    ],
)
def test_a_planner_that_is_wrong_cannot_publish(tmp_path, monkeypatch, mistake, words):
    mistake(monkeypatch)
    release = release_of("elected", 3, **RHO)
    made = make(tmp_path / "home", release, some_counts(release.domain, 400))
    with pytest.raises(EvidenceBroken, match=words):
        publish(*made.arguments)


# Plans that no schema reads


def _pay_in_epsilon(plan: PlanJson) -> None:
    plan["draws"][0]["epsilon"] = plan["draws"][0].pop("rho")


def _pay_in_both(plan: PlanJson) -> None:
    plan["draws"][0]["epsilon"] = plan["draws"][0]["rho"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(_pay_in_epsilon, id="a draw paid in the other measure"),
        pytest.param(_pay_in_both, id="a draw paid in both measures"),
        pytest.param(lambda plan: plan.update(format=2), id="format 2 with rho"),
        pytest.param(lambda plan: plan.update(measure="pure"), id="pure with rho"),
        pytest.param(lambda plan: plan.pop("measure"), id="no measure"),
        pytest.param(lambda plan: plan.pop("order"), id="no order"),
        pytest.param(lambda plan: plan.update(delta=None), id="no delta"),
        pytest.param(lambda plan: plan.update(rho=None), id="no rho"),
    ],
)
def test_a_plan_of_two_minds_is_no_plan(copied, change):
    folder, made = copied("given")
    edit_json(folder / bundle.PLAN, change)
    sign_again(folder, made.home)
    must_find_only(folder, "plan.json", "does not have the form of this format")


# Lies of the charge


@pytest.mark.parametrize(
    ("name", "charge", "words"),
    [
        pytest.param(
            "given", {"amount": 19_999_999}, "ρ=0.019999999 was charged; the release promises ρ=0.02", id="too little"
        ),
        pytest.param("given", {"measure": None}, "which no ε without δ can pay for", id="no measure"),
        pytest.param(
            "given",
            {"measure": None, "amount": 1_163_287_327, "charged_after": 2 * 10**9, "granted_after": 4 * 10**9},
            "which no ε without δ can pay for",
            id="the ε at δ, charged in ε",
        ),
        pytest.param(
            "pure, paid in ρ", {"amount": 244_999_999}, "promises ε=0.7, which costs ρ=0.245", id="a pure release, too little"
        ),
        pytest.param("pure, paid in ρ", {"measure": None}, "ε=0.245 was charged; the release promises ε=0.7", id="ρ called ε"),
        pytest.param(
            "pure", {"measure": "zcdp"}, "ρ=0.7 was charged; the release promises ε=0.7, which costs", id="ε called ρ"
        ),
    ],
)
def test_a_charge_that_does_not_pay_for_the_release_is_found(copied, name, charge, words):
    folder, made = copied(name)
    sign_again(folder, made.home, lambda manifest: forge_charge(manifest, **charge))
    must_find_only(folder, "manifest.json", words)


def test_a_measure_dropped_from_the_charge_breaks_the_chain_too(copied):
    folder, made = copied("given")
    sign_again(folder, made.home, lambda manifest: manifest["ledger"]["charge"].pop("measure"))
    texts = [problem.text for problem in problems_of(folder)]
    assert len(texts) == 2 and any("head of the ledger" in text for text in texts)


# Lies of the manifest


@pytest.mark.parametrize(
    "change",
    [
        {"rho": "0.01"},
        {"epsilon": "0.5"},
        {"delta": "1e-12"},
        {"order": 31.5},
        {"delta_why": "because"},
        {"definition": "pure differential privacy"},
        {"sentence": "Perfect secrecy."},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_guarantee_other_than_the_plans_is_found(copied, change):
    folder, made = copied("given")
    sign_again(folder, made.home, lambda manifest: manifest["guarantee"].update(change))
    must_find_only(folder, "manifest.json", "the guarantee is not the one that the plan gives")


def test_a_guarantee_that_hides_its_rho_is_found(copied):
    def hide(manifest: dict[str, Any]) -> None:
        for key in ("rho", "delta", "delta_why", "order"):
            del manifest["guarantee"][key]
        manifest["guarantee"]["definition"] = "pure differential privacy"

    folder, made = copied("given")
    sign_again(folder, made.home, hide)
    must_find_only(folder, "manifest.json", "the guarantee is not the one that the plan gives")


@pytest.mark.parametrize(
    ("name", "format"), [("given", "steps-release/2"), ("pure, paid in ρ", "steps-release/2"), ("pure", "steps-release/3")]
)
def test_a_manifest_of_another_format_than_it_needs_is_found(copied, name, format):
    folder, made = copied(name)
    sign_again(folder, made.home, lambda manifest: manifest.update(format=format))
    must_find_only(folder, "manifest.json", "does not have the form of this format")


def test_a_release_in_rho_cannot_pass_for_one_of_the_first_format(copied):
    folder, made = copied("given")
    sign_again(folder, made.home, lambda manifest: manifest.update(format="steps-release/1"))
    assert any(problem.file == "manifest.json" for problem in problems_of(folder))


@pytest.mark.parametrize("format", ["steps-release/4", "steps-release/12"])
def test_a_format_that_is_not_known_is_said_to_be_newer_and_not_damaged(copied, format):
    folder, made = copied("given")
    sign_again(folder, made.home, lambda manifest: manifest.update(format=format))
    said = f"has format {format}, and this version knows none after steps-release/3: a newer version of this software made it"
    must_find_only(folder, "manifest.json", said)


@pytest.mark.parametrize("format", ["steps-release/0", "steps-release/3x", "steps-release/99999", "4", 4, None])
def test_a_format_that_no_version_writes_is_damage(copied, format):
    folder, made = copied("given")
    sign_again(folder, made.home, lambda manifest: manifest.update(format=format))
    must_find_only(folder, "manifest.json", "does not have the form of this format")


@pytest.mark.parametrize(("name", "sentence"), [("given", "share no row"), ("pure, paid in ρ", "hold different people")])
def test_why_costs_add_up_is_told_as_the_format_of_the_plan_tells_it(copied, name, sentence):
    folder, made = copied(name)
    told = json.loads((folder / bundle.MANIFEST).read_bytes())["composition"]["sentence"]
    assert f"Nodes of one layer of a tree {sentence}, so" in told
    swapped = adds_up(made.plan.model_copy(update={"format": 5 - made.plan.format}))
    assert swapped != told
    sign_again(folder, made.home, lambda manifest: manifest["composition"].update(sentence=swapped))
    must_find_only(folder, "manifest.json", "the composition is not the one that the plan gives")


# δ


def test_a_delta_not_far_below_one_in_all_rows_is_found(copied):
    folder, made = copied("given")
    edit_json(folder / bundle.DOMAIN, lambda domain: domain.update(expected_rows=10**7 + 1))
    sign_again(folder, made.home)
    must_find_only(folder, "domain.json", "δ=1e-9, and 10000001 rows are expected: that is not far below one in all of them")


@pytest.mark.parametrize("reason", [None, "", " "])
def test_a_reason_for_a_large_delta_cannot_be_taken_away(copied, reason):
    folder, made = copied("with a reason")
    forge_plan(folder, made.home, lambda plan: plan.update(delta_why=reason))
    must_find_only(folder, "domain.json", "δ=2e-4, and 4000 rows are expected")


# Hostile numbers


@pytest.mark.parametrize(
    "order", [1, 0, -1, 1.0000000000000002, 1e300, "inf", "-inf", "nan", "1e400", "9" * 5000, True, [], {}]
)
def test_a_hostile_order_is_a_problem_and_never_a_crash(copied, order):
    folder, made = copied("given")
    edit_json(folder / bundle.PLAN, lambda plan: plan.update(order=order))
    sign_again(folder, made.home, lambda manifest: manifest["guarantee"].update(order=order))
    assert problems_of(folder)


@pytest.mark.parametrize(
    "figure", ["1e-999", "1e-9999", "1e-999999999", "0", "1", "nan", "inf", "1e9", "9" * 5000, 1e-9, -1, None]
)
@pytest.mark.parametrize("name", ["delta", "rho", "epsilon"])
def test_hostile_figures_are_a_problem_and_never_a_crash(copied, name, figure):
    folder, made = copied("given")
    edit_json(folder / bundle.PLAN, lambda plan: plan.update({name: figure}))
    sign_again(folder, made.home, lambda manifest: manifest["guarantee"].update({name: figure}))
    assert problems_of(folder)


@pytest.mark.parametrize("figure", ["1e999999999", "1/0", "0", "-1", "nan", "9" * 500, "1/" + "9" * 500, "9" * 5000])
@pytest.mark.parametrize("key", ["rho", "scale", "sensitivity"])
@pytest.mark.parametrize("name", ["elected", "cascade"])
def test_hostile_draws_are_a_problem_and_never_a_crash(copied, name, key, figure):
    """All of the draws at once: noise of no width, or of one that no memory holds."""
    folder, made = copied(name)
    lie = [draw.model_dump(mode="json") | {key: figure} for draw in made.plan.draws]
    edit_json(folder / bundle.PLAN, lambda plan: plan.update(draws=lie))
    sign_again(folder, made.home, lambda manifest: manifest.update(draws=lie))
    assert problems_of(folder)


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_hostile_json_is_a_problem_and_never_a_crash(copied, text):
    folder, made = copied("given")
    (folder / bundle.PLAN).write_bytes(HOSTILE_TEXTS[text])
    sign_again(folder, made.home)
    assert any(problem.file == bundle.PLAN for problem in problems_of(folder))
