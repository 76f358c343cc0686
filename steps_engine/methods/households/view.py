"""What people are shown of linked tables: household rows as pairs, or places, are shown, and members' margins beside them."""

from __future__ import annotations

from dataclasses import replace

from schemas.plan import Plan
from schemas.spec.domain import Domain
from schemas.tables import PERSON
from steps_engine.domain.linked_records import Members
from steps_engine.methods.households.parts import counts_places, drawn_of, parts_of
from steps_engine.methods.pairs import view as pairs
from steps_engine.methods.places import view as places
from steps_engine.methods.protocol import Tables
from steps_engine.methods.views import Sketch, View
from steps_engine.methods.weighted import in_people

VIEWS = {"pairs": pairs.view, "places": places.view}


def sketch(plan: Plan) -> Sketch:
    """The lines of both parts; those of places as places has them."""
    if not counts_places(plan):
        return pairs.sketch(plan)
    household, person = (plan.model_copy(update=drawn_of(plan, rows_of)) for rows_of in (None, PERSON))
    first, second = places.sketch(household), pairs.sketch(person)
    return replace(first, rows=(*first.rows, *second.rows), draws=first.draws | second.draws)


def view(domain: Domain, plan: Plan, tables: Tables) -> View:
    household, person = parts_of(domain, plan)
    rows = {f"synthetic-{i}": tables[f"synthetic-{i}"] for i in range(1, plan.sets + 1)}
    members = {stage: Members(domain, rows[stage], tables[f"{PERSON}-{i}"]) for i, stage in enumerate(rows, 1)}
    first = VIEWS[household.done_by](domain, household.plan, household.of(tables) | rows)
    second = pairs.view(person.domain, person.plan, person.of(tables) | members)
    total, step = in_people(second, person.domain).total, person.domain.weighing.step if person.domain.weighing else 1
    told = f"{total.estimate:,.0f} ± {total.half:,.0f}"
    made = ", ".join(f"{float(step * number):,.0f}" for number in total.rows)
    return replace(
        first,
        margins=(*first.margins, *second.margins[len(domain.sizes) :]),
        estimated_by="Of households (and of their reference persons) and of their other members, counts by least squares over "
        "everything that was measured of each,",
        heading="Households and their members",
        text=f"{first.text} {_of_members(domain)} Members are drawn given their household's row: as many of each kind as it "
        "says.",
        remarks=(
            *first.remarks,
            f"Households decide how many members there are: the counts of members tell of {told}, the sets have {made}. Tables "
            "of members agree with what was measured given these households. How two members go together who are both not the "
            "reference person was not measured: they are alike as far as their household and reference person make them so.",
        ),
    )


def _of_members(domain: Domain) -> str:
    """What was measured of them; of places the coarsest alone."""
    who = "of every member who is not the reference person, beside the columns of the household"
    if not domain.geographies:
        return f"The same was measured {who}."
    level = domain.levels[domain.coarsest - 1]
    return (
        f"Attributes and their pairs were measured {who}, by {level} and no finer place: within it members follow the other "
        "columns of their household."
    )
