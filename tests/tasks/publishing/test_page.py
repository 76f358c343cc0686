"""The page: one file without network or script, safe against labels, and true to the manifest."""

from __future__ import annotations

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from schemas.spec.domain import Domain
from tasks.publishing import bundle
from tasks.publishing.page import LONGEST
from tasks.publishing.publication import publish
from tests.tasks.publishing.making import POLL, a_release, make, some_counts

VOID = {"meta", "br", "hr", "img", "link", "input"}


class _Page(HTMLParser):
    """Elements, attributes and text of a page; every element that was opened must be closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.opened, self.attributes, self.words = [], [], []
        self.seen: set[str] = set()
        self.feed(text)
        assert self.opened == []

    def handle_starttag(self, tag, attributes):
        self.seen.add(tag)
        self.attributes += attributes
        if tag not in VOID:
            self.opened.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.add(tag)
        self.attributes += attributes

    def handle_endtag(self, tag):
        assert self.opened.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def page(given) -> _Page:
    return _Page((given.home.public / given.release.name / "index.html").read_text())


def test_the_page_needs_no_network_and_runs_nothing(page):
    assert not page.seen & {"script", "img", "link", "iframe", "object", "embed", "base", "form"}
    names = {"manifest.json", "manifest.sig", "notice.html", *bundle.file_names(2, ("parquet", "csv"))}
    for name, value in page.attributes:
        assert not name.startswith("on")
        assert name not in ("src", "srcset", "xlink:href", "action", "data", "background")
        assert name != "href" or value in names
        assert name != "style" or "url(" not in value
    assert "url(" not in page.text and "@import" not in page.text


def test_the_page_says_what_the_manifest_says(given, page):
    manifest = bundle.read_manifest((given.home.public / given.release.name / "manifest.json").read_bytes())
    assert manifest.guarantee.sentence in page.text.replace("\xa0", " ")
    assert all(text in page.text for text in manifest.guarantee.unprotected)
    assert all(facts.sha256 in page.text for name, facts in manifest.files.items() if name != "index.html")
    assert "ε = 1 for this release" in page.text and "ε = 3 left" in page.text
    assert "T = W + B ⁄ m" in page.text
    assert manifest.ledger.head in page.text
    assert all(str(draw.scale) in page.text for draw in manifest.draws)


def test_labels_cannot_become_markup(tmp_path):
    nasty = '<script>alert("1")</script>'
    domain = Domain.model_validate(
        {
            "name": "nasty",
            "population": "town",
            "attributes": (
                {"name": "x<b>&amp", "kind": "categorical", "categories": (nasty, "{{ 7*7 }}", "&lt;")},
                {"name": "y", "kind": "integer", "bounds": (0, 40)},
            ),
        }
    )
    release = a_release(domain, {"decomposition": "tree", "order": ("x<b>&amp",)})
    made = make(tmp_path / "home", release, some_counts(domain, 500))
    text = (publish(*made.arguments).folder / "index.html").read_text()
    page = _Page(text)
    assert "script" not in page.seen and "b" not in page.seen
    assert nasty in page.text and "{{ 7*7 }}" in page.text and "&lt;" in page.text
    assert "polyline" in page.seen  # 41 categories are drawn as a band


def phone():
    """A browser of a phone's width that keeps what pages complain about."""
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        pytest.skip("needs Debian's chromium and chromium-driver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--window-size=390,800"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))


@pytest.mark.browser
def test_the_page_opens_from_the_file_system_without_complaint(given):
    driver = phone()
    try:
        driver.get((given.home.public / given.release.name / "index.html").as_uri())
        assert driver.find_element("tag name", "h1").text == given.release.name
        assert driver.get_log("browser") == []  # the page's own policy forbids everything but its styles
        wide = driver.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, "the page scrolls sideways on a phone"
        assert len(driver.find_elements("css selector", "figure .bars")) == len(given.release.domain.attributes)
        assert re.search(r"± [0-9]", driver.find_element("css selector", "figure").text)
    finally:
        driver.quit()


def test_fractions_that_nobody_reads_are_rounded_and_the_page_says_where_they_stand(tmp_path: Path):
    made = make(tmp_path, a_release(POLL, {"decomposition": "pairs"}, epsilon="1"), some_counts(POLL, 301))
    text = (publish(*made.arguments).folder / "index.html").read_text()
    assert not re.search(r"\d{7}/\d|\d/\d{7}", text) and "Fractions too long to read are rounded here" in text
    assert any(len(str(draw.cost)) > LONGEST for draw in made.plan.draws), "nothing was long"
