"""Stages that the workers of a cluster share: counting over files, synthesizing over sets. Without a cluster, one task each."""

from __future__ import annotations

from prefect import unmapped

import tasks.reading.partial_counts
import tasks.stages.discretize
import tasks.stages.synthesize
from flows.runtime.progress import announce
from flows.runtime.stages import stage
from flows.runtime.task_runners import all_of, hand_out, on_workers
from schemas.spec.release import Release
from tasks.reading.partial_counts import room_for_parts, shares_of_source
from tasks.stages.references import (
    CellsReference,
    ConsistentReference,
    NoisyReference,
    PlanReference,
    SetReference,
    StructureReference,
)
from tasks.stages.synthesize import parts_of, room_for_sets, set_numbers
from tasks.stores.home import Home

discretize_all = stage("discretize", tasks.stages.discretize.discretize)
count_part = stage("count files", tasks.reading.partial_counts.count_part)
discretize_parts = stage("discretize", tasks.stages.discretize.discretize_parts)
synthesize_all = stage("synthesize", tasks.stages.synthesize.synthesize)
make_part = stage("synthesize", tasks.stages.synthesize.make_part).with_options(task_run_name="synthesize a part")
join_parts = stage("join parts", tasks.stages.synthesize.join_parts)
synthesize_set = stage("synthesize", tasks.stages.synthesize.synthesize_set).with_options(task_run_name="synthesize {number}")


def discretize(home: Home, release: Release) -> CellsReference:
    """The occupied cells: the same table, whoever counts."""
    shares = shares_of_source(release) if on_workers() else []
    if len(shares) < 2:
        return discretize_all(home, release)
    announce("count files")
    with room_for_parts(home, release, len(shares)) as parts:
        all_of(hand_out(count_part, unmapped(home), unmapped(release), shares, parts))
        return discretize_parts(home, release, parts)


def synthesize(
    home: Home,
    release: Release,
    plan: PlanReference,
    tree: StructureReference,
    noisy: NoisyReference,
    consistent: ConsistentReference,
) -> tuple[SetReference, ...]:
    """The synthetic sets, from the plan, the tree and the counts: sets shared out, of large ones blocks."""
    if not on_workers():
        return synthesize_all(home, release, plan, tree, noisy, consistent)
    announce("synthesize")
    same = [unmapped(each) for each in (home, release, plan, tree, noisy, consistent)]
    numbers, parts = list(set_numbers(home, plan)), parts_of(home, release, plan)
    if parts == 1:
        return tuple(all_of(hand_out(synthesize_set, *same, numbers)))
    with room_for_sets(home, release, parts, numbers) as room:
        all_of(hand_out(make_part, *same, unmapped(parts), room))
        return tuple(join_parts(home, release, each, [path for number, _, path in room if number == each]) for each in numbers)
