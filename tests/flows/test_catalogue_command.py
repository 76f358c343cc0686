"""`steps catalogue` and the nightly audit: a site that stays up to date, with what is scheduled where that is known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tasks.stores.home import Home
from tests.flows.small import Small
from tests.flows.test_forecast_command import QUARTERLY
from tests.tasks.publishing.catalogue.shelves import some_shelves

pytestmark = pytest.mark.whole  # every test begins with a release


@pytest.fixture(scope="module")
def shelves(tmp_path_factory) -> Home:
    """Not to be changed."""
    return some_shelves(tmp_path_factory.mktemp("shelves") / "home")


@pytest.fixture
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without a schedule, and no server."""
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_writes_a_catalogue_and_says_where(shelves: Home, steps, somewhere: Path):
    said = steps("--home", shelves.path, "catalogue", "site")
    assert said.code == 0 and said.err == ""
    assert said.out.splitlines() == ["4 releases: 4 copied, 0 as they were, 0 removed", "open site/index.html"]
    answer = steps("--home", shelves.path, "catalogue", "site", "--json").json
    assert answer["ok"] and len(answer["kept"]) == 4 and answer["notes"] == []


def test_a_folder_of_something_else_is_bad_usage(shelves: Home, steps, somewhere: Path):
    (somewhere / "site").mkdir()
    (somewhere / "site/thesis.txt").write_text("mine")
    said = steps("--home", shelves.path, "catalogue", "site")
    assert said.code == 2 and "is no catalogue" in said.err and "Nothing was written" in said.err


def test_a_home_without_releases_is_told_so(small: Small, steps, somewhere: Path):
    assert steps("catalogue", "site").code == 2 and not small.home.exists(), "nobody began it"
    steps("budget", "grant", "small-people", "1", "--why", "a test")
    said = steps("catalogue", "site")
    assert said.code == 0 and "0 releases" in said.out


@pytest.mark.slow
def test_what_is_scheduled_is_drawn_and_not_named(small: Small, steps, somewhere: Path):
    from tests.flows.test_release_flow import granted

    granted(steps, "1.2")
    assert steps("run", small.release).code == 0
    small.write(name="small-{year}q{quarter}")
    (small.folder / "prefect.yaml").write_text(QUARTERLY)
    answer = steps("catalogue", "site", "--deployments", small.folder / "prefect.yaml", "--json").json
    page = (somewhere / "site/index.html").read_text(encoding="utf-8")
    assert answer["notes"] == [] and 'class="ahead"' in page and "what the schedules ask for" in page
    assert "small-20" not in page and "they are covered until" in page


def test_a_schedule_that_is_named_and_missing_is_refused_and_one_that_is_broken_is_noted(shelves: Home, steps, somewhere: Path):
    said = steps("--home", shelves.path, "catalogue", "site", "--deployments", "nowhere.yaml")
    assert said.code == 2 and "there is no nowhere.yaml" in said.err and not (somewhere / "site").exists()
    (somewhere / "prefect.yaml").write_text("deployments: 7")
    answer = steps("--home", shelves.path, "catalogue", "site", "--json").json
    assert answer["ok"] and "without what is scheduled" in answer["notes"][0]


def test_a_bundle_that_does_not_verify_makes_the_command_fail(small: Small, steps, somewhere: Path):
    from tests.flows.test_release_flow import granted

    granted(steps)
    assert steps("run", small.release).code == 0
    page = small.home / "public/small-1/index.html"
    page.write_text(page.read_text() + " ")
    said = steps("catalogue", "site")
    assert (
        said.code == 5
        and "left out, since they do not verify: small-1" in said.out
        and "problem: small-1: index.html" in said.out
    )
    assert json.loads((somewhere / "site/catalogue.json").read_bytes())["releases"] == []


@pytest.mark.slow
def test_the_nightly_audit_keeps_the_catalogue_that_worker_yaml_names(small: Small, steps, monkeypatch: pytest.MonkeyPatch):
    from flows import audit
    from flows.runtime.place import Place, embedded_in
    from tasks.ownership import owned_by
    from tests.flows.test_release_flow import granted

    granted(steps)
    assert steps("run", small.release).code == 0
    home = Home(small.home)
    worker = "releases: ..\nsources: [..]\npopulations: [small-people]\ncatalogue: ../site\naddress: https://data.example/all\n"
    (home.folder / "worker.yaml").write_text(worker)
    (home.folder / "worker.yaml").chmod(0o600)
    monkeypatch.setattr(audit, "place_of_run", lambda: Place(home, owned_by(home)))
    with embedded_in(home):
        assert audit.audit()["ok"]
    assert (small.folder / "site/releases/small-1/index.html").is_file()
    assert "https://data.example/all/releases/small-1/index.html" in (small.folder / "site/feed.xml").read_text()
