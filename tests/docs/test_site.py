"""The site: builds without a broken link, loads nothing from a network, and can be read and searched from the file system."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
LOADED = re.compile(r"<(?:script|img|iframe|source)[^>]*\ssrc=\"([^\"]+)\"|<link[^>]*\shref=\"([^\"]+)\"")
BUILD = (sys.executable, "-m", "zensical", "build", "--strict")

pytest.importorskip("zensical", reason="needs the extra that builds the site")
pytestmark = pytest.mark.slow


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    """Builds a copy of the site's sources; the generator keeps its cache beside them."""
    for name in ("mkdocs.yml", "docs", "steps_engine/PRIVACY.md"):
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, target, dirs_exist_ok=True) if source.is_dir() else shutil.copy(source, target)
    return subprocess.run(BUILD, cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / ".cache" / "site"


def test_every_document_is_a_page(site: Path):
    documents = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert {path.relative_to(site) for path in site.rglob("*.html")} - {Path("404.html")} == documents


def test_a_broken_link_stops_the_build(tmp_path: Path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "mkdocs.yml").write_text("site_name: x\nsite_dir: site\n")
    (tmp_path / "docs" / "index.md").write_text("# Title\n\n[nowhere](nothing.md)\n")
    assert subprocess.run(BUILD, cwd=tmp_path, capture_output=True, timeout=120).returncode != 0
    (tmp_path / "docs" / "index.md").write_text("# Title\n\n[here](#title)\n")
    assert subprocess.run(BUILD, cwd=tmp_path, capture_output=True, timeout=120).returncode == 0


def test_every_table_is_shown_as_one(site: Path):
    """A table that follows a line of text without a blank line between is shown as its own markup."""
    assert [path.name for path in site.rglob("*.html") if "|---" in path.read_text()] == []


def from_the_network(page: str) -> list[str]:
    return [address for found in LOADED.findall(page) for address in found if re.match(r"(https?:)?//", address)]


def test_no_page_loads_anything_from_a_network(site: Path):
    assert {path.name: found for path in site.rglob("*.html") if (found := from_the_network(path.read_text()))} == {}


def test_a_font_from_a_network_is_noticed():
    assert from_the_network('<link rel="stylesheet" href="https://fonts.example.org/x.css">')


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        pytest.skip("needs Debian's chromium and chromium-driver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--window-size=1280,900",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 400])
def test_pages_open_from_the_file_system_and_fit(width: int, site: Path, browser: Any):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    )
    for page in ("index", "tutorial", "reference/release", "reference/bundle", "privacy", "lab/studies"):
        browser.get((site / f"{page}.html").as_uri())
        assert browser.find_element("tag name", "h1").is_displayed()
        wide = browser.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{page} scrolls sideways at {width} pixels"
    assert browser.get_log("browser") == []


def search(browser: Any, site: Path, words: str, awaited: str) -> tuple[str, str]:
    """Types into the search of the front page; returns what stands in its box and below once `awaited` is shown."""
    from selenium.webdriver.support.ui import WebDriverWait

    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.get((site / "index.html").as_uri())
    browser.execute_script("document.querySelector('.md-search__button').click()")
    browser.switch_to.active_element.send_keys(words)
    shown = "return [...document.querySelectorAll('*')].map(e => e.shadowRoot?.textContent ?? '').join(' ')"
    WebDriverWait(browser, 20).until(lambda driver: awaited in driver.execute_script(shown))
    box = "return [...document.querySelectorAll('*')].map(e => e.shadowRoot?.querySelector('input')?.value ?? '').join('')"
    return browser.execute_script(box), browser.execute_script(shown)


@pytest.mark.browser
def test_search_works_from_the_file_system(site: Path, browser: Any):
    typed, shown = search(browser, site, "rows_per_person", "dataset.yaml")
    assert typed == "rows_per_person" and "unavailable" not in shown
    assert browser.get_log("browser") == []


@pytest.mark.browser
def test_search_that_needs_a_server_is_noticed(site: Path, browser: Any, tmp_path: Path):
    shutil.copytree(site, tmp_path / "site")
    (tmp_path / "site" / "assets" / "iframe-worker.js").write_text("")
    search(browser, tmp_path / "site", "rows_per_person", "Search is unavailable")
    browser.get_log("browser")  # the refusal stands there, and is not the next test's
