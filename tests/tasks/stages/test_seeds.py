"""A release draws after its noise by one rule from its first count to its last row: the one that was sealed for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steps_engine.methods.registry import method_of
from steps_engine.noise import SystemRandomness
from tasks.specs import load_release
from tasks.stages.build import build_tree
from tasks.stages.charge import charge
from tasks.stages.correct import correct
from tasks.stages.discretize import discretize
from tasks.stages.plan import load_plan, plan
from tasks.stages.publish import publish_release
from tasks.stages.sanitize import sanitize
from tasks.stages.seeds import seeds_of
from tasks.stages.synthesize import synthesize, synthesize_set
from tasks.stages.validate import silent_gx
from tasks.stores.artifacts import Store
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tasks.verify.recompute import NO_SEEDS, verify_again
from tests.flows.small import make_small


@pytest.fixture
def drawn(tmp_path: Path):
    """A release whose noisy counts are sealed: its home, its spec, and the references so far."""
    return drawn_in(tmp_path)


def drawn_in(folder: Path, more: str = ""):
    silent_gx()
    small = make_small(folder, 301)
    small.write(more=more)
    home, asked = Home(small.home), load_release(small.release)
    open_ledger(home).grant("small-people", 10**9, "a test")
    planned = plan(home, asked)
    cells = discretize(home, asked)
    paid = charge(home, asked, planned, cells, {})
    tree = build_tree(home, asked, planned, cells, paid)
    return home, asked, planned, tree, sanitize(home, asked, planned, cells, tree, paid)


def published(home: Home, asked, planned, *public) -> tuple[dict, Path]:
    folder = publish_release(home, asked, planned, public)
    return json.loads((folder / "manifest.json").read_bytes()), folder


@pytest.mark.whole
def test_a_release_of_this_version_is_recomputed_whole_and_its_sets_are_the_same_whoever_makes_them_first(drawn):
    home, asked, planned, tree, noisy = drawn
    consistent = correct(home, asked, planned, tree, noisy)
    last = synthesize_set(home, asked, planned, tree, noisy, consistent, 2)  # a worker that was faster than the others
    sets = synthesize(home, asked, planned, tree, noisy, consistent)
    assert sets[1] == last
    manifest, folder = published(home, asked, planned, tree, noisy, consistent, *sets)
    found = verify_again(folder, home.keys / "signing-key.pub")
    assert manifest["seeds"] == "steps-seeds/1" and found.problems == () and found.recomputed is not None
    assert {f"synthetic-{i}.parquet" for i in (1, 2)} < found.recomputed.same.keys() and all(found.recomputed.same.values())


@pytest.mark.whole
def test_a_release_that_an_earlier_version_began_to_draw_ends_by_its_rule(drawn):
    """Counts were sealed without a rule for seeds: sets that are still missing have none either, and nothing claims one."""
    home, asked, planned, tree, noisy = drawn
    store, of = Store(home), load_plan(Store(home), planned)
    method = method_of(of)
    counts = method.correct(asked.domain, of, store.read(tree), store.read(noisy), SystemRandomness())
    store.write(asked.name, "consistent-counts", counts, method.schemas(of)["consistent-counts"], "public")
    consistent = correct(home, asked, planned, tree, noisy)
    assert seeds_of(store, asked.name) is None
    sets = synthesize(home, asked, planned, tree, noisy, consistent)
    manifest, folder = published(home, asked, planned, tree, noisy, consistent, *sets)
    found = verify_again(folder, home.keys / "signing-key.pub")
    assert "seeds" not in manifest and manifest["format"] == "steps-release/2" and found.problems == ()
    assert found.recomputed is not None and found.recomputed.why_not == NO_SEEDS


def test_a_run_that_died_after_sealing_the_rule_goes_on_by_it(drawn):
    home, asked, planned, tree, noisy = drawn
    from tasks.stages.seeds import settle_seeds

    store = Store(home)
    assert settle_seeds(store, asked.name) == "steps-seeds/1"
    entries = len(open_ledger(home).entries())
    assert settle_seeds(store, asked.name) == "steps-seeds/1" and len(open_ledger(home).entries()) == entries
    correct(home, asked, planned, tree, noisy)
    assert seeds_of(store, asked.name) == "steps-seeds/1"


@pytest.mark.parametrize("lost", ["seeds", "consistent-counts", "*s*"])  # the last: these two and both sets
@pytest.mark.whole
def test_what_was_approved_and_lost_comes_back_as_it_was(tmp_path: Path, lost: str):
    home, asked, planned, tree, noisy = drawn_in(tmp_path, more="approval: required\n")
    consistent = correct(home, asked, planned, tree, noisy)
    sets = synthesize(home, asked, planned, tree, noisy, consistent)
    open_ledger(home).decide("small-1", "approve", "ada", "fine")
    entries = open_ledger(home).entries()
    for file in (home.staging / "small-1").glob(f"{lost}/*.parquet"):
        if file.parent.name != "noisy-counts":
            file.unlink()
    again = correct(home, asked, planned, tree, noisy)
    assert again == consistent and synthesize(home, asked, planned, tree, noisy, again) == sets
    assert open_ledger(home).entries() == entries, "nothing was sealed anew"
    manifest, folder = published(home, asked, planned, tree, noisy, consistent, *sets)
    assert manifest["seeds"] == "steps-seeds/1" and verify_again(folder).recomputed.why_not is None
