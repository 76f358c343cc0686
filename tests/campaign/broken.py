"""`steps` as it must not be, for controls: `python -m tests.campaign.broken …` runs the command, and then does harm.

It pays for a release that nobody asked for, spoils what it published, and writes a person's number and exact counts where
everybody can read them.
"""

from __future__ import annotations

import sys

import pyarrow as pa
import pyarrow.parquet as pq

from flows.cli import main
from tasks.stores.charging import ChargeRequest
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tests.campaign.subject import COST, NAME, POPULATION
from tests.campaign.ways import EXACT
from tests.flows.small import PERSON


def pay_again(home: Home) -> None:
    unit = open_ledger(home).account(POPULATION).unit
    open_ledger(home).charge(ChargeRequest("another", POPULATION, COST, "add_remove", unit, "plan", "spec", "fingerprint"))


def publish_exact_counts(home: Home) -> None:
    pq.write_table(pa.table({"noisy_1": EXACT}), home.path / "exact.parquet")


def log_a_record(home: Home) -> None:
    print(f"person {PERSON}", file=sys.stderr)


def lose_a_file(home: Home) -> None:
    (home.public / NAME / "tree.parquet").unlink(missing_ok=True)


HARM = (pay_again, publish_exact_counts, log_a_record, lose_a_file)

if __name__ == "__main__":
    try:
        main()
    finally:
        for harm in HARM:
            harm(Home.from_environment())
