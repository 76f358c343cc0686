"""Linked tables at the door: whatever does not hold between households and persons is met before anything is charged, and by
the query that counts as well.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from schemas.errors import DataInvalid, SpecError
from schemas.spec.release import Release
from steps_engine.domain.counting import Counts
from steps_engine.domain.linked import parted
from steps_engine.noise import SeededRandomness
from steps_engine.studies.homes import dataset, homes
from tasks.reading.fitting import look_at_release
from tasks.reading.linked import broken, coded, count_linked, counted_linked, counts_of, links, member_rows, rule_breaks
from tasks.reading.sources import query
from tasks.specs import load_release
from tasks.stages.validate import validate_records

RELEASE = """name: homes
dataset: dataset.yaml
source: {household: h.csv, person: p.parquet}
privacy: {epsilon: 1.0}
"""
Frames = tuple[pd.DataFrame, pd.DataFrame]


@pytest.fixture(scope="module")
def good() -> Frames:
    return homes(60, SeededRandomness(4))


def written(folder: Path, frames: Frames, more: str = "") -> Release:
    """Households in CSV and persons in Parquet: keys are compared whatever the files are."""
    frames[0].to_csv(folder / "h.csv", index=False)
    frames[1].to_parquet(folder / "p.parquet", index=False)
    (folder / "dataset.yaml").write_text(dataset(60))
    (folder / "release.yaml").write_text(RELEASE + more)
    return load_release(folder / "release.yaml")


def test_every_household_and_every_other_member_is_counted_once(good, tmp_path, confidential):
    release = written(tmp_path, good)
    household, person = good
    households, members = parted(release.domain, count_linked(release.sources, release.domain, confidential))
    assert households.count.sum() == 60 and members.count.sum() == len(person) - 60
    size = person.groupby("hid").size()
    place = release.domain.index("n_person")
    assert np.bincount(households.codes[:, place], households.count, 8).tolist() == np.bincount(size - 1, minlength=8).tolist()
    reference = person[person.relation == "reference"].set_index("hid")
    others = person[person.relation != "reference"]
    pairs = pd.crosstab(others.hid.map(reference.education), [others.relation, others.education])
    flat = release.domain.counted
    codes = members.codes[:, [flat.index(name) for name in ("reference_education", "relation", "education")]]
    for row, number in zip(codes, members.count, strict=True):
        labels = [flat.attributes[flat.index(name)].labels[code] for name, code in
                  zip(("reference_education", "relation", "education"), row, strict=True)]  # fmt: skip
        pairs.loc[labels[0], (labels[1], labels[2])] -= number
    assert not pairs.to_numpy().any()


@pytest.mark.whole
def test_keys_are_compared_as_numbers_however_they_are_stored(good, tmp_path, confidential):
    """A key that pandas made 1.0, since another was missing once, is the 1 of the other file; -0.0 is 0.0."""
    household, person = good
    exact = written(tmp_path, good)
    wanted = parted(exact.domain, count_linked(exact.sources, exact.domain, confidential))
    release = written(tmp_path, (household, person.assign(hid=person.hid.astype(float))))
    found = parted(release.domain, count_linked(release.sources, release.domain, confidential))
    assert [each.count.sum() for each in found] == [each.count.sum() for each in wanted]
    assert validate_records(release, confidential).expectations


def test_a_household_that_stands_twice_as_nought_and_less_than_nought_is_refused(good, tmp_path, confidential):
    household, person = good
    two = sorted(person.hid.unique())[:2]
    nought = {two[0]: 0.0, two[1]: -0.0}
    for name, frame in (("h", household), ("p", person)):
        kept = frame[frame.hid.isin(two)]
        kept.assign(hid=kept.hid.map(nought)).to_parquet(tmp_path / f"{name}.parquet", index=False)
    (tmp_path / "dataset.yaml").write_text(dataset(60))
    (tmp_path / "release.yaml").write_text(RELEASE.replace("h.csv", "h.parquet"))
    release = load_release(tmp_path / "release.yaml")
    with pytest.raises(DataInvalid):
        count_linked(release.sources, release.domain, confidential)


@pytest.mark.whole
def test_good_tables_are_valid(good, tmp_path, confidential):
    release = written(tmp_path, good)
    assert not look_at_release(release).problems
    found = validate_records(release, confidential)
    assert found.expectations > 20 and "within a household" in found.page.read_text()


def expecting(most: int, column: str | None = None, severity: str = "critical") -> str:
    """So many rows at most, or no higher value in a column."""
    kind = "expect_column_max_to_be_between" if column else "expect_table_row_count_to_be_between"
    kwargs = {"min_value": 0, "max_value": most} | ({"column": column} if column else {})
    return json.dumps({"expectations": [{"type": kind, "kwargs": kwargs, "severity": severity}]})


@pytest.mark.whole
def test_a_supplier_expects_something_of_either_table(good, tmp_path, confidential):
    (tmp_path / "h.json").write_text(expecting(60))
    (tmp_path / "p.json").write_text(expecting(99, "age"))
    release = written(tmp_path, good, "expectations: {household: h.json, person: p.json}\n")
    found = validate_records(release, confidential)
    page = found.page.read_text()
    assert not found.warnings and "row count to be between" in page and "max to be between" in page
    (tmp_path / "h.json").write_text(expecting(59, severity="warning"))  # there are sixty
    assert validate_records(release, confidential).warnings == 1
    (tmp_path / "p.json").write_text(expecting(9, "age"))
    with pytest.raises(DataInvalid, match="data fail validation"):
        validate_records(release, confidential)
    (tmp_path / "p.json").write_text(expecting(9, "tenure"))
    with pytest.raises(SpecError, match="tenure"):  # a column of the other table
        load_release(tmp_path / "release.yaml")


def orphan(h: pd.DataFrame, p: pd.DataFrame) -> Frames:
    return h, p.assign(hid=p.hid.where(p.pid != p.pid[p.relation != "reference"].iloc[0], 999))


def too_large(h: pd.DataFrame, p: pd.DataFrame) -> Frames:
    """One person too many: nine in a household of at most eight."""
    first = p[p.hid == 1]
    more = [first.iloc[:1].assign(pid=10_000 + i, relation="other", age=40) for i in range(9 - len(first))]
    return h, pd.concat([p, *more])


def in_two(h: pd.DataFrame, p: pd.DataFrame) -> Frames:
    member = p[p.relation != "reference"].iloc[:1]
    return h, pd.concat([p, member.assign(hid=member.hid.iloc[0] % 60 + 1, relation="other", age=30)])


def leaderless(h: pd.DataFrame, p: pd.DataFrame) -> Frames:
    return h, p.assign(relation=p.relation.where(p.pid != p.pid[p.relation == "reference"].iloc[3], "other"))


def two_heads(h: pd.DataFrame, p: pd.DataFrame) -> Frames:
    member = p.pid[(p.relation != "reference") & (p.age >= 30)].iloc[0]
    return h, p.assign(relation=p.relation.where(p.pid != member, "reference"))


def empty(h: pd.DataFrame, p: pd.DataFrame) -> Frames:
    return pd.concat([h, h.iloc[:1].assign(hid=777)]), p


def repeated(h: pd.DataFrame, p: pd.DataFrame) -> Frames:
    return pd.concat([h, h.iloc[:1]]), p


def nameless(h: pd.DataFrame, p: pd.DataFrame) -> Frames:
    return h, p.assign(pid=p.pid.where(p.pid != 5).astype("Int64"))


def homeless(h: pd.DataFrame, p: pd.DataFrame) -> Frames:
    return h, p.assign(hid=p.hid.where(p.pid != 5).astype("Int64"))


def two_spouses(h: pd.DataFrame, p: pd.DataFrame) -> Frames:
    spouse = p[p.relation == "spouse"].iloc[:1]
    return h, pd.concat([p, spouse.assign(pid=10_000)])


def old_child(h: pd.DataFrame, p: pd.DataFrame) -> Frames:
    return h, p.assign(age=p.age.where(p.pid != p.pid[p.relation == "child"].iloc[0], 99))


BAD = {
    orphan: "is the key of a household that is there",
    too_large: "every household has at most 8 records",
    in_two: "nobody in two households",
    leaderless: "is reference of exactly one person in every household",
    two_heads: "is reference of exactly one person in every household",
    empty: "has at least one person",
    repeated: "every household has at most 1 record",
    nameless: "is never missing",
    homeless: "every record names its household",
    two_spouses: "is spouse of at most 1 other member",
    old_child: "within a household: never relation = child",
}


TOLD = {
    orphan: '<td>person: hid</td><td>is the key of a household that is there</td><td class="state">not met</td>\n'
    '<td class="number">1</td>\n<td><code>999</code></td>',
    too_large: "<code>one household has 9 records: 1</code>",
    in_two: "<td>person: pid</td>",
}


@pytest.mark.parametrize("spoil", [too_large, orphan, in_two, old_child], ids=lambda spoil: spoil.__name__)
@pytest.mark.whole
def test_what_does_not_hold_is_met_before_anything_is_charged(spoil, good, tmp_path, confidential):
    release = written(tmp_path, spoil(*good))
    with pytest.raises(DataInvalid, match="data fail validation") as refused:
        validate_records(release, confidential)
    assert "reference" not in str(refused.value)  # nothing of what was found leaves the page
    page = (confidential / "validation.html").read_text()
    found = [row for row in page.split('<tr class="broken">')[1:] if BAD[spoil] in row]
    assert len(found) == 1 and TOLD.get(spoil, "") in found[0], "which table, which column, and whose it is"


@pytest.mark.parametrize("spoil", [leaderless, two_heads, empty, nameless, two_spouses], ids=lambda spoil: spoil.__name__)
@pytest.mark.whole
def test_each_link_that_is_broken_is_told_in_its_own_words(spoil, good, tmp_path, confidential):
    release = written(tmp_path, spoil(*good))
    with coded(release.sources, release.domain, confidential) as connection:
        rows = broken(connection, release.domain)
    [found] = [rows[link.name] for link in links(release.domain) if BAD[spoil] in link.words]
    assert found.rows == 1 and len(found.examples) == 1


@pytest.mark.parametrize("spoil", BAD, ids=lambda spoil: spoil.__name__)
@pytest.mark.whole
def test_the_query_that_counts_keeps_every_bound_itself(spoil, good, tmp_path, confidential):
    """Whatever was validated: files may have changed since."""
    release = written(tmp_path, spoil(*good))
    with pytest.raises(DataInvalid, match="have changed since"):
        count_linked(release.sources, release.domain, confidential)


def test_control_without_the_bound_one_person_too_many_would_be_counted(good, tmp_path, confidential, monkeypatch):
    """So that the test above is no accident: nothing but the query refuses that household."""
    release = written(tmp_path, too_large(*good))
    monkeypatch.setattr("tasks.reading.linked._REFUSED", "true")
    with coded(release.sources, release.domain, confidential) as connection:
        [(_, members)] = counts_of(connection, release.domain)
        most = query(connection, "SELECT max(n) AS n FROM (SELECT count(*) AS n FROM persons GROUP BY household)")["n"][0]
    assert most.as_py() == 9 and members.count.sum() == len(too_large(*good)[1]) - 60


def test_a_column_that_is_not_there_is_seen_without_reading(good, tmp_path):
    release = written(tmp_path, (good[0].drop(columns="region"), good[1].drop(columns="pid")))
    assert look_at_release(release).problems == ("household: lacks the column region", "person: lacks the column pid")


def test_every_link_has_words_and_a_query_of_its_own(good, tmp_path, confidential):
    release = written(tmp_path, good)
    with coded(release.sources, release.domain, confidential) as connection:
        for link in links(release.domain):
            assert query(connection, link.breaks).num_rows == 0 and link.words
    assert "homes" in member_rows(release.domain)  # which holds nothing but households within all bounds


@pytest.mark.whole
def test_counts_in_blocks_are_those_of_one_and_in_order(good, tmp_path, confidential, monkeypatch):
    release = written(tmp_path, good)
    whole = count_linked(release.sources, release.domain, confidential)
    monkeypatch.setattr("tasks.reading.linked.BLOCK", 16)
    blocks = list(counted_linked(release.sources, release.domain, confidential))
    assert len(blocks) > 5 and max(map(len, blocks)) == 16
    again = Counts.from_table(release.domain, pa.concat_tables(blocks))
    assert np.array_equal(again.codes, whole.codes) and np.array_equal(again.count, whole.count)
    assert np.array_equal(np.lexsort(again.codes.T[::-1]), np.arange(len(again.count)))
    halves = parted(release.domain, again)
    assert [len(each.codes.T) for each in halves] == [len(release.domain.names), len(release.domain.counted.names)]


@pytest.mark.whole
def test_a_rule_that_is_broken_in_the_last_block_is_found(good, tmp_path, confidential, monkeypatch):
    """By validation, and by the query that counts: what was written before it is not kept."""
    household, person = good
    homes_of_children = person[person.relation == "child"].hid.unique()
    child = person.index[(person.relation == "child") & (person.hid == homes_of_children[-1])][0]
    release = written(tmp_path, (household, person.assign(age=person.age.mask(person.index == child, 99))))
    monkeypatch.setattr("tasks.reading.linked.BLOCK", 16)
    with coded(release.sources, release.domain, confidential) as connection:
        assert sum(rule_breaks(counts_of(connection, release.domain), release.domain)) >= 1
    with pytest.raises(DataInvalid, match="have changed since"):
        list(counted_linked(release.sources, release.domain, confidential))


REGION = "{name: region, kind: categorical, categories: [north, south, east, west]}"
PLACES = "{name: region, geography: {levels: [land, region], table: places.csv}}"


@pytest.mark.parametrize("there", [True, False], ids=["in the table", "not in the table"])
def test_a_household_in_a_place_that_is_not_in_the_table_is_refused_by_the_query_too(good, tmp_path, confidential, there):
    """Whatever was validated: no household is counted in a place that nobody knows, and its name is in no message."""
    written(tmp_path, good)
    listed = ("north", "south", "east", "west")[: 4 if there else 3]
    (tmp_path / "places.csv").write_text("land,region\n" + "".join(f"{place[0] > 'm'},{place}\n" for place in listed))
    text = dataset(60)
    assert REGION in text and (good[0].region == "west").any()
    (tmp_path / "dataset.yaml").write_text(text.replace(REGION, PLACES))
    release = load_release(tmp_path / "release.yaml")
    if there:
        households, _ = parted(release.domain, count_linked(release.sources, release.domain, confidential))
        codes = households.codes[:, release.domain.index("region")]
        labels = release.domain.attributes[release.domain.index("region")].labels
        assert households.count[codes == labels.index("west")].sum() == (good[0].region == "west").sum()
        return
    with pytest.raises(DataInvalid, match="do not fit the domain") as refused:
        count_linked(release.sources, release.domain, confidential)
    assert "west" not in str(refused.value)
