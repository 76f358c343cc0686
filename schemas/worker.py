"""worker.yaml: what a worker owns. A run that Prefect's server asks for touches nothing else."""

from __future__ import annotations

from pydantic import Field, field_validator

from schemas.spec.database import FILES, is_address, must_be_address
from schemas.spec.yaml import Strict


class WorkerSpec(Strict):
    """What the worker of one home may release. Relative paths start at the folder of worker.yaml."""

    releases: str = Field(description="The folder under which release.yaml files lie; a run names one by its path from here.")
    sources: tuple[str, ...] = Field(
        min_length=1,
        description="Files, folders, or databases as postgresql://host:5432/database: records are read from these alone.",
    )
    populations: tuple[str, ...] = Field(min_length=1, description="Budgets that may be charged.")
    catalogue: str | None = Field(
        default=None, description="A folder of its own that the nightly audit keeps as a catalogue of all that is published."
    )
    address: str = Field(default="", description="Where the catalogue will be read: links in its feeds begin with it.")

    @field_validator("sources")
    @classmethod
    def _paths_and_addresses(cls, sources: tuple[str, ...]) -> tuple[str, ...]:
        for address in filter(is_address, sources):
            must_be_address(address)
            if address.partition(":")[0] in FILES:
                raise ValueError("a database that is one file is owned as files are: write its path, or its folder's")
        return sources
