"""Nothing is drawn without a ChargedPlan, and only a charge makes one."""

from __future__ import annotations

import ast
import dataclasses
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.errors import EvidenceBroken
from schemas.plan import Draw, Plan
from tasks.specs import load_release
from tasks.stages import charge as charging
from tasks.stages.charge import ChargedPlan, charge
from tasks.stages.discretize import discretize
from tasks.stages.plan import load_plan, plan
from tasks.stages.sanitize import sanitize
from tasks.stores.artifacts import Store
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tests.flows.small import make_small

ROOT = Path(__file__).parents[3]
PLACE = "tasks/stages/charge.py"


@pytest.fixture
def paid(tmp_path: Path) -> tuple:
    """Home, release, plan and cells of a small release, and what paying for it gave."""
    small = make_small(tmp_path, rows=601)
    home, asked = Home(small.home), load_release(small.release)
    open_ledger(home).grant("small-people", 10**9, "a test")
    planned, cells = plan(home, asked), discretize(home, asked)
    return home, asked, planned, cells, charge(home, asked, planned, cells, {})


def test_a_charge_gives_the_plan_that_it_paid_for(paid: tuple):
    home, asked, planned, cells, charged = paid
    assert (charged.plan, charged.new, charged.attempt) == (load_plan(Store(home), planned), True, 1)
    again = charge(home, asked, planned, cells, {})
    assert (again.plan, again.new, again.attempt) == (charged.plan, False, 1)


def test_nobody_else_can_make_one(paid: tuple):
    charged = paid[-1]
    for till in (None, "charged", object(), True):
        with pytest.raises(TypeError, match="made by charge"):
            ChargedPlan(charged.plan, True, 1, till)
    with pytest.raises(TypeError):
        ChargedPlan(charged.plan, True, 1)
    with pytest.raises((TypeError, ValueError), match="till"):
        dataclasses.replace(charged, plan=charged.plan.model_copy(update={"epsilon": "9"}))
    with pytest.raises(dataclasses.FrozenInstanceError):
        charged.plan = charged.plan


def test_one_that_is_sent_to_another_process_stays_what_it_is(paid: tuple):
    charged = paid[-1]
    assert pickle.loads(pickle.dumps(charged)) == charged  # noqa: S301  what Dask does


def test_another_plan_than_the_charged_one_is_not_drawn(paid: tuple):
    home, asked, planned, cells, charged = paid
    other = charged.plan.model_copy(update={"epsilon": "9"})
    with pytest.raises(EvidenceBroken, match="not the one that was charged"):
        sanitize(home, asked, planned, cells, planned, ChargedPlan(other, True, 1, charging._Till.CHARGED))
    assert not [entry for entry in open_ledger(home).entries() if entry.kind == "seal" and entry.population]


def makers(path: str, tree: ast.Module) -> Iterator[str]:
    """Calls of ChargedPlan, and uses of what its constructor asks for, outside the module that charges."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "ChargedPlan" and path != PLACE:
            yield path
        if isinstance(node, ast.Name | ast.Attribute | ast.alias) and ast.unparse(node).endswith("_Till") and path != PLACE:
            yield path


@pytest.mark.whole
def test_only_the_module_that_charges_makes_one():
    ours = [path for layer in ("flows", "tasks", "steps_engine", "schemas") for path in (ROOT / layer).rglob("*.py")]
    found = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in ours}
    assert PLACE in found and "ChargedPlan(" in found[PLACE]
    assert [each for path, text in found.items() for each in makers(path, ast.parse(text))] == []


@pytest.mark.parametrize(
    "snippet",
    ["ChargedPlan(plan, True, 1, till)", "charge.ChargedPlan(plan, True, 1, till)", "from tasks.stages.charge import _Till"],
)
def test_making_one_elsewhere_would_be_noticed(snippet: str):
    assert list(makers("tasks/stages/sanitize.py", ast.parse(snippet)))


def test_a_plan_alone_is_not_taken_for_a_charged_one(paid: tuple):
    home, asked, planned, cells, charged = paid
    assert isinstance(charged.plan, Plan)
    with pytest.raises(AttributeError):
        sanitize(home, asked, planned, cells, planned, charged.plan)


def test_a_plan_that_would_not_verify_is_neither_sealed_nor_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    small = make_small(tmp_path, rows=601)
    home, asked = Home(small.home), load_release(small.release)
    made = load_plan(Store(home), plan(home, asked))
    quiet = made.model_copy(update={"draws": tuple(_with_half_the_noise(draw) for draw in made.draws)})
    monkeypatch.setattr("tasks.stages.plan.make_plan", lambda *_: quiet)
    other = load_release(small.write("another"))
    with pytest.raises(EvidenceBroken, match="its plan would not verify: .* Nothing was charged. The program is at fault"):
        plan(home, other)
    assert Store(home).find("another", "plan") is None


def _with_half_the_noise(draw: Draw) -> Draw:
    return draw.model_copy(update={"scale": draw.scale / 2})
