"""The pages say what analyses are: every key of a bundle that has some, and every example as it is written."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import steps_engine.methods  # noqa: F401  registers the methods
from schemas.spec import yaml
from schemas.spec.domain import load_domain
from schemas.spec.release import ReleaseSpec
from steps_engine.analyses.questions import questions_of
from steps_engine.analyses.wanted import parse_wanted
from tasks.publishing.publication import publish
from tests.docs.test_tutorial import keys
from tests.tasks.publishing.making import POLL, a_release, make, some_counts
from tests.tasks.publishing.test_analyses import ASKED, PAIRS, RHO

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "analyses.md").read_text(encoding="utf-8")
RELEASE = "name: a\ndataset: d.yaml\nsource: r.csv\nprivacy: {epsilon: 0.5}\n"


def without_names(value: Any) -> Any:
    """A document without what is keyed by attributes and coefficients."""
    if isinstance(value, dict):
        return {key: {} if key in ("where", "coefficients") else without_names(part) for key, part in value.items()}
    return [without_names(part) for part in value] if isinstance(value, list) else value


@pytest.mark.whole
def test_every_key_of_a_bundle_with_analyses_is_documented(tmp_path):
    made = make(tmp_path / "home", a_release(POLL, PAIRS, analyses=ASKED, **RHO), some_counts(POLL, 4003))
    folder = publish(*made.arguments).folder
    page = (ROOT / "docs" / "reference" / "bundle.md").read_text(encoding="utf-8")
    for name in ("plan.json", "manifest.json"):
        said = set(keys(without_names(json.loads((folder / name).read_bytes())["analyses"])))
        assert said and [key for key in sorted(said) if f"`{key}`" not in page] == []


def test_the_example_is_one():
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    spec = yaml.validate(ReleaseSpec, yaml.parse(RELEASE + block))
    domain = load_domain(ROOT / "examples" / "youth-voter" / "dataset.yaml")
    assert len(questions_of(spec.analyses, domain)) == 4


def test_what_is_wanted_on_the_page_can_be():
    wanted = re.findall(r'--wanted "([^"]+)"', PAGE + (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(wanted) >= 3
    for each in wanted:
        assert parse_wanted(each).within
