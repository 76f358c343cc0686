"""A publisher with the true key whose software forgot the noise, or put other figures beside it: the plain check sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.domain.counting import Counts
from steps_engine.methods.checked import Checked
from steps_engine.methods.planning import make_plan
from steps_engine.methods.registry import method_of
from steps_engine.noise import SeededRandomness
from tasks.publishing.formats import FORMATS
from tasks.publishing.publication import publish
from tasks.verify.bundle import verify_bundle
from tests.tasks.publishing.making import make, sign_again, some_counts
from tests.tasks.verify.methods import METHODS, release_of, room_for, tables_of

SPLIT = {"count": 2, "budget": "split"}
RHO = {"rho": "0.05", "delta": "1e-9"}
Case = tuple[Domain, Plan, Counts]


def case_of(name: str, sets: dict[str, Any], **privacy: str) -> Case:
    with room_for(name):
        release = release_of(name, sets=sets, **privacy)
        return release.domain, make_plan(release, SeededRandomness(1)), some_counts(release.domain, 4003)


def checked(domain: Domain, plan: Plan, made: dict[str, pa.Table]) -> Checked:
    return method_of(plan).check(domain, plan, made)


def without_noise(case: Case, monkeypatch: pytest.MonkeyPatch, part: float = 0.0) -> dict[str, pa.Table]:
    """What software that forgot its noise would publish: estimates and sets follow from it."""
    from steps_engine.accounting import mechanisms

    honest = mechanisms.CountNoise.draw
    little = lambda self, size, source: (part * honest(self, size, source)).astype(np.int64)  # noqa: E731
    monkeypatch.setattr(mechanisms.CountNoise, "draw", little)
    made = tables_of(*case)
    monkeypatch.undo()
    return made


@pytest.mark.parametrize("privacy", [{}, RHO], ids=["ε", "ρ"])
@pytest.mark.parametrize("name", [name for name in METHODS if "sampled" not in name and not name.startswith("pairs")])
@pytest.mark.whole
def test_counts_without_noise_are_found_where_sets_are_measured_apart(name, privacy, monkeypatch):
    case = case_of(name, SPLIT, **privacy)
    found = checked(*case[:2], without_noise(case, monkeypatch))
    assert any(place == "noisy-counts" and "noise is missing" in text for place, text in found.findings)


@pytest.mark.parametrize("name", ["uh", "bic", "groups", "stopping"])
def test_counts_without_noise_are_found_in_one_measurement_of_a_tree(name, monkeypatch):
    case = case_of(name, {"count": 2, "budget": "shared"})
    found = checked(*case[:2], without_noise(case, monkeypatch))
    assert any("noise is missing" in text for _, text in found.findings)


def test_contrasts_of_pairs_without_noise_are_found(monkeypatch):
    case = case_of("pairs", SPLIT, **RHO)
    assert any("noise is missing" in text for _, text in checked(*case[:2], without_noise(case, monkeypatch)).findings)


@pytest.mark.parametrize("name", ["uh", "cascade", "privbayes"])
def test_a_tenth_of_the_noise_is_found(name, monkeypatch):
    case = case_of(name, SPLIT)
    assert any("noise is missing" in text for _, text in checked(*case[:2], without_noise(case, monkeypatch, 0.1)).findings)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.whole
def test_sound_noise_raises_no_alarm(name):
    with room_for(name):
        for sets in (SPLIT, {"count": 2, "budget": "shared"}):
            domain, plan, counts = case_of(name, sets)
            for seed in range(3):
                found = checked(domain, plan, tables_of(domain, plan, counts, seed))
                assert found.findings == () and found.noise is not None


def test_what_cannot_be_tested_is_said():
    domain, plan, counts = case_of("flat", {"count": 2, "budget": "shared"})
    noise = checked(domain, plan, tables_of(domain, plan, counts)).noise
    assert noise is not None and (noise.contrasts, noise.untested) == (0, ("layer 1",))
    domain, plan, counts = case_of("pairs", {"count": 2, "budget": "shared"})
    noise = checked(domain, plan, tables_of(domain, plan, counts)).noise
    assert noise is not None and {"voted", "voted × age"} <= set(noise.untested)


def replaced(table: pa.Table, column: str, change: Callable[[np.ndarray], np.ndarray]) -> pa.Table:
    place = table.column_names.index(column)
    return table.set_column(place, table.schema.field(column), pa.array(change(table[column].to_numpy())))


LIES = {
    "estimates that are other counts": ("estimate", lambda table: table["whole_1"].to_numpy().astype(float)),
    "no standard errors": ("standard_error", lambda table: np.zeros(len(table))),
    "halved standard errors": ("standard_error", lambda table: table["standard_error"].to_numpy() / 2),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("name", ["given", "stopping", "flat", "uh", "sampled"])
def test_estimates_that_are_not_the_least_squares_are_found(name, lie):
    with room_for(name):
        domain, plan, counts = case_of(name, SPLIT)
        made = tables_of(domain, plan, counts)
        (column, other), honest = LIES[lie], made["consistent-counts"]
        held = honest.filter(honest["estimate"].is_valid())
        told = replaced(held, column, lambda _: other(held))
        if len(held) < len(honest):
            told = pa.concat_tables([told, honest.filter(honest["estimate"].is_null())])
        found = checked(domain, plan, made | {"consistent-counts": told})
        assert any(place == "consistent-counts" and f"column {column}" in text for place, text in found.findings)
        assert checked(domain, plan, made).findings == ()


@pytest.mark.parametrize("budget", ["split", "shared"])
@pytest.mark.parametrize("name", ["cascade", "privbayes", "pairs"])
@pytest.mark.whole
def test_a_few_rows_in_the_place_of_a_set_are_found(name, budget, tmp_path):
    release = release_of(name, sets={"count": 2, "budget": budget})
    made = make(tmp_path / "home", release, some_counts(release.domain, 1003))
    folder = publish(*made.arguments).folder
    path = folder / "synthetic-1.parquet"
    pq.write_table(pq.read_table(path).slice(0, 5), path, compression="zstd")
    (folder / "synthetic-1.csv").write_bytes(FORMATS.named("csv").write(path.read_bytes()))
    sign_again(folder, made.home)
    found = verify_bundle(folder, made.home.keys / "signing-key.pub")
    assert [each.file for each in found] == ["synthetic-1.parquet"] and "has 5 rows; the noisy counts tell of" in found[0].text
