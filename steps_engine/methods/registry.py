"""The methods by name. A method registers itself here; nothing else has to know that it exists."""

from __future__ import annotations

from schemas.errors import SpecError
from schemas.plan import Plan
from schemas.spec.method import register_spec
from steps_engine.methods.protocol import Method

METHODS: dict[str, Method] = {}


def register(method: Method) -> None:
    """Lets `decomposition: NAME` be planned, run, shown and verified."""
    register_spec(method.name, method.spec)
    METHODS[method.name] = method


def method_of(plan: Plan) -> Method:
    """The method that a plan names."""
    return method_named(plan.decomposition)


def method_named(name: str) -> Method:
    if name not in METHODS:
        raise SpecError(
            f"there is no method {name!r} here; known are {', '.join(METHODS)}. Install the package that brings it."
        )
    return METHODS[name]
