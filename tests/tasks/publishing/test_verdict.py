"""A page does not flatter: what a release can and cannot answer follows from what was measured, for every method."""

from __future__ import annotations

import csv
import io
import re

import numpy as np
import pytest

from schemas.spec.domain import Domain
from steps_engine.domain.counting import count_codes
from steps_engine.methods.planning import make_plan
from steps_engine.methods.registry import method_of
from steps_engine.methods.run_in_memory import run_plan
from steps_engine.methods.views import Margin, View
from steps_engine.noise import SeededRandomness
from tasks.publishing.listings import csv_of, listings
from tasks.publishing.pictures import matrix_picture
from tasks.publishing.verdict import is_mostly_noise, trusts, verdict
from tests.tasks.publishing.making import a_release

METHODS = {
    "pairs": {"decomposition": "pairs"},
    "tree": {"decomposition": "tree", "order": ("a", "b")},
    "flat": {"decomposition": "flat"},
    "uh": {"decomposition": "uh", "layers": 2},
    "cascade": {"decomposition": "cascade"},
    "privbayes": {"decomposition": "privbayes"},
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
DOMAIN = Domain.model_validate(
    {
        "name": "d",
        "population": "town",
        "expected_rows": 5000,
        "attributes": tuple(
            {"name": name, "kind": "categorical", "categories": tuple(f"{name}{k}" for k in range(size))}
            for name, size in {"a": 2, "b": 3, "c": 2, "d": 3}.items()
        ),
    }
)


def codes(tied: bool, rows: int = 5000) -> np.ndarray:
    """Four attributes that have nothing to do with each other; `tied`: b follows a."""
    rng = np.random.default_rng(11)
    found = np.stack([rng.integers(0, size, rows) for size in DOMAIN.sizes], axis=1)
    if tied:
        found[:, 1] = np.where(rng.random(rows) < 0.9, found[:, 0], 2)
    return found


def shown(method: dict, tied: bool, epsilon: str = "2") -> View:
    source = SeededRandomness(3)
    plan = make_plan(a_release(DOMAIN, method, epsilon=epsilon), source)
    return method_of(plan).view(DOMAIN, plan, run_plan(DOMAIN, plan, count_codes(codes(tied)), source).tables)


@every_method
def test_a_release_without_relations_does_not_say_that_it_has_some(method):
    view = shown(method, tied=False)
    said = verdict(view, 4)
    assert said["relations"].clear == 0 and "go together" not in said["can"]
    assert said["cannot"][0].startswith("It cannot say how attributes go together: of 6 pairs none is clear")


@every_method
def test_the_pair_that_is_tied_is_found_and_no_other(method):
    view = shown(method, tied=True)
    clear = {(pair.first, pair.second) for pair in view.pairs if pair.clear}
    assert clear == {("a", "b")} and len(view.pairs) == 6
    assert "in 1 of 6 pairs" in verdict(view, 4)["can"]


@every_method
def test_with_next_to_no_budget_margins_are_mostly_noise_and_the_page_warns(method):
    view = shown(method, tied=True, epsilon="0.001")
    said = verdict(view, 4)
    assert said["noisy"] and said["relations"].clear == 0
    assert any("mostly noise" in sentence for sentence in said["cannot"])


@every_method
@pytest.mark.whole
def test_intervals_of_margins_hold_at_least_what_they_say(method):
    """Over many releases of the same records: a rare miss of the nominal 95 % would show."""
    exact = [np.bincount(column, minlength=size) for column, size in zip(codes(True).T, DOMAIN.sizes, strict=True)]
    counts, held = count_codes(codes(True)), []
    for seed in range(10):
        source = SeededRandomness(("cover", seed))
        plan = make_plan(a_release(DOMAIN, method, epsilon="1"), source)
        view = method_of(plan).view(DOMAIN, plan, run_plan(DOMAIN, plan, counts, source).tables)
        held += [abs(m.estimate - exact[DOMAIN.index(m.attribute)]) <= m.half + 1e-9 for m in view.margins]
    assert np.concatenate(held).mean() >= 0.9  # 100 intervals, some of them of the same noise; exact ones: test_reach.py


def test_badges_are_by_category_not_by_the_average_one():
    margin = Margin(
        "x", ("many", "some", "few"), np.array([10_000.0, 300.0, 20.0]), np.full(3, 20.0), np.zeros(3), np.full(3, 50.0)
    )
    assert trusts(margin) == ["precise", "rough", "mostly noise"] and not is_mostly_noise(margin)


def test_listings_have_labels_and_no_cell_that_a_spreadsheet_would_run():
    view = shown(METHODS["pairs"], tied=True)
    made = {name: list(csv.DictReader(io.StringIO(content.decode()))) for name, content in listings(view, DOMAIN).items()}
    assert [row["category"] for row in made["codebook.csv"]] == [label for each in DOMAIN.attributes for label in each.labels]
    assert {row["category"] for row in made["margins.csv"]} == {label for each in DOMAIN.attributes for label in each.labels}
    assert all(float(row["low"]) < float(row["estimate"]) < float(row["high"]) for row in made["margins.csv"])
    assert len(made["pairs.csv"]) == 6 and {row["first"] for row in made["pairs.csv"]} <= set(DOMAIN.names)
    text = csv_of(
        ("label", "number"), [(each, -1.5) for each in ("=1+1", "@x", " =2", "\uff1d1", "\ufeff=1", "-x", "-9", "+1", "plain")]
    )
    cells = [row[0] for row in csv.reader(io.StringIO(text.decode()))][1:]
    assert [cell.startswith("'") for cell in cells] == [True] * 6 + [False] * 3  # a number is not run
    assert all(line.endswith(",-1.5") for line in text.decode().splitlines()[1:])


def test_the_matrix_has_every_pair_once_and_every_name_whole():
    picture = matrix_picture(shown(METHODS["cascade"], tied=True).pairs)
    assert picture is not None and picture["names"] == list(DOMAIN.names)
    squares = [square for places in picture["squares"].values() for square in places]
    assert len(squares) == len(set(squares)) == 6 and all(re.fullmatch("[a-z]+", known) for known in picture["squares"])
