"""Published bundles that are asked: one by pairs, one by a tree."""

from __future__ import annotations

from pathlib import Path

import pytest

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
