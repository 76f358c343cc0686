"""`steps verify --recompute`: whatever does not follow from the noisy counts is found, for every method, and named."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.manifest import SEEDS_1
from steps_engine.methods.after_noise import Drawn
from steps_engine.methods.registry import method_of
from steps_engine.noise import SystemRandomness
from tasks.publishing import bundle
from tasks.publishing.formats import FORMATS
from tasks.publishing.publication import publish
from tasks.publishing.telling import told_names
from tasks.verify.bundle import Verdict, examine
from tasks.verify.recompute import NO_SEEDS, verify_again
from tests.tasks.publishing.making import Made, edit_json, edit_table, make, sign_again, some_counts
from tests.tasks.verify.methods import release_of

NAMES = ["given", "flat", "uh", "cascade", "privbayes", "pairs"]
BUDGETS = ["split", "shared"]
TABLES = {"consistent-counts.parquet", "synthetic-1.parquet", "synthetic-2.parquet"}
FILES = TABLES | told_names()


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Callable[[str, str], Made]:
    """Published releases by name and budget, each made when first asked for. Not to be changed."""
    known: dict[tuple[str, str], Made] = {}

    def get(name: str, budget: str) -> Made:
        if (name, budget) not in known:
            release = release_of(name, sets={"count": 2, "budget": budget})
            known[name, budget] = make(tmp_path_factory.mktemp("again") / "home", release, some_counts(release.domain, 1003))
            publish(*known[name, budget].arguments, seeds=SEEDS_1)
        return known[name, budget]

    return get


@pytest.fixture
def lied(made, tmp_path) -> Callable[..., Verdict]:
    """What is found in a copy that was changed, and signed again by its publisher."""

    def find(name: str, budget: str, lie: Callable[[Path], None]) -> Verdict:
        of = made(name, budget)
        copy = tmp_path / "copy"
        shutil.copytree(of.home.public / of.release.name, copy)
        lie(copy)
        sign_again(copy, of.home)
        return verify_again(copy, of.home.keys / "signing-key.pub")

    return find


def must_name(found: Verdict, files: set[str], *words: str) -> None:
    """Exactly these files do not follow, and each is named in a problem that says so."""
    assert found.recomputed is not None and found.recomputed.why_not is None
    assert {name for name, same in found.recomputed.same.items() if not same} == files
    for name in files:
        assert any(each.file == name and all(word in each.text for word in words) for each in found.problems), found.problems


def write_records(folder: Path, number: int, records: pa.Table) -> None:
    path = folder / f"synthetic-{number}.parquet"
    pq.write_table(records.cast(pq.read_schema(path).remove_metadata()), path, compression="zstd")
    (folder / f"synthetic-{number}.csv").write_bytes(FORMATS.named("csv").write(path.read_bytes()))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.whole
def test_every_count_and_every_row_of_an_honest_release_follows(made, name, budget):
    of = made(name, budget)
    found = verify_again(of.home.public / of.release.name, of.home.keys / "signing-key.pub")
    assert found.problems == () and found.recomputed is not None
    assert found.recomputed.same == dict.fromkeys(FILES, True)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.whole
def test_a_planted_row_is_found(lied, name, budget):
    """One row takes another's place: two rows differ from what follows, and a cell's count with them."""

    def plant(folder: Path) -> None:
        records = pq.read_table(folder / "synthetic-1.parquet")
        first = next(i for i in range(1, len(records)) if records.slice(i, 1) != records.slice(0, 1))
        write_records(folder, 1, pa.concat_tables([records.slice(first, 1), records.slice(1)]))

    must_name(lied(name, budget, plant), {"synthetic-1.parquet"}, "1 of", "the first is row 1")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.whole
def test_a_second_try_at_a_set_is_found(made, lied, name, budget):
    """Everything else holds: only the seed says that it is not the first."""
    of = made(name, budget)

    def try_again(folder: Path) -> None:
        read = {stage: pq.read_table(folder / f"{stage}.parquet") for stage in ("tree", "noisy-counts", "consistent-counts")}
        drawn = Drawn(of.release.domain, of.plan, read["tree"], read["noisy-counts"])
        write_records(folder, 2, drawn.synthesize(method_of(of.plan), read["consistent-counts"], 2, SystemRandomness()))

    found = lied(name, budget, try_again)
    must_name(found, {"synthetic-2.parquet"}, "noisy counts")
    assert {each.file for each in found.problems} == {"synthetic-2.parquet"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.whole
def test_a_moved_count_is_found(lied, name, budget):
    def move(folder: Path) -> None:
        def change(columns: dict[str, list]) -> None:
            columns["estimate"][-1] += 0.5

        edit_table(folder / "consistent-counts.parquet", change)

    must_name(lied(name, budget, move), {"consistent-counts.parquet"}, "1 of", "estimate")


@pytest.mark.whole
@pytest.mark.parametrize("name", NAMES)
def test_other_noisy_counts_lead_to_other_sets(lied, name):
    """Who moves a noisy count after the fact would have to make every set again, and the estimates."""

    def change(columns: dict[str, list]) -> None:
        columns["noisy_1"][-1] += 1

    found = lied(name, "shared", lambda folder: edit_table(folder / "noisy-counts.parquet", change))
    must_name(found, TABLES)


def test_sets_that_change_places_are_found_though_each_is_honest(lied):
    def swap(folder: Path) -> None:
        one, two = (pq.read_table(folder / f"synthetic-{i}.parquet") for i in (1, 2))
        write_records(folder, 1, two)
        write_records(folder, 2, one)

    must_name(lied("cascade", "split", swap), {"synthetic-1.parquet", "synthetic-2.parquet"})


def test_a_file_that_is_encoded_otherwise_is_the_same(lied):
    """What is hashed for the seeds is content: nobody can write a table in another way until a set pleases."""

    def encode(folder: Path) -> None:
        table = pq.read_table(folder / "noisy-counts.parquet")
        pq.write_table(table, folder / "noisy-counts.parquet", compression="gzip", row_group_size=3)

    found = lied("given", "shared", encode)
    must_name(found, {"croissant.json", "index.html"})  # which name every file by its hash
    assert found.recomputed is not None and all(found.recomputed.same[name] for name in TABLES)


@pytest.mark.parametrize("name", sorted(told_names()))
@pytest.mark.whole
def test_a_file_that_tells_something_else_is_found(lied, name):
    """What people and programs are told follows from the tables, or is named."""

    def tell(folder: Path) -> None:
        text = (folder / name).read_text(encoding="utf-8")
        changed = text.replace("yes", "aye") if "yes" in text else text.replace("poll", "pool")
        assert changed != text
        (folder / name).write_text(changed, encoding="utf-8")

    found = lied("pairs", "shared", tell)
    must_name(found, {name}, "not what follows")
    assert {each.file for each in found.problems if not each.note} == {name}


def test_what_another_version_wrote_in_other_words_is_no_lie(made, tmp_path):
    of = made("given", "shared")
    copy = tmp_path / "copy"
    shutil.copytree(of.home.public / of.release.name, copy)
    (copy / "README.txt").write_text("Read me.\n")
    edit_json(copy / bundle.SBOM, lambda bill: bill["metadata"]["component"].update(version="0.1.9"))
    sign_again(copy, of.home, lambda manifest: manifest["code"].update(version="0.1.9"))
    found = verify_again(copy, of.home.keys / "signing-key.pub")
    assert found.problems == () and found.recomputed is not None
    assert "README.txt" in found.recomputed.otherwise and "README.txt" not in found.recomputed.same


def test_a_release_without_seeds_verifies_and_says_that_it_cannot_be_recomputed(tmp_path):
    release = release_of("cascade", sets={"count": 2})
    of = make(tmp_path / "home", release, some_counts(release.domain, 503))
    folder = publish(*of.arguments).folder
    found = verify_again(folder, of.home.keys / "signing-key.pub")
    assert found.problems == () and found.recomputed is not None
    assert (found.recomputed.same, found.recomputed.why_not) == ({}, NO_SEEDS)


def test_nothing_is_recomputed_unasked(made):
    of = made("given", "split")
    assert examine(of.home.public / of.release.name).recomputed is None


def test_seeds_make_a_manifest_of_format_3_and_nothing_less(made):
    of = made("given", "split")
    manifest = bundle.read_manifest((of.home.public / of.release.name / bundle.MANIFEST).read_bytes())
    assert (manifest.format, getattr(manifest, "seeds", None)) == ("steps-release/3", SEEDS_1)
    with pytest.raises(ValueError, match="seeds"):
        bundle.read_manifest(bundle.to_bytes(manifest.model_dump(mode="json") | {"format": "steps-release/2"}))
