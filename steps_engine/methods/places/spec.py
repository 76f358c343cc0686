"""What `method:` may say of places."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from steps_engine.methods.pairs.spec import PairsSpec


class PlacesSpec(PairsSpec):
    """The nation by pairs; below it counts of places at every level, and of attributes by place until they drown."""

    decomposition: Literal["places"] = Field(  # type: ignore[assignment]
        default="places",
        description="For an attribute with a geography: the nation by pairs, and counts of every place at every level.",
    )

    def of_nation(self) -> PairsSpec:
        """What is asked of the attributes that are no place."""
        return PairsSpec(sets=self.sets, pairs=self.pairs, importance=self.importance)
