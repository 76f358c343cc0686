"""The guarantee that a release asks for."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from schemas.amounts import SpecDelta, SpecEpsilon, SpecRho
from schemas.spec.yaml import Strict


class Privacy(Strict):
    """The guarantee that is asked for."""

    epsilon: SpecEpsilon | None = Field(
        default=None,
        description="ε, the whole cost of the release: what is charged. At most nine decimals. With `delta`: the ε that holds "
        "at this δ; the largest ρ that promises it is charged.",
    )
    rho: SpecRho | None = Field(
        default=None,
        description="In place of `epsilon`: ρ of zero-concentrated differential privacy, the whole cost. Needs `delta`. At "
        "most nine decimals.",
    )
    delta: SpecDelta | None = Field(
        default=None,
        description="δ of zero-concentrated differential privacy: at which chance ε is told; at most one in a hundred times "
        "`expected_rows`, such as 1e-9.",
    )
    delta_why: str | None = Field(default=None, description="The reason for a larger `delta` than that, which the page tells.")
    why: str | None = Field(
        default=None, max_length=1000, description="The reason for an ε above 10, kept in the ledger with the charge."
    )
    neighbours: Literal["add_remove", "substitute"] = Field(
        default="add_remove", description="Data sets that must look alike: one person more or less, or one person replaced."
    )
    total: Literal["estimated", "public", "invariant"] = Field(
        default="estimated",
        description="The number of rows: `estimated` from noisy counts; `public` where all neighbours share it (needs "
        "`neighbours: substitute`); `invariant` publishes it outside the guarantee.",
    )

    @model_validator(mode="after")
    def _has_one_measure(self) -> Self:
        given = [name for name in ("epsilon", "rho") if getattr(self, name) is not None]
        if len(given) != 1:
            found = "epsilon and rho; keep one of them" if given else "neither epsilon nor rho; add one of them"
            raise ValueError(
                "give epsilon, a plain number such as 0.5, for pure differential privacy; or epsilon or rho with delta, for "
                f"zero-concentrated. Found {found}"
            )
        if self.rho is not None and self.delta is None:
            raise ValueError("rho needs delta, the chance at which ε is told, such as delta: 1e-9; found none")
        if self.why is not None and not self.why.strip():
            raise ValueError("why gives the reason for a large epsilon; found an empty one. Say it in a sentence, or remove it")
        if self.delta_why is not None and not self.delta_why.strip():
            raise ValueError("delta_why gives the reason for a delta; found an empty one. Say it in a sentence, or remove it")
        if self.delta is None and self.delta_why is not None:
            raise ValueError("delta_why gives the reason for a delta; found none. Remove it, or add delta")
        return self

    @model_serializer(mode="wrap")
    def _say_what_is_asked(self, said: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Pure privacy reads as it did before there was another."""
        new = {"rho", "delta", "delta_why"} if self.delta is None else set()
        new |= {"why"} if self.why is None else set()
        return {name: value for name, value in said(self).items() if name not in new}

    @property
    def measure(self) -> Literal["pure", "zcdp"]:
        return "pure" if self.delta is None else "zcdp"

    @model_validator(mode="after")
    def _public_total_needs_substitution(self) -> Self:
        if self.total == "public" and self.neighbours != "substitute":
            raise ValueError(
                "total: public needs neighbours: substitute, where every data set has the same number of rows; "
                "under add_remove say estimated, or invariant to publish the exact number outside the guarantee"
            )
        return self
