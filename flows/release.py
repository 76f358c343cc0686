"""The release flow: plan → validate → discretize → charge → build tree → sanitize → correct → synthesize → (approve) →
publish → evaluate → forget exact counts.

Every stage finds what an earlier run sealed: running again resumes, and a finished release is returned as it is, without
a look at its records.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from prefect import flow, runtime, tags
from pydantic import Field

import tasks.stages.build
import tasks.stages.charge
import tasks.stages.correct
import tasks.stages.evaluate
import tasks.stages.forget
import tasks.stages.plan
import tasks.stages.publish
import tasks.stages.sanitize
import tasks.stages.validate
from flows.output import events, json_views, ui_artifacts
from flows.runtime import approval
from flows.runtime.boundary import fit_for_public
from flows.runtime.distributed import discretize, synthesize
from flows.runtime.place import home_of_run, place_of_run
from flows.runtime.progress import expect
from flows.runtime.stages import NOTHING_KEPT, stage
from flows.runtime.task_runners import task_runner
from schemas.errors import StepsError
from schemas.spec.release import Release
from tasks.specs import A_PERIOD, load_release, refusals_naming
from tasks.stages.audit import must_be_current
from tasks.stages.charge import must_be_payable, must_be_signable
from tasks.stages.door import look_first, must_be_private
from tasks.stages.finished import Finished, find_finished
from tasks.stages.plan import load_plan
from tasks.stages.references import PlanReference
from tasks.stages.synthesize import linked_tables
from tasks.stores.artifacts import Store
from tasks.stores.files import must_have_room
from tasks.stores.home import Home
from tasks.stores.running import running

plan = stage("plan", tasks.stages.plan.plan)
validate = stage("validate", tasks.stages.validate.validate)
charge = stage("charge", tasks.stages.charge.charge)
build = stage("build tree", tasks.stages.build.build_tree)
sanitize = stage("sanitize", tasks.stages.sanitize.sanitize)
correct = stage("correct", tasks.stages.correct.correct)
publish = stage("publish", tasks.stages.publish.publish_release)
evaluate = stage("evaluate", tasks.stages.evaluate.evaluate)
forget = stage("forget exact counts", tasks.stages.forget.forget_exact_counts)


Period = Annotated[str, Field(pattern=f"^{A_PERIOD}$")]


def _run_name() -> str:
    """What a person recognises: "release youth-voter-2026q4"."""
    asked = runtime.flow_run.parameters
    try:
        return f"release {_load(place_of_run().release_file(asked['release']), asked.get('period')).name}"
    except StepsError:
        return "release"  # what is refused is told in its state


def _load(path: Path, period: str | None) -> Release:
    # A retry keeps the scheduled time of its run, so a late one does not pay for the next period.
    return load_release(path, period, runtime.flow_run.scheduled_start_time)


@flow(name="release", flow_run_name=_run_name, task_runner=task_runner(), **NOTHING_KEPT)
def release(release: str, period: Period | None = None) -> dict[str, Any]:
    """Releases the data that the file `release` describes, within the budget of its population.

    Args:
        release: the path of a release.yaml from the worker's folder of releases, such as wages/release.yaml
        period: 2026q4, 2026-11 or 2026; if not given, the one in which the run was due
    """
    with events.told_how_it_ends():
        return fit_for_public("release", _release)(home_of_run(), release, period)


def _release(home: Home, name: str, period: str | None) -> dict[str, Any]:
    must_have_room(home.folder)
    place = place_of_run()
    path = place.release_file(name)
    asked = _load(path, period)
    place.must_own(asked)
    must_be_current(home)
    ui_artifacts.tag_run(asked)
    with tags(asked.name, asked.domain.population), running(home, asked.name), events.told_from_ledger(home, asked):
        with refusals_naming(path):
            planned = plan(home, asked)
            made = load_plan(Store(home), planned)
            must_be_private(home, asked, made)
        expect(made.seconds)
        ui_artifacts.show_plan(home, planned)
        if finished := find_finished(home, asked, planned):
            return _found(home, asked, planned, finished)
        try:
            return _made(home, asked, planned)
        except StepsError:
            # Another run of this release came to its end first and forgot what this one was working with.
            if not (finished := find_finished(home, asked, planned)):
                raise
            return _found(home, asked, planned, finished)


def _made(home: Home, asked: Release, planned: PlanReference) -> dict[str, Any]:
    must_be_signable(home, asked)
    place_of_run().must_own_files(asked)
    with ui_artifacts.refusals_told(home, planned):
        must_be_payable(home, planned)
        look_first(home, asked)
    validate(home, asked)
    cells = discretize(home, asked)
    with ui_artifacts.refusals_told(home, planned):
        charged = charge(home, asked, planned, cells, ui_artifacts.trail_of_run())
    ui_artifacts.show_budget(home, asked)
    tree = build(home, asked, planned, cells, charged)
    noisy = sanitize(home, asked, planned, cells, tree, charged)
    consistent = correct(home, asked, planned, tree, noisy)
    sets = synthesize(home, asked, planned, tree, noisy, consistent)
    public = (tree, noisy, consistent, *sets, *linked_tables(home, asked, planned))
    approval.wait_for_decision(home, asked, planned, public)
    folder = publish(home, asked, planned, public)
    ui_artifacts.show_bundle(folder)
    evaluate(home, asked, cells, sets)
    forget(home, asked)
    return json_views.outcome(home, asked, folder, charged=charged.new, charges=charged.attempt)


def _found(home: Home, asked: Release, planned: PlanReference, finished: Finished) -> dict[str, Any]:
    """The release as it was published, checked again; exact counts that a killed run left go."""
    folder = publish(home, asked, planned, finished.public)
    ui_artifacts.show_bundle(folder)
    forget(home, asked)
    return json_views.outcome(home, asked, folder, charged=False, charges=finished.charges)
