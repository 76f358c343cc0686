"""Published bundles that are asked: one by pairs, one by a tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.spec.domain import Domain
from tasks.publishing.publication import publish
from tests.tasks.publishing.making import POLL, Made, a_release, make, some_counts

SHARED = {"count": 3, "budget": "shared"}


@pytest.fixture(scope="session")
def made_by_pairs(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Pairs, three shared sets as CSV too, one model named. Not to be changed."""
    release = a_release(POLL, {"decomposition": "pairs", "sets": SHARED}, epsilon="4", analyses=("wage ~ age",))
    made = make(tmp_path_factory.mktemp("pairs") / "home", release, some_counts(POLL, 3001))
    publish(*made.arguments, seeds="steps-seeds/1")
    return made


@pytest.fixture(scope="session")
def by_pairs(made_by_pairs: Made) -> Path:
    return made_by_pairs.home.public / made_by_pairs.release.name


@pytest.fixture(scope="session")
def by_tree(given: Made) -> Path:
    """Two split sets of a tree."""
    return given.home.public / given.release.name


COUNTIES = Domain.model_validate(
    {
        "name": "counties",
        "population": "counties-2026",
        "expected_rows": 3000,
        "attributes": (
            {"name": "county", "kind": "categorical", "categories": ("Kent", "Fife", "Devon", "Moray"), "missing": "category"},
            {"name": "voted", "kind": "categorical", "categories": ("no", "yes")},
            {"name": "wage", "kind": "numeric", "bounds": (0, 21), "bins": 3},
            {"name": "age", "kind": "integer", "bounds": (18, 29), "bins": 4},
        ),
        "derived": (
            {
                "name": "region",
                "from": "county",
                "by": {"Kent": "=South", "Fife": "Scotland", "Devon": "=South", "Moray": "Scotland"},
            },
            {"name": "pay", "from": "wage", "by": {"[0, 7)": "little", "[7, 14)": "more", "[14, 21]": "more"}},
        ),
    }
)


@pytest.fixture(scope="session", params=["shared", "split"])
def with_regions(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs, three sets, with two attributes that follow from others."""
    release = a_release(COUNTIES, {"decomposition": "pairs", "sets": {"count": 3, "budget": request.param}}, epsilon="2")
    made = make(tmp_path_factory.mktemp("regions") / "home", release, some_counts(COUNTIES, 3001))
    return publish(*made.arguments, seeds="steps-seeds/1").folder
