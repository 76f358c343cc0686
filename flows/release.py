"""The release flow: plan → validate → discretize → charge → build tree → sanitize → correct → synthesize → (approve) →
publish → evaluate → forget exact counts.

Every stage finds what an earlier run sealed: running again resumes, and a finished release is returned as it is, without
a look at its records.
"""

from __future__ import annotations

from typing import Any

from prefect import flow, runtime, tags

import tasks.stages.build
import tasks.stages.charge
import tasks.stages.correct
import tasks.stages.evaluate
import tasks.stages.forget
import tasks.stages.plan
import tasks.stages.publish
import tasks.stages.sanitize
import tasks.stages.validate
from flows.output import json_views, ui_artifacts
from flows.runtime import approval
from flows.runtime.distributed import discretize, synthesize
from flows.runtime.stages import NOTHING_KEPT, fit_for_public, stage
from flows.runtime.task_runners import task_runner
from schemas.errors import BudgetRefused, SpecError
from schemas.spec.release import Release
from tasks.specs import load_release, refusals_naming
from tasks.stages.audit import must_be_current
from tasks.stages.charge import must_be_payable
from tasks.stages.door import look_first, must_be_private
from tasks.stages.finished import Finished, find_finished
from tasks.stages.plan import load_plan
from tasks.stages.references import PlanReference
from tasks.stores.artifacts import Store
from tasks.stores.home import Home

plan = stage("plan", tasks.stages.plan.plan)
validate = stage("validate", tasks.stages.validate.validate)
charge = stage("charge", tasks.stages.charge.charge)
build = stage("build tree", tasks.stages.build.build_tree)
sanitize = stage("sanitize", tasks.stages.sanitize.sanitize)
correct = stage("correct", tasks.stages.correct.correct)
publish = stage("publish", tasks.stages.publish.publish_release)
evaluate = stage("evaluate", tasks.stages.evaluate.evaluate)
forget = stage("forget exact counts", tasks.stages.forget.forget_exact_counts)


def _run_name() -> str:
    """What a person recognises: "release youth-voter-2026q4"."""
    asked = runtime.flow_run.parameters
    try:
        return f"release {_load(asked['release'], asked.get('period')).name}"
    except SpecError:
        return f"release {asked['release']}"


def _load(path: str, period: str | None) -> Release:
    # A retry keeps the scheduled time of its run, so a late one does not pay for the next period.
    return load_release(path, period, runtime.flow_run.scheduled_start_time)


@flow(name="release", flow_run_name=_run_name, task_runner=task_runner(), **NOTHING_KEPT)
def release(release: str, home: str | None = None, period: str | None = None) -> dict[str, Any]:
    """Releases the data that the file `release` describes, within the budget of its population."""
    return fit_for_public("release", _release)(Home.from_environment(home), release, period)


def _release(home: Home, path: str, period: str | None) -> dict[str, Any]:
    must_be_current(home)
    asked = _load(path, period)
    ui_artifacts.tag_run(asked)
    with tags(asked.name, asked.domain.population):
        with refusals_naming(path):
            planned = plan(home, asked)
            must_be_private(home, asked, load_plan(Store(home), planned))
        ui_artifacts.show_plan(home, planned)
        if finished := find_finished(home, asked, planned):
            return _found(home, asked, planned, finished)
        must_be_payable(home, planned)
        look_first(home, asked)
        validate(home, asked)
        cells = discretize(home, asked)
        try:
            charged = charge(home, asked, planned, cells, ui_artifacts.trail_of_run())
        except BudgetRefused as refusal:
            ui_artifacts.tell_refusal(home, planned, refusal)
            raise
        ui_artifacts.show_budget(home, asked)
        tree = build(home, asked, planned, cells, charged)
        noisy = sanitize(home, asked, planned, cells, tree, charged)
        consistent = correct(home, asked, planned, tree, noisy)
        sets = synthesize(home, asked, planned, tree, noisy, consistent)
        public = (tree, noisy, consistent, *sets)
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
