"""Which releases are due, by the runs that Prefect's server has scheduled."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from prefect import get_client
from prefect.client.schemas.filters import FlowFilter, FlowRunFilter
from prefect.client.schemas.objects import FlowRun

from flows.runtime.place import Place
from schemas.errors import StepsError
from schemas.spec.release import Release
from tasks.specs import load_release
from tasks.stages.foresee import Due


def releases_due(place: Place) -> list[Release]:
    """Prefect schedules at least three runs of every deployment ahead; what cannot be read is told when it is due."""
    return [each.release for each in runs_due(place)]


def runs_due(place: Place) -> list[Due]:
    scheduled = FlowRunFilter.model_validate({"state": {"type": {"any_": ["SCHEDULED"]}}})
    ours = FlowFilter.model_validate({"name": {"any_": ["release"]}})
    with get_client(sync_client=True) as client:
        runs = client.read_flow_runs(flow_filter=ours, flow_run_filter=scheduled)
    return list(_readable(place, runs))


def _readable(place: Place, runs: list[FlowRun]) -> Iterator[Due]:
    for run in runs:
        try:
            path = place.release_file(str(run.parameters.get("release", "")))
            at = run.expected_start_time or datetime.datetime.now(datetime.UTC)
            yield Due(load_release(path, run.parameters.get("period"), at), at)
        except StepsError:
            continue
