"""The page on ρ has the figures that the engine has, and the page on bundles every key of a release in ρ."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path

from steps_engine.accounting.conversion import epsilon_of
from steps_engine.accounting.meaning import belief, chance_of_a_right_guess, loss_of
from tests.docs.test_tutorial import keys
from tests.tasks.publishing.making import ELECTED
from tests.tasks.publishing.test_loss_page import made, manifest_of

DOCS = Path(__file__).parents[2] / "docs"


def test_every_epsilon_in_the_table_is_the_conversion_s_rounded_up():
    text = (DOCS / "rho.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (0\.[0-9]+) \| ([0-9.]+) \| ([0-9.]+) \| ([0-9.]+) \|$", text, re.M)
    assert len(rows) == 4
    for rho, *told in rows:
        exact = [epsilon_of(Fraction(rho), delta).value for delta in (1e-6, 1e-9, 1e-12)]
        assert [f"{math.ceil(1000 * value) / 1000:.3f}" for value in exact] == told


def test_the_suspicions_are_those_of_the_engine():
    text, rho = (DOCS / "rho.md").read_text(encoding="utf-8"), Fraction("0.02")
    usual, rare = (math.ceil(1000 * belief(0.5, loss_of(rho, chance))) / 10 for chance in (1 / 20, 1e-9))
    assert f"at most {usual} % in 19 of 20 cases, and of at most {rare} %" in text
    assert f"a chance of at most {100 * chance_of_a_right_guess(rho):g} %" in text


def test_every_key_of_a_release_in_rho_is_documented():
    plan, _ = made(ELECTED)
    documents = {"plan.json": plan.document, "manifest.json": manifest_of(plan, "zcdp").model_dump(mode="json")}
    page = (DOCS / "reference" / "bundle.md").read_text(encoding="utf-8")
    said = {name for document in documents.values() for name in keys(document)}
    assert {"rho", "delta", "order", "measure"} <= said
    assert [name for name in sorted(said) if f"`{name}`" not in page] == []
