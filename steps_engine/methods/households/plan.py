"""The plan of linked tables: two plans, of household rows and of other members, and how the budget is divided between them."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from schemas.budget import UNIT
from schemas.errors import SpecError
from schemas.nearest import meant
from schemas.plan import LayerPlan
from schemas.spec.analyses import AnyAnalysis, TableAnalysis
from schemas.spec.domain import Domain
from schemas.spec.flattened import REFERENCE
from schemas.spec.release import Release
from schemas.spec.weights import LARGEST_SET
from steps_engine.accounting.measures import PURE
from steps_engine.accounting.plans import Allowance, Outline
from steps_engine.analyses.needed import needed_by
from steps_engine.analyses.questions import questions_of
from steps_engine.domain.blocks import BLOCK
from steps_engine.domain.cells import Space
from steps_engine.domain.linked import measured_members
from steps_engine.methods.households.parts import marked
from steps_engine.methods.households.spec import HouseholdsSpec
from steps_engine.methods.households.synthesize import AT_A_TIME, candidates_of
from steps_engine.methods.pairs.division import ASSUMED_ROWS, candidates
from steps_engine.methods.pairs.plan import BYTES_PER_VALUE
from steps_engine.methods.pairs.plan import outline as outline_pairs
from steps_engine.methods.pairs.spec import PairsSpec
from steps_engine.methods.places.plan import outline as outline_places
from steps_engine.methods.places.spec import PlacesSpec
from steps_engine.methods.protocol import Candidate

LEAST, MOST = Fraction(1, 10), Fraction(9, 10)  # of the budget, for household rows
OWN = 3  # so much more do members' own attributes matter in their rows than the columns of their household, told by its row
ROWS_PER_CELL = 10  # expected of a table of a member's attribute by kind and by the reference person's, if it is measured


def outline(release: Release, allowance: Allowance) -> Outline:
    """Both parts, one after the other; the draws of members are told apart by their name, tree and rows."""
    domain, method = release.domain, release.spec.method
    if domain.tables is None or not isinstance(method, HouseholdsSpec):
        raise SpecError("decomposition: households releases linked tables; give the dataset tables.")
    must_have_members(domain)
    units = domain.tables.person.members * domain.units_per_person
    share = method.share if method.share is not None else planned_share(domain, allowance)
    first = Fraction(int(share * allowance.total * UNIT), UNIT)  # whole billionths, as every cost is written
    if not 0 < first < allowance.total:
        raise SpecError("the budget is too small to be divided between households and members. Raise it.")
    household = replace(allowance, total=first)
    person = replace(allowance, total=allowance.total - first, rows=units)
    of_household = (outline_places if domain.geographies else outline_pairs)(_asked(release, domain, method, ()), household)
    members_of = _asked(release, measured_members(domain), method, within_household(domain))
    of_person = outline_pairs(members_of, person, own_places(domain))
    layers = [*_of_all(of_household, first / allowance.total, 0)]
    layers += _of_all(of_person, 1 - first / allowance.total, len(layers))
    return Outline(
        layers=tuple(layers),
        draws=(*of_household.draws, *map(marked, of_person.draws)),
        memory_bytes=of_household.memory_bytes + _bytes_of_members(domain),
        seconds=round(of_household.seconds + of_person.seconds, 1),
    )


def _bytes_of_members(domain: Domain) -> int:
    """Members are drawn with several candidates for the place of each: of a set of one block all together, of others some."""
    several = (domain.expected_units or ASSUMED_ROWS) > BLOCK
    members = min(domain.counted.expected_units or ASSUMED_ROWS, AT_A_TIME if several else LARGEST_SET)
    return members * candidates_of(members) * len(domain.counted.sizes) * BYTES_PER_VALUE


def must_have_members(domain: Domain) -> None:
    """Refuses rules under which members' rows cannot be built: once charged it would be too late."""
    try:
        assert Space(measured_members(domain)).components is not None
        assert domain.conditionals is not None and domain.member_conditionals is not None
    except (SpecError, ValueError) as error:
        raise SpecError(f"rows of other members, beside the columns of their household: {error}") from None


def own_places(domain: Domain) -> frozenset[int]:
    """The members' own attributes: how columns of households go together is told by household rows."""
    return frozenset(range(len(domain.sizes), len(domain.counted.sizes)))


def _asked(release: Release, flat: Domain, method: HouseholdsSpec, tables: tuple[tuple[str, ...], ...]) -> Release:
    """One part as a release of one table, by pairs: all of them, so that no election comes between."""
    own, places = flat.names[len(release.domain.names) :], release.domain.levels
    names = [name for name in flat.names if name not in places]  # the budget of places is divided by their geography
    importance = {name: method.importance.get(name, Fraction(1)) * (OWN if name in own else 1) for name in names}
    known = [name for name in release.domain.counted.names if name not in places]
    if unknown := set(method.importance).difference(known):
        raise SpecError(f"importance names {min(unknown)!r}; {meant(min(unknown), known)}")
    spec_of = PlacesSpec if flat.geographies else PairsSpec
    pairs = spec_of(sets=method.sets, pairs="all").model_copy(update={"importance": importance})
    total = release.spec.privacy.total if flat is release.domain else "estimated"
    privacy = release.spec.privacy.model_copy(update={"total": total})
    analyses = analyses_of_part(release, flat, tables)
    spec = release.spec.model_copy(update={"method": pairs, "privacy": privacy, "analyses": analyses})
    return release.model_copy(update={"spec": spec, "domain": flat})


def analyses_of_part(release: Release, flat: Domain, tables: tuple[tuple[str, ...], ...]) -> tuple[AnyAnalysis, ...]:
    """What analyses need of one part, beside these tables: those of household rows are its own; those of persons need a table
    of reference persons there, and one of other members.
    """
    domain, own = release.domain, list[AnyAnalysis]()
    of_households = {*domain.names, *domain.coarser}
    for asked, question in zip(release.spec.analyses, questions_of(release.spec.analyses, domain), strict=True):
        if question.rows_of is None:
            own += [asked] if flat is domain else []
        else:
            tables += tuple(of for of in needed_by(question, domain) if (flat is domain) == of_households.issuperset(of))
    named = {each.table for each in own if isinstance(each, TableAnalysis)}
    return (*own, *(TableAnalysis(table=of) for of in dict.fromkeys(tables) if of not in named))


def within_household(domain: Domain) -> tuple[tuple[str, ...], ...]:
    """Tables of a member's attribute, the reference person's and the kind of member: how people of a household go together.

    Left out where cells are so many that chance alone would fill them. From public inputs.
    """
    assert domain.tables is not None
    person, flat = domain.tables.person, domain.counted
    kind = () if person.kinds is None else (person.kinds,)
    found = []
    for name in person.names:
        if name not in (person.reference_name, person.kinds):
            table = (REFERENCE + name, *dict.fromkeys((*kind, name)))
            cells = math.prod(flat.sizes[flat.index(each)] for each in table)
            if cells * ROWS_PER_CELL <= (flat.expected_rows or ASSUMED_ROWS):
                found.append(table)
    return tuple(found)


def planned_share(domain: Domain, allowance: Allowance) -> Fraction:
    """The part for household rows with the least sum of both parts' errors, by Lagrange.

    A part's error, of all its rows, is about k·√pairs/(rows·√ρ) under ρ and k·pairs/(rows·ε) under ε, k being the rows of one
    household: shares are ∝ (k·√pairs/rows)^⅔ and (k·pairs/rows)^½.
    """
    assert domain.tables is not None
    power, of_pairs = (1 / 2, 1.0) if allowance.measure is PURE else (2 / 3, 1 / 2)
    worth = []
    own = [pair for pair in candidates(domain.counted) if own_places(domain).intersection(pair)]
    for pairs, flat, rows in ((candidates(domain), domain, 1), (own, domain.counted, domain.tables.person.members)):
        number = max(len(pairs), 1) ** of_pairs
        worth.append((rows * number / (flat.expected_units or ASSUMED_ROWS)) ** power)
    share = Fraction(round(1000 * worth[0] / sum(worth)), 1000)
    return min(max(share, LEAST), MOST)


def _of_all(outlined: Outline, part: Fraction, before: int) -> list[LayerPlan]:
    """Numbered on, and by their part of the whole budget."""
    return [layer.model_copy(update={"layer": layer.layer + before, "share": layer.share * part}) for layer in outlined.layers]


def candidate(release: Release) -> Candidate | None:
    """Of linked tables the only one."""
    if release.domain.tables is None:
        return None
    return Candidate(HouseholdsSpec(sets=release.spec.method.sets), 0.0, "the only method of linked tables")
