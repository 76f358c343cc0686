"""What rules say of a table's interaction: by brute force, whether smaller tables and empty cells leave a table any choice."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from steps_engine.domain.cells import Space
from steps_engine.domain.settled import is_settled
from tests.steps_engine.shapes import SHAPES, domain, never

RULED = {
    "two by two": domain(2, 2, 3, rules=(never(x0=1, x1=0),)),
    "one cell of six": domain(2, 3, 2, rules=(never(x0=1, x1=0),)),
    "a whole line but one": domain(2, 3, 2, rules=(never(x0=1, x1=(0, 1)),)),
    "all three together": domain(2, 2, 2, rules=(never(x0=1, x1=1, x2=1),)),
    **{name: SHAPES[name] for name in ("a rule", "rules that end branches early", "chained rules", "uneven")},
}


def leaves_no_choice(of, table) -> bool:
    """No other table than nought has nought in all smaller tables, and wherever no row can be."""
    sizes = [of.sizes[j] for j in table]
    cells = np.array(list(np.ndindex(*sizes)))
    sums = [
        (cells[:, axes][:, None] == cells[:, axes][None]).all(axis=2).astype(float)
        for axes in (list(rest) for rest in combinations(range(len(table)), len(table) - 1))
    ]
    every = np.array(list(np.ndindex(*of.sizes)))
    allowed = ~np.any(
        [np.all([np.isin(every[:, j], list(codes)) for j, codes in rule.items()], axis=0) for rule in of.forbidden]
        or [np.zeros(len(every), bool)],
        axis=0,
    )
    there = {tuple(row) for row in every[allowed][:, list(table)].tolist()}
    empty = np.eye(len(cells))[[tuple(cell) not in there for cell in cells.tolist()]]
    return np.linalg.matrix_rank(np.concatenate([*sums, empty])) == len(cells)


@pytest.mark.parametrize("of", RULED.values(), ids=RULED)
def test_an_interaction_is_settled_where_smaller_tables_and_rules_leave_no_choice(of):
    tables = [table for size in (2, 3) for table in combinations(range(len(of.sizes)), size)]
    assert tables
    for table in tables:
        if is_settled(Space(of), table):
            assert leaves_no_choice(of, table)
        elif not of.rules or len(of.rules) == 1:
            assert not leaves_no_choice(of, table)  # of several rules only those that tie the same attributes are joined


def test_one_rule_of_two_categories_each_settles_and_one_cell_of_six_does_not():
    assert is_settled(Space(RULED["two by two"]), (0, 1)) and is_settled(Space(RULED["two by two"]), (0, 1, 2))
    assert not is_settled(Space(RULED["two by two"]), (0, 2)) and not is_settled(Space(RULED["one cell of six"]), (0, 1))
