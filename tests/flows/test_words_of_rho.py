"""Where ρ is paid, commands and the Prefect UI say ρ, and what it promises; where ε is paid, they say what they said."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from flows.output import json_views, terminal
from flows.output.plan_picture import tree_svg
from schemas.budget import UNIT, parse_nanos, show_nanos
from schemas.errors import SpecError
from steps_engine.accounting.conversion import epsilon_of
from steps_engine.methods.planning import make_plan
from steps_engine.noise import SeededRandomness
from tasks.specs import load_release
from tasks.stores.charging import ChargeRequest
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tests.flows.small import RELEASE, Small
from tests.flows.test_release_flow import events_about, last_flow_run
from tests.flows.without_prefect import run_stages

RHO = "0.02, delta: 1e-9"
CASCADE = "method: {decomposition: cascade}"


def asks_rho(small: Small, rho: str = RHO, name: str = "small-1") -> Path:
    path = small.write(name=name)
    path.write_text(path.read_text().replace("epsilon: 0.5", f"rho: {rho}"))
    return path


def granted(steps, *amount: str) -> None:
    assert steps("budget", "grant", "small-people", *amount, "--why", "a test").code == 0


def test_plan_answers_rho_with_what_it_promises(small: Small, steps):
    asks_rho(small)
    said = steps("plan", small.release, "--json").json
    assert (said["measure"], said["rho"], said["delta"]) == ("zcdp", "0.02", "1e-9")
    assert [promise["delta"] for promise in said["promises"]] == ["1e-6", "1e-9", "1e-12"]
    for promise in said["promises"]:
        exact = epsilon_of(Fraction("0.02"), float(promise["delta"]))
        assert (Fraction(promise["epsilon"]), promise["order"]) == (exact.value, exact.order)
    assert said["epsilon"] == said["promises"][1]["epsilon"]
    assert 0.3 < said["pure_epsilon_of_same_noise"] < 1
    assert said["balance"] is said["balance_measure"] is said["charge"] is None


def test_plan_prints_rho_with_what_it_promises(small: Small, steps):
    asks_rho(small)
    granted(steps, "--rho", "0.1")
    out = steps("plan", small.release).out
    assert "share of ρ" in out and "noise σ" in out and "share of ε" not in out
    assert "cost      ρ = 0.02 for each person   (population small-people: 0.1 left)" in out
    assert "promises  ε = 1.164 at δ = 1e-9, ε = 0.9 at δ = 1e-6, ε = 1.379 at δ = 1e-12" in out
    assert "pure      as much noise would cost about ε = 0.565 without δ: pure epsilon is cheaper here" in out


def test_a_pure_plan_says_what_it_said_and_has_no_rho(small: Small, steps):
    granted(steps, "2")
    said, out = steps("plan", small.release, "--json").json, steps("plan", small.release).out
    assert (said["measure"], said["rho"], said["delta"], said["promises"]) == ("pure", None, None, [])
    assert said["pure_epsilon_of_same_noise"] is None and "order" not in said and said["format"] == 2
    assert (said["balance"], said["balance_measure"], said["charge"]) == ("2", "pure", "0.5")
    assert "cost      ε = 0.5 for each person   (population small-people: 2 left)" in out
    assert "share of ε" in out and "noise scale" in out and "ρ" not in out and "promises" not in out


def test_plan_says_what_a_budget_in_the_other_measure_would_do(small: Small, steps):
    granted(steps, "--rho", "0.2")
    assert "(population small-people: ρ = 0.2 left, charged as ρ = 0.125)" in steps("plan", small.release).out
    assert steps("plan", small.release, "--json").json["charge"] == "0.125"


def test_plan_says_that_rho_cannot_be_paid_from_a_budget_in_epsilon(small: Small, steps):
    granted(steps, "4")
    asks_rho(small)
    assert "(population small-people: ε = 4 left, from which ρ cannot be paid)" in steps("plan", small.release).out
    assert steps("plan", small.release, "--json").json["charge"] is None


@pytest.mark.parametrize(("asked", "symbol", "other"), [("epsilon: 0.5", "ε", "ρ"), (f"rho: {RHO}", "ρ", "ε")])
def test_the_picture_of_the_plan_says_which_share_it_shows(small: Small, asked: str, symbol: str, other: str):
    lines = small.release.read_text().replace("epsilon: 0.5", asked).splitlines()
    small.release.write_text("\n".join(CASCADE if line.startswith("method") else line for line in lines))
    picture = tree_svg(make_plan(load_release(small.release), SeededRandomness(1)))
    assert f"% of {symbol}<" in picture and f"% of {other}<" not in picture


@pytest.mark.parametrize(
    ("grant", "asked", "words"),
    [
        (("1",), "epsilon: 0.5", "budget      ε = 0.5 charged for each person; 0.5 left for small-people"),
        (
            ("--rho", "1"),
            "epsilon: 0.5",
            "budget      ρ = 0.125 charged for ε = 0.5 for each person; 0.875 left for small-people",
        ),
        (
            ("--rho", "1"),
            f"rho: {RHO}",
            "budget      ρ = 0.02 charged for ε = 1.164 at δ = 1e-9 for each person; 0.98 left for small-people",
        ),
    ],
)
def test_the_outcome_says_what_was_charged(small: Small, steps, capsys, grant: tuple, asked: str, words: str):
    granted(steps, *grant)
    small.release.write_text(small.release.read_text().replace("epsilon: 0.5", asked))
    home, release = Home(small.home), load_release(small.release)
    plan = make_plan(release, SeededRandomness(1))
    hashes = plan.hash, plan.spec_hash, "f" * 64
    nanos = parse_nanos(plan.cost)
    request = ChargeRequest("small-1", "small-people", nanos, plan.neighbours, plan.unit, *hashes, measure=plan.measure)
    open_ledger(home).charge(request)
    answer = json_views.outcome(home, release, Path("x"), charged=True, charges=1)
    terminal.outcome(answer)
    assert words in capsys.readouterr().out
    assert answer["epsilon"] == plan.epsilon and ("rho" in answer) == (grant[0] == "--rho")


def descriptions(flow_run_id) -> dict[str, str]:
    from prefect import get_client
    from prefect.client.schemas.filters import ArtifactFilter

    with get_client(sync_client=True) as client:
        ours = ArtifactFilter.model_validate({"flow_run_id": {"any_": [flow_run_id]}})
        return {each.key: each.description or "" for each in client.read_artifacts(artifact_filter=ours) if each.key}


@pytest.mark.usefixtures("heard_by_the_server")
@pytest.mark.whole
def test_a_release_in_rho_is_refused_and_shown_in_rho(small: Small, steps):
    granted(steps, "--rho", "0.01")
    asks_rho(small, name="refused-rho")
    said = steps("run", small.release, "--json")
    assert said.code == 3 and "asks ρ=0.02; 0.01 of 0.01 is left" in said.json["error"]
    plan = descriptions(last_flow_run().id)["plan-refused-rho"]
    assert "charged as" not in plan, "the budget's measure is the plan's"
    assert plan.startswith("refused-rho costs ρ = 0.02 of small-people (ε = 0.89") and "ε = 1.163287327 at δ = 1e-9" in plan
    assert events_about("refused-rho") == [{"measure": "zcdp", "asked": "0.02", "left": "0.01", "granted": "0.01"}]


@pytest.mark.usefixtures("heard_by_the_server")
@pytest.mark.whole
def test_a_pure_release_that_a_budget_in_rho_refuses_is_told_in_rho(small: Small, steps):
    granted(steps, "--rho", "0.1")
    small.write(name="refused-pure")
    assert steps("run", small.release).code == 3
    plan = descriptions(last_flow_run().id)["plan-refused-pure"]
    assert plan.startswith("refused-pure costs ε = 0.5 of small-people, charged as ρ = 0.125: ")
    assert events_about("refused-pure") == [{"measure": "zcdp", "asked": "0.125", "left": "0.1", "granted": "0.1"}]


@pytest.mark.usefixtures("prefect_server")
@pytest.mark.whole
def test_the_budget_s_progress_is_in_rho_and_in_the_epsilon_that_it_is(small: Small, steps):
    granted(steps, "--rho", "0.04", "--delta", "1e-6")
    asks_rho(small, name="shown-rho")
    said = steps("run", small.release)
    assert (
        said.code == 0 and "ρ = 0.02 charged for ε = 1.164 at δ = 1e-9 for each person; 0.02 left for small-people" in said.out
    )
    spent, all_of_it = (show_nanos(int(epsilon_of(Fraction(rho), 1e-6).value * UNIT)) for rho in ("0.02", "0.04"))
    assert descriptions(last_flow_run().id)["budget-small-people"] == (
        f"ρ = 0.02 of 0.04 is spent; 0.02 is left (at δ = 1e-6: ε = {spent} spent, {all_of_it} granted)"
    )


def test_rho_that_a_budget_in_epsilon_can_never_pay_is_refused_before_a_record_is_read(small: Small, steps):
    granted(steps, "4")
    asks_rho(small, name="no-price")
    (small.folder / "records.parquet").unlink()  # a look at it would fail
    before = open_ledger(Home(small.home)).entries()
    with pytest.raises(SpecError, match="has no price there. Nothing was charged"):
        run_stages(Home(small.home), small.release)
    after = open_ledger(Home(small.home)).entries()[len(before) :]
    assert [entry.details.get("stage") for entry in after] == ["plan"], "nothing but the plan was sealed, nothing charged"
    said = steps("run", small.release, "--json")
    assert said.code == 2 and "has no price there" in said.json["error"]


def test_a_budget_in_rho_pays_for_both_so_that_records_are_read(small: Small, steps):
    """The control: only what has no price is refused so early."""
    granted(steps, "--rho", "1")
    (small.folder / "records.parquet").unlink()
    for asked in (small.write(name="pure"), asks_rho(small, name="in-rho")):
        with pytest.raises(SpecError, match="records.parquet"):
            run_stages(Home(small.home), asked)


def test_plan_says_what_part_of_the_budget_elections_take(small: Small, steps):
    elected = "elect: {layers: 1, share: 0.25}"
    small.write(release=RELEASE.replace("order: [region]", elected))
    out = steps("plan", small.release).out
    assert "elections 25% of ε, to choose what is measured" in out and "37.50%" in out
    small.write()
    assert "elections" not in steps("plan", small.release).out
