"""Names that look like figures, and units that are not persons, go through a whole release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors import SpecError
from schemas.spec.domain import load_domain
from steps_engine.methods.planning import make_plan
from steps_engine.noise import SeededRandomness
from tasks.publishing import bundle
from tasks.specs import load_release
from tasks.stages.validate import silent_gx
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tasks.verify.bundle import verify_bundle
from tests.flows.without_prefect import run_stages
from tests.tasks.publishing.making import forge_plan

pytestmark = pytest.mark.whole

DATASET = """
name: e3
population: e2
expected_rows: 300
unit: {column: home, rows_per_person: 12, WHO}
attributes:
  - {name: e, kind: categorical, categories: [E1, "1e5"]}
  - {name: e_2, kind: categorical, categories: ["no", "yes"]}
  - {name: age, kind: integer, bounds: [18, 22]}
"""
RELEASE = """
name: e1
dataset: dataset.yaml
source: records.parquet
privacy: {epsilon: 1}
method: METHOD
"""
TREE = "{decomposition: tree, order: [e], sets: {count: 2}}"
METHODS = (
    TREE, "{decomposition: tree, elect: {layers: 2}}", "{decomposition: flat}", "{decomposition: uh, layers: 1}",
    "{decomposition: cascade}", "{decomposition: privbayes}", "{decomposition: auto}",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _silent() -> None:
    silent_gx()


def written(folder: Path, who: str = "who: household", method: str = TREE) -> Path:
    number = np.arange(300)
    columns = {
        "e": np.where(number % 3 == 0, "E1", "1e5"),
        "e_2": np.where(number % 2 == 0, "no", "yes"),
        "age": 18 + number % 5,
        "home": number // 12,
    }
    pq.write_table(pa.table(columns), folder / "records.parquet")
    (folder / "dataset.yaml").write_text(DATASET.replace("WHO", who).replace(", }", "}"))
    (folder / "release.yaml").write_text(RELEASE.replace("METHOD", method))
    return folder / "release.yaml"


def granted(folder: Path, unit: str) -> Home:
    home = Home(folder / "home")
    open_ledger(home).grant("e2", 10**9, "a test", unit=unit)
    return home


@pytest.mark.parametrize("method", [TREE, "{decomposition: cascade, order: elected}"])
def test_names_that_look_like_figures_with_an_exponent_are_released(tmp_path: Path, method: str):
    path, home = written(tmp_path, "", method), granted(tmp_path, "person")
    assert run_stages(home, path)
    assert verify_bundle(home.public / "e1", home.keys / "signing-key.pub") == []


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The plan of a bundle that was published."""
    folder = tmp_path_factory.mktemp("published")
    path, home = written(folder), granted(folder, "household")
    run_stages(home, path)
    return json.loads((home.public / "e1" / bundle.PLAN).read_bytes())


@pytest.mark.parametrize("figure", ["1e0", "1E0", "1e999999999", "1e-999999999", " 1", "+1", "1_0", "nan", "0x1"])
def test_a_figure_with_an_exponent_is_still_found(plan: dict[str, Any], figure: str):
    for change in (
        lambda plan: plan.update(epsilon=figure),
        lambda plan: plan["draws"][0].update(scale=figure),
        lambda plan: plan["layers"][0].update(share=figure),
    ):
        changed = json.loads(json.dumps(plan))
        change(changed)
        with pytest.raises(ValueError, match="epsilon|scale|share"):
            bundle.read_plan(bundle.to_bytes(changed))


# Whose privacy


def test_a_household_is_the_unit_of_charge_manifest_and_page(tmp_path: Path):
    path, home = written(tmp_path), granted(tmp_path, "household")
    assert run_stages(home, path)
    folder = home.public / "e1"
    assert verify_bundle(folder, home.keys / "signing-key.pub") == []
    (charge,) = (entry for entry in open_ledger(home).entries() if entry.kind == "charge")
    assert charge.details["unit"] == "household"
    manifest = json.loads((folder / bundle.MANIFEST).read_bytes())
    sentence = manifest["guarantee"]["sentence"]
    assert sentence.startswith("For every household in the data") and "(all of at most 12 rows)" in sentence
    assert "person" not in sentence
    assert manifest["guarantee"]["unit"] == manifest["ledger"]["charge"]["shown"]["unit"] == "household"
    page = (folder / bundle.PAGE).read_text()
    assert "for each household" in page and "by one household, there or not" in page
    assert "for each person" not in page and "one person" not in page
    assert "the noise that protects every household" in page and "protects people" not in page


def test_a_person_stays_the_unit_unless_another_is_written(tmp_path: Path):
    path, home = written(tmp_path, ""), granted(tmp_path, "person")
    assert run_stages(home, path)
    sentence = json.loads((home.public / "e1" / bundle.MANIFEST).read_bytes())["guarantee"]["sentence"]
    assert sentence.startswith("For every person in the data") and "had that person's data" in sentence


@pytest.mark.parametrize(("who", "unit"), [("", "household"), ("who: household", "person")])
def test_another_unit_than_the_granted_one_is_refused_and_the_key_to_write_is_named(tmp_path: Path, who: str, unit: str):
    path, home = written(tmp_path, who), granted(tmp_path, unit)
    with pytest.raises(SpecError, match=rf"unit: {{who: {unit}}} in dataset.yaml"):
        run_stages(home, path)
    assert open_ledger(home).account("e2").charged == 0
    assert not list(home.path.rglob("cells/*.parquet"))


@pytest.mark.parametrize("method", METHODS)
def test_every_method_plans_for_the_unit(tmp_path: Path, method: str):
    plan = make_plan(load_release(written(tmp_path, method=method)), SeededRandomness(1))
    assert plan.unit == "household" and plan.format == 2


@pytest.mark.parametrize("word", ["a household", "Household", "", "../x"])
def test_a_unit_is_a_plain_word(tmp_path: Path, word: str):
    written(tmp_path, f'who: "{word}"')
    with pytest.raises(SpecError, match="who"):
        load_domain(tmp_path / "dataset.yaml")
    with pytest.raises(SpecError, match="unit"):
        open_ledger(Home(tmp_path / "home")).grant("e2", 10**9, "a test", unit=word)


def test_a_bundle_whose_plan_is_for_another_unit_than_its_domain_is_found(tmp_path: Path):
    path, home = written(tmp_path), granted(tmp_path, "household")
    run_stages(home, path)
    folder = home.public / "e1"

    forge_plan(folder, home, lambda plan: plan.update(unit="person"))
    texts = " ".join(str(problem) for problem in verify_bundle(folder, home.keys / "signing-key.pub"))
    assert "unit or rows per person differ between plan and domain" in texts
    assert "another plan, spec, unit or neighbouring relation" in texts
