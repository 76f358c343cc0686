"""Every kind of page on a phone of 360 px: nothing scrolls sideways but boxes made for it, labels and dates stand whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from schemas.notices import Superseded, Withdrawn
from schemas.spec.domain import Domain
from steps_engine.domain.counting import count_codes
from steps_engine.evaluation.coded import Coded
from steps_engine.evaluation.report import evaluate
from steps_engine.noise import SeededRandomness
from tasks.publishing import notices
from tasks.publishing.evaluation_page import render_evaluation, render_incomparable
from tasks.publishing.publication import publish
from tasks.publishing.templates import PAGES, template
from tasks.reading.profile import Finding
from tasks.stages.validate import Outcome
from tasks.studies.points import ask, compute, grid, prepare
from tasks.studies.report import report
from tests.steps_engine.methods.households import small as households
from tests.steps_engine.methods.places import test_places as places
from tests.tasks.publishing.making import a_release, make
from tests.tasks.publishing.test_page import phone

pytestmark = pytest.mark.browser
LONG = "Managers, directors and senior officials in public administration, social security and defence"
ROOT = Path(__file__).parents[3]
EXTENDS = '{% extends "page.html" %}'
SCROLLS = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"


def wide(attributes: int) -> Domain:
    """A questionnaire with a long label, dates and many questions."""
    first = (
        {"name": "occupation_as_the_person_described_it", "kind": "categorical", "categories": (LONG, "other")},
        {"name": "moved_in", "kind": "date", "bounds": ("2000-01-01", "2003-12-31"), "bins": 4},
        {"name": "age", "kind": "integer", "bounds": (0, 60)},
    )
    rest = ({"name": f"q{j:02d}", "kind": "categorical", "categories": ("no", "yes")} for j in range(attributes - 3))
    return Domain.model_validate({"name": "d", "population": "town", "expected_rows": 800, "attributes": (*first, *rest)})


def a_page(folder: Path, method: dict, attributes: int) -> Path:
    domain, rng = wide(attributes), np.random.default_rng(1)
    codes = np.stack([rng.integers(0, size, 800) for size in domain.sizes], axis=1)
    made = make(folder, a_release(domain, method), count_codes(codes))
    return publish(*made.arguments).folder / "index.html"


@pytest.fixture(scope="module")
def driver() -> Iterator:
    browser = phone()
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    )
    try:
        yield browser
    finally:
        browser.quit()


CUT = """return [...document.querySelectorAll('body *')].filter(e => getComputedStyle(e).overflowX == 'hidden'
  && e.scrollWidth > e.clientWidth + 1).map(e => e.tagName + ' ' + e.className)"""


def must_fit(driver, path: Path) -> None:
    driver.get(path.as_uri())
    assert driver.execute_script("return window.innerWidth") == 360
    assert driver.execute_script(SCROLLS) <= 0, f"{path} scrolls sideways on a phone"
    assert driver.execute_script(CUT) == [], f"{path} hides what does not fit"
    assert driver.get_log("browser") == []


@pytest.mark.parametrize(
    ("method", "attributes"),
    [({"decomposition": "cascade"}, 67), ({"decomposition": "pairs"}, 8), ({"decomposition": "tree", "order": ("q00",)}, 5)],
    ids=["67 attributes", "pairs", "tree"],
)
def test_a_release_fits_a_phone_and_its_labels_stand_whole(driver, tmp_path: Path, method: dict, attributes: int):
    must_fit(driver, a_page(tmp_path / "home", method, attributes))
    labels = driver.execute_script("return [...document.querySelectorAll('.bars .label')].map(e => e.textContent)")
    assert LONG in labels and {label for each in wide(attributes).attributes for label in each.labels} == set(labels)
    cut = "return [...document.querySelectorAll('.bars .label, .bars .value')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
    assert driver.execute_script(cut) == 0
    names = driver.execute_script("return [...document.querySelectorAll('.scroll svg')][0].textContent")
    assert all(name in names for name in wide(attributes).names)
    small = "return Math.min(...[...document.querySelectorAll('.scroll svg text')].map(e => e.getBoundingClientRect().height))"
    assert driver.execute_script(small) >= 9, "names in a picture are too small to read"


def test_an_evaluation_fits_a_phone(driver, tmp_path: Path):
    rng = np.random.default_rng(2)
    tables = [
        Coded(("a", "b", "c"), (2, 3, 4), np.stack([rng.integers(0, k, 300) for k in (2, 3, 4)], axis=1)) for _ in range(3)
    ]
    page = render_evaluation(evaluate(tables[0], tables[1:], SeededRandomness(1)), "A release with a rather long name", True)
    (tmp_path / "page.html").write_text(page)
    must_fit(driver, tmp_path / "page.html")


def test_a_validation_fits_a_phone(driver, tmp_path: Path):
    finding = Finding(12, (LONG,))
    rows = [Outcome("occupation_as_described", "values are among the categories " * 3, "not met", finding, "critical")]
    page = template("validation.html").render(release={"name": "a-release"}, outcomes=rows, remarks=["one"])
    (tmp_path / "page.html").write_text(page)
    must_fit(driver, tmp_path / "page.html")
    assert driver.execute_script(
        "return [...document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth)"
    ) == [0]
    narrow = "return document.documentElement.clientWidth - document.querySelector('.confidential').clientWidth"
    for width in (1600, 360):  # the last is what other tests want
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride", {"width": width, "height": 740, "deviceScaleFactor": 2, "mobile": True}
        )
        assert driver.execute_script(narrow) == 0, "the warning does not span the page"


def test_places_and_households_fit_a_phone(driver, tmp_path: Path):
    country = make(tmp_path / "country", places.asked(places.country(2_000)), count_codes(places.people(2_000)))
    must_fit(driver, publish(*country.arguments).folder / "index.html")
    must_fit(driver, country.home.public / "r" / "codebook.html")
    of = households.domain()
    homes = make(tmp_path / "homes", households.release(of), households.counted(of, households.some_homes(150)))
    must_fit(driver, publish(*homes.arguments).folder / "index.html")


def test_a_notice_and_a_page_without_a_comparison_fit_a_phone(driver, tmp_path: Path):
    said = Withdrawn(date="2026-11-18", why=f"{LONG}: {'w' * 80}")
    (tmp_path / "notice.html").write_bytes(notices._page("a-release", said, Superseded(date="2026-11-19", by="b" * 60)))
    must_fit(driver, tmp_path / "notice.html")
    (tmp_path / "page.html").write_text(render_incomparable("a-release", "a set has no rows"))
    must_fit(driver, tmp_path / "page.html")


def test_a_study_fits_a_phone(driver, tmp_path: Path):
    study = ask("simulation", repeats=1, epsilon=["2"], method=["steps", "original"])
    points = list(grid(study, prepare(study, tmp_path)))
    for point in points:
        compute(point, tmp_path)
    report(study, points, tmp_path)
    must_fit(driver, tmp_path / "index.html")


def styles_of_their_own(texts: dict[str, str]) -> list[str]:
    """Documents that begin a page, or give it a style, by themselves; and templates that do not take the common one."""
    alone = [name for name, text in texts.items() if re.search("<(html|style|!doctype html)", text, re.IGNORECASE)]
    return alone + [name for name, text in texts.items() if name.endswith("html") and not text.startswith(EXTENDS)]


def test_all_pages_have_one_style():
    texts = {path.name: path.read_text() for path in PAGES.glob("*.html") if path.name != "analyses.html"}  # a part of a page
    assert '{% include "style.css" %}' in texts.pop("page.html") and len(texts) >= 8
    programs = {str(path): path.read_text() for layer in ("flows", "tasks") for path in (ROOT / layer).rglob("*.py")}
    assert styles_of_their_own(texts | programs) == []
    assert styles_of_their_own({"a.html": "<p>", "b.html": EXTENDS, "c.py": "<style>"}) == ["c.py", "a.html"], "the control"
