"""When releases are due, months ahead: by the deployments of Prefect's server or, without one, of a prefect.yaml."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from httpx import HTTPError
from prefect import get_client
from prefect.client.schemas.filters import FlowFilter
from prefect.server.schemas.schedules import SCHEDULE_TYPES, CronSchedule, IntervalSchedule, RRuleSchedule
from prefect.settings import get_current_settings
from prefect.utilities.asyncutils import run_coro_as_sync
from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from flows.runtime.place import Place
from flows.runtime.scheduled import runs_due
from schemas.errors import InfrastructureFault, SpecError, StepsError
from tasks.ownership import FILE, owned_by
from tasks.specs import load_release
from tasks.stages.foresee import Due
from tasks.stores.home import Home

MONTHS, TWO_YEARS = 24, datetime.timedelta(days=731)  # to look ahead
Span = tuple[datetime.datetime, datetime.datetime]
KINDS: dict[str, type[SCHEDULE_TYPES]] = {"cron": CronSchedule, "interval": IntervalSchedule, "rrule": RRuleSchedule}


@dataclass(frozen=True)
class Timed:
    """A release that a deployment names, and one of its schedules."""

    release: str
    period: str | None
    schedule: SCHEDULE_TYPES


@dataclass(frozen=True)
class Timetable:
    """Where the schedule came from, what it runs, and what of it cannot be read, with the reason."""

    source: str
    due: list[Due] = field(default_factory=list)
    unread: dict[str, str] = field(default_factory=dict)


def by_server(home: Home, now: datetime.datetime) -> Timetable:
    """What is deployed on the server and not paused, and runs that somebody has scheduled by hand."""
    source = f"Prefect's server at {get_current_settings().api.url}"
    ours = FlowFilter.model_validate({"name": {"any_": ["release"]}})
    place = Place(home, owned_by(home) if (home.folder / FILE).exists() else None)
    try:
        with get_client(sync_client=True) as client:
            found = client.read_deployments(flow_filter=ours)
        by_hand = runs_due(place)
    except (OSError, HTTPError) as error:
        raise InfrastructureFault(
            f"{source} does not answer ({type(error).__name__}). Start it, or ask a file: "
            "steps budget forecast --deployments prefect.yaml"
        ) from None
    deployed = [each.model_dump(mode="json") for each in found]
    for each in deployed:
        each["schedules"] = [{**row.pop("schedule"), **row} for row in each["schedules"]]
    table = _timetable(source, place.release_file, _timed(deployed), now)
    table.due.extend(by_hand)
    return table


def by_file(home: Home, path: Path, now: datetime.datetime) -> Timetable:
    """What a prefect.yaml would deploy."""
    if not path.is_file():
        raise SpecError(
            f"no schedule was found: there is no {path}, and PREFECT_API_URL names no server. Run this where your prefect.yaml "
            "lies, give it with --deployments FILE, or set PREFECT_API_URL."
        )
    deployments = deployments_of(path)
    with _told_of(path):
        timed = list(_timed(each for each in deployments if str(each.get("entrypoint")).rpartition(":")[2] == "release"))
    # As a worker finds a release: in its folder of releases. Without a worker.yaml, from the folder of the schedule.
    owned = owned_by(home) if (home.folder / FILE).exists() else None
    return _timetable(str(path.resolve()), owned.release_file if owned else path.resolve().parent.joinpath, timed, now)


def deployments_of(path: Path) -> list[dict[str, Any]]:
    """The entries of a prefect.yaml."""
    with _told_of(path):
        document = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
        return [dict(each.items()) for each in document["deployments"] or ()]


@contextmanager
def _told_of(path: Path) -> Iterator[None]:
    """What is no prefect.yaml is told in words."""
    try:
        yield
    except KeyError as error:
        raise SpecError(f"{path} cannot be read as a prefect.yaml: it has no {error}") from None
    except (OSError, UnicodeError, YAMLError, ValidationError, TypeError, AttributeError) as error:
        raise SpecError(f"{path} cannot be read as a prefect.yaml: {str(error).splitlines()[0]}") from None


def _timed(deployments: Iterable[dict[str, Any]]) -> Iterator[Timed]:
    """Every schedule that is active; its own parameters win over those of its deployment."""
    for each in deployments:
        schedules = each.get("schedules") or filter(None, [each.get("schedule")])
        for row in () if each.get("paused") else schedules:
            asked = (each.get("parameters") or {}) | (row.get("parameters") or {})
            kind = next((name for name in KINDS if row.get(name) is not None), None)
            if kind and row.get("active", True):
                known = {name: row[name] for name in KINDS[kind].model_fields if row.get(name) is not None}
                yield Timed(str(asked.get("release", "")), asked.get("period"), KINDS[kind].model_validate(known))


def _timetable(source: str, find: Callable[[str], Path], timed: Iterable[Timed], now: datetime.datetime) -> Timetable:
    table = Timetable(source)
    for each in timed:
        try:
            path = find(each.release)
            table.due.extend(Due(load_release(path, each.period, at), at) for at in first_of_months(each.schedule, now))
        except StepsError as error:
            table.unread[each.release] = str(error)
    return table


def first_of_months(schedule: SCHEDULE_TYPES, now: datetime.datetime) -> list[datetime.datetime]:
    """The first run of every month: no name tells more than its month, a name is paid once, so later runs pay nothing."""
    months = (now.year * 12 + now.month - 1 + ahead for ahead in range(1, MONTHS + 1))
    firsts = [datetime.datetime(month // 12, month % 12 + 1, 1, tzinfo=datetime.UTC) for month in months]
    spans = zip([now, *firsts], [*firsts, now + TWO_YEARS], strict=True)
    return run_coro_as_sync(_first_of_each(schedule, list(spans))) or []


async def _first_of_each(schedule: SCHEDULE_TYPES, spans: list[Span]) -> list[datetime.datetime]:
    moment = datetime.timedelta(microseconds=1)
    found = [await schedule.get_dates(n=1, start=start, end=end - moment) for start, end in spans]
    return [dates[0].astimezone(datetime.UTC) for dates in found if dates]
