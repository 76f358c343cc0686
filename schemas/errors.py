"""Errors a person can act on: what was asked, what was found, what to do. Never a confidential value.

Each class carries the exit code of the command line, and is a *contract* error unless it says otherwise:
running again without changing something gives the same answer, so the orchestrator does not retry it.
"""

from __future__ import annotations

from schemas.visible import visible


class StepsError(Exception):
    """Something failed; the message is fit for a terminal, a log and the Prefect UI."""

    exit_code = 1

    def __str__(self) -> str:
        """Names and paths are other people's: no character in them moves a cursor or turns a line around."""
        return visible(super().__str__())


class SpecError(StepsError):
    """The spec, the domain or the command cannot be used as written."""

    exit_code = 2


class KeyRefused(SpecError):
    """A SpecError about one key, from the spec's top down: who reads the file can name the line."""

    def __init__(self, text: str, *key: str | int) -> None:
        super().__init__(text, *key)
        self.key = key

    def __str__(self) -> str:
        return visible(str(self.args[0]))


class NotOwned(SpecError):
    """A run that a server asked for names what its worker does not own. Looked at first: nothing was read or charged."""


class Rejected(SpecError):
    """A person has decided against the release: an answer, not a fault."""


class BudgetRefused(StepsError):
    """The population's balance does not cover the plan."""

    exit_code = 3


class DataInvalid(StepsError):
    """The data fail validation. Says where the page is, never what is on it."""

    exit_code = 4


class EvidenceBroken(StepsError):
    """A ledger, bundle or sealed artifact does not verify."""

    exit_code = 5


class WaitingForApproval(StepsError):
    """A person has to approve or reject before anything is published."""

    exit_code = 6


class InfrastructureFault(StepsError):
    """Disk, database or network trouble: worth a retry."""

    exit_code = 1
