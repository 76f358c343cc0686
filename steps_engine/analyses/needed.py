"""Which tables of counts an analysis depends on: what a plan must measure so that intervals can be honest.

Least squares of y on terms t depends on the data through t ∪ {y} for every term, and the unions of every two terms; logistic
regression through the former and the distribution of the predictors, of which the latter are what its information needs to
first order. Among rows that `where` keeps, every one of these tables has its attributes too.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from schemas.plan import Analysis, Table
from schemas.spec.domain import Domain
from schemas.spec.flattened import REFERENCE
from schemas.spec.release import Release
from steps_engine.analyses.questions import MOST_CELLS, cells_of, model_of, questions_of, terms_of
from steps_engine.domain.places import with_levels
from steps_engine.evaluation.regression import variables


def needed_tables(release: Release) -> tuple[Table, ...]:
    """What the analyses of a release need beside margins: each of two or more attributes, none within another, in order.

    Tables of more than MOST_CELLS cells are left out: no budget would fill them. Their analyses are not wholly measured.
    """
    domain = with_levels(release.domain)
    asked = questions_of(release.spec.analyses, domain)
    tables = [table for each in asked for table in needed_by(each, domain)]
    return tuple(table for table in _largest(tables) if len(table) > 1 and cells_of(table, domain) <= MOST_CELLS)


def of_first_order(release: Release, tables: Iterable[Table]) -> tuple[Table, ...]:
    """Of these tables those whose noise reaches an analysis at first order: of a model's outcome, or of a table asked for.

    A model's score is Σ x·(y − p): of the rows that `where` keeps, x alone is in it too, with its attributes.
    """
    asked = questions_of(release.spec.analyses, release.domain)
    models = [each for each in asked if each.kind != "table"]
    outcomes = {variables(model_of(each))[0] for each in models}
    wanted = [frozenset(each.table) for each in asked if each.kind == "table"]
    wanted += [term | set(each.where) for each in models if each.where for term in terms_of(each)]
    return tuple(of for of in tables if outcomes.intersection(of) or any(each.issuperset(of) for each in wanted))


def needed_by(analysis: Analysis, domain: Domain) -> tuple[Table, ...]:
    """The tables of one analysis, attributes in the domain's order, levels of places behind them, none within another."""
    if analysis.rows_of is not None:
        return of_each_part(analysis.table, domain)
    domain = with_levels(domain)
    if analysis.kind == "table":
        return (_ordered(analysis.table, domain),)
    outcome, _ = variables(model_of(analysis))
    terms, where = terms_of(analysis), frozenset(analysis.where)
    unions = [term | {outcome} for term in terms] + [a | b for a, b in combinations(terms, 2)] or [frozenset({outcome})]
    return _largest(_ordered(union | where, domain) for union in unions)


def of_each_part(table: Table, domain: Domain) -> tuple[Table, ...]:
    """What a table of all persons needs: the same of reference persons, who are in household rows, and of other members.

    Which of both a table is of, its names tell: one of members has an attribute of their own.
    """
    assert domain.tables is not None
    person = domain.tables.person
    reference = {REFERENCE + name if name in person.names else name for name in table if name != person.reference_name}
    order = (*with_levels(domain).names, *person.names)
    return tuple(tuple(sorted(of, key=order.index)) for of in (reference, table) if of)


def _ordered(names: Iterable[str], domain: Domain) -> Table:
    return tuple(sorted(names, key=domain.index))


def _largest(tables: Iterable[Table]) -> tuple[Table, ...]:
    """Each once, in the order given, without those that are part of another."""
    distinct = {table: frozenset(table) for table in tables}
    sizes = sorted({len(table) for table in distinct})
    larger = {size: [held for held in distinct.values() if len(held) > size] for size in sizes}
    return tuple(table for table, held in distinct.items() if not any(held < other for other in larger[len(table)]))
