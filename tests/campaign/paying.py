"""A process that pays for release after release until it is killed, and writes down what it heard of each."""

from __future__ import annotations

import itertools
import os
import sys
import time
from pathlib import Path

from schemas.errors import StepsError
from tasks.stores.charging import ChargeRequest
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tests.campaign.subject import COST, POPULATION


def pay(home: Home, name: str) -> None:
    request = ChargeRequest(name, POPULATION, COST, "add_remove", "person", "plan", "spec", "fingerprint")
    open_ledger(home, 5).charge(request)


def forget(home: Home, name: str) -> None:
    """The control: says that it has paid, before anything is on disk."""
    open_ledger(home, 5).head()


PAYERS = {"ledger": pay, "forgetful": forget}

if __name__ == "__main__":
    payer, url, place, heard, who = sys.argv[1:]
    file = os.open(heard, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for number in itertools.count():
        name = f"{who}-{number}"
        try:
            PAYERS[payer](Home(Path(place), ledger_url=url), name)
            answer = "paid"
        except StepsError as error:
            answer = f"{type(error).__name__} {error}"
            time.sleep(0.05)
        except BaseException as error:
            answer = f"CRASH {type(error).__name__} {error}"
        os.write(file, f"{name} {answer}".replace("\n", " ").encode() + b"\n")
