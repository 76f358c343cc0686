"""A point of the grid is computed once; its name says what decides its figures."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from schemas.errors import DataInvalid, SpecError
from schemas.spec.domain import load_domain
from steps_engine.domain.cells import Space
from steps_engine.noise import SeededRandomness
from steps_engine.studies import paper
from steps_engine.studies.methods import VOTER
from steps_engine.studies.standin import youth_voter
from steps_engine.studies.voter import EPSILONS, voter_domain
from tasks.studies import points as module
from tasks.studies.points import Point, ask, compute, grid, path_of, prepare, read_points
from tasks.studies.report import report

EXAMPLE = Path(__file__).parents[3] / "examples" / "youth-voter" / "dataset.yaml"


def tiny(**more):
    return ask("simulation", repeats=1, epsilon=["2"], method=["steps", "original"], **more)


def test_the_paper_s_grid_is_the_default():
    voters = ask("voter")
    assert voters.epsilons == EPSILONS == ("0.135335283", "0.367879441", "1", "2.718281828", "7.389056099")
    assert (voters.repeats, voters.sets) == (10, 5)
    assert {"flat", "uh-2", "uh-3", "steps-2", "steps-3"} <= set(VOTER) & set(paper.METHODS)
    simulated = ask("simulation")
    assert (simulated.epsilons, simulated.repeats, simulated.sets) == (("0.5", "2", "5", "10"), 200, 4)
    spending = [p for p in grid(simulated, "") if p.method == "steps"]
    assert len(spending) == 2 * 2 * 4 * 200 and {(p.model, p.rows) for p in spending} == {
        (1, 4_000), (1, 10_000), (2, 4_000), (2, 10_000)}  # fmt: skip


def test_a_yardstick_is_computed_once_for_all_epsilons():
    points = list(grid(ask("simulation", repeats=3), ""))
    assert sum(p.method == "original" for p in points) == 3 * 4


def test_everything_that_decides_the_figures_decides_the_name():
    point = Point("voter", "steps-2", "1", 1, 5, 1, "data")
    changes = {"method": "steps-3", "epsilon": "2", "repeat": 2, "sets": 4, "seed": 2, "data": "other", "rows": 1}
    others = [replace(point, **{name: value}) for name, value in changes.items()]
    assert len({point.key, *(other.key for other in others)}) == len(others) + 1


def test_a_changed_definition_of_a_method_is_another_point(monkeypatch):
    point = Point("voter", "steps-2", "1", 1, 5, 1, "data")
    before = point.key
    changed = replace(module.METHODS["voter"]["steps-2"], settings={"decomposition": "flat"})
    monkeypatch.setitem(module.METHODS["voter"], "steps-2", changed)
    assert point.key != before


def test_a_finished_point_is_never_computed_again(tmp_path, monkeypatch):
    study = tiny()
    point = next(iter(grid(study, prepare(study, tmp_path))))
    assert compute(point, tmp_path) > 0
    content = path_of(point, tmp_path).read_bytes()
    monkeypatch.setattr(module, "_figures", lambda *_: pytest.fail("computed again"))
    assert compute(point, tmp_path) == 0.0 and path_of(point, tmp_path).read_bytes() == content


def test_a_lost_point_comes_back_with_the_same_figures(tmp_path):
    study = tiny()
    point = next(iter(grid(study, prepare(study, tmp_path))))
    compute(point, tmp_path)
    first = read_points([point], tmp_path).query("measure != 'seconds'")
    path_of(point, tmp_path).unlink()
    compute(point, tmp_path)
    assert first.equals(read_points([point], tmp_path).query("measure != 'seconds'"))


def test_a_point_says_what_it_is(tmp_path):
    study = tiny()
    point = next(iter(grid(study, prepare(study, tmp_path))))
    compute(point, tmp_path)
    assert json.loads(pq.read_schema(path_of(point, tmp_path)).metadata[b"point"]) == asdict(point)


def test_a_half_written_point_of_a_killed_run_is_swept_away(tmp_path):
    study = tiny()
    prepare(study, tmp_path)
    (tmp_path / "points" / ".writing-half").write_bytes(b"PAR1")
    prepare(study, tmp_path)
    assert list((tmp_path / "points").iterdir()) == []


@pytest.mark.slow
def test_the_simulation_leaves_tables_pictures_and_one_page_that_fetches_nothing(tmp_path):
    study = tiny()
    points = list(grid(study, prepare(study, tmp_path)))
    for point in points:
        compute(point, tmp_path)
    answer = report(study, points, tmp_path)
    names = {path.name for path in tmp_path.iterdir() if path.is_file()}
    tables = {f"{name}.{kind}" for name in ("coefficients", "prediction", "overview") for kind in ("csv", "parquet")}
    assert names == tables | {"model-1.svg", "model-1.png", "model-2.svg", "model-2.png", "index.html"}
    page = (tmp_path / "index.html").read_text()
    assert "<script" not in page and "src=" not in page and page.count("<svg") == 2
    assert len(answer["figures"]) == 4 * 2 and all(0 <= row["coverage"] <= 1 for row in answer["figures"])


def test_the_stand_in_s_domain_is_the_example_s():
    ours, example = voter_domain(), load_domain(EXAMPLE)
    assert (ours.names, ours.sizes, ours.forbidden) == (example.names, example.sizes, example.forbidden)
    assert Space(ours).count() == 1_290_240


@pytest.mark.slow
def test_the_voter_study_end_to_end_on_a_small_file(tmp_path):
    youth_voter(3_000, SeededRandomness(5)).to_parquet(tmp_path / "voters.parquet")
    files = {"data": str(tmp_path / "voters.parquet"), "domain": str(EXAMPLE)}
    study = ask("voter", repeats=1, epsilon=["1"], method=["flat", "steps-2-printed", "bootstrap"], **files)
    points = list(grid(study, prepare(study, tmp_path / "out")))
    for point in points:
        compute(point, tmp_path / "out")
    answer = report(study, points, tmp_path / "out")
    found = {row["method"]: row for row in answer["figures"]}
    assert found["bootstrap"]["ks"] < 0.3 < min(found["flat"]["ks"], found["steps-2-printed"]["ks"])
    assert (found["flat"]["paper ks"], found["flat"]["paper_score"], found["flat"]["score"]) == (0.968, 21, 8)
    page = (tmp_path / "out" / "index.html").read_text()
    assert page.count("<svg") == 3 and "0.968 (6)" in page
    coefficients = read_points(points[:1], tmp_path / "out").query("measure == 'coefficient'")
    assert len(coefficients) == 32


@pytest.mark.slow
def test_the_voter_study_in_both_measures_ranks_zcdp_as_if_it_had_entered_alone(tmp_path):
    youth_voter(3_000, SeededRandomness(5)).to_parquet(tmp_path / "voters.parquet")
    files = {"data": str(tmp_path / "voters.parquet"), "domain": str(EXAMPLE)}
    study = ask("voter", repeats=1, epsilon=["1"], method=["privbayes", "cascade"], delta=["1e-9"], **files)
    points = list(grid(study, prepare(study, tmp_path / "out")))
    for point in points:
        compute(point, tmp_path / "out")
    found = {row["method"]: row for row in report(study, points, tmp_path / "out")["figures"]}
    assert list(found) == ["privbayes", "privbayes-zcdp-1e-9", "cascade", "cascade-zcdp-1e-9"]
    assert found["privbayes"]["ks rank"] == 1 and found["privbayes"]["paper ks"] == 0.272
    assert found["privbayes-zcdp-1e-9"]["paper ks"] is None and found["privbayes-zcdp-1e-9"]["ks rank"] in (1, 2)
    for picture in ("ks.svg", "index.html"):
        assert "cascade, zCDP at δ = 1e-9" in (tmp_path / "out" / picture).read_text()


def test_points_finished_before_there_was_a_second_measure_are_found(monkeypatch):
    """Their names, written down then, when figures were those of version 2."""
    monkeypatch.setattr(module, "FIGURES", 2)
    assert Point("voter", "steps-2", "1", 1, 5, 1, "data").key == "71f2029c266ba5d0349584ef361f0492"
    assert Point("voter", "bootstrap", "", 1, 5, 1, "data").key == "4e6b0e31ec8c4a4050c127cb2b24746d"
    old = Point("simulation", "cascade-shared", "0.5", 2, 4, 1, "", 1, 4_000)
    assert old.key == "086509020aee3909e2483d1069912138"


def test_the_measure_and_its_delta_are_part_of_a_point():
    points = [Point("voter", f"steps-2{rest}", "1", 1, 5, 1, "data") for rest in ("", "-zcdp-1e-9", "-zcdp-1e-12")]
    assert len({point.key for point in points}) == 3
    assert points[1].name == "steps-2-zcdp-1e-9, ε 1, repeat 1"


def test_with_delta_a_study_holds_both_measures_and_the_pure_points_are_the_same():
    alone, both = (list(grid(ask("simulation", repeats=1, delta=delta), "")) for delta in (None, ["1e-9"]))
    assert {point.key for point in alone} < {point.key for point in both}
    added = {point.method for point in both} - {point.method for point in alone}
    unpaid = {"steps-printed", "original"}
    assert added == {f"{point.method}-zcdp-1e-9" for point in alone if point.method not in unpaid}


@pytest.mark.whole
def test_a_study_of_both_measures_says_which_is_which(tmp_path):
    study = tiny(delta=["1e-9"])
    points = list(grid(study, prepare(study, tmp_path)))
    for point in points:
        compute(point, tmp_path)
    answer = report(study, points, tmp_path)
    assert answer["methods"] == ["steps", "steps-zcdp-1e-9", "original"] and answer["deltas"] == ["1e-9"]
    assert [row["method"] for row in answer["figures"]].count("steps-zcdp-1e-9") == 4
    page, said = (tmp_path / "index.html").read_text(), (tmp_path / "currencies.csv").read_text()
    assert said == "epsilon,delta,rho\n2,1e-9,0.056130501\n"
    assert "steps, zCDP at δ = 1e-9" in page and "ε = 2 at δ = 1e-9: ρ = 0.056130501" in page


@pytest.mark.whole
def test_a_pure_study_does_not_speak_of_a_second_measure(tmp_path):
    study = tiny()
    points = list(grid(study, prepare(study, tmp_path)))
    for point in points:
        compute(point, tmp_path)
    answer = report(study, points, tmp_path)
    assert "deltas" not in answer and not (tmp_path / "currencies.csv").exists()
    assert "zCDP" not in (tmp_path / "index.html").read_text()


BAD = {
    "study": ({"name": "nothing"}, "no study 'nothing'"),
    "method": ({"name": "voter", "method": ["stepz"]}, "no method 'stepz'.*steps-2"),
    "zero": ({"name": "voter", "epsilon": ["0"]}, "positive"),
    "negative": ({"name": "voter", "epsilon": ["-1"]}, "positive"),
    "word": ({"name": "voter", "epsilon": ["much"]}, "plain number"),
    "nan": ({"name": "voter", "epsilon": ["nan"]}, "positive"),
    "delta 0": ({"name": "voter", "delta": ["0"]}, "above 0"),
    "a word as delta": ({"name": "voter", "delta": ["small"]}, "plain number"),
    "a delta that is not far below one in all rows": ({"name": "voter", "delta": ["1e-5"]}, "far below one in all"),
    "an epsilon that is no rho at delta": ({"name": "voter", "epsilon": ["0.0001"], "delta": ["1e-9"]}, "least that can be"),
    "delta for a yardstick": ({"name": "voter", "method": ["bootstrap"], "delta": ["1e-9"]}, "Leave --delta out"),
    "delta for printed equations": ({"name": "voter", "method": ["flat-printed-zcdp-1e-9"]}, "Ask for flat-printed"),
    "repeats": ({"name": "voter", "repeats": 0}, "at least 1"),
    "data alone": ({"name": "voter", "data": "x.csv"}, "go together"),
    "simulation with data": ({"name": "simulation", "data": "x.csv", "domain": "d.yaml"}, "own data"),
}


@pytest.mark.parametrize(("asked", "said"), BAD.values(), ids=BAD)
def test_bad_input_is_refused_at_the_door(asked, said):
    with pytest.raises(SpecError, match=said):
        ask(**asked)


def test_a_file_that_does_not_fit_its_domain_is_refused_without_a_word_from_it(tmp_path):
    youth_voter(100, SeededRandomness(5)).assign(voted="quetzalcoatlus").to_csv(tmp_path / "voters.csv", index=False)
    study = ask("voter", data=str(tmp_path / "voters.csv"), domain=str(EXAMPLE))
    with pytest.raises(DataInvalid, match="does not fit") as refused:
        prepare(study, tmp_path / "out")
    assert "quetzal" not in str(refused.value)


def test_a_domain_without_the_voter_attributes_is_refused(tmp_path):
    (tmp_path / "d.yaml").write_text("name: d\npopulation: p\nattributes:\n  - {name: a, kind: integer, bounds: [0, 1]}\n")
    (tmp_path / "a.csv").write_text("a\n0\n")
    with pytest.raises(SpecError, match="needs the attributes voted"):
        prepare(ask("voter", data=str(tmp_path / "a.csv"), domain=str(tmp_path / "d.yaml")), tmp_path / "out")
