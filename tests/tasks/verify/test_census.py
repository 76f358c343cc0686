"""What an outsider finds in a published census that lies about places, though every hash and the signature hold."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from schemas.manifest import SEEDS_1, seeds_for
from tasks.publishing.publication import publish
from tasks.verify.bundle import Verdict
from tasks.verify.recompute import verify_again
from tests.steps_engine.methods.households.census import census, counted_in, some_placed
from tests.steps_engine.methods.households.small import release
from tests.tasks.publishing.making import Made, edit_table, make, sign_again


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Made:
    asked = release(census(), (("region", "grade"), ("county", "tenure")), epsilon=8)
    found = make(tmp_path_factory.mktemp("census") / "home", asked, counted_in(asked.domain, some_placed(600)))
    publish(*found.arguments, seeds=seeds_for(asked.domain))
    return found


def verified(published: Made, folder: Path, change: Callable[[Path], None]) -> Verdict:
    shutil.copytree(published.home.public / published.release.name, folder)
    change(folder)
    sign_again(folder, published.home)
    return verify_again(folder, published.home.keys / "signing-key.pub")


def move_a_household(folder: Path) -> None:
    """To another tract of its county, in both of its tables: keys, numbers and rules still agree."""
    for name in ("synthetic-1", "household-1"):
        edit_table(folder / f"{name}.parquet", _elsewhere)


def _elsewhere(columns: dict[str, list]) -> None:
    tract = int(columns["tract"][0][1:])
    columns["tract"][0] = f"t{tract // 3 * 3 + (tract + 1) % 3}"


def move_to_another_county(folder: Path) -> None:
    """By its level alone, which does not follow from the tract then."""
    for name in ("synthetic-1", "household-1"):
        edit_table(folder / f"{name}.parquet", lambda columns: columns["county"].__setitem__(0, "c0"))


def count_otherwise(folder: Path) -> None:
    """The last count of places, and with it what follows from it, is another one."""

    def change(columns: dict[str, list]) -> None:
        last = columns["rows_of"].index("person") - 1
        columns["noisy_1"][last] += 400

    edit_table(folder / "noisy-counts.parquet", change)


def say_places_of_members(folder: Path) -> None:
    edit_table(folder / "consistent-counts.parquet", lambda columns: columns["level"].__setitem__(-1, 2))


@pytest.mark.whole
def test_an_honest_census_verifies_and_follows(published, tmp_path):
    found = verified(published, tmp_path / "honest", lambda folder: None)
    assert seeds_for(published.release.domain) == SEEDS_1
    assert found.problems == () and all(found.recomputed.same.values())
    assert {"person-1.parquet", "household-1.parquet", "places.csv", "index.html"} <= set(found.recomputed.same)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("lie", "file", "words"),
    [
        (move_a_household, "synthetic-1.parquet", "is not what follows from the noisy counts"),
        (move_to_another_county, "synthetic-1.parquet", "county"),
        (count_otherwise, "consistent-counts.parquet", "does not follow from the noisy counts"),
        (say_places_of_members, "consistent-counts.parquet", "tells of members by place"),
    ],
)
def test_lies_about_places_are_found(published, tmp_path, lie, file, words):
    found = verified(published, tmp_path / "lie", lie)
    assert any(problem.file == file and words in problem.text for problem in found.problems), found.problems
