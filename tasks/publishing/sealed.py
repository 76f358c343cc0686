"""What a bundle takes from the store: public artifacts of the allow-list, each exactly as it was sealed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from schemas.errors import EvidenceBroken
from schemas.plan import Plan
from schemas.spec.release import Release
from tasks.publishing import bundle
from tasks.stores.artifacts import Reference
from tasks.stores.files import disk_faults
from tasks.stores.home import Home
from tasks.tables_on_disk import digest_of


def public_tables(home: Home, release: Release, plan: Plan, references: Iterable[Reference]) -> dict[str, Path]:
    """The file of every artifact of the allow-list, each exactly as it was sealed."""
    given = {reference.stage: reference for reference in references}
    wanted = bundle.table_stages(plan.sets, plan.at_most is not None)
    if given.keys() != set(wanted):
        differ = ", ".join(sorted(given.keys() ^ set(wanted)))
        raise EvidenceBroken(f'release "{release.name}" publishes {", ".join(wanted)}, nothing more or less; see: {differ}.')
    return {stage: _public_file(home, release, given[stage]) for stage in wanted}


def _public_file(home: Home, release: Release, reference: Reference) -> Path:
    name = f'stage "{reference.stage}" of release "{reference.release}"'
    if reference.side != "public" or reference.digest is None:
        raise EvidenceBroken(f"{name} is confidential: it was not paid for and cannot be published.")
    if reference.release != release.name:
        raise EvidenceBroken(f'{name} belongs to another release than "{release.name}" and cannot be published with it.')
    path = home.staging / reference.release / reference.stage / f"{reference.id}.parquet"
    with disk_faults(path):
        digest = digest_of(path)
    if digest != reference.digest:
        raise EvidenceBroken(f"{name} is not what was sealed. Run the release again.")
    return path
