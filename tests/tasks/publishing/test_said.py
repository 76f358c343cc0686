"""What the two files say in words reaches page, codebook, margins and manifest: escaped, harmless in spreadsheets, and true."""

from __future__ import annotations

import csv
import io
import json
import shutil
from decimal import Decimal

import pyarrow.parquet as pq
import pytest

from schemas.manifest import SEEDS_1
from schemas.spec.domain import Domain
from schemas.spec.release import Release
from tasks.publishing import bundle
from tasks.publishing.formats.csv import ENTRY as CSV
from tasks.publishing.publication import publish
from tasks.verify.bundle import verify_bundle
from tasks.verify.recompute import verify_again
from tests.tasks.publishing.making import a_release, edit_table, make, sign_again, some_counts
from tests.tasks.publishing.test_page import _Page, phone

SCROLLS = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
EVIL = "<script>alert(1)</script>"
DOMAIN = Domain.model_validate(
    {
        "name": "shifts",
        "population": "town",
        "expected_rows": 2000,
        "title": "Shifts & wages",
        "description": f"Who works when {EVIL}.",
        "publisher": "Office <of> Statistics",
        "contact": "data@example.org",
        "licence": "CC-BY-4.0",
        "source": "questionnaire 7",
        "attributes": (
            {
                "name": "sex",
                "kind": "categorical",
                "categories": ("1", "2"),
                "title": "Sex & gender",
                "description": f"as in the register {'x' * 300}",
                "labels": {"1": "=cmd|' /C calc'!A0", "2": f"female {EVIL}"},
                "source": "question <3>",
                "why": "two are in the register",
            },
            {"name": "start", "kind": "time", "bounds": ("00:00", "24:00"), "bins": 4},
            {
                "name": "wage",
                "kind": "numeric",
                "bounds": (0, 10),
                "bins": 2,
                "at": 0,
                "above": {"shape": "pareto", "alpha": 3},
            },
            {"name": "county", "kind": "categorical", "categories": ("Kent", "Fife"), "missing": "category"},
        ),
        "derived": (
            {
                "name": "region",
                "from": "county",
                "by": {"Kent": "=S", "Fife": "N"},
                "labels": {"N": f"North {EVIL}"},
                "title": "Part",
            },
        ),
        "rules": ({"never": {"sex": "1", "wage": 0}, "why": f"because {EVIL}"},),
    }
)


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The folder of a release with words, and its home. Not to be changed."""
    release = a_release(
        DOMAIN, {"decomposition": "pairs", "sets": {"count": 2, "budget": "shared"}}, name="shifts", epsilon="3"
    )
    spec = release.spec.model_copy(update={"title": f"Shifts of 2026 {EVIL}", "description": "For <everybody>."})
    release = Release(spec=spec, domain=DOMAIN, folder=".")
    made = make(tmp_path_factory.mktemp("said") / "home", release, some_counts(DOMAIN, 2000))
    publish(*made.arguments, seeds=SEEDS_1)
    return made.home.public / "shifts", made.home


def listed(folder, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((folder / name).read_text(encoding="utf-8"), newline="")))


def test_the_page_says_all_of_it_and_runs_none_of_it(published):
    page = _Page((published[0] / bundle.PAGE).read_text(encoding="utf-8"))
    assert "script" not in page.seen and page.seen.isdisjoint({"of", "everybody", "3"})
    for said in (
        f"Shifts of 2026 {EVIL}", "For <everybody>.", f"Who works when {EVIL}.", "Office <of> Statistics", "data@example.org",
        "Licence: CC-BY-4.0", "questionnaire 7", "Sex & gender", "as in the register", f"2 · female {EVIL}", "question <3>",
        "two are in the register", "never sex = 1 with wage = 0", f"because {EVIL}", "00:00–05:59", "> 10", "Part", f"N · North {EVIL}",
    ):  # fmt: skip
        assert said in page.text, said
    assert "Release shifts · data set shifts" in page.text


@pytest.mark.browser
def test_the_page_fits_a_phone_whatever_it_says(published):
    driver = phone()
    try:
        driver.get((published[0] / bundle.PAGE).as_uri())
        assert driver.find_element("tag name", "h1").text == f"Shifts of 2026 {EVIL}"
        assert driver.get_log("browser") == []
        assert driver.execute_script(SCROLLS) <= 0, "the page scrolls sideways on a phone"
    finally:
        driver.quit()


def test_a_release_without_words_has_its_name_as_its_heading(tmp_path):
    plain = DOMAIN.model_copy(update=dict.fromkeys(("title", "description", "publisher", "contact", "licence", "source")))
    made = make(tmp_path / "home", a_release(plain, {"decomposition": "flat"}, name="shifts"), some_counts(plain, 500))
    page = _Page(publish(*made.arguments).folder.joinpath(bundle.PAGE).read_text(encoding="utf-8"))
    assert "shifts · synthetic data" in page.text and "Publisher" not in page.text and "Release shifts" not in page.text


def test_the_codebook_has_labels_sources_and_reasons_and_no_formula(published):
    rows = listed(published[0], bundle.CODEBOOK)
    assert list(rows[0])[:4] == ["attribute", "kind", "code", "category"]
    first, region = rows[0], [row for row in rows if row["attribute"] == "region"]
    assert (
        first["label"] == "'=cmd|' /C calc'!A0"
        and first["source"] == "question <3>"
        and first["why"] == "two are in the register"
    )
    assert [row["category"] for row in region] == ["'=S", "N", "(missing)"]
    assert {row["kind"] for row in region} == {"derived from county"}
    wage = [row["category"] for row in rows if row["attribute"] == "wage"]
    assert wage == ["0", "(0, 5)", "[5, 10]", "> 10"]


def test_the_codebook_has_the_numbers_of_the_margins_and_then_the_rules(published):
    codebook, margins = (listed(published[0], name) for name in (bundle.CODEBOOK, bundle.MARGINS))
    shared = ("attribute", "category", "estimate", "low", "high", "standard_error", "trust", "label")
    counted = [row for row in codebook if row["kind"] != "rule"]
    assert [[row[name] for name in shared] for row in counted] == [[row[name] for name in shared] for row in margins]
    assert all(row["counted"] == "rows" and float(row["low"]) <= float(row["high"]) for row in counted)
    assert [row["attribute"] for row in counted[-3:]] == ["region"] * 3
    [rule] = codebook[len(counted) :]
    said = {name: text for name, text in rule.items() if text}
    assert said == {"kind": "rule", "category": "never sex = 1 with wage = 0", "why": f"because {EVIL}"}


def test_margins_have_labels_beside_codes(published):
    rows = [row for row in listed(published[0], bundle.MARGINS) if row["attribute"] == "sex"]
    assert [row["category"] for row in rows] == ["1", "2"] and rows[1]["label"] == f"female {EVIL}"


def test_the_manifest_has_title_and_description_and_only_where_they_are_said(published, tmp_path):
    manifest = json.loads((published[0] / bundle.MANIFEST).read_bytes())
    assert manifest["title"].startswith("Shifts of 2026") and manifest["description"] == "For <everybody>."
    made = make(tmp_path / "home", a_release(DOMAIN, {"decomposition": "flat"}, name="other"), some_counts(DOMAIN, 500))
    assert "title" not in json.loads((publish(*made.arguments).folder / bundle.MANIFEST).read_bytes())


def test_times_are_minutes_in_csv_and_times_in_parquet(published):
    rows = listed(published[0], "synthetic-1.csv")
    assert all(len(row["start"]) == 5 and row["start"][2] == ":" for row in rows)
    stored = pq.read_table(published[0] / "synthetic-1.parquet")["start"]
    assert str(stored.type) == "time64[us]" and [f"{time:%H:%M}" for time in stored.to_pylist()] == [
        row["start"] for row in rows
    ]


def test_everything_follows_from_what_is_published(published):
    folder, home = published
    found = verify_again(folder, home.keys / "signing-key.pub")
    assert found.problems == () and found.recomputed is not None and all(found.recomputed.same.values())


@pytest.mark.parametrize(
    ("lie", "says"),
    [
        (lambda columns: columns["region"].__setitem__(0, "N" if columns["region"][0] != "N" else "=S"), "does not follow"),
        (lambda columns: columns["wage"].__setitem__(0, -1.0), "outside the domain: wage"),
    ],
    ids=["a region that does not follow", "a wage below the bounds"],
)
def test_a_row_that_the_domain_does_not_allow_is_found_by_the_plain_check(published, tmp_path, lie, says):
    folder, home = published
    shutil.copytree(folder, tmp_path / "copy")
    edit_table(tmp_path / "copy" / "synthetic-1.parquet", lie)
    (tmp_path / "copy" / "synthetic-1.csv").write_bytes(CSV.write((tmp_path / "copy" / "synthetic-1.parquet").read_bytes()))
    sign_again(tmp_path / "copy", home)
    problems = verify_bundle(tmp_path / "copy", home.keys / "signing-key.pub")
    assert any(problem.file == "synthetic-1.parquet" and says in problem.text for problem in problems)


def test_a_manifest_with_words_has_a_format_that_knows_them(published, tmp_path):
    folder, home = published
    shutil.copytree(folder, tmp_path / "copy")
    sign_again(tmp_path / "copy", home, lambda manifest: manifest.update(title=" "))
    problems = verify_bundle(tmp_path / "copy", home.keys / "signing-key.pub")
    assert any(problem.file == bundle.MANIFEST for problem in problems)


def test_epsilon_is_the_same_with_and_without_derived_attributes():
    without = DOMAIN.model_copy(update={"derived": ()})
    from steps_engine.methods.planning import make_plan
    from steps_engine.noise import SeededRandomness

    plans = [make_plan(a_release(each, {"decomposition": "pairs"}), SeededRandomness(1)) for each in (DOMAIN, without)]
    assert plans[0].draws == plans[1].draws and Decimal(plans[0].epsilon) == 1
