"""`steps budget forecast`: what the schedules ask, by a prefect.yaml or a server, and when a budget runs dry."""

from __future__ import annotations

import datetime
from pathlib import Path
from xml.etree import ElementTree

import pytest

from flows.runtime.timetable import KINDS, MONTHS, first_of_months
from tests.flows.small import Small
from tests.flows.test_start import imported

QUARTERLY = """
definitions:
  at_six: &at_six {cron: "0 6 1 1,4,7,10 *", timezone: UTC}
deployments:
  - name: quarterly
    entrypoint: flows/release.py:release
    parameters: {release: release.yaml}
    schedules: [*at_six]
  - name: paused
    entrypoint: flows/release.py:release
    parameters: {release: paused.yaml}
    schedules: [{cron: "0 6 * * *", active: false}]
  - name: nightly
    entrypoint: flows/audit.py:audit
    schedules: [{cron: "30 2 * * *"}]
"""
NOW = datetime.datetime(2026, 11, 17, 12, tzinfo=datetime.UTC)


@pytest.fixture
def scheduled(small: Small) -> Path:
    """A release of every quarter at ε = 0.5, whose budget pays for three."""
    small.write(name="small-{year}q{quarter}")
    (small.folder / "prefect.yaml").write_text(QUARTERLY)
    return small.folder / "prefect.yaml"


@pytest.fixture
def granted(scheduled: Path, steps) -> Path:
    steps("budget", "grant", "small-people", "1.7", "--why", "a test")
    return scheduled


def test_a_forecast_follows_the_schedule_of_this_folder(granted: Path, steps, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(granted.parent)
    said = steps("budget", "forecast", "--json").json
    (found,) = said["populations"]
    assert said["schedule"] == str(granted) and said["unread"] == []
    assert {key: found[key] for key in ("population", "measure", "balance", "covers")} == {
        "population": "small-people", "measure": "pure", "balance": "1.7", "covers": 3,
    }  # fmt: skip
    assert len(found["runs"]) in (8, 9) and all(run["cost"] == "0.5" for run in found["runs"])
    assert all(run["due"][5:] in {f"{month}-01T06:00:00+00:00" for month in ("01", "04", "07", "10")} for run in found["runs"])
    due = datetime.datetime.fromisoformat(found["runs"][0]["due"])
    assert found["runs"][0]["release"] == f"small-{due.year}q{(due.month + 2) // 3}"
    assert found["dry_on"] == found["runs"][3]["due"], "the fourth is not covered"


def test_people_see_a_table_and_a_picture(granted: Path, steps, tmp_path: Path):
    said = steps("budget", "forecast", "--deployments", granted, "--picture", tmp_path / "balance.svg")
    assert said.code == 0 and f"schedule  {granted}" in said.out and said.out.count("not covered") in (5, 6)
    assert "extend the grant" in said.out
    picture = " ".join(ElementTree.parse(tmp_path / "balance.svg").getroot().itertext())
    assert "small-people: runs dry on 20" in picture
    assert steps("budget", "forecast", "--deployments", granted, "--picture", tmp_path / "x.png").code == 2
    assert steps("budget", "show", "--json").json["accounts"][0]["balance"] == "1.7", "nothing is charged by looking"


def test_without_a_schedule_it_says_what_to_do(small: Small, steps, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(small.folder)
    said = steps("budget", "forecast")
    assert said.code == 2 and "no schedule was found" in said.err and "--deployments FILE" in said.err


@pytest.mark.parametrize(
    "text", ["", "- a list", "deployments: [", "deployments: {a: b}", QUARTERLY.replace("0 6 1 1,4,7,10 *", "at six")]
)
def test_a_file_that_is_no_schedule_is_refused_in_words(scheduled: Path, steps, text: str):
    scheduled.write_text(text)
    said = steps("budget", "forecast", "--deployments", scheduled)
    assert said.code == 2 and "cannot be read as a prefect.yaml" in said.err


def test_a_release_that_cannot_be_read_is_named(granted: Path, steps):
    granted.with_name("release.yaml").unlink()
    said = steps("budget", "forecast", "--deployments", granted)
    assert said.code == 0 and "not read  release.yaml: cannot read" in said.out and "worker.yaml" in said.out


@pytest.mark.whole
def test_a_server_that_is_configured_and_does_not_answer_is_named(granted: Path, tmp_path: Path, steps):
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with pytest.MonkeyPatch.context() as patch, temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}):
        patch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
        said = steps("budget", "forecast")
        assert said.code == 1 and "does not answer" in said.err and "--deployments prefect.yaml" in said.err
        assert steps("budget", "forecast", "--deployments", granted).code == 0, "a file that is named needs no server"


@pytest.mark.parametrize(
    ("schedule", "months"),
    [
        ({"cron": "*/5 * * * *"}, MONTHS + 1),
        ({"cron": "0 6 1 1 *", "timezone": "Pacific/Auckland"}, 2),
        ({"interval": 86_400}, MONTHS + 1),
        ({"rrule": "FREQ=YEARLY;BYMONTH=3;BYMONTHDAY=1"}, 2),
    ],
)
def test_the_first_run_of_each_month_is_found_however_often_it_is_due(schedule: dict, months: int):
    (kind,) = KINDS.keys() & schedule.keys()
    found = first_of_months(KINDS[kind].model_validate(schedule), NOW)
    assert len(found) == months == len({(at.year, at.month) for at in found}) and min(found) >= NOW


@pytest.mark.whole
def test_a_forecast_without_a_picture_imports_no_library_for_pictures(granted: Path, small: Small):
    assert not {"matplotlib", "great_expectations", "sklearn"} & set(
        imported(small.home, "budget", "forecast", "--deployments", granted)
    )
