"""ε, ρ and δ as fields of models: numbers in a spec, decimal strings in a document."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer

from schemas.budget import parse_delta, parse_nanos, show_nanos


def _from_spec(value: Any) -> int:
    return parse_nanos(_not_text(value, "epsilon"))


def _rho_from_spec(value: Any) -> int:
    return parse_nanos(_not_text(value, "rho"), "rho")


def _delta_from_spec(value: Any) -> str:
    return parse_delta(_not_text(value, "delta"))


def _not_text(value: Any, what: str) -> Any:
    # Specs are read by schemas.yaml, which keeps written digits as Decimal; text such as "1" is not a number there.
    if isinstance(value, str):
        raise ValueError(f'{what} must be a number, not the text "{value}"; remove the quotes')
    return value


# In a spec: numbers only. Written out: decimal strings.
SpecEpsilon = Annotated[int, BeforeValidator(_from_spec), PlainSerializer(show_nanos, return_type=str)]
SpecRho = Annotated[int, BeforeValidator(_rho_from_spec), PlainSerializer(show_nanos, return_type=str)]
SpecDelta = Annotated[str, BeforeValidator(_delta_from_spec)]
# In a document: what `show_nanos` writes. "1e999999999" would be a number that no memory holds.
WrittenEpsilon = Annotated[str, Field(pattern=r"^[0-9]{1,7}(\.[0-9]{1,9})?$")]
WrittenRho = WrittenEpsilon
# In a document: what `parse_delta` returns.
WrittenDelta = Annotated[str, Field(pattern=r"^[1-9](\.[0-9]{0,13}[1-9])?e-[1-9][0-9]{0,2}$")]
