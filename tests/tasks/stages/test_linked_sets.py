"""Linked tables through the stages when a set has several blocks: what is published is whole, verifies and is made again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from schemas.errors import InfrastructureFault
from steps_engine.domain import blocks as domain_blocks
from steps_engine.methods.households import synthesize as engine
from steps_engine.noise import SeededRandomness
from steps_engine.studies.homes import dataset, homes
from tasks import progress
from tasks.specs import load_release
from tasks.stages.build import build_tree
from tasks.stages.charge import charge
from tasks.stages.correct import correct
from tasks.stages.discretize import discretize
from tasks.stages.evaluate import evaluate
from tasks.stages.plan import plan
from tasks.stages.publish import publish_release
from tasks.stages.sanitize import sanitize
from tasks.stages.synthesize import join_parts, linked_tables, make_part, parts_of, room_for_sets, synthesize
from tasks.stages.validate import silent_gx
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tasks.tables_on_disk import Stored
from tasks.verify.recompute import verify_again

RELEASE = """name: homes-1
dataset: dataset.yaml
source: {household: households.csv, person: persons.parquet}
privacy: {epsilon: 20.0, why: a test}
formats: [parquet, csv]
analyses: [[n_spouse], [relation, sex]]
method: {decomposition: households, sets: {count: 2, budget: shared}}
"""


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domain_blocks, "BLOCK", 250)
    monkeypatch.setattr(engine, "AT_A_TIME", 200)


@pytest.mark.whole
def test_a_set_of_several_blocks_is_published_verified_and_evaluated_without_being_read_whole(
    tmp_path: Path, small_blocks, monkeypatch: pytest.MonkeyPatch
):
    silent_gx()
    household, person = homes(400, SeededRandomness(6))
    household.to_csv(tmp_path / "households.csv", index=False)
    person.to_parquet(tmp_path / "persons.parquet", index=False)
    (tmp_path / "dataset.yaml").write_text(dataset(400))
    (tmp_path / "release.yaml").write_text(RELEASE)
    home, asked = Home(tmp_path / "home"), load_release(tmp_path / "release.yaml")
    open_ledger(home).grant("homes-2026", 20 * 10**9, "a test", unit="household")
    planned, cells = plan(home, asked), discretize(home, asked)
    paid = charge(home, asked, planned, cells, {})
    tree = build_tree(home, asked, planned, cells, paid)
    noisy = sanitize(home, asked, planned, cells, tree, paid)
    consistent = correct(home, asked, planned, tree, noisy)
    whole, read = Stored.read, set[str]()
    monkeypatch.setattr(Stored, "read", lambda self, columns=None: read.add(self.path.parent.name) or whole(self, columns))
    heard = list[float]()
    with progress.listening(heard.append):
        sets = synthesize(home, asked, planned, tree, noisy, consistent)
    assert parts_of(home, asked, planned) == 1
    monkeypatch.setattr("tasks.stages.synthesize.BLOCK", 250)
    assert parts_of(home, asked, planned) == 2
    must_be_the_same_in_parts(home, asked, planned, (tree, noisy, consistent), sets[1])
    folder = publish_release(home, asked, planned, (tree, noisy, consistent, *sets, *linked_tables(home, asked, planned)))
    evaluate(home, asked, cells, sets)
    assert len(heard) > 2 and heard[-1] == 1 and not list((home.staging / asked.name).glob("parts-*"))
    monkeypatch.setattr(Stored, "read", lambda self, columns=None: read.add(self.path.stem) or whole(self, columns))
    found = verify_again(folder, home.keys / "signing-key.pub")
    assert found.problems == () and all(found.recomputed.same.values())
    assert {
        f"{kind}-{i}.parquet" for kind in ("synthetic", "household", "person") for i in (1, 2)
    } < found.recomputed.same.keys()
    assert not {name for name in read if name.startswith(("synthetic", "household", "person"))} and "noisy-counts" in read
    assert pq.read_metadata(folder / "person-1.parquet").num_row_groups >= 3


def must_be_the_same_in_parts(home: Home, asked: Any, planned: Any, drawn: tuple[Any, ...], made: Any) -> None:
    """Workers that share the blocks of households make the same files, to the byte, in whichever order they come."""
    sealed = [
        file for kind in ("household", "person", "synthetic") for file in (home.staging / asked.name / f"{kind}-2").iterdir()
    ]
    contents = [file.read_bytes() for file in sealed]
    for parts in (2, 3):  # the last of three has nothing to do
        for file in sealed:
            file.unlink()
        with room_for_sets(home, asked, parts, [2]) as room:
            for part in reversed(room):
                make_part(home, asked, planned, *drawn, parts, part)
            paths = [path for _, _, path in room]
            (lost,) = Path(paths[1]).parent.glob("2-1-1-of-2-person")
            kept = lost.rename(lost.with_name("elsewhere"))
            with pytest.raises(InfrastructureFault):  # a block that nobody made is missed
                join_parts(home, asked, 2, paths)
            kept.rename(lost)
            assert join_parts(home, asked, 2, paths) == made
        assert [file.read_bytes() for file in sealed] == contents
