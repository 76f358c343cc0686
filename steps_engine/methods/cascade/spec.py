"""What `method:` may say of a cascade."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from schemas.spec.method import Groups, MethodSpec

ELECTED = "elected"  # an order that the data decide, privately, with a share of ε


def _way_to_order(order: Any) -> str:
    return "word" if isinstance(order, str) else "list"


Order = Annotated[Annotated[Groups, Tag("list")] | Annotated[Literal["elected"], Tag("word")], Discriminator(_way_to_order)]


class CascadeSpec(MethodSpec):
    """One tree per attribute over those before it."""

    decomposition: Literal["cascade"] = Field(default="cascade", description="One tree per attribute over those before it.")
    order: Order | None = Field(
        default=None, description="Attributes, most important first; the rest follows, few categories first. Or `elected`."
    )

    def named_groups(self) -> tuple[tuple[str, ...], ...]:
        return self.order if isinstance(self.order, tuple) else ()
