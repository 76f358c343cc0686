"""`python -m tests.campaign [--minutes M] [--only FAMILY] [--seed S]`: attacks, then one table; 1 where anything was found."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path

from tests.campaign.families import FAMILIES
from tests.campaign.page import write
from tests.campaign.record import ROOT, Record, clean, code_hash, extent, sums, table
from tests.campaign.running import printed, run_family
from tests.campaign.trials import Family


def main(words: list[str] | None = None) -> int:
    asked = _asked(words)
    families = [family for family in FAMILIES if not asked.only or family.name in asked.only]
    record = Record.opened(asked.state, asked.seed)
    printed(f"{len(record.found)} trials are done already; what is found is kept in {record.path}")
    try:
        _run(families, record, asked.seed, time.monotonic() + 60 * asked.minutes)
    except KeyboardInterrupt:
        printed("interrupted. Run again, it goes on from here")
    rows = {family.name: sums(record.of(family.name), record.planned.get(family.name, family.trials)) for family in families}
    print(table(rows), extent(rows), sep="\n\n")
    if asked.write:
        write(ROOT / "docs" / "reliability.md", rows, asked.seed, code_hash())
    for name in (name for name, row in rows.items() if not row["tried"]):
        print(f"Nothing was tried of {name}.")
    return 0 if clean(rows) else 1


def _run(families: list[Family], record: Record, seed: int, end: float) -> None:
    """One family after the other; what one leaves of its time the others have."""
    for place, family in enumerate(families):
        now, shares = time.monotonic(), sum(each.share for each in families[place:])
        run_family(family, record, seed, now + max(0.0, end - now) * family.share / shares, printed)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _asked(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make campaign", description="Attacks on the whole program; an hour at most.")
    parser.add_argument("--minutes", type=float, default=55, help="how long, all families together (default: 55)")
    parser.add_argument("--only", action="append", choices=[family.name for family in FAMILIES], help="repeat for several")
    parser.add_argument("--seed", type=int, default=1, help="of everything that is left to chance (default: 1)")
    parser.add_argument("--state", type=Path, default=ROOT / ".cache" / "campaign", help="where results are kept")
    parser.add_argument("--write", action="store_true", help="put the table into docs/reliability.md")
    return parser.parse_args(words)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _interrupt)  # servers are stopped and disks unmounted on the way out
    sys.exit(main())
