"""A cascade and a Bayesian network as releases: published, verified, and every forgery of their evidence found."""

from __future__ import annotations

import shutil
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from steps_engine.methods.planning import make_plan
from steps_engine.methods.registry import method_of
from tasks.publishing.publication import publish
from tasks.verify.bundle import verify_bundle
from tests.tasks.publishing import making
from tests.tasks.publishing.making import POLL, a_release, forge_plan, make, sign_again, some_counts

pytestmark = pytest.mark.whole  # every test begins with a release

METHODS = {
    "cascade, shared": {"decomposition": "cascade", "sets": {"count": 2, "budget": "shared"}},
    "cascade, split": {"decomposition": "cascade", "sets": {"count": 2}},
    "cascade, order elected": {"decomposition": "cascade", "order": "elected"},
    "privbayes": {"decomposition": "privbayes", "sets": {"count": 2}},
}


@pytest.fixture(scope="module", params=METHODS.values(), ids=METHODS)
def made(request, tmp_path_factory) -> making.Made:
    found = make(tmp_path_factory.mktemp("forest") / "home", a_release(POLL, request.param), some_counts(POLL, 4003))
    publish(*found.arguments)
    return found


@pytest.fixture
def copy(made, tmp_path) -> Path:
    return Path(shutil.copytree(made.home.public / made.release.name, tmp_path / "copy"))


def texts(folder: Path) -> list[str]:
    return [str(problem) for problem in verify_bundle(folder) if not problem.note]


def test_it_verifies_and_its_page_shows_the_trees(made, copy):
    assert texts(copy) == []
    page = (copy / "index.html").read_text()
    assert "The trees" in page and "elected privately" in page


def test_its_draws_sum_to_epsilon(made):
    plan = made.plan
    assert method_of(plan).schemas(plan)["tree"].names[0] == "tree"
    assert sum(draw.epsilon for draw in plan.draws if draw.kind == "election") < Fraction(plan.epsilon)


def change(table: pa.Table, column: str, row: int, value) -> pa.Table:
    values = table[column].to_pylist()
    values[row] = value
    return table.set_column(
        table.column_names.index(column), table.schema.field(column), [pa.array(values, table.schema.field(column).type)]
    )


FORGED = {
    "a noisy cell is left out": ("noisy-counts.parquet", lambda t: t.slice(1)),
    "a noisy cell stands twice": ("noisy-counts.parquet", lambda t: pa.concat_tables([t, t.slice(0, 1)])),
    "an estimate is embellished": ("consistent-counts.parquet", lambda t: change(t, "estimate", 0, 1e6)),
    "an error bar is shortened": ("consistent-counts.parquet", lambda t: change(t, "standard_error", 0, 0.001)),
    "a tree splits on what comes later": ("tree.parquet", lambda t: change(t, "split", 0, f'["{POLL.names[-1]}"]')),
    "a tree is missing": ("tree.parquet", lambda t: t.filter(pc.less(t["tree"], 2))),
    "a node is missing": ("tree.parquet", lambda t: t.slice(0, len(t) - 1)),
}


@pytest.mark.parametrize("file, forge", FORGED.values(), ids=FORGED)
def test_a_forged_table_is_found_even_when_signed_again(made, copy, file, forge):
    pq.write_table(forge(pq.read_table(copy / file)), copy / file, compression="zstd")
    sign_again(copy, made.home)
    assert any(text.startswith((file, "plan.json")) for text in texts(copy))


DISHONEST = {
    "half the noise": lambda d: d.model_copy(update={"scale": d.scale / 2}),
    "a share too many": lambda d: d.model_copy(update={"epsilon": d.epsilon * 2, "scale": d.scale / 2}),
    "too small a sensitivity": lambda d: d.model_copy(update={"sensitivity": d.sensitivity / 2, "scale": d.scale / 2}),
}


@pytest.mark.parametrize("cheat", DISHONEST.values(), ids=DISHONEST)
@pytest.mark.parametrize("kind", ["election", "count"])
def test_a_dishonest_plan_is_found_even_when_signed_again(made, copy, cheat, kind):
    first = next(i for i, draw in enumerate(made.plan.draws) if draw.kind == kind)
    cheated = cheat(made.plan.draws[first]).model_dump(mode="json")
    forge_plan(copy, made.home, lambda plan: plan["draws"].__setitem__(first, cheated))
    assert any("plan.json" in text for text in texts(copy))


def test_auto_says_what_it_compared():
    plan = make_plan(a_release(POLL, {"decomposition": "auto"}))
    assert plan.decomposition in ("flat", "cascade")
    assert {"flat", "cascade"} <= {each.decomposition for each in plan.considered}
