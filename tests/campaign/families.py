"""Every family, in the order in which a campaign tries them."""

from __future__ import annotations

from tests.campaign import canaries, disk, flips, hostile, kills, lies, postgres_kills, races, signals, stages
from tests.campaign.trials import Family

FAMILIES: tuple[Family, ...] = (
    lies.FAMILY,
    hostile.FAMILY,
    flips.FAMILY,
    canaries.FAMILY,
    races.ON_SQLITE,
    races.ON_POSTGRESQL,
    postgres_kills.FAMILY,
    stages.FAMILY,
    signals.FAMILY,
    disk.FAMILY,
    kills.FAMILY,
)
