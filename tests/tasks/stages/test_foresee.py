from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tasks.specs import load_release
from tasks.stages.foresee import Due, forecast, lifetimes, needs
from tasks.stores.acts import cap
from tasks.stores.home import Home
from tasks.stores.ledger import Ledger, open_ledger
from tests.flows.small import Small, make_small

UNIT = 10**9


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return make_small(tmp_path, rows=20)


@pytest.fixture
def home(small: Small) -> Home:
    return Home(small.home)


@pytest.fixture
def ledger(home: Home) -> Ledger:
    return open_ledger(home)


def due(small: Small, *names: str, epsilon: str = "0.5"):
    return [load_release(small.write(name=name, epsilon=epsilon)) for name in names]


def test_what_is_due_is_added_up_against_what_is_left(small: Small, home: Home, ledger: Ledger):
    ledger.grant("small-people", UNIT, "a test")
    (enough,) = needs(home, due(small, "a", "b"))
    assert (enough.needed, enough.left, enough.is_short) == (UNIT, UNIT, False)
    (short,) = needs(home, due(small, "a", "b", "c"))
    assert short.is_short and short.releases == ("a", "b", "c")
    assert 'population "small-people": ε = 1.5 is scheduled (a, b, c), 1 is left' in short.text


def test_a_name_is_paid_once_however_often_it_is_due(small: Small, home: Home, ledger: Ledger):
    ledger.grant("small-people", UNIT, "a test")
    assert needs(home, due(small, "a", "a", "a"))[0].needed == UNIT // 2


def test_what_was_charged_asks_nothing(small: Small):
    from tests.flows.small import drawn

    home, asked, *_ = drawn(small)
    assert needs(home, [asked]) == []


def test_without_a_grant_nothing_is_left(small: Small, home: Home):
    (need,) = needs(home, due(small, "a"))
    assert (need.needed, need.left, need.is_short) == (UNIT // 2, 0, True)


def test_a_budget_in_rho_is_asked_in_rho(small: Small, home: Home, ledger: Ledger):
    ledger.grant("small-people", UNIT, "a test", measure="zcdp", delta="1e-9")
    (need,) = needs(home, due(small, "a", epsilon="1"))
    assert need.needed == UNIT // 2 and "ρ = 0.5 is scheduled" in need.text


def on(small: Small, *names: str, epsilon: str = "0.5") -> list[Due]:
    """Due on the first, second … of a month, given in the other order."""
    days = [
        Due(release, datetime(2027, 1, day, tzinfo=UTC)) for day, release in enumerate(due(small, *names, epsilon=epsilon), 1)
    ]
    return days[::-1]


def test_a_budget_runs_dry_with_the_first_run_that_it_does_not_cover(small: Small, home: Home, ledger: Ledger):
    ledger.grant("small-people", UNIT, "a test")
    (enough,) = forecast(home, on(small, "a", "b"))
    assert (enough.covers, enough.dry_on, enough.left) == (2, None, [UNIT // 2, 0]), "to the last of it is covered"
    (short,) = forecast(home, on(small, "a", "a", "b", "c"))
    assert [run.release for run in short.runs] == ["a", "b", "c"] and short.runs[0].due.day == 1, "a name is paid once"
    assert (short.covers, short.dry_on) == (2, datetime(2027, 1, 4, tzinfo=UTC))


def test_a_population_without_a_schedule_or_without_a_grant_is_listed(small: Small, home: Home, ledger: Ledger):
    ledger.grant("others", UNIT, "a test")
    idle, ungranted = forecast(home, on(small, "a"))
    assert (idle.population, idle.runs, idle.dry_on) == ("others", (), None)
    assert (ungranted.granted, ungranted.covers, ungranted.dry_on) == (False, 0, datetime(2027, 1, 1, tzinfo=UTC))


def test_what_has_no_price_in_the_budget_is_told_and_pays_nothing(small: Small, home: Home, ledger: Ledger):
    ledger.grant("small-people", UNIT, "a test")
    text = small.write().read_text().replace("{epsilon: 0.5}", "{rho: 0.1, delta: 1e-9}")
    small.release.write_text(text)
    (outlook,) = forecast(home, [Due(load_release(small.release), datetime(2027, 1, 1, tzinfo=UTC))])
    assert outlook.runs[0].cost is None and (outlook.covers, outlook.dry_on) == (0, None)


def test_a_lifetime_cap_is_foreseen_over_all_populations_that_share_people(small: Small, home: Home, ledger: Ledger):
    for population in ("small-people", "earlier"):
        ledger.grant(population, 10 * UNIT, "a test")
    months = [datetime(2027, month, 1, tzinfo=UTC) for month in (1, 2, 3)]
    runs = [Due(each, at) for each, at in zip(due(small, "a", "b", "c"), months, strict=True)]
    assert lifetimes(home, runs) == []
    cap(ledger, "earlier", UNIT, "pure", "a test")
    (alone,) = lifetimes(home, runs)
    assert alone.runs == () and alone.reached_on is None, "nobody has said yet that they share people"
    text = (small.folder / "dataset.yaml").read_text()
    (small.folder / "dataset.yaml").write_text(text.replace("small-people", "small-people\noverlaps: [earlier]"))
    runs = [Due(each, at) for each, at in zip(due(small, "a", "b", "c"), months, strict=True)]
    (shared,) = lifetimes(home, [*runs, runs[0]])
    assert shared.loss.populations == ("earlier", "small-people") and [run.cost for run in shared.runs] == [UNIT // 2] * 3
    assert shared.reached_on == months[2], "two fit, the third goes beyond"
