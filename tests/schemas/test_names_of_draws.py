"""Attributes that are called as draws are: refused where a release is loaded; a bundle with such a name is read."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from schemas.errors import KeyRefused, SpecError
from schemas.spec.domain import Domain
from schemas.spec.release import Release, ReleaseSpec
from steps_engine.methods.planning import make_plan
from tasks.publishing.bundle import domain_bytes, read_domain
from tasks.specs import load_release
from tests.steps_engine.methods.households import small

REFUSED = ("a × b", "b × c × a", "pair 1", "elected pair 2", "again 3", "person: a")
ALLOWED = ("a x b", "a×b", "pair", "pair one", "person", "the pair 1")
SPEC = {"name": "r", "dataset": "d", "source": "s", "privacy": {"rho": Decimal("0.1"), "delta": Decimal("1e-9")}}


def domain(*names: str) -> Domain:
    attributes = tuple({"name": name, "kind": "categorical", "categories": ("u", "v", "w")} for name in names)
    return Domain.model_validate({"name": "d", "population": "p", "expected_rows": 300, "attributes": attributes})


def planned(*names: str, pairs: int | str = "all"):
    spec = ReleaseSpec.model_validate(SPEC | {"method": {"decomposition": "pairs", "pairs": pairs}})
    return make_plan(Release(spec=spec, domain=domain(*names), folder="."))


@pytest.mark.parametrize("name", REFUSED)
def test_a_name_of_a_draw_is_refused_in_words_and_a_bundle_that_has_it_is_read(name):
    with pytest.raises(KeyRefused, match=rf"an attribute '{name}', and draws are named so.*Rename the attribute"):
        planned("a", "b", "c", name)
    assert read_domain(domain_bytes(domain("a", name))).names == ("a", name)


@pytest.mark.parametrize("name", ALLOWED)
def test_other_names_are_planned_without_two_draws_of_one_name(name):
    draws = planned("a", "b", "c", name, pairs=2).draws
    assert len({draw.name for draw in draws}) == len(draws)


def test_persons_and_places_too():
    homes = small.tables()
    homes["person"]["attributes"] += ({"name": "pair 1", "kind": "integer", "bounds": (0, 1)},)
    linked = Domain.model_validate({"name": "d", "population": "p", "expected_rows": 400, "tables": homes})
    place = {"name": "tract", "kind": "categorical"}
    place["geography"] = {"levels": ("tract × a", "tract"), "table": (("r", "t1"), ("r", "t2"))}
    placed = Domain.model_validate({"name": "d", "population": "p", "attributes": (place,)})
    for of, source in ((linked, {"household": "h", "person": "p"}), (placed, "s")):
        with pytest.raises(KeyRefused, match="draws are named so"):
            Release(spec=ReleaseSpec.model_validate(SPEC | {"source": source}), domain=of, folder=".")


def test_the_line_is_told(tmp_path: Path):
    (tmp_path / "dataset.yaml").write_text(
        "name: d\npopulation: p\nattributes:\n  - {name: pair 1, kind: categorical, categories: [u, v]}\n"
    )
    (tmp_path / "release.yaml").write_text("name: r\ndataset: dataset.yaml\nsource: s.csv\nprivacy: {epsilon: 1}\n")
    with pytest.raises(SpecError, match=r"release\.yaml.*2.*'pair 1', and draws are named so"):
        load_release(tmp_path / "release.yaml")
