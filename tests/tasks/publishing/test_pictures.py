"""Where the labels of a page's pictures stand: every one has room of its own."""

from __future__ import annotations

from itertools import pairwise

import pytest

from steps_engine.methods.views import Branch
from tasks.publishing import pictures
from tasks.publishing.pictures import LINE, tree_picture

ROW, LETTERS, BELOW = 46, 15, 19  # units of the template: between rows, between lines of a label, from a node to its value
LONG = "Age: (missing) · Highest degree of education: upper secondary"


def a_tree(labels: list[str]) -> Branch:
    """Branches with these labels, each with one stub below it: how a tree's last layer but one is shown."""
    return Branch(
        "everyone", 90, 1, 1, tuple(Branch(label, 9, 1, 0.1, (Branch("864 cells", 0, 0, 0, (), True),)) for label in labels)
    )


def nearest(labels: list[str]) -> float:
    """How far the uppermost line of a label is below the value of the node above it, at least."""
    nodes = sorted((each for each in tree_picture(a_tree(labels), 1)["nodes"] if each.depth == 1), key=lambda each: each.row)
    return min(
        ROW * (below.row - above.row) - BELOW - (8 + LETTERS * (len(below.lines) - 1)) for above, below in pairwise(nodes)
    )


def test_long_labels_above_one_another_do_not_touch():
    assert len(LONG) > 2 * LINE
    assert nearest([LONG] * 5) >= 8 and nearest(["short", LONG, "short"]) >= 8


def test_rows_of_short_labels_alone_would_overprint_long_ones(monkeypatch: pytest.MonkeyPatch):
    """The control: without the room for further lines the same labels touch."""
    monkeypatch.setattr(pictures, "EXTRA", 0.0)
    assert nearest([LONG] * 5) < 0


def test_a_tree_of_short_labels_is_as_high_as_it_has_rows():
    assert tree_picture(a_tree(["a", "b"]), 1)["rows"] == 2
