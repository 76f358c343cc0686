"""The page on domains shows one that is read as it says, and the page on bundles what such a domain leaves there."""

from __future__ import annotations

import re
from pathlib import Path

from schemas import tables
from schemas.spec.domain import load_domain

DOCS = Path(__file__).parents[2] / "docs"


def test_the_example_is_a_domain_with_everything_that_the_page_tells_of(tmp_path):
    text = (DOCS / "domain.md").read_text(encoding="utf-8")
    (example,) = re.findall(r'```yaml title="dataset.yaml"\n(.*?)```', text, re.S)
    (tmp_path / "dataset.yaml").write_text(example, encoding="utf-8")
    (tmp_path / "regions.csv").write_text("county,region\nK,South\nF,North\nS,North\n")
    (tmp_path / "rents.csv").write_text("rent,people\n" + "".join(f"{rent},1\n" for rent in range(0, 3001, 250)))
    domain = load_domain(tmp_path / "dataset.yaml")
    said = {key for part in (domain, *domain.attributes) for key in part.model_dump()}
    assert {"title", "labels", "source", "why", "at", "above", "within", "multiples_of", "derived", "licence"} <= said
    assert domain.attributes[3].labels[:2] == ("0", "(0, 10000)") and domain.attributes[3].labels[-1] == "> 120000"
    assert tables.records(domain).names[-1] == "region" and len(domain.comparisons) == 1


def test_the_page_on_bundles_knows_times_derived_columns_and_words():
    text = (DOCS / "reference" / "bundle.md").read_text(encoding="utf-8")
    for said in ("| time | time64 in microseconds |", "Derived attributes", "`title`, `description`", "`label`"):
        assert said in text, said
