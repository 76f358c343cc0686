"""What a domain says of its values holds in the rows of every method: spikes, open ends, shapes, comparisons, derived ones."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

from schemas import tables
from schemas.contents import content_hash
from schemas.spec.domain import Domain
from schemas.spec.method import method_spec
from steps_engine.domain.cells import Space
from steps_engine.domain.counting import count_codes
from steps_engine.domain.records import codes_of
from steps_engine.methods.after_noise import Drawn
from steps_engine.methods.run_in_memory import run
from steps_engine.noise import SeededRandomness
from tasks.verify.records import record_problems
from tests.steps_engine.shapes import release

BINS = {"kind": "integer", "bounds": (0, 29), "bins": 3}
DOMAIN = Domain.model_validate(
    {
        "name": "d",
        "population": "p",
        "expected_rows": 900,
        "attributes": (
            {"name": "county", "kind": "categorical", "categories": ("Kent", "Fife", "Skye"), "missing": "category"},
            {"name": "first", **BINS, "missing": "category"},
            {"name": "last", **BINS},
            {
                "name": "wage",
                "kind": "numeric",
                "bounds": (0, 20),
                "bins": 2,
                "at": 0,
                "above": {"shape": "exponential", "mean": 30},
                "within": "triangular",
                "multiples_of": Decimal("0.5"),
            },
            {"name": "start", "kind": "time", "bounds": ("06:00", "24:00"), "bins": 3},
        ),
        "derived": ({"name": "region", "from": "county", "by": {"Kent": "South", "Fife": "North", "Skye": "North"}},),
        "rules": ({"always": "first <= last"}, {"never": {"wage": 0, "start": {"from": "12:00"}}}),
    }
)
METHODS = {
    "flat": {},
    "tree": {"order": ("county", "last")},
    "cascade": {},
    "privbayes": {},
    "pairs": {},
}


def made(name: str):
    space, rng = Space(DOMAIN), np.random.default_rng(1)
    counts = count_codes(space.codes(rng.choice(space.allowed(), 900)))
    asked = release(DOMAIN, method_spec(name, sets={"count": 2, "budget": "shared"}, **METHODS[name]), "4")
    return run(asked, counts, SeededRandomness(name))


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.whole
def test_rows_of_every_method_keep_what_the_domain_says(name):
    found = made(name)
    assert found.method.check(DOMAIN, found.plan, found.tables).findings == ()
    for records in found.records:
        assert records.schema == tables.records(DOMAIN) and not list(record_problems(DOMAIN, records, None))
        rows = records.to_pandas()
        both = rows.dropna(subset=["first"])
        assert len(both) and (both["first"] <= both["last"]).all()
        assert (rows["wage"] % 0.5 == 0).all() and (rows["wage"] == 0).any() and (rows["wage"] > 20).any()
        assert (rows.loc[rows["wage"] == 0, "start"].map(lambda time: time.hour) < 12).all()
        known = rows.dropna(subset=["county"])
        assert ((known["region"] == "South") == (known["county"] == "Kent")).all()
        assert rows.loc[rows["county"].isna(), "region"].isna().all()


@pytest.mark.parametrize("name", ["tree", "cascade", "pairs"])
def test_rows_follow_from_what_was_drawn(name):
    found = made(name)
    drawn = Drawn(DOMAIN, found.plan, found.tables["tree"], found.tables["noisy-counts"])
    once, again = (drawn.synthesize(found.method, drawn.correct(found.method), 1) for _ in range(2))
    assert content_hash(once) == content_hash(again)
    assert codes_of(once, DOMAIN).min() >= 0
