"""Cells, rules and nodes against brute force over small domains."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from schemas.errors import SpecError
from schemas.spec.domain import load_domain
from steps_engine.domain.cells import Space
from tests.steps_engine.shapes import SHAPES, allowed_cells, domain, never

VOTER = Path(__file__).parents[3] / "examples" / "youth-voter" / "dataset.yaml"


def test_the_voter_domain_has_the_papers_number_of_cells():
    space = Space(load_domain(VOTER))
    assert space.domain.all_cells == 1_720_320
    assert space.count() == 1_290_240 == len(space.allowed())


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_allowed_cells_are_those_that_break_no_rule(shape):
    space = Space(shape)
    assert [tuple(row) for row in space.codes(space.allowed()).tolist()] == allowed_cells(shape)
    assert space.count() == len(allowed_cells(shape))


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_prefixes_are_counted_without_listing_cells(shape):
    space, p = Space(shape), len(shape.sizes)
    for prefix in [tuple(range(k)) for k in range(p + 1)] + [tuple(range(k, p)) for k in range(p)]:
        cells = allowed_cells(shape)
        distinct = {tuple(cell[j] for j in prefix) for cell in cells}
        assert space.count(prefix) == len(distinct)
        sizes = [sum(tuple(cell[j] for j in prefix) == d for cell in cells) for d in distinct]
        assert space.singles(prefix) == sizes.count(1)


def test_cells_and_codes_are_inverse():
    space = Space(domain(2, 7, 3, 5))
    cells = np.arange(space.domain.all_cells)
    assert np.array_equal(space.cells(space.codes(cells)), cells)


def test_rules_that_leave_nothing_are_refused():
    with pytest.raises(SpecError, match="no allowed combination"):
        Space(domain(2, 2, rules=(never(x0=0), never(x0=1)))).count()


def test_a_huge_chain_of_rules_is_refused_before_it_is_listed():
    wide = domain(*[400] * 4, rules=(never(x0=0, x1=0), never(x1=1, x2=1), never(x2=2, x3=2)))
    with pytest.raises(SpecError, match="tie x0, x1, x2, x3 together"):
        Space(wide).count()
