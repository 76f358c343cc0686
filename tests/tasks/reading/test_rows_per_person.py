"""The bound on rows per person holds in the pass that counts, and which rows `excess: drop` keeps is a matter of lots."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from schemas.errors import DataInvalid
from schemas.spec.domain import Domain
from steps_engine.domain.encoding import encode
from tasks.reading import counting
from tasks.reading.counting import UNFIT
from tasks.reading.encoding_sql import cells_sql, keyed_rows, words
from tasks.reading.partial_counts import count_part, room_for_parts, shares_of_source
from tasks.reading.persons_sql import bounded_cells
from tasks.reading.sources import open_source
from tasks.stages.compare import Records, _coded, _frame
from tasks.stages.discretize import discretize, discretize_parts
from tasks.stages.validate import validate_records
from tasks.stores.home import Home
from tasks.stores.keys import secret_key
from tests.tasks.reading.records import count_cells, good_frame, make_domain, make_release
from tests.tasks.reading.test_bad_input import everything_said

AGE = ({"name": "age", "kind": "integer", "bounds": (0, 9)},)
UNITS = {
    "forbid": {"column": "id", "rows_per_person": 1},
    "forbid three": {"column": "id", "rows_per_person": 3},
    "exactly one": {"column": "id", "rows_per_person": 1, "exactly": True},
    "drop": {"column": "id", "rows_per_person": 1, "excess": "drop"},
}


def rows_of(ids: list, seed: int = 1) -> pd.DataFrame:
    return pd.DataFrame({"id": ids, "age": np.random.default_rng(seed).integers(0, 10, len(ids))})


def counted(frame: pd.DataFrame, domain: Domain, key: bytes = bytes(32)) -> Counter:
    with tempfile.TemporaryDirectory() as folder:
        frame.to_parquet(Path(folder) / "records.parquet", index=False)
        counts = count_cells(make_release(Path(folder) / "records.parquet", domain), Path(folder), key)
    return Counter(dict(zip(map(tuple, counts.codes.tolist()), counts.count.tolist(), strict=True)))


ONE_EACH = list(range(200))
SWAPPED_IN = {
    "one person has 150 rows": ([7] * 150 + ONE_EACH[150:], ("forbid", "forbid three", "exactly one")),
    "one person has 4 rows": ([7] * 4 + ONE_EACH[4:], ("forbid", "forbid three", "exactly one")),
    "nobody is named": (pd.array([None] * 200, "Int64"), tuple(UNITS)),
    "one row names nobody": (pd.array([None, *ONE_EACH[1:]], "Int64"), tuple(UNITS)),
}


@pytest.mark.parametrize("unit, swap", [(unit, swap) for swap, (_, units) in SWAPPED_IN.items() for unit in units])
@pytest.mark.whole
def test_a_source_replaced_after_validation_is_refused_by_the_counting_pass(unit, swap, tmp_path, confidential):
    domain = make_domain(AGE, **UNITS[unit])
    release = make_release(tmp_path / "records.parquet", domain)
    rows_of(ONE_EACH).to_parquet(tmp_path / "records.parquet", index=False)
    validate_records(release, confidential)
    assert count_cells(release, confidential).count.sum() == 200
    rows_of(SWAPPED_IN[swap][0]).to_parquet(tmp_path / "other.parquet", index=False)
    os.replace(tmp_path / "other.parquet", tmp_path / "records.parquet")
    with pytest.raises(DataInvalid) as caught:
        count_cells(release, confidential)
    assert str(caught.value) == UNFIT


@pytest.mark.parametrize("ids", [[1, 1, 2, 2, 2], [1, 1, 2]], ids=["more", "fewer"])
@pytest.mark.whole
def test_exactly_as_many_rows_are_demanded_by_validation_and_by_counting(ids, tmp_path, confidential):
    domain = make_domain(AGE, column="id", rows_per_person=2, exactly=True)
    release = make_release(tmp_path / "records.parquet", domain)
    rows_of(ids).to_parquet(tmp_path / "records.parquet", index=False)
    with pytest.raises(DataInvalid, match="fail validation"):
        validate_records(release, confidential)
    page = (confidential / "validation.html").read_text(encoding="utf-8")
    broken = page.split('<tr class="broken">')[1].split("</tr>")[0]
    assert "exactly 2 records" in broken and f"one person has {ids.count(2)} records" in broken
    with pytest.raises(DataInvalid, match="changed since"):
        count_cells(release, confidential)
    with pytest.raises(DataInvalid, match=f"{'more' if ids.count(2) > 2 else 'fewer'} than 2 rows"):
        encode(rows_of(ids), domain)
    rows_of([2, 1, 1, 2]).to_parquet(tmp_path / "records.parquet", index=False)
    validate_records(release, confidential)
    assert count_cells(release, confidential).count.sum() == len(encode(rows_of([2, 1, 1, 2]), domain)) == 4


@pytest.mark.parametrize("ids", [[1, 1, 2, 2, 2], [1, 1, 2], pd.array([1, 1, None], "Int64")], ids=["more", "fewer", "nobody"])
def test_whoever_is_protected_is_called_so_when_rows_are_refused(ids, tmp_path, confidential):
    domain = make_domain(AGE, column="id", rows_per_person=2, exactly=True, who="household")
    rows_of(ids).to_parquet(tmp_path / "records.parquet", index=False)
    with pytest.raises(DataInvalid, match="fail validation"):
        validate_records(make_release(tmp_path / "records.parquet", domain), confidential)
    page = (confidential / "validation.html").read_text(encoding="utf-8")
    assert "every record names its household" in page and "every household has exactly 2 records" in page
    assert "person" not in page
    with pytest.raises(DataInvalid, match="one household"):
        encode(rows_of(ids), domain)


def test_a_person_whose_rows_lie_in_several_files_is_counted_as_one(tmp_path):
    domain, home = make_domain(AGE, **UNITS["forbid three"]), Home(tmp_path / "home")
    release = make_release(tmp_path / "records", domain)
    (tmp_path / "records").mkdir()
    for number in range(3):
        rows_of([7, 10 + number], number).to_parquet(tmp_path / "records" / f"{number}.parquet", index=False)
    assert [len(files) for files in shares_of_source(release)] == [3], "one share: a worker sees all of a person's rows"

    def in_shares() -> object:
        shares = shares_of_source(release)
        with room_for_parts(home, release, len(shares)) as parts:
            for files, part in zip(shares, parts, strict=True):
                count_part(home, release, files, part)
            return discretize_parts(home, release, parts)

    assert in_shares() == discretize(home, release)
    rows_of([7, 20], 9).to_parquet(tmp_path / "records" / "3.parquet", index=False)
    for count in (in_shares, lambda: discretize(home, release)):
        with pytest.raises(DataInvalid, match="changed since"):
            count()


def test_without_a_column_of_people_the_query_is_the_plain_one_and_with_it_records_are_still_read_once(tmp_path):
    good_frame().assign(id=range(4)).to_parquet(tmp_path / "records.parquet", index=False)
    source = open_source(tmp_path / "records.parquet")
    plain = make_domain()
    assert bounded_cells(source, plain) == cells_sql(keyed_rows(source, plain), source, plain)
    for unit in UNITS.values():
        assert bounded_cells(source, make_domain(**unit)).count("read_parquet") == 1


# --- which rows stay


def smallest_codes(frame: pd.DataFrame, domain: Domain, key: bytes) -> Counter:
    """Control: of each person the rows with the smallest codes."""
    kept = frame.sort_values("age").groupby("id").head(domain.unit.rows_per_person)
    return Counter((age,) for age in kept["age"].tolist())


def same_lots_for_all(frame: pd.DataFrame, domain: Domain, key: bytes) -> Counter:
    """Control: lots that do not depend on the person, so that everybody keeps the same of equal rows."""
    kept = [rows.assign(id=0) for _, rows in frame.groupby("id")]
    return sum((Counter(map(tuple, encode(rows, domain, key).tolist())) for rows in kept), Counter())


def in_memory(frame: pd.DataFrame, domain: Domain, key: bytes) -> Counter:
    return Counter(map(tuple, encode(frame, domain, key).tolist()))


def is_unbiased(keep: Callable[[pd.DataFrame, Domain, bytes], Counter], ages: list[int], bound: int) -> bool:
    """Whether the rows that 2,000 like people keep are distributed as the rows they have (χ² at 10⁻⁶).

    Drawn without replacement, kept rows vary less than χ² allows for: an unbiased choice passes all the more surely.
    """
    domain, people = make_domain(AGE, column="id", rows_per_person=bound, excess="drop"), 2_000
    frame = pd.DataFrame({"id": np.repeat(np.arange(people), len(ages)), "age": np.tile(ages, people)})
    kept = keep(frame, domain, b"k" * 32)
    assert kept.total() == people * bound
    expected = {(age,): people * bound * often / len(ages) for age, often in Counter(ages).items()}
    statistic = sum((kept[age] - wanted) ** 2 / wanted for age, wanted in expected.items())
    return bool(statistic < chi2.isf(1e-6, len(expected) - 1))


@pytest.mark.slow
@pytest.mark.parametrize("ages, bound", [(list(range(10)), 3), (list(range(10)), 1), ([0, 0, 0, 1], 1), ([0, 0, 0, 1, 2], 2)])
def test_the_rows_that_stay_are_distributed_as_the_rows_there_were(ages, bound):
    assert is_unbiased(counted, ages, bound) and is_unbiased(in_memory, ages, bound)
    assert not is_unbiased(smallest_codes, ages, bound), "the control is caught"
    assert not is_unbiased(same_lots_for_all, ages, bound), "the control is caught"


people_and_ages = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), min_size=1, max_size=30)


@settings(max_examples=40, deadline=None)
@given(people_and_ages, st.integers(1, 3), st.sampled_from([str, int]), st.randoms())
@pytest.mark.whole
def test_counting_keeps_the_rows_that_encoding_keeps_in_any_order_of_rows(rows, bound, kind, random):
    domain = make_domain(AGE, column="id", rows_per_person=bound, excess="drop")
    frame = pd.DataFrame(rows, columns=["id", "age"]).astype({"id": kind})
    shuffled = frame.iloc[random.sample(range(len(frame)), len(frame))]
    assert counted(frame, domain) == counted(shuffled, domain) == in_memory(frame, domain, bytes(32))


def test_the_same_rows_stay_where_a_cell_takes_several_words():
    attributes = [{"name": f"a{j}", "kind": "integer", "bounds": (0, 9)} for j in range(40)]
    domain, random = make_domain(attributes, column="id", rows_per_person=2, excess="drop"), np.random.default_rng(1)
    assert len(words(domain)) > 1
    some = random.integers(0, 10, (7, 40))[random.integers(0, 7, 300)]  # equal rows within a person too
    frame = pd.DataFrame(some, columns=list(domain.names)).assign(id=random.integers(0, 60, 300))
    kept = counted(frame, domain)
    assert kept == in_memory(frame, domain, bytes(32)) and kept.total() < 300


@settings(max_examples=15, deadline=None)
@given(people_and_ages, st.integers(1, 3))
@pytest.mark.whole
def test_a_person_more_moves_nobody_elses_rows(rows, bound):
    domain = make_domain(AGE, column="id", rows_per_person=bound, excess="drop")
    frame = pd.DataFrame(rows, columns=["id", "age"])
    more = rows_of([99] * 5, seed=len(rows))
    assert counted(pd.concat([frame, more]), domain) == counted(frame, domain) + counted(more, domain)


def test_parquet_and_csv_keep_the_same_rows(tmp_path, confidential):
    domain = make_domain(column="id", rows_per_person=2, excess="drop")
    frame = good_frame().iloc[np.arange(300) % 4].assign(id=np.arange(300) % 50, age=18 + np.arange(300) % 5)
    frame.to_parquet(tmp_path / "records.parquet", index=False)
    frame.to_csv(tmp_path / "records.csv", index=False)
    found = [count_cells(make_release(tmp_path / f"records.{kind}", domain), confidential) for kind in ("parquet", "csv")]
    assert found[0].to_table(domain) == found[1].to_table(domain)


def test_an_installation_keeps_its_choice_and_another_draws_other_lots(tmp_path):
    domain = make_domain(AGE, column="id", rows_per_person=1, excess="drop")
    rows_of(ONE_EACH * 5).to_parquet(tmp_path / "records.parquet", index=False)
    release, homes = make_release(tmp_path / "records.parquet", domain), [Home(tmp_path / name) for name in ("one", "two")]
    first, again = discretize(homes[0], release), discretize(homes[0], release)
    assert first == again, "the same bytes: the fingerprint of the data can be found again"
    read = [count_cells(release, tmp_path, secret_key(home, "excess")).to_table(domain).to_pydict() for home in homes]
    assert read[0] != read[1]


def test_the_key_is_in_nothing_that_is_said_or_kept(tmp_path):
    domain = make_domain(AGE, column="id", rows_per_person=1, excess="drop")
    home, release = Home(tmp_path / "home"), make_release(tmp_path / "records.parquet", domain)
    key = secret_key(home, "excess")
    for ids in (pd.array([None] * 4, "Int64"), ONE_EACH):
        rows_of(ids).assign(age=11).to_parquet(tmp_path / "records.parquet", index=False)
        error, said = everything_said(lambda: discretize(home, release))
        assert str(error) == UNFIT and key.hex() not in said and repr(key) not in said
    files = [path for path in home.path.rglob("*") if path.is_file() and path.parent != home.keys]
    assert not [path for path in files if key in path.read_bytes() or key.hex().encode() in path.read_bytes()]


def test_a_regression_sees_the_very_rows_that_are_counted(tmp_path):
    domain = make_domain(AGE, column="id", rows_per_person=2, excess="drop")
    rows_of(ONE_EACH * 5).to_parquet(tmp_path / "records.parquet", index=False)
    file = Records(str(tmp_path / "records.parquet"), domain)
    coded = _coded(file)
    frame, weight = _frame(file, ("age",))
    assert weight is None
    fitted = Counter(frame["age"].tolist())
    assert fitted == Counter(dict(zip(coded.codes[:, 0].tolist(), coded.counts.tolist(), strict=True)))


MOMENTS = ("validate_records", "open_source", "must_be_readable", "connect", "prepare", "query_in_blocks")


@pytest.mark.parametrize("excess", ["forbid", "drop"])
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.whole
def test_a_source_swapped_at_any_moment_is_refused_or_counted_within_the_bound(
    moment, excess, tmp_path, confidential, monkeypatch
):
    """Everybody of the file that passes is 1 year old, of the one that takes its place 5: one person 150 times, 50 once."""
    domain = make_domain(AGE, column="id", excess=excess)
    release = make_release(tmp_path / "records.parquet", domain)
    rows_of(ONE_EACH).assign(age=1).to_parquet(tmp_path / "records.parquet", index=False)
    rows_of([7] * 150 + ONE_EACH[150:]).assign(age=5).to_parquet(tmp_path / "other.parquet", index=False)

    def swap() -> None:
        if (tmp_path / "other.parquet").exists():
            os.replace(tmp_path / "other.parquet", tmp_path / "records.parquet")

    validate_records(release, confidential)
    if moment == "validate_records":
        swap()
    else:
        before = getattr(counting, moment)
        monkeypatch.setattr(counting, moment, lambda *given: (swap(), before(*given))[1])
    try:
        counts = count_cells(release, confidential)
    except DataInvalid as error:
        assert str(error) == UNFIT and excess == "forbid"
        return
    found = dict(zip(counts.codes[:, 0].tolist(), counts.count.tolist(), strict=True))
    assert found in ({1: 200}, {5: 51}) and (excess == "drop" or found == {1: 200})


def test_swapping_is_noticed_where_the_bound_is_left_out(tmp_path, confidential, monkeypatch):
    """The control: without the bound in the counting query, 150 rows of one person are counted."""
    domain = make_domain(AGE, column="id")
    rows_of([7] * 150 + ONE_EACH[150:]).to_parquet(tmp_path / "records.parquet", index=False)
    monkeypatch.setattr(counting, "bounded_cells", lambda source, domain: cells_sql(keyed_rows(source, domain), source, domain))
    assert count_cells(make_release(tmp_path / "records.parquet", domain), confidential).count.sum() == 200
