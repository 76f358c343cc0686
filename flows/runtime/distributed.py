"""Stages that the workers of a cluster share: counting over files, synthesizing over sets. Without a cluster, one task each."""

from __future__ import annotations

from prefect import unmapped

from flows.runtime.progress import announce
from flows.runtime.stages import stage
from flows.runtime.task_runners import all_of, hand_out, on_workers
from schemas.spec.release import Release
from tasks.reading.partial_counts import count_part, room_for_parts, shares_of_source
from tasks.stages.discretize import discretize, discretize_parts
from tasks.stages.synthesize import set_numbers, synthesize, synthesize_set
from tasks.stores.artifacts import Reference
from tasks.stores.home import Home

count_all = stage("discretize", discretize)
count_some = stage("count files", count_part)
add_up = stage("discretize", discretize_parts)
make_sets = stage("synthesize", synthesize)
make_set = stage("synthesize", synthesize_set).with_options(task_run_name="synthesize {number}")


def count_cells(home: Home, release: Release) -> Reference:
    """The occupied cells: the same table, whoever counts."""
    shares = shares_of_source(release) if on_workers() else []
    if len(shares) < 2:
        return count_all(home, release)
    announce("count files")
    with room_for_parts(home, release, len(shares)) as parts:
        all_of(hand_out(count_some, unmapped(home), unmapped(release), shares, parts))
        return add_up(home, release, parts)


def make_records(home: Home, release: Release, *made: Reference) -> tuple[Reference, ...]:
    """The synthetic sets, from the plan, the tree and the counts."""
    if not on_workers():
        return make_sets(home, release, *made)
    announce("synthesize")
    same = [unmapped(each) for each in (home, release, *made)]
    return tuple(all_of(hand_out(make_set, *same, list(set_numbers(home, made[0])))))
