"""The voter study: what one grid point (method, ε, repeat) measures, and the domain of the stand-in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from schemas.errors import SpecError
from schemas.spec.domain import Domain
from steps_engine.domain.encoding import encode
from steps_engine.evaluation.coded import Coded
from steps_engine.evaluation.comparison import Comparison, compare
from steps_engine.evaluation.measures import MEASURES, Options
from steps_engine.evaluation.measures.association import Association, association
from steps_engine.evaluation.measures.margins import margins
from steps_engine.evaluation.measures.specks import specks
from steps_engine.evaluation.regression import MODELS
from steps_engine.noise import Randomness
from steps_engine.studies.methods import Original, StudyMethod, draw_sets
from steps_engine.studies.standin import COLUMNS, TRAITS

LOG_EPSILONS = (-2, -1, 0, 1, 2)
EPSILONS = tuple(f"{math.exp(k):.9f}".rstrip("0").rstrip(".") for k in LOG_EPSILONS)
SETS, REPEATS = 5, 10
CLASSIFIER = "logistic_interactions"
NAMED_AS_IN_THE_PAPER = ("specks", "tvd", "chi_square")
EFFECTS = ("prereg_state", "registered", "prereg_state:registered")  # the three that the paper looks at

Figures = dict[tuple[str, str], float]


def voter_domain() -> Domain:
    """The public domain of the stand-in: its printed categories and the structural zero."""
    traits = {trait.name: trait for trait in TRAITS}
    attributes: list[dict[str, object]] = [
        {"name": name, "kind": "integer", "bounds": (18, 22)}
        if name == "age"
        else {"name": name, "kind": "categorical", "categories": traits[name].categories}
        for name in COLUMNS
    ]
    return Domain.model_validate(
        {
            "name": "youth-voter",
            "population": "us-youth-2000-2012",
            "expected_rows": 45_000,
            "attributes": tuple(attributes),
            "rules": ({"never": {"voted": "yes", "registered": "no"}},),
        }
    )


def check_voter_domain(domain: Domain) -> None:
    """The study's regression and trees name the voter file's attributes."""
    if set(domain.names) != set(COLUMNS):
        raise SpecError(f"the voter study needs the attributes {', '.join(COLUMNS)}; the domain has {', '.join(domain.names)}.")


def voter_figures(method: StudyMethod, original: Original, epsilon: str, sets: int, randomness: Randomness) -> Figures:
    """SPECKS, χ² agreement, overlap of the difference-in-differences intervals, and margins of one repeat."""
    domain = original.domain
    asked = replace(original, analyses=({"model": MODELS["did_voter"].formula, "kind": "logistic"},))
    codes = [encode(frame, domain) for frame in draw_sets(method, asked, epsilon, sets, randomness)]
    reference, *coded = (Coded(domain.names, domain.sizes, each) for each in (original.codes, *codes))
    found = specks(reference, coded, randomness, CLASSIFIER, null=0)
    figures: Figures = {("ks", ""): found.ks, ("pmse", ""): found.pmse, ("converged", ""): float(found.converged)}
    figures |= {("tvd", str(ways)): margins(reference, coded, ways).mean for ways in (1, 2, 3)}
    figures |= _associations(association(reference, coded)) | _others(reference, coded, randomness)
    frames = [_labelled(each, domain) for each in (original.codes, *codes)]
    return figures | _overlaps(compare(MODELS["did_voter"], frames[0], frames[1:], method.combining))


def _others(original: Coded, synthetics: Sequence[Coded], randomness: Randomness) -> Figures:
    """The figures of measures that the paper does not have, under their own names."""
    options = Options(CLASSIFIER, null=0)
    known = (measure for measure in MEASURES.entries() if measure.applies(original))
    others = (measure for measure in known if measure.name not in NAMED_AS_IN_THE_PAPER)
    found = {measure.name: measure.compare(original, synthetics, randomness, options).figures() for measure in others}
    return {(name, which): _number(value) for name, figures in found.items() for which, value in figures.items()}


def _associations(found: Association) -> Figures:
    figures: Figures = {("agreement", alpha): _number(rate) for alpha, rate in found.agreement.items()}
    figures |= {("class", f"{i},{j}"): float(n) for i, row in enumerate(found.classes) for j, n in enumerate(row)}
    return figures | {("p", f"{a} × {b}"): p for (a, b), p in zip(found.pairs, found.synthetic, strict=True)}


def _overlaps(found: Comparison) -> Figures:
    """Overlap per coefficient, of the paper's three effects, and the means with and without separated ones."""
    figures: Figures = {("coefficient", c.name): _number(c.overlap) for c in found.coefficients}
    figures |= {("overlap", "all"): _number(found.mean_overlap)}
    figures |= {("overlap", "determined"): _number(found.mean_overlap_without_separated)}
    figures |= {("separated", ""): float(sum(c.separated for c in found.coefficients))}
    for effect in EFFECTS:
        (overlap,) = (c.overlap for c in found.coefficients if _attributes(c.name) == effect)
        figures["overlap", effect] = _number(overlap)
    return figures


def _attributes(coefficient: str) -> str:
    """The attributes behind a coefficient, without their categories.

    >>> _attributes("prereg_state[T.yes]:registered[T.yes]")
    'prereg_state:registered'
    """
    return ":".join(part.partition("[")[0] for part in coefficient.split(":"))


def _labelled(codes: np.ndarray, domain: Domain) -> pd.DataFrame:
    """Age in years, everything else as categories: the paper's 32 coefficients, however the file is coded."""
    columns = {}
    for attribute, column in zip(domain.attributes, codes.T, strict=True):
        number = attribute.name == "age"
        labels: Sequence[str] = [str(code) for code in range(attribute.size)]
        columns[attribute.name] = 18.0 + column if number else pd.Categorical.from_codes(column, pd.Index(labels))
    return pd.DataFrame(columns)


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
