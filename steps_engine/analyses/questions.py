"""What an author asks for, with its names resolved by the domain: a table, or a model with its terms."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

from schemas.errors import SpecError
from schemas.nearest import meant
from schemas.plan import Analysis
from schemas.spec.analyses import ModelAnalysis, TableAnalysis
from schemas.spec.attributes import Attribute, Named
from schemas.spec.domain import Domain
from steps_engine.domain.linked_records import everybody
from steps_engine.domain.places import with_levels
from steps_engine.evaluation.regression import Model, variables

Kind = Literal["linear", "logistic"]

MOST_CELLS = 10_000  # of a table that can be asked for, and that a model's terms may need
MOST_TERMS = 200
LONGEST = 5_000  # characters of a formula
_NAMES = re.compile(r"\b[^\W\d]\w*\b(?!\s*\()")
_FACTORS = re.compile(r"\bC\s*\(([^()]*)\)")


def questions_of(asked: Sequence[TableAnalysis | ModelAnalysis], domain: Domain) -> tuple[Analysis, ...]:
    """Every analysis, or a SpecError that says what is wrong with one."""
    found = tuple(question_of(each, domain) for each in asked)
    names = [each.name for each in found]
    if twice := [name for name in names if names.count(name) > 1]:
        raise SpecError(f"analysis {twice[0]!r} stands twice; keep one")
    return found


def question_of(asked: TableAnalysis | ModelAnalysis, domain: Domain) -> Analysis:
    """One analysis; a SpecError where the domain does not have what it names."""
    if domain.tables is not None and (named := _not_of_households(asked, domain)):
        return _table_of_persons(asked, named[0], domain)
    domain = with_levels(domain)
    return _table(asked, domain) if isinstance(asked, TableAnalysis) else _model(asked, domain)


def seen_by(analysis: Analysis, domain: Domain) -> Domain:
    """The domain of the rows that an analysis is of: all persons of linked tables, or those of the domain."""
    return everybody(with_levels(domain)) if analysis.rows_of is not None else with_levels(domain)


def _not_of_households(asked: TableAnalysis | ModelAnalysis, domain: Domain) -> list[str]:
    """What an analysis of linked tables names that household rows do not have."""
    known = {*domain.names, *domain.coarser}
    if isinstance(asked, TableAnalysis):
        return [name for name in asked.table if name not in known]
    outcome, predictors = variables(Model(asked.model, asked.model, "linear"))
    return [name for name in (outcome, *predictors, *asked.where) if name not in known]


def _table_of_persons(asked: TableAnalysis | ModelAnalysis, named: str, domain: Domain) -> Analysis:
    """The sum of one of reference persons and one of other members. How noise of both reaches a model, nobody has shown."""
    if isinstance(asked, ModelAnalysis):
        _must_know([named], everybody(domain))
        raise SpecError(
            f"the model {asked.model!r} names {named!r}, of a person; of persons tables alone can be planned. Name the tables "
            f"that it needs and fit it to the sets by `steps fit`, or name columns of households: {', '.join(domain.names)}"
        )
    _must_be_counted(asked.table, named, domain)
    return _table(asked, everybody(with_levels(domain))).model_copy(update={"rows_of": "person"})


def _must_be_counted(table: Sequence[str], named: str, domain: Domain) -> None:
    """Other members are counted by places of one level alone."""
    counted = domain.levels[domain.coarsest - 1] if domain.geographies else None
    if others := [level for level in domain.levels if level in table and level != counted]:
        raise SpecError(
            f"the table of {table_name(table)} names {others[0]} and {named}, of a person; members are counted by {counted} "
            f"alone. Name {counted}, or what households have by {others[0]}: n_person, kinds of members, reference persons"
        )


def _table(asked: TableAnalysis, domain: Domain) -> Analysis:
    _must_know(asked.table, domain)
    if (cells := cells_of(asked.table, domain)) > MOST_CELLS:
        raise SpecError(f"the table of {table_name(asked.table)} has {cells:,} cells; at most {MOST_CELLS:,} can be asked for")
    return Analysis(name=table_name(asked.table), kind="table", table=asked.table, within=asked.within)


def _model(asked: ModelAnalysis, domain: Domain) -> Analysis:
    return model_question(asked.model, asked.kind, _labels(asked, domain), domain, asked.within)


def model_question(
    asked: str, kind: Kind | None, where: dict[str, tuple[str, ...]], domain: Domain, within: Fraction | None = None
) -> Analysis:
    """A model among the rows that have one of these labels; logistic where its outcome has categories, else linear."""
    formula = " ".join(asked.split())
    outcome, predictors = variables(Model(formula, formula, "linear"))
    _must_know((outcome, *predictors), domain)
    if fixed := [name for name in (outcome, *predictors) if name in where]:
        raise SpecError(f"where fixes {fixed[0]!r}, which the model names too; take it out of one of them")
    kind = kind or ("logistic" if isinstance(domain.attributes[domain.index(outcome)], Named) else "linear")
    _must_be_an_outcome(domain.attributes[domain.index(outcome)], kind)
    found = Analysis(name=model_name(formula, where), kind=kind, formula=formula, where=where, within=within)
    if not factors_of(found) <= set(predictors) or any(cells_of(term, domain) > MOST_CELLS for term in terms_of(found)):
        raise SpecError(f"formula {formula!r}: C( ) takes one name, and a term has at most {MOST_CELLS:,} combinations")
    return found


def model_name(formula: str, where: Mapping[str, Sequence[str]]) -> str:
    said = ", ".join(f"{name} = {' or '.join(labels)}" for name, labels in where.items())
    return f"{formula} where {said}" if said else formula


def name_of(analysis: Analysis) -> str:
    """What an analysis is called: its table, or its formula and the rows that it is of."""
    return table_name(analysis.table) if analysis.kind == "table" else model_name(analysis.formula, analysis.where)


def _must_know(names: Sequence[str], domain: Domain) -> None:
    for name in names:
        if name not in domain.names:
            raise SpecError(f"there is no attribute {name!r}; {meant(name, domain.names, 'the domain has')}")


def _labels(asked: ModelAnalysis, domain: Domain) -> dict[str, tuple[str, ...]]:
    try:
        codes = domain.codes(asked.where)
    except ValueError as error:
        raise SpecError(f"where: {error}") from None
    return {domain.names[j]: tuple(domain.attributes[j].labels[code] for code in held) for j, held in codes.items()}


def _must_be_an_outcome(attribute: Attribute, kind: str) -> None:
    """As regression.py fits it: numbers for a linear model; two categories, or 0 and 1, for a logistic one."""
    if isinstance(attribute, Named):
        fits = kind == "logistic" and len(attribute.categories) == 2
    else:
        fits = kind == "linear" or attribute.kind == "integer" and tuple(attribute.bounds) == (0, 1)
    if not fits:
        needs = "has two categories, or is 0 or 1" if kind == "logistic" else "is a number"
        raise SpecError(f"{attribute.name!r} cannot be the outcome of a {kind} model, which needs one that {needs}")


def model_of(analysis: Analysis) -> Model:
    return Model(analysis.name, analysis.formula, "logistic" if analysis.kind == "logistic" else "linear")


def terms_of(analysis: Analysis) -> tuple[frozenset[str], ...]:
    """The attributes of each term of a model, products written out; the intercept is the empty one.

    >>> [sorted(term) for term in terms_of(Analysis(name="", kind="linear", formula="y ~ a * C(b)"))]
    [[], ['a'], ['b'], ['a', 'b']]
    """
    import patsy

    _must_be_short(analysis.formula)
    variables(model_of(analysis))  # nothing else than names and signs is handed on
    try:
        terms = patsy.ModelDesc.from_formula(analysis.formula.partition("~")[2]).rhs_termlist
    except (patsy.PatsyError, SyntaxError):
        raise SpecError(f"formula {analysis.formula!r} cannot be read; look at its signs and names") from None
    return tuple(names_in(term) for term in terms)


def _must_be_short(formula: str) -> None:
    """A chain of k products has 2^k terms: counted before they are written out, since a stranger's formula may have any."""
    if "(" in _FACTORS.sub("", formula):
        raise SpecError(f"formula {formula!r}: brackets are for C(name) alone; write sums of products out")
    if len(formula) > LONGEST or sum(2 ** min(part.count("*"), 20) for part in re.split(r"[+-]", formula)) > MOST_TERMS:
        raise SpecError(f"formula {formula[:80]!r} … has more than {MOST_TERMS} terms; ask for fewer")


def names_in(term: Any) -> frozenset[str]:
    """The attributes of one of patsy's terms."""
    return frozenset(name for factor in term.factors for name in _NAMES.findall(factor.name()))


def factors_of(analysis: Analysis) -> frozenset[str]:
    """Attributes that a formula takes as categories, by C(name)."""
    return frozenset(name.strip() for name in _FACTORS.findall(analysis.formula))


def table_name(table: Sequence[str]) -> str:
    return " × ".join(table)


def cells_of(table: Iterable[str], domain: Domain) -> int:
    return math.prod(domain.sizes[domain.index(name)] for name in table)
