"""Tables and models of sets that do not fit in memory: read a few rows at a time, with the same answers."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schemas.errors import EvidenceBroken
from steps_engine.analyses.seen import seen_of
from tasks import tables_on_disk
from tasks.answers import read_bundle
from tasks.publishing.publication import publish
from tasks.tables_on_disk import Stored
from tests.steps_engine.methods.households.small import counted, domain, release, some_homes
from tests.tasks.publishing.making import make, sign_again

pytestmark = pytest.mark.whole
OF_PERSONS = (("table", ["sex", "grade"], {}), ("table", ["grade"], {"tenure": "own", "sex": "f"}))
MODELS = (("fit", ["grade ~ sex + tenure"], {}), ("fit", ["sex ~ grade", "logistic"], {"relation": "child"}))
OF_ROWS = (("table", ["voted", "registered", "age", "wage"], {}), ("fit", ["wage ~ age + voted"], {"registered": "no"}))


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory):
    of = domain()
    made = make(tmp_path_factory.mktemp("homes") / "home", release(of, epsilon=8), counted(of, some_homes(150)))
    publish(*made.arguments)
    return made


@pytest.fixture
def seven_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of sets; what was measured does not grow with the rows, and is read whole."""
    monkeypatch.setattr(tables_on_disk, "MOST_ROWS", 7)
    monkeypatch.setattr(tables_on_disk, "FEWEST_ROWS", 7)
    read = Stored.read

    def not_of_a_set(stored: Stored, columns: Any = None) -> Any:
        assert not stored.path.name.startswith(("synthetic", "person")), "all rows were read at once"
        return read(stored, columns)

    monkeypatch.setattr(Stored, "read", not_of_a_set)


def answers(folder: Path, asked: Any) -> list[np.ndarray]:
    bundle = read_bundle(folder)
    found = [getattr(bundle, kind)(*names, where=where) for kind, names, where in asked]
    assert all(each.document.get("source", "sets") == "sets" for each in found)
    return [each.select_dtypes("number").to_numpy() for each in found]


def must_be_alike(folder: Path, asked: Any, request: pytest.FixtureRequest) -> None:
    whole = answers(folder, asked)
    request.getfixturevalue("seven_at_a_time")
    for one, other in zip(whole, answers(folder, asked), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-9)
    with pytest.raises(AssertionError, match="all rows were read at once"):  # who wants frames has them in memory
        _ = read_bundle(folder).frames


def test_persons_are_answered_from_blocks_as_from_all_of_them(homes, request):
    must_be_alike(homes.home.public / homes.release.name, (*OF_PERSONS, *MODELS), request)


def test_so_are_rows_of_one_table(by_pairs, request):
    must_be_alike(by_pairs, OF_ROWS, request)


def test_where_too_many_rows_differ_the_answer_says_to_how_many_it_was_fitted(by_pairs, seven_at_a_time, monkeypatch):
    whole = read_bundle(by_pairs).fit("wage ~ age")
    monkeypatch.setattr("steps_engine.answers.fit.seen_of", partial(seen_of, most=50))
    first = read_bundle(by_pairs).fit("wage ~ age")
    said = [note for note in first.notes if note.startswith("Too many rows differ to hold all of them: the first ")]
    assert len(said) == 1 and not any("Too many rows differ" in note for note in whole.notes)
    assert max(first.document["rows"]) < min(whole.document["rows"])
    assert (first["standard_error"] > whole["standard_error"]).all(), "fewer rows know less, and say so"


def test_rows_that_cannot_be_read_though_they_were_signed_are_told(homes, tmp_path):
    """A page that is spoilt within a sound file: its footer says nothing of it."""
    folder = Path(shutil.copytree(homes.home.public / homes.release.name, tmp_path / "copy"))
    path = folder / "person-1.parquet"
    content = bytearray(path.read_bytes())
    content[4:60] = bytes(56)
    path.write_bytes(content)
    sign_again(folder, homes.home, lambda manifest: None)
    for ask in (lambda bundle: bundle.table("sex", "grade"), lambda bundle: bundle.fit("grade ~ sex")):
        with pytest.raises(EvidenceBroken, match="a set cannot be read: .*. Nothing was answered"):
            ask(read_bundle(folder))
