"""The terms of a charge, as the public chain and manifests show them. Nothing else of a charge is published."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from schemas.plan import Frozen, without
from schemas.spec.domain import Name

Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Amount = Annotated[str, Field(pattern=r"^[0-9]{1,40}(\.[0-9]{1,9})?$")]


class Waves(Frozen):
    """What somebody in all these populations has lost by all charges together, this one included, and may lose at most."""

    populations: tuple[Name, ...]
    measure: Literal["pure", "zcdp"]
    total: Amount
    cap: Amount | None = None

    @model_serializer(mode="wrap")
    def _say_the_cap(self, said: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return said(self) if self.cap else without(said(self), "cap")


class Terms(Frozen):
    """What was charged for, under which relation, and what it adds to where populations share people."""

    plan_hash: Hash
    spec_hash: Hash
    neighbours: Literal["add_remove", "substitute"]
    unit: Name
    overlaps: tuple[Name, ...] = ()
    waves: Waves | None = None

    @property
    def relation(self) -> dict[str, str]:
        """All but what is said of other populations."""
        return {name: getattr(self, name) for name in ("plan_hash", "spec_hash", "neighbours", "unit")}

    @model_serializer(mode="wrap")
    def _say_what_is_shared(self, said: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A charge on a population that shares nobody is written, and hashed, as before there were others."""
        return without(said(self), *(name for name in ("overlaps", "waves") if not getattr(self, name)))
