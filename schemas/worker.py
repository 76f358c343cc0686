"""worker.yaml: what a worker owns. A run that Prefect's server asks for touches nothing else."""

from __future__ import annotations

from pydantic import Field

from schemas.spec.yaml import Strict


class WorkerSpec(Strict):
    """What the worker of one home may release. Relative paths start at the folder of worker.yaml."""

    releases: str = Field(description="The folder under which release.yaml files lie; a run names one by its path from here.")
    sources: tuple[str, ...] = Field(min_length=1, description="Files or folders: records are read from these alone.")
    populations: tuple[str, ...] = Field(min_length=1, description="Budgets that may be charged.")
    catalogue: str | None = Field(
        default=None, description="A folder of its own that the nightly audit keeps as a catalogue of all that is published."
    )
    address: str = Field(default="", description="Where the catalogue will be read: links in its feeds begin with it.")
