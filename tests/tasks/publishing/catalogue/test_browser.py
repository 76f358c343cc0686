"""The catalogue and a codebook in a browser, from the file system: they fit a phone and a desk, and the search finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks.stages.catalogue import catalogue
from tests.tasks.publishing.catalogue.shelves import outlooks, some_shelves
from tests.tasks.publishing.test_page import phone

pytestmark = pytest.mark.browser
SCROLLS = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("catalogue")
    catalogue(some_shelves(folder / "home"), folder / "site", outlooks(), "2026-09-12")
    return folder / "site"


@pytest.fixture(scope="module")
def driver() -> Iterator:
    browser = phone()
    try:
        yield browser
    finally:
        browser.quit()


def opened(driver, path: Path, width: int):
    size = {"width": width, "height": 740, "deviceScaleFactor": 2, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(path.as_uri())
    assert driver.execute_script("return window.innerWidth") == width
    assert driver.execute_script(SCROLLS) <= 0, f"{path} scrolls sideways"
    assert driver.get_log("browser") == []  # its own policy forbids everything but its styles and its one script
    return driver


def shown(driver) -> set[str]:
    return {card.get_attribute("id") for card in driver.find_elements("css selector", ".release") if card.is_displayed()}


@pytest.mark.parametrize("width", [360, 1200])
def test_the_catalogue_shows_what_is_in_use_and_finds_what_is_asked_for(driver, site: Path, width: int):
    opened(driver, site / "index.html", width)
    assert shown(driver) == {"poll-2025", "wages-2026b"}
    driver.find_element("id", "older").click()
    assert shown(driver) == {"poll-2024", "poll-2025", "wages-2026", "wages-2026b"}
    box = driver.find_element("id", "search")
    box.send_keys("STATE'S")  # a label of a category
    assert shown(driver) == {"wages-2026", "wages-2026b"} and driver.find_element("id", "found").text == "2 releases"
    box.clear()
    box.send_keys("poll registered")
    assert shown(driver) == {"poll-2024"}
    box.clear()
    box.send_keys("nothing-has-this")
    assert shown(driver) == set() and driver.find_element("id", "found").text == "0 releases"


def test_a_link_to_a_release_that_is_hidden_shows_it(driver, site: Path):
    opened(driver, site / "index.html", 1200)
    driver.get((site / "index.html").as_uri() + "#poll-2024")
    assert "poll-2024" in shown(driver)


def test_budgets_are_drawn_with_a_ring_for_every_release_and_what_is_scheduled(driver, site: Path):
    opened(driver, site / "index.html", 360)
    pictures = driver.find_elements("css selector", ".budget svg")
    rings = [len(picture.find_elements("css selector", "circle")) for picture in pictures]
    ahead = [len(picture.find_elements("css selector", ".ahead")) for picture in pictures]
    assert (rings, ahead) == ([2, 2], [0, 1])  # payroll, town
    small = "return Math.min(...[...document.querySelectorAll('.budget svg text')].map(e => e.getBoundingClientRect().height))"
    assert driver.execute_script(small) >= 9, "names in a picture are too small to read"


@pytest.mark.parametrize("width", [360, 1200])
def test_every_page_of_a_release_opens_from_the_catalogue(driver, site: Path, width: int):
    for name in ("index.html", "codebook.html"):
        opened(driver, site / "releases/poll-2025" / name, width)
    cells = driver.find_elements("css selector", "#attribute-1 td")
    assert {"no", "did not vote", "yes", "went to the polls"} <= {cell.text for cell in cells}
    opened(driver, site / "releases/wages-2026/codebook.html", width)
    ends = "return ['.facts', '.facts div:last-child'].map(e => document.querySelector(e).getBoundingClientRect().right)"
    whole, last = driver.execute_script(ends)
    assert whole - last < 3, "a box of few facts has empty places"
    opened(driver, site / "releases/wages-2026/notice.html", width)
