"""One published bundle per session, and a copy of it for every test that spoils something."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tasks.publishing.publication import publish
from tests.tasks.publishing import making


def _published(folder: Path, method: dict) -> making.Made:
    made = making.make(folder, making.a_release(making.POLL, method), making.some_counts(making.POLL, 4003))
    publish(*made.arguments)
    return made


@pytest.fixture(scope="session")
def given(tmp_path_factory) -> making.Made:
    """A release whose order is given. Not to be changed."""
    return _published(tmp_path_factory.mktemp("given") / "home", making.GIVEN)


@pytest.fixture(scope="session")
def elected(tmp_path_factory) -> making.Made:
    """A release whose tree was elected. Not to be changed."""
    return _published(tmp_path_factory.mktemp("elected") / "home", making.ELECTED)


def _copy(made: making.Made, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made.home.public / made.release.name, tmp_path / "copy"))


@pytest.fixture
def given_copy(given, tmp_path) -> Path:
    return _copy(given, tmp_path)


@pytest.fixture
def elected_copy(elected, tmp_path) -> Path:
    return _copy(elected, tmp_path)
