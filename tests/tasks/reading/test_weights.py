"""Weights at the door: what does not fit is refused before anything is counted, by validation and by the counting pass."""

from __future__ import annotations

import os
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from schemas.errors import DataInvalid, KeyRefused, SpecError
from schemas.spec import yaml
from schemas.spec.domain import Domain
from schemas.spec.weights import LARGEST_SET
from steps_engine.domain.counting import Counts
from steps_engine.domain.encoding import count_frame
from tasks.reading.counting import UNFIT
from tasks.reading.fitting import look_at
from tasks.reading.partial_counts import add_up, count_part, room_for_parts
from tasks.stages.compare import Records, _frame
from tasks.stages.validate import validate_records
from tasks.stores.home import Home
from tasks.stores.keys import secret_key
from tests.tasks.reading.records import count_cells, make_domain, make_release

ATTRIBUTES = (
    {"name": "age", "kind": "integer", "bounds": (0, 9)},
    {"name": "sex", "kind": "categorical", "categories": ("f", "m")},
)
WEIGHT = {"column": "w", "bounds": (Decimal("0.5"), 20), "total": 5000, "step": Decimal("2.5")}
UNITS = {
    "no column": {},
    "forbid": {"column": "id", "rows_per_person": 3},
    "drop": {"column": "id", "rows_per_person": 2, "excess": "drop"},
}


def weighted(**unit) -> Domain:
    plain = make_domain(ATTRIBUTES, **unit)
    return Domain.model_validate({**plain.model_dump(), "weight": WEIGHT, "expected_rows": 600})


def surveyed(rows: int = 600) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    weight = np.round(np.clip(rng.lognormal(2, 0.5, rows), 0.5, 20), 3)
    people = {"id": np.arange(rows) // 3, "age": rng.integers(0, 10, rows), "sex": rng.choice(["f", "m"], rows), "w": weight}
    return pd.DataFrame(people)


def as_dict(counts) -> dict:
    return dict(zip(map(tuple, counts.codes.tolist()), counts.count.tolist(), strict=True))


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.whole
def test_a_file_is_counted_as_its_frame_is(unit, form, tmp_path):
    domain, frame, key = weighted(**UNITS[unit]), surveyed(), bytes(range(32))
    frame = frame if UNITS[unit] else frame.drop(columns="id")
    path = tmp_path / f"records.{form}"
    frame.to_csv(path, index=False) if form == "csv" else frame.to_parquet(path, index=False)
    assert not look_at(str(path), domain).problems
    counts = count_cells(make_release(path, domain), tmp_path, key)
    assert as_dict(counts) == as_dict(count_frame(frame, domain, key))
    if unit != "drop":
        assert abs(counts.count.sum() * 2.5 - frame["w"].sum()) < 2.5 * 20  # 20 cells, each within a unit


BAD = {
    "out of bounds": 20.001,
    "below": 0.49,
    "missing": None,
    "not a number": np.nan,
    "negative": -1.0,
    "infinite": np.inf,
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.whole
def test_a_bad_weight_fails_validation_and_the_counting_pass_and_is_not_said(bad, tmp_path, confidential):
    domain, frame = weighted(), surveyed().drop(columns="id")
    path = tmp_path / "records.parquet"
    frame.to_parquet(path, index=False)
    release = make_release(path, domain)
    before = count_cells(release, confidential)
    frame.assign(w=[BAD[bad], *frame["w"][1:]]).to_parquet(tmp_path / "other.parquet", index=False)
    os.replace(tmp_path / "other.parquet", path)
    with pytest.raises(DataInvalid) as caught:
        count_cells(release, confidential)
    assert str(caught.value) == UNFIT and before.count.sum() > 0
    with pytest.raises(DataInvalid, match="data fail validation"):
        validate_records(release, confidential)


@pytest.mark.whole
def test_a_text_is_no_weight(tmp_path, confidential):
    frame = surveyed().drop(columns="id").astype({"w": str})
    frame.loc[3, "w"] = "heavy"
    frame.to_csv(tmp_path / "records.csv", index=False)
    with pytest.raises(DataInvalid, match="data fail validation"):
        validate_records(make_release(tmp_path / "records.csv", weighted()), confidential)
    frame.to_parquet(tmp_path / "records.parquet", index=False)
    assert "w is stored as text; whole numbers or numbers" in look_at(str(tmp_path / "records.parquet"), weighted()).problems[0]
    frame.drop(columns="w").to_csv(tmp_path / "without.csv", index=False)
    assert look_at(str(tmp_path / "without.csv"), weighted()).problems == ("lacks the column w",)


@pytest.mark.whole
def test_parts_add_up_to_what_one_pass_counts(tmp_path):
    domain, frame = weighted(), surveyed().drop(columns="id")
    folder = tmp_path / "records"
    folder.mkdir()
    for number in range(3):
        frame.iloc[number::3].to_parquet(folder / f"{number}.parquet", index=False)
    release, home = make_release(folder, domain), Home(tmp_path / "home")
    key = secret_key(home, "excess")
    with room_for_parts(home, release, 3) as parts:
        for number, part in enumerate(parts):
            count_part(home, release, (str(folder / f"{number}.parquet"),), part)
        together = Counts.from_table(domain, pa.concat_tables(add_up(release, parts, tmp_path, key)))
    assert as_dict(together) == as_dict(count_cells(release, tmp_path, key))


def test_a_model_is_fitted_to_the_records_by_their_weights(tmp_path):
    frame = surveyed().drop(columns="id")
    frame.to_parquet(tmp_path / "records.parquet", index=False)
    rows, weight = _frame(Records(str(tmp_path / "records.parquet"), weighted()), ("age", "sex"))
    assert weight.sum() == pytest.approx(frame["w"].sum() ** 2 / (frame["w"] ** 2).sum(), rel=1e-4)
    order = np.lexsort((weight, rows["age"]))
    expected = np.lexsort((frame["w"], frame["age"]))
    np.testing.assert_allclose(weight[order] / weight.sum(), frame["w"].to_numpy()[expected] / frame["w"].sum(), rtol=1e-4)


REFUSED = {
    "bounds: [20, 2], total: 5000": "line 5: weight.bounds: [20, 2]: write the lowest weight, then a higher one",
    "bounds: [-1, 2], total: 5000": "the lowest weight is -1; no weight is below 0",
    "bounds: [2, 2], total: 5000": "where all weights are equal leave weight out",
    "bounds: [1, 20], total: 5000, step: 21": "21 does not fit the bounds: a step is above 0 and at most the highest weight, 20",
    "bounds: [1, 20], total: 5000, step: 0": "0 does not fit the bounds",
    "bounds: [1, 20], total: 5000, step: 0.001": "at most 10,000 units may. Write a step of at least 0.006",
    "bounds: [1, 20], total: 600": "make a mean weight of 0.6, outside the bounds [1, 20]",
    "bounds: [1, 20]": "weight.total: is needed here",
    "bounds: [1, 20], total: 5000, column: age": "'age' stands twice: weights are no attribute",
    "bounds: [1, 20], total: 5000, column: ID": "'ID' stands twice",
    "bounds: [1, 20], total: 5000, stepp: 1": 'unknown key "stepp"; did you mean "step"?',
    "bounds: [1, heavy], total: 5000": "must be a number, not 'heavy'",
}


@pytest.mark.parametrize("said", REFUSED)
def test_a_spec_that_does_not_fit_is_refused_with_its_line(said):
    column = "" if "column" in said else "column: w, "
    with pytest.raises(SpecError) as caught:
        yaml.validate(Domain, yaml.parse(DATASET.format(weight=f"{{{column}{said}}}"), "dataset.yaml"))
    assert REFUSED[said] in str(caught.value) and "dataset.yaml, line 5" in str(caught.value)


DATASET = """name: survey
population: people
expected_rows: 1000
unit: {{column: id, rows_per_person: 3}}
weight: {weight}
attributes:
  - {{name: age, kind: integer, bounds: [0, 9]}}
"""


def test_without_expected_rows_a_step_is_needed():
    text = DATASET.format(weight="{column: w, bounds: [1, 20], total: 5000}").replace("expected_rows: 1000", "overlaps: [a]")
    with pytest.raises(SpecError, match="step is not known: say expected_rows, or step"):
        yaml.validate(Domain, yaml.parse(text, "dataset.yaml"))


def test_a_step_that_makes_more_rows_than_a_set_may_have_is_refused_with_one_that_does_not():
    weight = "{{column: w, bounds: [1, 1000], total: 9000000000, step: {}}}"
    steps = [yaml.parse(DATASET.replace("1000", "10000000").format(weight=weight.format(step)), "d.yaml") for step in (1, 4.23)]
    with pytest.raises(SpecError, match="1 would make 9,000,000,000 rows of 9,000,000,000 people.* at least 4.23"):
        yaml.validate(Domain, steps[0])
    assert yaml.validate(Domain, steps[1]).expected_units < LARGEST_SET


@pytest.mark.parametrize("total, neighbours", [("invariant", "add_remove"), ("public", "substitute")])
def test_a_total_of_weights_is_neither_public_nor_invariant(total, neighbours):
    release = make_release("records.parquet", weighted())
    spec = release.spec.model_dump() | {"privacy": {"epsilon": Decimal(1), "total": total, "neighbours": neighbours}}
    with pytest.raises(KeyRefused, match="with weights in the dataset"):
        type(release).model_validate({"spec": type(release.spec).model_validate(spec), "domain": weighted(), "folder": "/"})


def test_a_domain_without_weights_says_nothing_of_them():
    assert "weight" not in make_domain(ATTRIBUTES).model_dump()
    assert weighted().model_dump()["weight"] == {"column": "w", "bounds": (0.5, 20.0), "total": 5000, "step": 2.5}
