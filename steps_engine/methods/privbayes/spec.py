"""What `method:` may say of PrivBayes: nothing of its own, it stays as published."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from schemas.spec.method import MethodSpec


class PrivBayesSpec(MethodSpec):
    """A Bayesian network of degree 2, elected with ε/2 and sanitized with ε/2."""

    decomposition: Literal["privbayes"] = Field(default="privbayes", description="A Bayesian network, as a baseline.")
