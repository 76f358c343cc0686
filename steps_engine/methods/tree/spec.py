"""What `method:` may say of a tree, a flat table and a universal histogram."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from schemas.spec.method import Exact, Groups, MethodSpec, Shares
from schemas.spec.yaml import Strict

Division = Literal["equal", "cube_root", "square_root"] | tuple[Fraction, ...]


def least_error(measure: str) -> Literal["cube_root", "square_root"]:
    """Σ nodes/ε² is least for ε ∝ nodes^(1/3), Σ nodes/ρ for ρ ∝ nodes^(1/2)."""
    return "cube_root" if measure == "pure" else "square_root"


class Elect(Strict):
    """Who decides the order: the data, privately, with a share of ε."""

    utility: str = Field(default="aic", description="What a good split is: aic, bic or uneven.")
    share: Exact = Field(default=Fraction(1, 10), description="The part of ε or ρ that is spent on electing.")
    layers: int = Field(ge=1, le=64, description="How many layers are elected.")
    what: Literal["attributes", "groups"] = Field(
        default="attributes", description="An attribute for every node, or one grouping of all attributes into layers."
    )
    mechanism: Literal["permute_and_flip", "exponential"] = Field(
        default="permute_and_flip",
        description="How the winner is drawn. For ε permute-and-flip is never worse; for ρ, unless this is given, exponential "
        "is taken, which costs a quarter.",
    )
    stop: bool = Field(default=False, description="Whether a branch may end where another layer would cost more than it tells.")

    @field_validator("share")
    @classmethod
    def _proper(cls, share: Fraction) -> Fraction:
        if not 0 < share < 1:
            raise ValueError(f"share is the part of ε spent on electing, above 0 and below 1; not {float(share):g}")
        return share

    @model_validator(mode="after")
    def _branches_stop_one_by_one(self) -> Self:
        if self.stop and self.what == "groups":
            raise ValueError("stop: true needs what: attributes; a grouping is elected once for all branches")
        return self


class LayeredSpec(MethodSpec):
    """One tree over all attributes; ε is divided among its layers."""

    shares: Shares | None = Field(
        default=None,
        description="How the budget is divided among layers. Otherwise: equal for split sets; for shared ones by the rule of "
        "least error, cube_root for ε and square_root for ρ.",
    )

    def division(self, measure: str) -> Division:
        """`shares`; unless given, split sets have the paper's equal layers, and one measurement for all the least noise."""
        return self.shares or (least_error(measure) if self.sets.budget == "shared" else "equal")


class TreeSpec(LayeredSpec):
    """The tree of STEPS: its order given, free of charge, or elected with a share of ε."""

    decomposition: Literal["tree"] = Field(default="tree", description="The tree of STEPS: one tree over all attributes.")
    order: Groups | None = Field(
        default=None, description="Attributes, or groups of them, layer by layer; most important first."
    )
    elect: Elect | None = Field(default=None, description="In place of `order`: the data decide, privately.")

    @model_validator(mode="after")
    def _one_way_to_split(self) -> Self:
        given = [name for name in ("order", "elect") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"decomposition: tree takes order or elect; found {' and '.join(given) or 'none'}")
        return self

    def named_groups(self) -> tuple[tuple[str, ...], ...]:
        return self.order or ()

    def under(self, measure: str) -> Self:
        if self.elect is None or measure == "pure" or "mechanism" in self.elect.model_fields_set:
            return self
        return self.model_copy(update={"elect": self.elect.model_copy(update={"mechanism": "exponential"})})


class FlatSpec(LayeredSpec):
    """One layer: every cell of the full cross-tabulation."""

    decomposition: Literal["flat"] = Field(default="flat", description="One layer: every cell of the full cross-tabulation.")


class UhSpec(LayeredSpec):
    """Modified universal histogram: layers in a random order, drawn once and sealed with the plan."""

    decomposition: Literal["uh"] = Field(
        default="uh", description="Modified universal histogram: layers in a random order, drawn once."
    )
    layers: int = Field(ge=1, le=64, description="How many attributes are split on before the full cross-tabulation.")
