"""A measure of utility that is one file: it reaches JSON, terminal, page, confidential table and studies, and no bundle."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tasks.stores.artifacts import Store
from tests.flows.conftest import Said
from tests.flows.small import Small, drawn
from tests.toys import added


@pytest.fixture
def new_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    added(monkeypatch, "steps_engine.evaluation.measures", "measures")


@pytest.fixture
def evaluate(small: Small, steps: Callable[..., Said]) -> Callable[..., Said]:
    """Compares the small records with three quarters of them."""
    import pyarrow.parquet as pq

    records = pq.read_table(small.folder / "records.parquet")
    pq.write_table(records.slice(0, 1_500).drop_columns("person"), small.folder / "synthetic.parquet")
    files = (small.folder / "records.parquet", small.folder / "synthetic.parquet")
    return lambda *words: steps(
        "evaluate", *files, "--domain", small.folder / "dataset.yaml", "--classifier", "logistic", *words
    )


def test_its_figures_stand_in_the_json_beside_the_others(new_measure, evaluate):
    said = evaluate("--json").json
    assert said["sizes"] == {"missing": pytest.approx(1 - 1_500 / 2_003), "extra": 0, "undefined": None, "unit": "rows"}
    assert said["sizes_in_words"] == {"said": "as many as <could be>"}
    assert list(said) == [
        "rows",
        "specks",
        "tvd",
        "margins",
        "chi_square",
        "association",
        "sizes",
        "sizes_in_words",
        "regression",
    ]


def test_its_figures_are_printed_in_a_terminal(new_measure, evaluate):
    assert "sizes missing" in evaluate().out and "sizes undefined" not in evaluate().out


@pytest.mark.whole
def test_its_section_stands_on_the_page_with_its_picture_and_its_table(new_measure, evaluate, small: Small):
    page = small.folder / "page.html"
    assert evaluate("--page", page).code == 0
    text = page.read_text()
    assert text.count("<svg") == 4 and "share of the rows that are missing" in text
    section = text.partition("<h2>Sizes &lt;of the sets&gt;")[2]
    assert "too few, too many" in section and '<td>missing</td><td class="number">0.251</td>' in section


@pytest.mark.whole
def test_without_its_file_nobody_knows_it(evaluate, small: Small):
    page = small.folder / "page.html"
    assert "sizes" not in evaluate("--json", "--page", page).json and "Sizes" not in page.read_text()
    assert "sizes" not in evaluate().out


def evaluated(small: Small) -> Store:
    """The small release, published and evaluated by plain functions."""
    from tasks.stages.correct import correct
    from tasks.stages.evaluate import evaluate
    from tasks.stages.publish import publish_release
    from tasks.stages.synthesize import synthesize

    home, asked, planned, cells, tree, noisy = drawn(small)
    consistent = correct(home, asked, planned, tree, noisy)
    sets = synthesize(home, asked, planned, tree, noisy, consistent)
    publish_release(home, asked, planned, (tree, noisy, consistent, *sets))
    evaluate(home, asked, cells, sets)
    return Store(home)


@pytest.mark.whole
def test_it_is_in_the_confidential_table_and_page_of_a_release_and_nowhere_in_its_bundle(new_measure, small: Small):
    store = evaluated(small)
    rows = store.read(store.find("small-1", "evaluation")).to_pylist()
    assert {row["which"] for row in rows if row["measure"] == "sizes"} == {"missing", "extra"}
    assert {row["measure"] for row in rows} == {"specks", "tvd", "chi_square", "sizes"}
    assert "Sizes &lt;of the sets&gt;" in (small.home / "confidential" / "small-1" / "evaluation.html").read_text()
    bundle = [path for path in (small.home / "public" / "small-1").rglob("*") if path.is_file()]
    assert bundle and not [path for path in bundle if b"sizes" in path.read_bytes().lower()]


@pytest.mark.slow
def test_a_study_records_it_under_its_own_name(new_measure):
    from steps_engine.noise import SeededRandomness
    from steps_engine.studies.methods import VOTER, Original
    from steps_engine.studies.standin import youth_voter
    from steps_engine.studies.voter import voter_domain, voter_figures

    original = Original(voter_domain(), youth_voter(1_000, SeededRandomness(1)))
    found = voter_figures(VOTER["steps-2"], original, "1", 2, SeededRandomness(2))
    assert {which for measure, which in found if measure == "sizes"} == {"missing", "extra", "undefined"}
    assert ("ks", "") in found and ("specks", "ks") not in found, "the paper's measures keep the paper's names"
