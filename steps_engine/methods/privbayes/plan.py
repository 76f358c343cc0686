"""The plan of PrivBayes: a Bayesian network elected with ε/2, sanitized with ε/2."""

from __future__ import annotations

import math
from fractions import Fraction

from schemas.plan import ElectionPlan, LayerPlan
from schemas.spec.release import Release
from schemas.spec.weights import LARGEST_SET
from steps_engine.accounting.mechanisms import EXPONENTIAL, noise_of
from steps_engine.accounting.plans import Allowance, Outline
from steps_engine.methods.cascade.plan import ASSUMED_ROWS, BYTES_PER_VALUE, SPREAD
from steps_engine.scores import must_be_expected

DEGREE = 2  # parents of an attribute, at most
SECONDS_PER_TABLE, SECONDS_PER_ROW = 1e-4, 4e-9  # of scoring one pair of an attribute and its parents


def outline(release: Release, allowance: Allowance) -> Outline:
    """d − 1 elections share ε/2; the d joint tables of an attribute and its parents share the other half."""
    names, half = release.domain.names, allowance.total / 2
    rounds = len(names) - 1
    if rounds:
        must_be_expected(release.domain.expected_units)
    left = half if rounds else allowance.total
    draws = [
        allowance.election(f"election {i}", half / rounds, SPREAD, layer=i, mechanism=EXPONENTIAL.name) for i in range(rounds)
    ]
    each = left / len(names) / len(allowance.served)
    for name in names:
        for set_ in allowance.served:
            of = "all sets" if set_ is None else f"set {set_}"
            draws.append(allowance.count(f"{name}: {of}, with its parents", each, layer=1, set_=set_, tree=name))
    error = float(f"{math.sqrt(noise_of(draws[-1]).variance):.6g}")
    largest = math.prod(sorted(release.domain.sizes, reverse=True)[: DEGREE + 1])
    layers = (
        LayerPlan(layer=i, attributes=(name,), nodes=largest, nodes_are="at most",
                  share=left / allowance.total / len(names), expected_error=error)
        for i, name in enumerate(names, start=1)
    )  # fmt: skip
    rows = min(release.domain.expected_units or ASSUMED_ROWS, LARGEST_SET)
    pairs = len(names) * math.comb(len(names), DEGREE)
    seconds = round(5 + pairs * (SECONDS_PER_TABLE + rows * SECONDS_PER_ROW), 1)
    memory = 2**28 + rows * len(names) * BYTES_PER_VALUE
    return Outline(tuple(layers), tuple(draws), memory, seconds, election=_election(len(names)))


def _election(attributes: int) -> ElectionPlan | None:
    if attributes == 1:
        return None
    return ElectionPlan(
        utility="dependence", what="groups", mechanism="exponential", layers=attributes - 1, share=Fraction(1, 2),
        candidates=attributes ** (DEGREE + 1),
    )  # fmt: skip
