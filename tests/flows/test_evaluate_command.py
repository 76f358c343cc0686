"""`steps evaluate --model`: the same regression on every file, from the command line to the page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from steps_engine.noise import SeededRandomness
from steps_engine.studies.homes import dataset, homes

DATASET = """
name: pay
population: pay-people
attributes:
  - {name: pay, kind: numeric, bounds: [0, 100], bins: 4, outside: clamp}
  - {name: region, kind: categorical, categories: [west, south, north]}
  - {name: member, kind: categorical, categories: ["no", "yes"]}
  - {name: grade, kind: integer, bounds: [1, 4]}
  - {name: since, kind: date, bounds: [2020-01-01, 2020-12-31], bins: 12}
"""
MISSING = "{name: pay, kind: numeric, bounds: [0, 100], bins: 4, outside: clamp, missing: category}"


def records(seed: int, rows: int = 600) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    region, grade, day = draw.choice(["north", "south", "west"], rows), draw.integers(1, 5, rows), draw.integers(0, 366, rows)
    pay = 30 + 8 * (region == "north") + 5 * grade + 0.02 * day + draw.normal(0, 6, rows)
    member = np.where(draw.random(rows) < 1 / (1 + np.exp(2 - 0.04 * pay)), "yes", "no")
    since = (pd.Timestamp("2020-01-01") + pd.to_timedelta(day, "D")).strftime("%Y-%m-%d")
    return pd.DataFrame({"pay": pay, "region": region, "member": member, "grade": grade, "since": since})


@pytest.fixture
def evaluate(tmp_path: Path, steps):
    """Asks for a comparison of one Parquet file with two CSV files."""
    (tmp_path / "pay.yaml").write_text(DATASET)
    records(1).to_parquet(tmp_path / "original.parquet")
    for number in (2, 3):
        records(number).to_csv(tmp_path / f"set-{number}.csv", index=False)
    files = [tmp_path / name for name in ("original.parquet", "set-2.csv", "set-3.csv")]
    return lambda *words: steps("evaluate", *files, "--domain", tmp_path / "pay.yaml", "--classifier", "logistic", *words)


def statsmodels_fit(seed: int):
    from statsmodels.formula.api import ols

    data = records(seed)
    data["region"] = pd.Categorical(data["region"], ["west", "south", "north"])
    data["since"] = (pd.to_datetime(data["since"]) - pd.Timestamp("1970-01-01")).dt.days
    return ols("pay ~ region + since + member", data).fit()


def test_estimates_of_every_file_equal_statsmodels_and_split_sets_are_averaged(evaluate):
    said = evaluate("--model", "pay ~ region + since + member", "--json").json
    found, fits = said["regression"], [statsmodels_fit(seed) for seed in (1, 2, 3)]
    assert [c["name"] for c in found["coefficients"]] == list(fits[0].params.index)  # the domain's first category is the base
    original = pd.DataFrame([c["original"] for c in found["coefficients"]], fits[0].params.index)
    assert original["estimate"].to_numpy() == pytest.approx(fits[0].params.to_numpy(), rel=1e-6)
    assert original[["low", "high"]].to_numpy() == pytest.approx(fits[0].conf_int().to_numpy(), rel=1e-6)
    combined = [c["synthetic"]["estimate"] for c in found["coefficients"]]
    assert combined == pytest.approx(((fits[1].params + fits[2].params) / 2).tolist(), rel=1e-6)
    assert (found["kind"], found["sets"], found["m"]) == ("linear", "split", 2)
    assert set(said["tvd"]) == {"1", "2", "3"} and set(said["chi_square"]) == {"0.01", "0.05", "0.1"}
    assert {"ks", "null_ks"} <= set(said["specks"])


@pytest.mark.whole
def test_shared_sets_have_wider_intervals_than_split_ones(evaluate):
    widths = {}
    for sets in ("split", "shared"):
        found = evaluate("--model", "pay ~ region", "--sets", sets, "--json").json["regression"]
        widths[sets] = [c["synthetic"]["high"] - c["synthetic"]["low"] for c in found["coefficients"]]
    assert all(shared > split for split, shared in zip(widths["split"], widths["shared"], strict=True))


@pytest.mark.whole
def test_the_table_and_the_page_show_the_regression(evaluate, tmp_path: Path):
    page = tmp_path / "page.html"
    said = evaluate("--model", "member ~ 0 + region + pay", "--kind", "logistic", "--cross-fit", 3, "--page", page)
    assert said.code == 0 and "logistic; 2 sets, split" in said.out
    assert "region[north]" in said.out and "mean overlap" in said.out  # brackets are text, not the terminal's markup
    assert "in 3 cross-fitting folds" in page.read_text() and "region=north" in page.read_text()


@pytest.mark.whole
def test_the_picture_reaches_coefficients_in_the_outcome_s_own_units(evaluate, tmp_path: Path):
    evaluate("--model", "pay ~ 0 + region", "--page", tmp_path / "page.html")
    assert ">50</text>" in (tmp_path / "page.html").read_text().partition("<h2>Regression")[2]


def test_without_a_model_there_is_no_regression(evaluate):
    assert evaluate("--json").json["regression"] is None


def test_numbers_in_C_are_coded_alike_in_every_file(evaluate, tmp_path: Path):
    records(2).query("grade < 4").to_csv(tmp_path / "set-2.csv", index=False)
    records(1).query("grade > 1").to_parquet(tmp_path / "original.parquet", index=False)
    found = evaluate("--model", "pay ~ 0 + C(grade)", "--json").json["regression"]["coefficients"]
    assert [c["name"] for c in found] == [f"C(grade)[{grade}]" for grade in (1, 2, 3, 4)]
    assert [c["original"] is None for c in found] == [True, False, False, False]
    assert [c["synthetic"] is None for c in found] == [False, False, False, True]
    means = records(1).groupby("grade")["pay"].mean()
    assert found[1]["original"]["estimate"] == pytest.approx(means[2])


def test_values_beyond_the_bounds_count_as_the_bound_where_the_domain_clamps(evaluate, tmp_path: Path):
    beyond = records(1).assign(pay=lambda data: np.where(data["pay"] > 50, 1e9, data["pay"]))
    beyond.to_parquet(tmp_path / "original.parquet")
    found = evaluate("--model", "pay ~ 1", "--json").json["regression"]["coefficients"][0]
    assert found["original"]["estimate"] == pytest.approx(beyond["pay"].clip(0, 100).mean())


def test_rows_that_are_dropped_are_in_no_regression(evaluate, tmp_path: Path):
    unit = "unit: {column: person, rows_per_person: 1, excess: drop}\nattributes:"
    (tmp_path / "pay.yaml").write_text(DATASET.replace("attributes:", unit))
    twice = pd.concat([records(1), records(1)]).assign(person=np.tile(np.arange(600), 2))
    twice.to_parquet(tmp_path / "original.parquet", index=False)
    said = evaluate("--model", "pay ~ region + since + member", "--json").json
    estimates = [c["original"] for c in said["regression"]["coefficients"]]
    assert said["rows"]["original"] == 600
    assert [[e["low"], e["high"]] for e in estimates] == pytest.approx(statsmodels_fit(1).conf_int().to_numpy(), rel=1e-6)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model", "pay ~ sex"], "names sex; the domain has pay, region"),
        (["--model", "did_voter"], "the domain has pay, region"),
        (["--model", "did_voter", "--kind", "linear"], "is logistic, not linear"),
        (["--model", "pay ~ open(region)"], "must be: name ~ names"),
        (["--model", "pay"], "must be: name ~ names"),
        (["--model", ""], "must be: name ~ names"),
        (["--model", "pay ~ region +"], "cannot be read"),
        (["--model", "pay ~ pay"], "both sides"),
        (["--model", "pay ~ 0"], "0 coefficients"),
        (["--model", "pay ~ C(since) * C(since) * region * member"], "coefficients; 1 to"),
        (["--model", "region ~ pay"], "must be a number"),
        (["--model", "region ~ pay", "--kind", "logistic"], "2 categories"),
        (["--model", "pay ~ region", "--kind", "logistic"], "0 or 1"),
        (["--kind", "ridge"], "--model"),
        (["--sets", "shared"], "--model"),
        (["--cross-fit", "1"], "at least 2 folds"),
    ],
)
@pytest.mark.whole
def test_what_cannot_be_fitted_ends_with_2_and_a_clear_text(evaluate, words, message):
    said = evaluate(*words)
    assert said.code == 2 and message in said.err and not said.out


def test_an_attribute_called_like_a_word_of_the_language_ends_with_2(evaluate, tmp_path: Path):
    for path in (tmp_path / "pay.yaml", tmp_path / "set-2.csv", tmp_path / "set-3.csv"):
        path.write_text(path.read_text().replace("grade", "class"))
    records(1).rename(columns={"grade": "class"}).to_parquet(tmp_path / "original.parquet")
    said = evaluate("--model", "pay ~ class")
    assert said.code == 2 and "cannot be read" in said.err


@pytest.mark.whole
def test_missing_numbers_cannot_be_fitted_and_missing_words_are_a_category(evaluate, tmp_path: Path):
    dataset = DATASET.replace(DATASET.splitlines()[4][4:], MISSING).replace("north]}", "north], missing: category}")
    (tmp_path / "pay.yaml").write_text(dataset)
    records(1).assign(pay=lambda d: d["pay"].where(d["grade"] > 1)).to_parquet(tmp_path / "original.parquet")
    assert "missing values" in evaluate("--model", "pay ~ region").err
    records(1).assign(region=lambda d: d["region"].where(d["grade"] > 1)).to_parquet(tmp_path / "original.parquet")
    names = [c["name"] for c in evaluate("--model", "pay ~ region", "--json").json["regression"]["coefficients"]]
    assert names == ["Intercept", "region[T.south]", "region[T.north]", "region[T.(missing)]"]


def test_files_with_other_columns_end_with_2_and_name_them(evaluate, tmp_path: Path):
    records(2).rename(columns={"member": "joined"}).to_csv(tmp_path / "set-2.csv", index=False)
    said = evaluate("--model", "pay ~ region")
    assert said.code == 2 and "missing member; not expected joined" in said.err


# --- linked tables


ALONE = """
name: persons
population: homes-2026
attributes:
  - {name: sex, kind: categorical, categories: [female, male]}
  - {name: age, kind: integer, bounds: [0, 99], bins: 10}
"""


@pytest.fixture
def homes_of_two(tmp_path: Path) -> Path:
    """Households and persons, twice: as if the second were synthetic."""
    (tmp_path / "homes.yaml").write_text(dataset(200))
    for name, seed in (("original", 1), ("synthetic", 2)):
        household, person = homes(200, SeededRandomness(seed))
        household.to_parquet(tmp_path / f"{name}-household.parquet", index=False)
        person.to_parquet(tmp_path / f"{name}-person.parquet", index=False)
    return tmp_path


@pytest.mark.parametrize("table", ["household", "person"])
def test_linked_tables_are_refused_with_where_they_are_compared(homes_of_two: Path, steps, table):
    files = [homes_of_two / f"{name}-{table}.parquet" for name in ("original", "synthetic")]
    told = steps("evaluate", *files, "--domain", homes_of_two / "homes.yaml")
    said = " ".join(told.err.split())
    assert told.code == 2 and "describes linked tables; this compares one table with others like it" in said
    assert "evaluation-members.html" in said and "a dataset.yaml with the attributes of that table" in said


def test_persons_alone_are_compared_as_the_refusal_says(homes_of_two: Path, steps):
    (homes_of_two / "persons.yaml").write_text(ALONE)
    files = [homes_of_two / f"{name}-person.parquet" for name in ("original", "synthetic")]
    for file in files:
        pd.read_parquet(file)[["sex", "age"]].to_parquet(file, index=False)
    told = steps("evaluate", *files, "--domain", homes_of_two / "persons.yaml", "--classifier", "logistic", "--json")
    assert told.code == 0 and 0 < told.json["tvd"]["1"] < 0.2
