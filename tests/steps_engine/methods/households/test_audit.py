"""Linked tables on worst neighbours, in ε and ρ: a household, with everybody in it, loses no more than is charged.

Each part is witnessed by the code of pairs that draws it; what both lose together is what the household loses.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.accounting.plans import Allowance
from steps_engine.domain.counting import Counts
from steps_engine.domain.linked import parted
from steps_engine.methods.households.parts import parts_of
from tasks.verify.accounts import plan_problems
from tests.steps_engine.methods.households.small import AT_MOST, Household, counted, domain, plan, some_homes
from tests.steps_engine.methods.pairs.test_audit import loss_of
from tests.zcdp_audit import keeps, price_of
from tests.zcdp_witness import Met, met

RHO = {"delta": Decimal("1e-9")}
LARGER = {"epsilon": Decimal(8)}  # at which these analyses can be had
OF = domain()
ALIKE: Household = (1, 1, 2, [(0, 1, 2)] * (AT_MOST - 1))  # all members in one cell
OTHERWISE: Household = (0, 0, 0, [(1, 0, 0)] * (AT_MOST - 1))
LARGE: Household = (1, 1, 2, [(0, 1, 2)] * AT_MOST)  # one person too many
ASKED = (
    ("tenure", "sex", "grade"),
    ("relation", "grade"),
    ("tenure", "n_person", "reference_grade"),
)  # of persons, of households
both_measures = pytest.mark.parametrize("privacy", [{}, RHO], ids=["pure", "zcdp"])
both_neighbours = pytest.mark.parametrize("neighbours", ["add_remove", "substitute"])


def with_home(*homes: Household) -> Counts:
    """Some households, and these beside them; a fifth has no members, so that neighbours may gain their first."""
    return counted(OF, [*some_homes(60), *homes])


def lost(of: Domain, paid: Plan, one: Counts, other: Counts) -> dict[str, list[Met]]:
    """Of both parts every draw that tells the neighbours apart."""
    found = {}
    for part, mine, theirs in zip(parts_of(of, paid), parted(of, one), parted(of, other), strict=True):
        found[part.name] = met(part.domain, part.plan.model_copy(update={"decomposition": "pairs"}), mine, theirs, 0)
    return found


def price(found: list[Met], paid: Plan) -> float:
    return sum(float(price_of(e)) if paid.measure == "zcdp" else loss_of(e) for each in found for e in each.evidence)


def neighbour(neighbours: str, home: Household) -> tuple[Counts, Counts]:
    return with_home(home), with_home(OTHERWISE) if neighbours == "substitute" else with_home()


@both_measures
@both_neighbours
@pytest.mark.parametrize("home", [ALIKE, (1, 1, 2, []), (0, 1, 1, [(0, 0, 1), (1, 1, 2)])])
@pytest.mark.whole
def test_a_household_loses_no_more_than_is_charged(privacy, neighbours, home):
    for asked in ((), ASKED):
        must_keep(plan(OF, asked, neighbours=neighbours, **(LARGER if asked else {}), **privacy), neighbours, home)


def must_keep(paid: Plan, neighbours: str, home: Household) -> None:
    found = lost(OF, paid, *neighbour(neighbours, home))
    for each in (each for part in found.values() for each in part):
        assert price([each], paid) <= float(each.draw.cost) * (1 + 1e-12)
    together = [evidence for part in found.values() for each in part for evidence in each.evidence]
    if paid.measure == "zcdp":
        assert home is not ALIKE or keeps(together, Fraction(paid.cost))  # the dearest; prices in ρ add up for all
        assert sum(price(part, paid) for part in found.values()) <= float(paid.cost) * (1 + 1e-12)
    else:
        assert sum(map(loss_of, together)) <= float(paid.cost) * (1 + 1e-12)


@both_measures
def test_members_who_are_all_alike_cost_all_that_their_counts_are_paid(privacy):
    """So that the bound is no larger than it must be: k rows in one cell move it by k."""
    paid = plan(OF, **privacy)
    found = lost(OF, paid, *neighbour("add_remove", ALIKE))
    assert found["person"] and found["household"]
    for each in (*found["person"], *found["household"]):
        assert price([each], paid) == pytest.approx(float(each.draw.cost))


def test_one_person_changed_is_a_household_replaced():
    """What a person is promised follows: under substitution as much as the household."""
    paid = plan(OF, neighbours="substitute")
    changed: Household = (1, 1, 2, [*ALIKE[3][1:], (1, 0, 0)])
    found = lost(OF, paid, with_home(ALIKE), with_home(changed))
    assert 0 < sum(price(part, paid) for part in found.values()) <= float(paid.cost)


# --- controls


@both_measures
def test_control_a_household_with_one_person_too_many_is_caught(privacy):
    """Counted as if there were no bound, it loses more than its members' draws were paid."""
    paid = plan(OF, **privacy)
    found = lost(OF, paid, *neighbour("add_remove", LARGE))
    over = [each for each in found["person"] if price([each], paid) > float(each.draw.cost) * (1 + 1e-9)]
    assert over and len(over) == len(found["person"])
    total = sum(price(part, paid) for part in found.values())
    assert total > float(paid.cost)


@both_measures
def test_control_persons_counted_without_the_bound_are_caught(privacy, monkeypatch):
    """A planner that takes a member's row for a person's only one: the audit sees it, and so does the verifier.

    In tables that an analysis of persons asked for, too.
    """
    right = {name: getattr(Allowance, name) for name in ("interaction", "joint")}

    def forgetting(name):
        def drawn(self, *said, **more):
            return right[name](Allowance(self.measure, self.total, 1, self.replaced, self.served), *said, **more)

        return drawn

    for name in right:
        monkeypatch.setattr(Allowance, name, forgetting(name))
    paid = plan(OF, ASKED, **LARGER, **privacy)
    monkeypatch.undo()
    assert {("tenure", "sex", "grade")} <= {of for draw in paid.draws if draw.rows_of for of in draw.tables}
    found = lost(OF, paid, *neighbour("add_remove", ALIKE))
    assert all(price([each], paid) > 2 * float(each.draw.cost) for each in found["person"])
    said = [problem for problem in plan_problems(paid, None) if "one household can change it by" in problem]
    assert len(said) == sum(draw.rows_of is not None for draw in paid.draws)


def test_control_draws_of_members_that_are_not_named_so_are_refused():
    """A plan that says nothing of whose rows it counts would be judged by the household's one row."""
    paid = plan(OF)
    assert not list(plan_problems(paid, None))
    silent = paid.model_copy(update={"at_most": None})
    assert any("does not say how many" in problem for problem in plan_problems(silent, None))
