"""`method:` of a release.yaml: how counts become synthetic records. Every method registers the class of its own options."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, SerializeAsAny, ValidationError
from pydantic_core import ErrorDetails, InitErrorDetails

from schemas.nearest import meant
from schemas.spec.wording import said
from schemas.spec.yaml import Keys, Strict, problem_at


def _exact(value: Any) -> Fraction:
    if isinstance(value, float) and math.isfinite(value):  # from a notebook; specs hold written digits
        value = Decimal(repr(value))
    if isinstance(value, bool) or not isinstance(value, (int, Decimal, Fraction)):
        raise ValueError(f"must be a number, not {value!r}")
    return Fraction(value)


def _grouped(order: Any) -> Any:
    if isinstance(order, str):
        raise ValueError(f"order: {order} needs decomposition: cascade; name the attributes, most important first")
    if isinstance(order, tuple | list):
        return tuple((part,) if isinstance(part, str) else part for part in order)
    return order


def _positive(shares: Any) -> Any:
    if isinstance(shares, tuple) and (not shares or any(share <= 0 for share in shares)):
        raise ValueError("shares are positive numbers, one per layer")
    return shares


Exact = Annotated[Fraction, BeforeValidator(_exact), PlainSerializer(str, return_type=str)]
Shares = Annotated[Literal["equal", "cube_root", "square_root"] | tuple[Exact, ...], AfterValidator(_positive)]
Groups = Annotated[tuple[tuple[str, ...], ...], BeforeValidator(_grouped)]  # of attributes, most important first


class Sets(Strict):
    """How many synthetic sets, and how they share the budget."""

    count: int = Field(default=1, ge=1, le=100, description="How many synthetic sets.")
    budget: Literal["split", "shared"] = Field(
        default="split",
        description="`split`: a measurement at ε/m for each set. `shared`: one at ε that all sets are drawn from.",
    )


class MethodSpec(Strict):
    """What the options of all methods have in common."""

    decomposition: str
    sets: Sets = Field(default=Sets(), description="How many synthetic sets, and how they share the budget.")

    def named_groups(self) -> tuple[tuple[str, ...], ...]:
        """Groups of attributes that the options name; every attribute must exist, and stand once."""
        return ()

    def under(self, measure: str) -> Self:
        """With the defaults that suit a measure, where these differ."""
        return self


METHOD_SPECS: dict[str, type[MethodSpec]] = {}
DEFAULT = "auto"


def register_spec(name: str, spec: type[MethodSpec]) -> None:
    """Lets `decomposition: NAME` be written."""
    if METHOD_SPECS.setdefault(name, spec) is not spec:
        raise ValueError(f"there is a method {name!r} already; choose another name")


def method_spec(decomposition: str = DEFAULT, **options: Any) -> MethodSpec:
    """The options of a method, checked by the class that it registered."""
    return _read({"decomposition": decomposition, **{key: _frozen(value) for key, value in options.items()}})


def _frozen(value: Any) -> Any:
    """Lists of a notebook as the tuples that a spec holds."""
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def _read(value: Any) -> MethodSpec:
    if isinstance(value, MethodSpec):
        return value
    if not isinstance(value, dict):
        raise ValueError("method is written as `key: value` lines, such as decomposition: auto")
    name = value.get("decomposition", DEFAULT)
    if not isinstance(name, str) or name not in METHOD_SPECS:
        known = sorted(METHOD_SPECS) or ["none: import steps_engine.methods, which registers them"]
        raise problem_at(("decomposition",), f"there is no decomposition {name!r}; {meant(name, known, 'known are')}")
    try:
        return METHOD_SPECS[name].model_validate({"decomposition": name, **_given(value)})
    except ValidationError as error:
        problems = [_place_and_text(problem) for problem in error.errors(include_url=False)]
    if len(problems) == 1:
        raise problem_at(*problems[0])
    together = [InitErrorDetails(type=problem_at((), text), loc=place, input=None) for place, text in problems]
    raise ValidationError.from_exception_data("method", together, hide_input=True)


def _given(value: dict[str, Any]) -> dict[str, Any]:
    """What was said: version 0.1.0 had one list of options for all methods, in which null stood for those not given."""
    return {key: part for key, part in value.items() if part is not None or key not in ("order", "elect", "layers", "shares")}


def _place_and_text(problem: ErrorDetails) -> tuple[Keys, str]:
    """A problem of a method's options, as it is told in the whole document."""
    context = problem.get("ctx", {})
    deeper = context.get("path", (context["key"],) if problem["type"] == "unknown_key" else ())
    if problem["type"] == "missing":
        *place, key = problem["loc"]
        return tuple(place), f"{key} is needed here"
    return (*problem["loc"], *deeper), said(problem)


AnyMethod = Annotated[SerializeAsAny[MethodSpec], BeforeValidator(_read)]
