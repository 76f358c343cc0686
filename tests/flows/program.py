"""`steps` in a process that can be told to die: DIE_AT names a stage, and kill -9 comes when it is about to be sealed."""

from __future__ import annotations

import os
import signal

from flows.cli import main


def die_at(stage: str) -> None:
    from tasks.stores.ledger import Ledger

    seal = Ledger.seal

    def sealing(self, release, name, *rest):
        if name == stage:
            os.kill(os.getpid(), signal.SIGKILL)
        return seal(self, release, name, *rest)

    Ledger.seal = sealing


if __name__ == "__main__":
    if "DIE_AT" in os.environ:
        die_at(os.environ["DIE_AT"])
    main()
