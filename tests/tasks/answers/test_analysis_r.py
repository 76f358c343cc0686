"""analysis.R: base R gives the numbers of `steps fit`, by the file that stands in every bundle and follows from public inputs."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from schemas.spec.domain import Domain
from tasks.answers import read_bundle
from tasks.publishing import bundle
from tasks.publishing.descriptions.analysis_r import FORM, analysis_r
from tasks.publishing.publication import publish
from tasks.verify.bundle import verify_bundle
from tasks.verify.recompute import verify_again
from tests.tasks.publishing.making import Made, a_release, make, sign_again, some_counts

ANALYSIS = "analysis.R"
RSCRIPT = shutil.which("Rscript")
needs_r = pytest.mark.skipif(
    RSCRIPT is None, reason="R is not installed: scripts/system-packages.sh, or apt-get install r-base-core"
)
MODELS = [
    ("wage ~ age", None, {}),
    ("voted ~ age + wage", None, {}),
    ("wage ~ C(age) + registered * since", None, {}),
    ("voted ~ C(age):wage + C(age) + wage - 1", None, {}),
    ("voted ~ since + wage", "logistic", {"registered": "yes, by <post>", "age": "18–27"}),
    ("voted ~ registered + wage", None, {}),  # nobody who is not registered has voted: not determined
]


def run_r(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(RSCRIPT), "--vanilla", str(folder / ANALYSIS), *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    )


def plain(name: str) -> str:
    """A coefficient as patsy names it and as R does: both as R does."""
    return re.sub(r"C\((\w+)\)", r"\1", re.sub(r"\[(?:T\.)?([^]]*)\]", r"\1", name)).replace("Intercept", "(Intercept)")


def number(text: str) -> float | None:
    return None if text.strip() == "NA" else float(text)


def must_agree(folder: Path, model: str, kind: str | None, where: dict[str, str], place: Path) -> None:
    """Every number of every coefficient, to six digits."""
    words = [f"{name}={value}" for name, value in where.items()] + (["--kind", kind] if kind else [])
    done = run_r(folder, model, *words, "--csv", str(place / "found.csv"))
    assert done.returncode == 0, done.stderr
    with (place / "found.csv").open(encoding="utf-8") as file:
        found = {row["coefficient"].strip(): row for row in csv.DictReader(file)}
    ours = read_bundle(folder).fit(model, kind, where).document["coefficients"]
    assert {plain(each["name"]) for each in ours} == found.keys()
    for each in ours:
        for column in ("estimate", "standard_error", "low", "high"):
            theirs = number(found[plain(each["name"])][column])
            assert theirs == each[column] is None or theirs == pytest.approx(each[column], rel=2e-6, abs=1e-9)
    assert any(each["estimate"] is not None for each in ours)


@needs_r
@pytest.mark.parametrize(("model", "kind", "where"), MODELS, ids=[model for model, _, _ in MODELS])
@pytest.mark.parametrize("method", ["pairs", "tree"])
@pytest.mark.whole
def test_r_gives_the_numbers_of_steps_fit_to_six_digits(method, model, kind, where, request, tmp_path: Path):
    must_agree(request.getfixturevalue(f"by_{method}"), model, kind, where, tmp_path)


@needs_r
@pytest.mark.whole
def test_r_knows_what_is_derived(with_regions: Path, tmp_path: Path):
    must_agree(with_regions, "wage ~ region * voted", None, {}, tmp_path)
    must_agree(with_regions, "pay ~ age + voted", "logistic", {"region": "Scotland"}, tmp_path)
    must_agree(with_regions, "voted ~ county + region + age", None, {}, tmp_path)  # region follows: not determined


@needs_r
@pytest.mark.whole
def test_it_says_how_far_a_model_can_be_trusted(by_pairs: Path):
    named, other = run_r(by_pairs, "wage ~ age").stdout, run_r(by_pairs, "wage ~ voted").stdout
    assert "Combined by T = W + (1 + 1/m)" in named and "Everything it depends on was measured" in named
    assert "`steps fit` says whether it measured what the model needs" in other


@needs_r
def test_it_can_be_sourced_from_another_place(by_pairs: Path, tmp_path: Path):
    asked = f'source("{by_pairs}/analysis.R"); print(nrow(steps_fit("wage ~ age")))'
    done = subprocess.run([str(RSCRIPT), "--vanilla", "-e", asked], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.stdout.strip() == "[1] 2", done.stderr


@needs_r
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["wage ~ aeg"], "there is no attribute 'aeg'; did you mean 'age'?"),
        (["wage"], "must be: name ~ names"),
        (["wage ~ age", "voted=perhaps"], "voted has no category 'perhaps'; it has no, yes"),
        (["age ~ wage", "--kind", "logistic"], None),
        ([], 'Rscript analysis.R "voted ~ age + college"'),
    ],
)
@pytest.mark.whole
def test_it_says_what_is_wrong(by_pairs: Path, words, said):
    done = run_r(by_pairs, *words)
    assert done.returncode != 0 and (said is None or said in done.stderr)


@needs_r
def test_without_csv_it_reads_parquet_by_arrow_or_says_what_to_do(by_pairs: Path, tmp_path: Path):
    """Debian has no package of arrow for R: where it is not installed, the CSV way alone is run by these tests."""
    copy = Path(shutil.copytree(by_pairs, tmp_path / "copy"))
    for path in copy.glob("*.csv"):
        path.unlink()
    done = run_r(copy, "wage ~ age")
    if done.returncode == 0:
        must_agree(copy, "wage ~ C(age) + registered * since", None, {}, tmp_path)
        return
    assert 'install.packages("arrow")' in done.stderr
    (copy / "synthetic-1.parquet").unlink()
    assert "keep analysis.R in the release's folder" in run_r(copy, "wage ~ age").stderr


def found_in_r(folder: Path, model: str, place: Path) -> list[float]:
    done = run_r(folder, model, "--csv", str(place / "found.csv"))
    assert done.returncode == 0, done.stderr
    with (place / "found.csv").open(encoding="utf-8") as file:
        return sorted(float(row["estimate"]) for row in csv.DictReader(file))


def released(folder: Path, *attributes: dict) -> Path:
    domain = Domain.model_validate({"name": "awkward", "population": "town", "attributes": attributes})
    release = a_release(domain, {"decomposition": "flat", "sets": {"count": 2, "budget": "shared"}}, epsilon="9")
    return publish(*make(folder / "home", release, some_counts(domain, 900)).arguments).folder


@needs_r
@pytest.mark.whole
def test_awkward_labels_and_names_reach_r(tmp_path: Path):
    folder = released(
        tmp_path,
        {"name": "größe", "kind": "categorical", "categories": ("=1+2", "NA"), "missing": "category"},
        {"name": "if", "kind": "integer", "bounds": (0, 5), "missing": "category"},
        {"name": "_x", "kind": "numeric", "bounds": (-1, 1), "bins": 2},
        {"name": "東京", "kind": "ordinal", "categories": ('"a"', "b\\n", "it's")},
    )
    assert len(found_in_r(folder, "größe ~ _x + 東京 + if", tmp_path)) == 5, "a word of the language is a name too"
    model = "größe ~ _x + 東京"
    assert found_in_r(folder, model, tmp_path) == pytest.approx(sorted(read_bundle(folder).fit(model)["estimate"]), rel=2e-6)


@needs_r
@pytest.mark.parametrize("model", ["pay ~ hours + start", "pay ~ C(hours) + C(start)"])
@pytest.mark.whole
def test_times_spikes_and_open_ends_reach_r(tmp_path: Path, model: str):
    folder = released(
        tmp_path,
        {"name": "pay", "kind": "numeric", "bounds": (0, 100), "bins": 5, "missing": "category"},
        {
            "name": "hours",
            "kind": "integer",
            "bounds": (0, 40),
            "bins": 3,
            "at": (0, 20),
            "above": {"shape": "exponential", "mean": 50},
        },
        {"name": "start", "kind": "time", "bounds": ("06:00", "11:59"), "bins": 3},
    )
    assert found_in_r(folder, model, tmp_path) == pytest.approx(sorted(read_bundle(folder).fit(model)["estimate"]), rel=2e-6)


def test_it_is_signed_and_follows_from_domain_and_plan(made_by_pairs: Made, by_pairs: Path):
    content = (by_pairs / ANALYSIS).read_bytes()
    assert content.startswith(f"# {FORM}\n".encode()) and content.isascii()
    plan, domain = (
        bundle.read_plan((by_pairs / bundle.PLAN).read_bytes()),
        bundle.read_domain((by_pairs / bundle.DOMAIN).read_bytes()),
    )
    assert content == analysis_r(domain, plan) == analysis_r(made_by_pairs.release.domain, made_by_pairs.plan)
    verdict = verify_again(by_pairs)
    assert verdict.recomputed is not None and verdict.recomputed.same[ANALYSIS] is True


@pytest.mark.whole
def test_another_program_under_its_name_is_found_by_recompute_even_if_signed(
    made_by_pairs: Made, by_pairs: Path, tmp_path: Path
):
    copy = Path(shutil.copytree(by_pairs, tmp_path / "copy"))
    script = copy / ANALYSIS
    script.write_bytes(script.read_bytes().replace(b"1 + 1 / m", b"1 - 1 / m"))
    assert [problem.file for problem in verify_bundle(copy) if not problem.note] == [ANALYSIS], "not what was signed"
    sign_again(copy, made_by_pairs.home)
    assert not [problem for problem in verify_bundle(copy) if not problem.note], "the plain check runs nothing again"
    verdict = verify_again(copy)
    assert verdict.recomputed is not None and verdict.recomputed.same[ANALYSIS] is False
    assert "analysis.R: is not what follows from the tables, the plan and the domain" in map(str, verdict.problems)
