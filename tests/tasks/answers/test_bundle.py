"""`read_bundle`: what a notebook gets of a published release, and what it is told where there is nothing to get."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from schemas.errors import EvidenceBroken, SpecError
from steps_engine.answers.table import question_of, table_of
from tasks.answers import Bundle, read_bundle
from tasks.answers.opened import open_bundle
from tasks.publishing.publication import publish
from tasks.stages.take_back import withdraw
from tasks.stores.home import Home
from tasks.verify.bundle import examine
from tests.tasks.publishing.making import POLL, Made, a_release, make, some_counts

ROOT = Path(__file__).parents[3]
FROZEN = sorted((ROOT / "tests/frozen").glob("*/bundles/*.tar.gz"))


def exact(*names: str) -> np.ndarray:
    counts = some_counts(POLL, 3001)
    places = [POLL.index(name) for name in names]
    shape = tuple(POLL.sizes[j] for j in places)
    return np.bincount(np.ravel_multi_index(tuple(counts.codes[:, places].T), shape), counts.count, int(np.prod(shape)))


@pytest.mark.whole
def test_a_table_is_pandas_with_errors_and_its_notes_in_sight(by_pairs: Path):
    table = read_bundle(by_pairs).table("age", "voted")
    assert isinstance(table, pd.DataFrame) and list(table.columns[:2]) == ["age", "voted"] and len(table) == 8
    truth = exact("age", "voted")
    assert (np.abs(table["count"] - truth) <= 5 * table["standard_error"]).all() and (table["standard_error"] > 0).all()
    assert np.isclose(table["share"].sum(), 1)
    assert ((table["low"] <= table["count"]) & (table["count"] <= table["high"])).all()
    shown = repr(table)
    assert all(column in shown for column in table.columns), "intervals stand in a script's output too"
    assert shown.startswith("age × voted") and "95% intervals are about what the records hold" in shown
    assert "<table" in table._repr_html_() and "&lt;" not in table.query("voted == 'yes'").to_html()
    assert type(table.head(2)) is pd.DataFrame, "what is made of it is a plain frame"
    assert table.document["source"] == "measured" and json.dumps(table.document)


def test_a_condition_narrows_a_table_and_its_shares(by_tree: Path):
    bundle = read_bundle(by_tree)
    some, every = bundle.table("age", where={"voted": "yes"}), bundle.table("voted", "age")
    yes = every[every["voted"] == "yes"]
    assert np.allclose(some["count"], yes["count"]) and np.allclose(some["standard_error"], yes["standard_error"])
    assert np.isclose(some["share"].sum(), 1) and some.title.startswith("age where voted = yes")


def test_what_was_not_measured_is_answered_from_the_sets_and_says_so(by_pairs: Path):
    table = read_bundle(by_pairs).table("voted", "age", "wage")
    assert table.document["source"] == "sets"
    assert "WARNING: Not from the noisy counts but from the synthetic sets: not measured: voted × age × wage" in repr(table)
    sets = read_bundle(by_pairs).frames
    first = [((frame["voted"] == "no") & frame["age"].between(18, 27) & (frame["wage"] < 5.25)).mean() for frame in sets]
    assert np.isclose(table["share"].iloc[0], np.mean(first))


def test_noise_that_dominates_is_said(tmp_path: Path):
    release = a_release(POLL, {"decomposition": "flat", "sets": {"count": 1}}, epsilon="0.05")
    folder = publish(*make(tmp_path / "home", release, some_counts(POLL, 300)).arguments).folder
    table = read_bundle(folder).table("voted", "age")
    assert "WARNING: Noise dominates in every cell" in repr(table) and set(table["trust"]) == {"mostly noise"}
    assert ((table["share_low"] >= 0) & (table["share_high"] <= 1)).all()


def test_frames_are_the_published_sets(by_pairs: Path):
    frames = read_bundle(by_pairs).frames
    assert len(frames) == 3 and all(list(frame.columns) == list(POLL.names) for frame in frames)
    assert frames[0].equals(pd.read_parquet(by_pairs / "synthetic-1.parquet"))


def test_a_named_model_gets_the_numbers_of_the_manifest(by_pairs: Path):
    fit = read_bundle(by_pairs).fit("wage ~ age")
    (said,) = json.loads((by_pairs / "manifest.json").read_bytes())["analyses"]
    assert [each["name"] for each in said["estimates"]] == list(fit.index)
    for column in ("estimate", "low", "high"):
        assert np.allclose(fit[column], [each[column] for each in said["estimates"]], rtol=1e-5)
    assert (fit.document["honest"], fit.document["why"]) == (said["honest"], said["why"]) == (True, fit.document["why"])
    assert "WARNING" not in repr(fit)


def test_a_model_that_needs_more_than_was_measured_is_fitted_with_a_warning(by_pairs: Path):
    fit = read_bundle(by_pairs).fit("voted ~ age * wage")
    assert fit.document["kind"] == "logistic" and not fit.document["honest"] and not fit.document["measured"]
    assert "WARNING: Not measured: voted × age × wage" in repr(fit)
    linear = read_bundle(by_pairs).fit("wage ~ voted + C(age)", where={"registered": "yes, by <post>"})
    assert linear.document["kind"] == "linear" and "C(age)[T.28–37]" in linear.index


def test_an_undeclared_model_whose_tables_were_measured_is_honest(by_pairs: Path):
    fit = read_bundle(by_pairs).fit("wage ~ voted")
    assert fit.document["honest"] and fit.document["needs"] == [{"of": ["voted", "wage"], "measured": True}]


@pytest.mark.whole
def test_one_set_says_that_its_interval_does_not_hold_the_noise(tmp_path: Path):
    release = a_release(POLL, {"decomposition": "pairs", "sets": {"count": 1}}, epsilon="4")
    folder = publish(*make(tmp_path / "home", release, some_counts(POLL, 1000)).arguments).folder
    shown = repr(read_bundle(folder).fit("wage ~ voted"))
    assert "one set cannot show its noise: the interval is too narrow" in shown and "T = W: with one set" in shown


def test_a_coefficient_that_the_sets_do_not_determine_is_named(by_pairs: Path):
    fit = read_bundle(by_pairs).fit("voted ~ registered")  # nobody who is not registered has voted
    assert fit["estimate"].isna().any() and "The sets do not determine" in repr(fit)
    assert fit.document["coefficients"][1]["estimate"] is None


def test_samples_are_frames_and_the_same_for_one_seed(by_pairs: Path):
    bundle = read_bundle(by_pairs)
    first, second = bundle.sample(rows=500, where={"voted": "yes"}, sets=2, seed=4)
    assert len(first) == len(second) == 500 and set(first["voted"]) == {"yes"} and not first.equals(second)
    assert first.equals(bundle.sample(rows=500, where={"voted": "yes"}, sets=1, seed=4)[0])
    assert len(bundle.sample(sets=1)[0]) == bundle.rows


@pytest.mark.whole
def test_what_is_derived_is_asked_like_any_attribute(with_regions: Path):
    bundle = read_bundle(with_regions)
    assert repr(bundle).endswith("county, voted, wage, age, region, pay")
    counties, regions = bundle.table("county", "voted"), bundle.table("region", "voted")
    assert list(regions["region"].unique()) == ["=South", "Scotland", "(missing)"]
    north = counties[counties["county"].isin(["Fife", "Moray"])].groupby("voted")["count"].sum()
    assert np.allclose(regions[regions["region"] == "Scotland"]["count"], north) and regions.document["source"] == "measured"
    both = bundle.table("region", "county")
    assert list(zip(both["region"], both["county"], strict=True)) == [
        ("=South", "Kent"), ("=South", "Devon"), ("Scotland", "Fife"), ("Scotland", "Moray"), ("(missing)", "(missing)"),
    ]  # fmt: skip
    assert np.allclose(np.sort(both["count"]), np.sort(bundle.table("county")["count"]))
    some = bundle.table("county", where={"region": "Scotland"})
    assert list(some["county"]) == ["Fife", "Moray"] and some.title.startswith("county where region = Scotland")
    assert np.isclose(some["share"].sum(), 1)
    assert "there is no attribute 'regoin'; did you mean 'region'" in str(
        pytest.raises(SpecError, bundle.table, "regoin").value
    )


@pytest.mark.whole
def test_what_is_derived_is_fitted_and_sampled(with_regions: Path):
    bundle = read_bundle(with_regions)
    fit = bundle.fit("voted ~ pay", where={"region": "Scotland"})
    assert {"county", "voted", "wage"} == {name for table in fit.document["needs"] for name in table["of"]}
    with pytest.raises(SpecError, match="where fixes 'region', and the model names 'county', which goes with it"):
        bundle.fit("voted ~ county", where={"region": "Scotland"})
    assert {"of": ["voted", "wage"], "measured": True} in bundle.fit("voted ~ pay").document["needs"]
    frame = pd.concat(bundle.frames)
    kept = frame[frame["region"] == "Scotland"]
    assert sum(fit.document["rows"]) == len(kept)
    (rows,) = bundle.sample(rows=200, where={"region": "=South", "pay": "more"}, sets=1)
    assert set(rows["county"]) == {"Kent", "Devon"} and rows["wage"].min() >= 7 and set(rows["pay"]) == {"more"}
    every = bundle.table("region", "voted", "pay", "age")
    youngest = frame[frame["age"] <= 20]
    assert every.document["source"] == "sets" and np.isclose(
        every["count"].iloc[0],
        len(youngest[(youngest["region"] == "=South") & (youngest["voted"] == "no") & (youngest["pay"] == "little")]) / 3,
    )


@pytest.mark.parametrize("archive", FROZEN, ids=lambda path: path.name.removesuffix(".tar.gz"))
@pytest.mark.whole
def test_bundles_of_earlier_versions_answer_too(archive: Path, tmp_path: Path):
    name = archive.name.removesuffix(".tar.gz")
    with tarfile.open(archive) as held:
        held.extractall(tmp_path, filter="data")
    bundle = read_bundle(tmp_path / name, archive.with_name(f"{name}.pub"))
    first, second = bundle.domain.names[:2]
    table = bundle.table(first, second)
    assert len(table) and np.isclose(table["share"].sum(), 1) and table["standard_error"].notna().all()
    assert len(bundle.sample(rows=50, sets=1)[0]) == 50
    assert len(bundle.fit(f"wage ~ {first}")) >= 1 if "wage" in bundle.domain.names else True


@pytest.mark.parametrize(
    ("names", "where", "said"),
    [
        (("votde",), {}, "there is no attribute 'votde'; did you mean 'voted'"),
        (("voted", "voted"), {}, "'voted' stands twice"),
        ((), {}, "names one attribute or more"),
        (("age",), {"voted": "yes", "registered": "no"}, "nothing fulfils"),
    ],
)
def test_a_table_that_cannot_be_is_told(by_tree: Path, names, where, said):
    with pytest.raises(SpecError, match=said):
        read_bundle(by_tree).table(*names, where=where)


@pytest.mark.parametrize(
    ("formula", "said"),
    [
        ("voted ~ aeg", "there is no attribute 'aeg'; did you mean 'age'"),
        ("voted ~ exp(age)", "must be: name ~ names"),
        ("age ~ voted + ", "cannot be read"),
        ("wage € ~ age", "'€ ~ age' cannot be read: names here are of letters, digits and _"),
        ("since ~ voted", None),
        ("registered ~ age * wage * since * voted", None),
    ],
)
def test_a_formula_that_cannot_be_read_is_told(by_tree: Path, formula, said):
    if said is None:
        assert len(read_bundle(by_tree).fit(formula))
        return
    with pytest.raises(SpecError, match=said):
        read_bundle(by_tree).fit(formula)


def test_a_folder_that_is_no_bundle_is_told(tmp_path: Path):
    for folder, seen in (
        (tmp_path, "it holds no manifest.json"),
        (tmp_path / "no", "it is not there"),
        (Path(__file__), "a file"),
    ):
        with pytest.raises(SpecError, match=f"is no published release: {seen}. Give a bundle's folder"):
            read_bundle(folder)
    [problem] = examine(tmp_path).problems
    assert problem.file == "manifest.json" and "Give a bundle's folder" in problem.text


def test_a_condition_that_nobody_fulfils_in_the_sets_is_told_with_why_they_were_asked(by_pairs: Path):
    opened, names = open_bundle(by_pairs), ("voted", "registered", "age", "wage")
    counts, nobody = (
        opened.counts("tree", "noisy-counts", "consistent-counts"),
        lambda: [opened.records(1).select(names).slice(0, 0)] * 2,
    )
    with pytest.raises(SpecError, match=r"nobody fulfils the condition in 2 of 2 sets, .*Leave a part of the condition out"):
        table_of(question_of(names, {"voted": "yes"}, POLL), POLL, opened.plan, counts, nobody)
    with pytest.raises(SpecError, match="there is no row at all in 2 of 2 sets"):  # nobody gave a condition
        table_of(question_of(names, {}, POLL), POLL, opened.plan, counts, nobody)


@pytest.mark.parametrize("name", ["noisy-counts.parquet", "plan.json", "manifest.json", "manifest.sig", "signing-key.pub"])
def test_a_spoilt_bundle_is_not_read(by_tree: Path, tmp_path: Path, name: str):
    copy = Path(shutil.copytree(by_tree, tmp_path / "copy"))
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / name).write_bytes(content)
    with pytest.raises(EvidenceBroken, match="does not verify|is not the file that was signed"):
        read_bundle(copy).table("voted")


def test_only_files_that_are_needed_are_read(by_tree: Path, tmp_path: Path):
    copy = Path(shutil.copytree(by_tree, tmp_path / "copy"))
    (copy / "synthetic-1.parquet").unlink()
    assert len(read_bundle(copy).table("voted")) == 2
    with pytest.raises(EvidenceBroken, match="synthetic-1.parquet is missing"):
        read_bundle(copy).fit("voted ~ age")


def test_another_publishers_key_is_refused(by_tree: Path, made_by_pairs: Made):
    with pytest.raises(EvidenceBroken, match="is not the key that was given"):
        read_bundle(by_tree, made_by_pairs.home.keys / "signing-key.pub")


def test_a_withdrawn_release_warns_loudly(made_by_pairs: Made, tmp_path: Path):
    home = Home(shutil.copytree(made_by_pairs.home.path, tmp_path / "home"))
    withdraw(home, made_by_pairs.release.name, "Weights were wrong.")
    with pytest.warns(UserWarning, match="was withdrawn on .*: Weights were wrong"):
        bundle = read_bundle(home.public / made_by_pairs.release.name)
    assert "WARNING: This release was withdrawn" in repr(bundle)
    assert "WARNING: This release was withdrawn" in repr(bundle.table("voted"))
    assert "WARNING: This release was withdrawn" in repr(bundle.fit("wage ~ voted"))


def test_a_bundle_shows_what_it_is(by_pairs: Path):
    shown = repr(read_bundle(by_pairs))
    assert "poll-2026: 3 synthetic sets by pairs, ε = 4" in shown and "voted, registered, age, wage, since" in shown


@pytest.mark.whole
def test_answers_import_nothing_of_the_pipeline(by_pairs: Path):
    asked = (
        "import sys; from tasks.answers import read_bundle; b = read_bundle(sys.argv[1])\n"
        "b.table('voted'); b.fit('wage ~ voted'); b.sample(rows=10, sets=1); b.frames\n"
        "heavy = ('prefect', 'duckdb', 'great_expectations', 'sqlalchemy', 'alembic', 'matplotlib', 'jinja2', 'tasks.stores', "
        "'tasks.stages', 'tasks.reading')\n"
        "print([name for name in heavy if any(m == name or m.startswith(name + '.') for m in sys.modules)])"
    )
    done = subprocess.run([sys.executable, "-c", asked, str(by_pairs)], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "[]\n", done.stderr
    assert isinstance(read_bundle(by_pairs), Bundle)
