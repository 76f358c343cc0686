"""What one row can change in each kind of draw: the verifier's own table, from the proofs in PRIVACY.md.

A verifier that took these figures from the planner would repeat the planner's mistakes. What is not written here is not
known, and what is not known is never passed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from schemas.plan import Draw, Plan
from tasks.verify.weights import units_of_row

# What k rows of a person can change in counts, where they go (once) or go and others come (twice). Nodes of one layer are
# disjoint: a row is counted in one of them, and changes that count by 1.
COUNTING: Mapping[str, Callable[[int, int], int]] = {
    # in L1: rows that go and rows that come change counts by 1 each
    "two_sided_geometric": lambda rows, times: times * rows,
    # the square of L2: of rows that go, u ≥ 0 and ‖u‖ ≤ k; of rows that come, v likewise; ‖u − v‖² ≤ ‖u‖² + ‖v‖², since uv ≥ 0
    "discrete_gaussian": lambda rows, times: times * rows**2,
}
ELECTING = frozenset({"permute_and_flip", "exponential"})

# (utility, what is elected): the length of the interval in which one row moves the scores of all candidates.
ELECTIONS: Mapping[tuple[str, str], int] = {
    ("aic", "attributes"): 2,  # 2·log L − 2K moves by (−2, 0], for all candidates: K is public
    ("bic", "attributes"): 2,  # as aic: K and the number of rows in the penalty are public
    ("uneven", "attributes"): 2,  # ½ Σ |n_k − n/K| moves by at most 1 up for one candidate, down for another
    ("aic", "groups"): 4,  # mean(first) − mean(last): each mean moves as one score does, so the difference twice as far
    ("bic", "groups"): 4,  # as aic
    ("uneven", "groups"): 4,  # as aic, from a score that moves within an interval of 2
    ("misfit", "pairs"): 1,  # ½ Σ |n_ab − whole numbers that are public|: a row moves one term by 1, so a score by ½ up or down
    ("dependence", "groups"): 4,  # ½ Σ |n_xz − n_x·n_z/n| moves by less than 2 up for one candidate, down for another
}

# A row replaced is one removed and one added: twice the change.
NEIGHBOURS: Mapping[str, int] = {"add_remove": 1, "substitute": 2}


class NotKnown(ValueError):
    """A kind of draw whose sensitivity or price this verifier does not know."""


def least_sensitivity(draw: Draw, plan: Plan) -> int:
    """By how much all rows of one person can change a draw; NotKnown where that is not in the table."""
    if plan.neighbours not in NEIGHBOURS:
        raise NotKnown(f"neighbouring relation {plan.neighbours!r} is not known to this verifier")
    rows, times = _rows_in(draw, plan), NEIGHBOURS[plan.neighbours]
    if draw.of is not None and plan.measure == "zcdp" and draw.mechanism != "discrete_gaussian":
        # In ρ contrasts are centred: one row changes several entries, by more than 1.
        raise NotKnown(f"of contrasts in ρ this verifier knows Gaussian noise only, not {draw.mechanism}")
    if draw.is_joint and draw.kind == "count":
        # In the largest coordinate: in every table of the draw one row changes one entry by 1, the entries of one cell.
        return times * rows
    if draw.of is not None and draw.mechanism in COUNTING:
        # Per unit of the contrast's length, which is the same for every row: lengths of rows that go and come add up at most.
        return COUNTING[draw.mechanism](times * rows, 1)
    if draw.kind == "count" and draw.mechanism in COUNTING:
        return COUNTING[draw.mechanism](rows, times)
    if draw.kind == "election" and draw.mechanism in ELECTING and plan.election is not None:
        return times * rows * _election(plan.election.utility, plan.election.what)
    raise NotKnown(f"it is no election or count of this plan that this verifier knows ({draw.kind} by {draw.mechanism})")


def _rows_in(draw: Draw, plan: Plan) -> int:
    """Rows of one unit that a draw counts, or units of its weight: of linked tables one of a household, and one of every member
    but one.
    """
    if draw.rows_of is None:
        return plan.rows_per_person * units_of_row(plan)
    if draw.rows_of != "person" or plan.at_most is None or plan.at_most < 2:
        raise NotKnown(f"it counts rows of {draw.rows_of!r}, of which the plan does not say how many a {plan.unit} has")
    return (plan.at_most - 1) * units_of_row(plan)  # everybody in a household counts as its units


def _election(utility: str, what: str) -> int:
    if (utility, what) not in ELECTIONS:
        raise NotKnown(f"election utility {utility!r} is not known to this verifier for electing {what}")
    return ELECTIONS[utility, what]
