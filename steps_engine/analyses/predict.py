"""How wide intervals will be, before any data is read: from the noise, the domain and expected_rows.

Attributes are taken to be independent, with the shares that the dataset expects of their categories, and balanced where it
expects none; no coefficient but the intercept differs from zero. Then noise reaches estimates by first-order terms that have a
closed form. Where data are less balanced than that, rare categories have wider intervals than told here; shrinking or
projecting counts makes intervals narrower.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import product

import numpy as np
from scipy.special import stdtrit

from schemas.errors import SpecError
from schemas.plan import Analysis, AnalysisPlan, NeededTable, Plan, Table
from schemas.spec.attributes import Attribute, Named
from schemas.spec.domain import Domain
from schemas.spec.release import Release
from steps_engine.analyses.design import Term, terms_over, values_of
from steps_engine.analyses.measured import Measured, Names, parts
from steps_engine.analyses.needed import needed_by
from steps_engine.analyses.questions import MOST_CELLS, cells_of, model_of, questions_of, seen_by
from steps_engine.domain.values import moments
from steps_engine.evaluation.regression import INTERCEPT, variables

LEAST_SHARE = 1e-8  # of the rows, that is expected of what a model tells apart: below, double precision cannot invert G


def analysis_plans(release: Release, plan: Plan) -> tuple[AnalysisPlan, ...]:
    """Of every analysis of a release what its plan measures of it, and how wide its intervals are expected to be."""
    measured = Measured.of(release.domain, plan)
    return tuple(_planned(each, measured) for each in questions_of(release.spec.analyses, release.domain))


def _planned(analysis: Analysis, measured: Measured) -> AnalysisPlan:
    needs = tuple(NeededTable(of=of, measured=_holds(measured.part(of), of)) for of in needed_by(analysis, measured.domain))
    complete = all(table.measured for table in needs)
    widths = widths_of(analysis, measured) if complete and seen_by(analysis, measured.domain).expected_units else {}
    told = [width for name, width in widths.items() if name != INTERCEPT] or list(widths.values())
    return AnalysisPlan(
        **analysis.model_dump(),
        needs=needs,
        measured=complete,
        share=_share(measured, [table.of for table in needs]),
        expected_width=max(told, default=None),
        coefficients={} if analysis.kind == "table" else widths,
    )


def _share(measured: Measured, tables: list[Table]) -> Fraction:
    """Of linked tables in both parts, each with the tables that it counts."""
    parts_ = {measured.part(of).rows_of: measured.part(of) for of in tables}
    return sum((part.share([of for of in tables if measured.part(of) is part]) for part in parts_.values()), Fraction())


def _holds(measured: Measured, of: tuple[str, ...]) -> bool:
    return cells_of(of, measured.domain) <= MOST_CELLS and measured.holds(of)


def widths_of(analysis: Analysis, measured: Measured) -> dict[str, float]:
    """Half of the expected 95% interval: of a cell's share, or of each coefficient. All tables must be measured."""
    sampling, noise = variances_of(analysis, measured)
    plan = measured.plan
    return {name: _written(reach(sampling[name], noise[name], plan.sets, plan.budget)) for name in sampling}


def variances_of(analysis: Analysis, measured: Measured) -> tuple[dict[str, float], dict[str, float]]:
    """Of a cell's share or of each coefficient: the variance of sampling people, and of the noise in one measurement."""
    seen = seen_by(analysis, measured.domain)
    rows, inflation = float(seen.expected_units or 1), seen.inflation
    if analysis.kind == "table":
        cells = cells_of(analysis.table, seen)
        of_all = sum(cells_of(of, part.domain) * _cell_noise(of, part) for of, part in _counted(analysis, measured))
        return {"cell": inflation * (1 - 1 / cells) / cells / rows}, {"cell": of_all / cells / rows**2}
    sampling, noise = _coefficients(analysis, measured, rows)
    return {name: inflation * variance for name, variance in sampling.items()}, noise


def _counted(analysis: Analysis, measured: Measured) -> list[tuple[Table, Measured]]:
    """Where a table is counted: all persons are reference persons and others, whose counts have noise of their own each."""
    return [(of, measured.part(of)) for of in needed_by(analysis, measured.domain)]


def reach(sampling: float, noise: float, sets: int, budget: str) -> float:
    """Half of the 95% interval that the combining rules are expected to give (evaluation/combining.py).

    Sets differ by the noise: B is its variance. One set alone cannot show it; then the interval that would be honest is told.
    """
    between = noise / sets if budget == "split" else noise * (1 + 1 / sets)
    total = sampling + between
    freedom = max((sets - 1) * (total / between) ** 2, sets - 1) if between and sets > 1 else math.inf
    return float(stdtrit(freedom, 0.975) * math.sqrt(total))


def _written(width: float) -> float:
    """As many digits as a prediction bears, so that it is the same on every machine."""
    return float(f"{width:.4g}")


def _cell_noise(table: tuple[str, ...], measured: Measured) -> float:
    """Of a cell's count as part of all rows: every interaction within the table, spread evenly over the rest of it."""
    names = frozenset(table)
    return sum(
        _variance(measured, part)
        * math.prod(1 - 1 / size for size in measured.sizes(part))
        / math.prod(measured.sizes(names - part)) ** 2
        for part in parts(names)
    )


def _variance(measured: Measured, part: Names) -> float:
    found = measured.variance(part) if min(measured.sizes(part)) > 1 else 0.0
    assert found is not None, "widths are told of measured tables only"
    return found


def _coefficients(analysis: Analysis, measured: Measured, rows: float) -> tuple[dict[str, float], dict[str, float]]:
    """β̂ − β = c·G⁻¹·Xᵀỹ/n to first order: G = E[xxᵀ], ỹ is the outcome less its mean μ, c = 1, or 1/(μ(1 − μ)) if logistic.

    Xᵀỹ sums x·ỹ over cells. By orthogonality of interactions its noise has covariance Σ_T s_T²·Π_T K·E[P_T f · P_T fᵀ] over
    interactions T, cells alike; f = x·ỹ·(row is kept), of which P_T is the part that T's attributes alone explain. Those
    without the outcome explain what is left where μ is not the middle of its categories.
    """
    domain = measured.domain
    outcome, predictors = variables(model_of(analysis))
    names, terms = terms_over(analysis, domain)
    _must_be_foreseeable(analysis, terms, domain)
    told = _outcome(analysis, domain.attributes[domain.index(outcome)])
    kept = {name: len(labels) / measured.sizes([name])[0] for name, labels in analysis.where.items()}
    kept_rows = rows * math.prod(_present(domain, name) for name in (outcome, *predictors)) * _kept_share(analysis, domain)
    noise = np.zeros((len(names), len(names)))
    for part in sorted({part for term in terms for part in (frozenset[str](), *parts(frozenset(term.names)))}, key=sorted):
        moments = _moments(terms, part, len(names))
        for fixed in (frozenset[str](), *parts(frozenset(kept))):
            weight = math.prod(p * (1 - p) if name in fixed else p**2 for name, p in kept.items())
            for of, size in ((part | fixed | {outcome}, told.spread), (part | fixed, told.off_middle**2)):
                if size and of:
                    noise += _variance(measured, of) * math.prod(measured.sizes(of)) * weight * size * moments
    gram = expected_gram(terms, domain, len(names))
    scale = np.sqrt(np.where(np.diag(gram) > 0, np.diag(gram), 1.0))
    inverse = np.linalg.pinv(gram / np.outer(scale, scale), rcond=1e-10) / np.outer(scale, scale)
    sampling = told.factor * told.left * np.diag(inverse) / kept_rows
    noisy = told.factor**2 * np.diag(inverse @ noise @ inverse) / kept_rows**2
    return dict(zip(names, sampling.tolist(), strict=True)), dict(zip(names, noisy.tolist(), strict=True))


def _must_be_foreseeable(analysis: Analysis, terms: list[Term], domain: Domain) -> None:
    """Every combination of categories that a term tells apart, those of the outcome, and the rows that are kept."""
    outcome = variables(model_of(analysis))[0]
    least = {
        " × ".join(names): math.prod(min(_present_shares(domain.attributes[domain.index(name)])) for name in names)
        for names in ((outcome,), *(term.names for term in terms))
    }
    kept = {f"rows where {', '.join(analysis.where)} is as asked": _kept_share(analysis, domain)} if analysis.where else {}
    for what, share in (least | kept).items():
        if share < LEAST_SHARE:
            raise SpecError(
                f"analysis {analysis.name!r}: by `expected` of the dataset a share of {share:.3g} of all rows is all there is "
                f"of {what}; nothing can be foretold of less than {LEAST_SHARE:g}. Expect more of the rarest category, or "
                "leave it out of the model."
            )


def _moments(terms: list[Term], part: Names, width: int) -> np.ndarray:
    """E[P x · (P x)ᵀ] over all columns, of the part of x that these attributes alone explain."""
    found = np.zeros((width, width))
    having = [term for term in terms if part <= set(term.names)]
    components = [term.component(part) for term in having]
    for (a, left), (b, right) in product(zip(having, components, strict=True), repeat=2):
        found[np.ix_(a.columns, b.columns)] = left.T @ right / len(left)
    return found


@dataclass(frozen=True)
class _Outcome:
    """What is expected of an outcome: how it varies over its categories alike, how far its mean lies from their middle."""

    spread: float
    off_middle: float
    factor: float  # c above
    left: float  # variance of what a model leaves, times c if logistic: 1 then


def _outcome(analysis: Analysis, attribute: Attribute) -> _Outcome:
    if isinstance(attribute, Named):
        first, second = _present_shares(attribute)
        return _Outcome(0.25, second - 0.5, 1 / (first * second), 1.0)
    spread = float(np.var(values_of(analysis, attribute)))
    return _Outcome(spread, 0.0, 1.0, spread + float(moments(attribute)[1].mean()) / 12)


def _present_shares(attribute: Attribute) -> np.ndarray:
    """Of the rows in which it is not missing: only complete rows are fitted."""
    shares = np.array(attribute.expected_shares[: attribute.present])
    whole: np.ndarray = shares / shares.sum()
    return whole


def _present(domain: Domain, name: str) -> float:
    attribute = domain.attributes[domain.index(name)]
    return sum(attribute.expected_shares[: attribute.present])


def _kept_share(analysis: Analysis, domain: Domain) -> float:
    attributes = {name: domain.attributes[domain.index(name)] for name in analysis.where}
    shares = {name: dict(zip(each.labels, each.expected_shares, strict=True)) for name, each in attributes.items()}
    return math.prod(sum(shares[name][label] for label in labels) for name, labels in analysis.where.items())


def expected_gram(terms: list[Term], domain: Domain, width: int) -> np.ndarray:
    """E[xxᵀ] of independent attributes with the shares that are expected: given those that two terms share, they are apart."""
    shares = {name: _present_shares(domain.attributes[domain.index(name)]) for term in terms for name in term.names}
    found = np.zeros((width, width))
    for a, b in product(terms, repeat=2):
        common = frozenset(a.names) & frozenset(b.names)
        chance = reduce(np.multiply.outer, [shares[name] for name in a.names if name in common], np.ones(()))
        left, right = a.given(common, shares), b.given(common, shares)
        order = [name for name in b.names if name in common]
        right = right.transpose([*(order.index(name) for name in a.names if name in common), len(order)])
        cells = left.reshape(-1, left.shape[-1]), right.reshape(-1, right.shape[-1])
        found[np.ix_(a.columns, b.columns)] = cells[0].T @ (chance.reshape(-1, 1) * cells[1])
    return found
