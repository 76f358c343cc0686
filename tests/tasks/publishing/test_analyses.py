"""What a bundle says of the analyses that were asked for: in its manifest, and on its page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tasks.publishing import bundle
from tasks.publishing.publication import publish
from tasks.verify.bundle import verify_bundle
from tests.tasks.publishing.making import GIVEN, POLL, Made, a_release, make, some_counts
from tests.tasks.publishing.test_page import _Page, phone

PAIRS = {"decomposition": "pairs", "pairs": "all", "sets": {"count": 3, "budget": "shared"}}
CASCADE = {"decomposition": "cascade", "sets": {"count": 2}}
RHO = {"rho": "0.1", "delta": "1e-9"}
ASKED = (
    ("voted", "age"),
    {"model": "wage ~ voted + C(since)", "within": 9},
    "voted ~ registered",
    {"model": "voted ~ wage", "where": {"registered": "yes, by <post>"}},
)


@pytest.fixture(scope="module")
def asked(tmp_path_factory) -> Made:
    """A release by pairs whose author named four analyses. Not to be changed."""
    return published(tmp_path_factory.mktemp("asked") / "home", PAIRS, ASKED)


@pytest.fixture(scope="module")
def unmeasured(tmp_path_factory) -> Made:
    """A release by a method that does not measure what was asked for. Not to be changed."""
    return published(tmp_path_factory.mktemp("unmeasured") / "home", CASCADE, ASKED[:1])


def published(home: Path, method: dict, analyses: tuple) -> Made:
    made = make(home, a_release(POLL, method, analyses=analyses, **RHO), some_counts(POLL, 4003))
    publish(*made.arguments)
    return made


def folder_of(made: Made):
    return made.home.public / made.release.name


@pytest.mark.whole
def test_the_manifest_says_of_every_analysis_how_it_was_measured_and_what_the_sets_say(asked):
    manifest = bundle.read_manifest((folder_of(asked) / "manifest.json").read_bytes())
    assert manifest.format == "steps-release/3"
    assert [each.name for each in manifest.analyses] == [each.name for each in asked.plan.analyses]
    table, model, undetermined, rows = manifest.analyses
    assert table.measured and table.honest and len(table.estimates) == 2 * 4
    assert sum(each.estimate for each in table.estimates) == pytest.approx(1, abs=1e-4)
    assert table.expected_width == asked.plan.analyses[0].expected_width and table.achieved_width > 0
    assert model.honest and [each.name for each in model.estimates][0] == "Intercept"
    assert "(1 + 1/m)" in table.combining
    assert undetermined.estimates[1].estimate is None  # by rule, who is not registered never voted
    assert not undetermined.honest and "do not determine" in undetermined.why
    assert rows.measured and rows.honest and len(rows.estimates) == 2


@pytest.mark.whole
def test_what_was_not_measured_has_no_estimates_and_says_why(unmeasured):
    (result,) = bundle.read_manifest((folder_of(unmeasured) / "manifest.json").read_bytes()).analyses
    assert not result.measured and not result.honest and result.estimates == () and "do not say" in result.why
    page = _Page((folder_of(unmeasured) / "index.html").read_text())
    assert "none: the data do not say" in page.text and result.why in page.text


@pytest.mark.whole
def test_the_bundles_verify(asked, unmeasured):
    for made in (asked, unmeasured):
        assert verify_bundle(folder_of(made), made.home.keys / "signing-key.pub") == []


def test_the_page_says_what_the_manifest_says(asked):
    page = _Page((folder_of(asked) / "index.html").read_text())
    text = page.text.replace("−", "-")
    for each in bundle.read_manifest((folder_of(asked) / "manifest.json").read_bytes()).analyses:
        assert each.name in text and each.why in text and each.combining in text
    assert "What was asked for" in text and "not determined" in text
    assert "2 of 2 coefficients not determined" in text  # by rule, as above
    assert "Not determined, since in a set they could grow without bound: Intercept, registered[T.yes, by <post>]" in text
    assert re.search(r"± [0-9.]+ %", text) and "script" not in page.seen and "post" not in page.seen


def test_a_release_without_analyses_says_nothing_of_them(given):
    folder = folder_of(given)
    assert "What was asked for" not in (folder / "index.html").read_text()
    for name in ("manifest.json", "plan.json"):
        assert "analyses" not in json.loads((folder / name).read_bytes())


@pytest.mark.whole
def test_a_tree_that_holds_all_attributes_answers_too_but_is_not_called_honest(tmp_path):
    made = make(tmp_path / "home", a_release(POLL, GIVEN, analyses=(("voted", "age"),)), some_counts(POLL, 4003))
    folder = publish(*made.arguments).folder
    (result,) = bundle.read_manifest((folder / "manifest.json").read_bytes()).analyses
    assert result.measured and not result.honest and result.estimates and "B/m" in result.combining
    assert verify_bundle(folder, made.home.keys / "signing-key.pub") == []


@pytest.mark.browser
def test_the_page_of_analyses_opens_on_a_phone_without_complaint(asked):
    driver = phone()
    try:
        driver.get((folder_of(asked) / "index.html").as_uri())
        assert driver.get_log("browser") == []
        for each in driver.find_elements("css selector", "details summary"):
            each.click()
        wide = driver.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, "the page scrolls sideways on a phone"
        assert len(driver.find_elements("css selector", "details.card[open]")) == len(ASKED)
    finally:
        driver.quit()


@pytest.mark.whole
def test_draws_of_no_tree_are_told_without_its_root(asked, unmeasured):
    pairs, cascade = (_Page((folder_of(made) / "index.html").read_text()).text for made in (asked, unmeasured))
    assert "The draws below make ρ = 0.1, exactly." in pairs and "root to a leaf" not in pairs
    assert "On the way from the root to a leaf" in cascade and "The draws below make" not in cascade
    assert "measured, with 95\xa0% intervals" in pairs or "measured, with 95 % intervals" in pairs
