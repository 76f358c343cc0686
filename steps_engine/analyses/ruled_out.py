"""What rules say of a logistic model before any record is read: where they leave its outcome one value, nothing is finite.

Whoever is not registered cannot vote: the likelihood grows for ever with the coefficient that says so, in the records and in
every set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from schemas.plan import Analysis
from schemas.spec.attributes import Named
from schemas.spec.domain import Domain
from steps_engine.analyses.questions import cells_of, factors_of, model_of, seen_by, terms_of
from steps_engine.domain.cells import possible_cells
from steps_engine.evaluation.regression import variables

MOST_LOOKED_AT = 10**6  # combinations of one term, the outcome and what `where` names
MOST_NAMED = 3  # combinations of categories that a remark lists


def always_alike(analysis: Analysis, domain: Domain) -> str | None:
    """Why a logistic model has nothing to tell: among the rows that it is of, rules leave its outcome one value."""
    if analysis.kind != "logistic":
        return None
    return next((f"by the rules {said}" for said in _one_sided((), analysis, seen_by(analysis, domain))), None)


def remarks_on(analyses: Sequence[Analysis], domain: Domain) -> tuple[str, ...]:
    """Of every logistic model the coefficients that cannot be finite by the rules, and how to ask for the others."""
    return tuple(remark for each in analyses if each.kind == "logistic" for remark in _remarks(each, seen_by(each, domain)))


def _remarks(analysis: Analysis, domain: Domain) -> Iterator[str]:
    """One for the smallest terms that settle the outcome; larger ones that hold them do so too."""
    factors, settled = factors_of(analysis), list[frozenset[str]]()
    for term in sorted(set(terms_of(analysis)), key=lambda term: (len(term), sorted(term))):
        tells_apart = all(isinstance(domain.attributes[domain.index(name)], Named) or name in factors for name in term)
        if not term or not tells_apart or any(held <= term for held in settled):
            continue
        names = tuple(sorted(term, key=domain.index))
        found = list(_one_sided(names, analysis, domain))
        if found:
            settled.append(term)
            of = " × ".join(names)
            listed = "; ".join(found[:MOST_NAMED]) + (" …" if len(found) > MOST_NAMED else "")
            yield (
                f"{analysis.name}: by the rules {listed}, so that coefficients of {of}, of what it is multiplied with and the "
                f"intercept have no finite estimate. For the others leave {of} out and keep rows with a choice by `where`"
            )


def _one_sided(names: tuple[str, ...], analysis: Analysis, domain: Domain) -> Iterator[str]:
    """Of every combination of these attributes that leaves the outcome one of its values, among rows that count."""
    outcome, _ = variables(model_of(analysis))
    table = (*names, *analysis.where, outcome)
    if cells_of(table, domain) > MOST_LOOKED_AT:
        return
    attributes = [domain.attributes[domain.index(name)] for name in table]
    possible = possible_cells(domain, [domain.index(name) for name in table])
    for axis, attribute in enumerate(attributes):
        kept = list(analysis.where.get(attribute.name, attribute.labels[: attribute.present]))
        possible = possible.take([attribute.labels.index(label) for label in kept], axis=axis)
    left = np.asarray(possible.any(axis=tuple(range(len(names), len(table) - 1))))
    for cell in product(*(range(size) for size in left.shape[:-1])):
        if left[cell].sum() == 1:
            value = attributes[-1].labels[int(left[cell].argmax())]
            said = [f"{name} = {each.labels[code]}" for name, each, code in zip(names, attributes, cell, strict=False)]
            said += [f"{name} = {' or '.join(labels)}" for name, labels in analysis.where.items()]
            yield f"{outcome} is always {value}" + (f" where {' and '.join(said)}" if said else "")
