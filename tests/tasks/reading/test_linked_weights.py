"""Weights of households at the door and in the query that counts: everybody in a household counts as its units."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from schemas.errors import DataInvalid
from schemas.spec.domain import Domain
from schemas.spec.release import Release
from steps_engine.domain.counting import Counts
from steps_engine.domain.encoding import PUBLIC_KEY
from steps_engine.domain.linked import parted
from steps_engine.methods.households.parts import parts_of
from tasks.reading.fitting import look_at_release
from tasks.reading.linked import count_linked
from tasks.stages.validate import validate_records
from tests.steps_engine.methods.households.small import AT_MOST, Household, counted, plan, release, some_homes
from tests.steps_engine.methods.households.surveyed import UNITS, as_units, frames, surveyed, units_of, weights_of
from tests.steps_engine.methods.households.test_audit import ALIKE, lost, price

KEY = bytes(range(32))
HOMES = some_homes(120)
Tables = tuple[Counts, Counts]


def written(folder: Path, of: Domain, homes: list[Household], weight, form: str = "parquet") -> Release:
    household, person = frames(homes, weight)
    household.to_csv(folder / "h.csv", index=False) if form == "csv" else household.to_parquet(
        folder / "h.parquet", index=False
    )
    person.to_parquet(folder / "p.parquet", index=False)
    asked = release(of)
    source = type(asked.spec.source)(household=f"h.{form}", person="p.parquet")
    return asked.model_copy(update={"folder": str(folder), "spec": asked.spec.model_copy(update={"source": source})})


def count(asked: Release, scratch: Path, key: bytes = KEY) -> Counts:
    return count_linked(asked.sources, asked.domain, scratch, key)


def as_dict(counts: Counts) -> dict[tuple[int, ...], int]:
    return dict(zip(map(tuple, counts.codes.tolist()), counts.count.tolist(), strict=True))


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_every_household_counts_as_its_units_and_so_does_everybody_in_it(form, tmp_path, confidential):
    of, weight = surveyed("2.5"), weights_of(len(HOMES))
    asked = written(tmp_path, of, HOMES, weight, form)
    assert not look_at_release(asked).problems
    found = count(asked, confidential)
    assert as_dict(found) == as_dict(counted(of, as_units(HOMES, units_of(weight, of, KEY))))
    households, members = parted(of, found)
    others = households.codes[:, of.index("n_person")]
    assert members.count.sum() == (others * households.count).sum() > 0
    assert as_dict(count(asked, confidential, bytes(32))) != as_dict(found)  # lots are those of the installation


def test_rows_of_a_household_that_had_lots_of_their_own_would_not_agree(tmp_path, confidential):
    """Control: numbers of persons are those of household rows because a household has one lot."""
    of, weight = surveyed("2.5"), weights_of(len(HOMES))
    units, both = units_of(weight, of, KEY), [*zip(HOMES, weight, strict=True)]
    alone = sum(sum(units_of([w] * len(home[3]), of, KEY, 1000 * i)) for i, (home, w) in enumerate(both))
    assert alone != sum(len(home[3]) * number for home, number in zip(HOMES, units, strict=True))


BAD = {"beyond": 12.001, "below": 0.99, "missing": None, "not a number": np.nan, "negative": -1.0, "infinite": np.inf}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.whole
def test_a_bad_weight_of_a_household_is_refused_by_validation_and_by_the_query(bad, tmp_path, confidential):
    asked = written(tmp_path, surveyed(), HOMES, weights_of(len(HOMES)))
    assert validate_records(asked, confidential).expectations and count(asked, confidential).count.sum()
    household, _ = frames(HOMES, weights_of(len(HOMES)))
    household.assign(w=[BAD[bad], *household["w"][1:]]).to_parquet(tmp_path / "other.parquet", index=False)
    os.replace(tmp_path / "other.parquet", tmp_path / "h.parquet")
    with pytest.raises(DataInvalid, match="have changed since"):
        count(asked, confidential)
    with pytest.raises(DataInvalid, match="data fail validation"):
        validate_records(asked, confidential)
    broken = (confidential / "validation.html").read_text().split('<tr class="broken">')[1:]
    assert [row for row in broken if "<td>household: w</td>" in row]


@pytest.mark.whole
def test_a_text_is_no_weight_and_a_column_that_is_not_there_is_told(tmp_path, confidential):
    asked = written(tmp_path, surveyed(), HOMES, ["heavy", *weights_of(len(HOMES))[1:]], "csv")
    with pytest.raises(DataInvalid, match="data fail validation"):
        validate_records(asked, confidential)
    with pytest.raises(DataInvalid, match="have changed since"):
        count(asked, confidential)
    frames(HOMES, weights_of(len(HOMES)))[0].drop(columns="w").to_csv(tmp_path / "h.csv", index=False)
    assert any("lacks the column w" in problem for problem in look_at_release(asked).problems)


@pytest.mark.whole
def test_a_household_of_no_units_is_not_counted_and_breaks_rules_nevertheless(tmp_path, confidential):
    older = ({"always": "grade <= reference_grade", "when": {"relation": "child"}},)
    of = surveyed(weight={"bounds": (0, 12)}, rules=older)
    good: list[Household] = [(0, 0, 2, [(0, 1, 1)]), (1, 1, 2, [])]
    bad: Household = (0, 0, 0, [(0, 1, 2)])
    asked = written(tmp_path, of, [*good, bad], [8.0, 4.0, 0.0])
    households, members = parted(of, count(asked, confidential))
    assert (households.count.sum(), members.count.sum()) == (3, 2)
    with pytest.raises(DataInvalid, match="data fail validation"):
        validate_records(asked, confidential)
    assert validate_records(written(tmp_path, of, good, [8.0, 4.0]), confidential).expectations


def test_weighted_totals_of_households_and_persons_are_unbiased_over_lots(tmp_path, confidential):
    """One file of many households: what lots err by has mean 0, and is no larger than f(1 − f) of every household says."""
    of, many = surveyed(5), 12_000
    homes, weight = some_homes(many, 3), np.round(weights_of(many, 3), 3)
    found = count(written(tmp_path, of, homes, weight), confidential, PUBLIC_KEY)
    size = np.array([len(home[3]) for home in homes])
    tenure, child = np.array([home[0] for home in homes]), np.array([sum(k == 0 for k, _, _ in home[3]) for home in homes])
    households, members = parted(of, found)
    asked = {
        "households": (households.count.sum(), np.ones(many)),
        "rented": (households.count[households.codes[:, 0] == 1].sum(), tenure == 1),
        "members": (members.count.sum(), size),
        "children": (members.count[members.codes[:, of.counted.index("relation")] == 0].sum(), child),
    }
    x = weight / 5
    for name, (units, times) in asked.items():
        error = np.sqrt((times**2 * (x % 1) * (1 - x % 1)).sum())
        assert abs(units - (times * x).sum()) < 4.5 * error, name
        assert abs((times * (np.floor(x) - x)).sum()) > 9 * error  # control: without lots


# --- what one household changes


@pytest.mark.whole
def test_a_household_changes_counts_by_its_units_and_persons_by_as_many_times_their_number(tmp_path, confidential):
    """Whatever the lots: never down; at most U units of household rows, and (at_most − 1)·U of members."""
    reached = set()
    for trial, (step, heavy) in enumerate([("4", 12.0), ("5", 12.0), ("5", 11.9), ("0.7", 3.3), ("12", 1.0), ("12", 6.0)] * 3):
        of, key = surveyed(step), trial.to_bytes(32, "big")
        homes, weight = some_homes(20, trial), [*weights_of(20, trial)]
        before, after = (
            parted(of, count(written(tmp_path, of, *each), confidential, key))
            for each in ((homes, weight), ([*homes, ALIKE], [*weight, heavy]))
        )
        moved = [changes(*each) for each in zip(before, after, strict=True)]
        most = of.units_per_person
        assert all(change > 0 for part in moved for change in part)
        assert sum(moved[0]) <= most and sum(moved[1]) == (AT_MOST - 1) * sum(moved[0]) <= (AT_MOST - 1) * most
        reached |= {(step, heavy)} if sum(moved[0]) == most else set()
    assert {("4", 12.0), ("5", 11.9)} <= reached  # so that the bound is no larger than it must be


def changes(before: Counts, after: Counts) -> list[int]:
    one, other = as_dict(before), as_dict(after)
    return [other.get(at, 0) - one.get(at, 0) for at in {*one, *other} if other.get(at, 0) != one.get(at, 0)]


@pytest.mark.parametrize("measure", ["pure", "zcdp"])
@pytest.mark.whole
def test_files_that_differ_in_the_heaviest_household_differ_by_what_is_charged(measure, tmp_path, confidential, monkeypatch):
    """From records to draws; controls take the bound on weights, or that on persons, out of the query."""
    of = surveyed()
    paid = plan(of, **({"delta": Decimal("1e-9")} if measure == "zcdp" else {}))
    others = count(written(tmp_path, of, HOMES, weights_of(len(HOMES))), confidential)

    def loses(home: Household, heavy: float) -> float:
        mine = count(written(tmp_path, of, [*HOMES, home], [*weights_of(len(HOMES)), heavy]), confidential)
        assert parts_of(of, paid)[1].plan.units_per_person == (AT_MOST - 1) * UNITS
        return sum(price(part, paid) for part in lost(of, paid, mine, others).values())

    assert loses(ALIKE, 12.0) == pytest.approx(float(paid.cost))
    large: Household = (*ALIKE[:3], [*ALIKE[3], ALIKE[3][0]])
    for home, heavy in ((large, 12.0), (ALIKE, 24.0)):
        with pytest.raises(DataInvalid):
            loses(home, heavy)
    monkeypatch.setattr("tasks.reading.weights_sql._REFUSED", "6000000")
    assert loses(ALIKE, 24.0) > 1.5 * float(paid.cost)
