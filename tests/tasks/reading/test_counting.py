"""Counting inside DuckDB against a dictionary: every record coded by hand, one at a time."""

from __future__ import annotations

import datetime
import math
import tempfile
from collections import Counter
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import DataInvalid, InfrastructureFault
from steps_engine.domain.counting import Counts
from steps_engine.domain.encoding import encode
from tasks.reading import counting
from tasks.reading.encoding_sql import words
from tasks.stages.discretize import fingerprint
from tests.tasks.reading.records import count_cells, good_frame, make_domain, make_release

EPOCH = datetime.date(1970, 1, 1)


class Misfit(Exception):
    """A value that the domain refuses."""


def code_by_hand(value, attribute) -> int:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        if attribute.missing == "forbid":
            raise Misfit
        return attribute.size - 1
    if attribute.kind in ("categorical", "ordinal"):
        if value not in attribute.categories:
            raise Misfit
        return attribute.categories.index(value)
    number = number_by_hand(value)
    edges = attribute.edge_values.tolist()
    low, top = edges[0], edges[-1] - (attribute.kind != "numeric")
    above = getattr(attribute, "above", None) is not None
    if attribute.outside == "clamp":
        number = max(number, low) if above else min(max(number, low), top)
    if number < low or (number > top and not above) or (attribute.kind != "numeric" and number != math.floor(number)):
        raise Misfit
    return attribute.present_labels.index(label_by_hand(number, attribute, edges, top))


def label_by_hand(number: float, attribute, edges: list, top: float) -> str:
    """A spike by itself, what lies above the bounds as such, anything else by the label that its bin has."""
    spikes = getattr(attribute, "at", ())
    if number in spikes or number > top:
        return f"{number:.12g}" if number in spikes else f"> {top:.12g}"
    others = {f"{spike:.12g}" for spike in spikes} | {f"> {top:.12g}"}
    bins = [label for label in attribute.present_labels if not spikes or label not in others]
    bins = [label for label in bins if label != f"> {top:.12g}"]
    return bins[sum(edge <= number for edge in edges[1:-1])]


def number_by_hand(value) -> float:
    if isinstance(value, datetime.datetime):
        return (value - datetime.datetime(1970, 1, 1)) // datetime.timedelta(days=1)  # a time of day is dropped
    return (value - EPOCH).days if isinstance(value, datetime.date) else value


def count_by_hand(columns: dict, domain) -> Counter:
    rows = zip(*(columns[attribute.name] for attribute in domain.attributes), strict=True)
    coded = Counter(tuple(map(code_by_hand, row, domain.attributes)) for row in rows)
    for cell in coded:
        if any(all(cell[j] in codes for j, codes in rule.items()) for rule in domain.forbidden):
            raise Misfit
    return coded


def as_counter(counts: Counts) -> Counter:
    return Counter({tuple(cell): n for cell, n in zip(counts.codes.tolist(), counts.count.tolist(), strict=True)})


def counted(table: pa.Table, domain, folder: Path, suffix=".parquet") -> Counter | None:
    path = folder / f"records{suffix}"
    if suffix == ".csv":
        as_text = {name: ["" if v is None else v for v in table[name].to_pylist()] for name in table.column_names}
        pd.DataFrame(as_text, dtype=object).to_csv(path, index=False)
    else:
        pq.write_table(table, path)
    try:
        return as_counter(count_cells(make_release(path, domain), folder))
    except DataInvalid:
        return None


whole = st.integers(-(10**6), 10**6)


@st.composite
def ranged(draw, kind: str):
    low = draw(whole)
    span = draw(st.integers(1, 500))
    edges = sorted(draw(st.sets(st.integers(low, low + span), max_size=4)) | {low, low + span})
    way = draw(st.sampled_from(["bins", "edges", "each"]))
    attribute = {"kind": kind, "bounds": (low, low + span), "outside": draw(st.sampled_from(["forbid", "clamp"]))}
    if way == "edges":
        attribute["edges"] = tuple(edges)
    elif way == "bins" or kind == "numeric":
        attribute["bins"] = draw(st.integers(1, span))
    if kind == "numeric" or (kind == "integer" and way == "edges" and edges[1] - edges[0] > 1):
        meant = {"at": (edges[0],), "above": {"shape": "exponential", "mean": 10**7}}
        attribute |= meant if draw(st.booleans()) else {}
    if kind == "numeric":
        divisor = draw(st.sampled_from([1, 7, 10]))
        shrink = lambda n: Decimal(n) / Decimal(divisor)  # noqa: E731
        attribute |= {key: tuple(map(shrink, attribute[key])) for key in ("bounds", "edges", "at") if key in attribute}
    if kind == "date":
        day = lambda n: (EPOCH + datetime.timedelta(days=n % 30_000)).isoformat()  # noqa: E731
        start = low % 20_000
        moved = {key: tuple(day(start + n - low) for n in attribute[key]) for key in ("bounds", "edges") if key in attribute}
        attribute |= moved
    return attribute


labels = st.sampled_from(["a", "A", "it's", "ü", "b,c", 'q"q', "NULL", "nan"])
named = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["categorical", "ordinal"]),
        "categories": st.lists(labels, min_size=1, unique=True).map(tuple),
    }
)
attribute_specs = st.one_of(named, ranged("integer"), ranged("numeric"), ranged("date"))


@st.composite
def domains(draw):
    specs = draw(st.lists(attribute_specs, min_size=1, max_size=4))
    missing = st.sampled_from(["forbid", "category"])
    return make_domain([{**spec, "name": f"x{j}", "missing": draw(missing)} for j, spec in enumerate(specs)])


def values_of(attribute, bad: bool):
    """Values of one attribute, most of them on or beside an edge; bad ones only where asked."""
    if attribute.kind in ("categorical", "ordinal"):
        usual, unusual = st.sampled_from(attribute.categories), st.sampled_from(["", "c", "a ", "unseen"])
    else:
        low, high = float(attribute.edge_values[0]), float(attribute.edge_values[-1]) - (attribute.kind != "numeric")
        on_edge = st.sampled_from(attribute.edge_values[:-1].tolist()).map(float) | st.just(high)
        beside = on_edge.map(lambda v: max(low, min(high, math.nextafter(v, -math.inf)))) | st.floats(low, high)
        usual = on_edge | (beside if attribute.kind == "numeric" else beside.map(math.floor).map(float))
        unusual = st.sampled_from([low - 1, high + 1, low - 0.5, low + 0.5, math.inf, -math.inf])
        clamp = attribute.outside == "clamp"
        usual = usual | st.sampled_from([low - 2, high + 3]) if clamp else usual
    usual = usual | st.none() if attribute.missing == "category" else usual
    return usual | unusual | st.none() if bad else usual


def as_column(values: list, attribute, draw) -> pa.Array:
    if attribute.kind in ("categorical", "ordinal"):
        column = pa.array(values, pa.string())
        return column.dictionary_encode() if draw(st.booleans()) else column
    if attribute.kind == "numeric":
        return pa.array(values, pa.float64())
    integral = all(v is None or (math.isfinite(v) and v == math.floor(v)) for v in values)
    if attribute.kind == "integer":
        return pa.array([v if v is None or not integral else int(v) for v in values], pa.int64() if integral else pa.float64())
    finite = [None if v is None else min(max(v, -90_000), 90_000) for v in values]
    moments = [None if v is None else datetime.datetime(1970, 1, 1) + datetime.timedelta(days=v) for v in finite]
    if integral and draw(st.booleans()):
        return pa.array([None if m is None else m.date() for m in moments], pa.date32())
    return pa.array(moments, pa.timestamp("us"))


@st.composite
def domain_and_table(draw):
    domain = draw(domains())
    bad, rows = draw(st.booleans()), draw(st.integers(1, 12))
    columns = {}
    for attribute in domain.attributes:
        values = draw(st.lists(values_of(attribute, bad), min_size=rows, max_size=rows))
        columns[attribute.name] = as_column(values, attribute, draw)
    return domain, pa.table(columns)


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(domain_and_table())
def test_counting_in_duckdb_is_counting_with_a_dictionary(case):
    domain, table = case
    try:
        expected = count_by_hand({name: table[name].to_pylist() for name in table.column_names}, domain)
    except Misfit:
        expected = None
    with tempfile.TemporaryDirectory() as folder:
        assert counted(table, domain, Path(folder)) == expected
        if not any(pa.types.is_timestamp(field.type) for field in table.schema) and not _has_empty_text(table):
            assert counted(table, domain, Path(folder), ".csv") == expected


def _has_empty_text(table: pa.Table) -> bool:
    """An empty text is a value in Parquet and a missing one in CSV: the two may rightly differ."""
    return any("" in column.to_pylist() for column in table.columns)


@settings(max_examples=80, deadline=None)
@given(domain_and_table())
@pytest.mark.whole
def test_counting_in_duckdb_is_encoding_a_frame(case):
    domain, table = case
    try:
        expected = Counter(map(tuple, encode(table.to_pandas(), domain).tolist()))
    except DataInvalid:
        expected = None
    with tempfile.TemporaryDirectory() as folder:
        assert counted(table, domain, Path(folder)) == expected


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 300), st.integers(-1000, 1000), st.integers(1, 10**6), st.sampled_from([1, 3, 7, 10, 1000]))
@pytest.mark.whole
def test_numeric_bins_agree_with_their_edges_to_the_last_bit(bins, low, span, divisor):
    bounds = (Decimal(low) / divisor, Decimal(low) / divisor + Decimal(span) / divisor)
    domain = make_domain([{"name": "x", "kind": "numeric", "bounds": bounds, "bins": bins}])
    edges = domain.attributes[0].edge_values
    around = np.concatenate([edges, np.nextafter(edges[1:], -np.inf), np.nextafter(edges[:-1], np.inf)])
    expected = Counter((sum(edge <= v for edge in edges[1:-1].tolist()),) for v in around.tolist())
    with tempfile.TemporaryDirectory() as folder:
        assert counted(pa.table({"x": around}), domain, Path(folder)) == expected


def test_a_file_a_folder_a_glob_parquet_and_csv_give_the_same_cells(tmp_path, confidential):
    frame = good_frame()
    for suffix, write in {"parquet": pd.DataFrame.to_parquet, "csv": pd.DataFrame.to_csv}.items():
        (tmp_path / suffix).mkdir()
        write(frame, tmp_path / f"all.{suffix}", index=False)
        write(frame[:1], tmp_path / suffix / f"part-1.{suffix}", index=False)
        write(frame[1:], tmp_path / suffix / f"part-2.{suffix}", index=False)
    (tmp_path / "csv" / "_SUCCESS").touch()
    sources = ["all.parquet", "all.csv", "parquet", "csv", "csv/part-*.csv", "**/part-?.parquet"]
    found = [count_cells(make_release(tmp_path / source), confidential) for source in sources]
    expected = count_by_hand(frame.to_dict("list"), make_domain())
    assert [as_counter(counts) for counts in found] == [expected] * len(sources)
    assert len({fingerprint(counts, make_domain(), b"key") for counts in found}) == 1


@pytest.mark.whole
def test_a_hundred_attributes_need_more_than_one_packed_number_and_are_counted_alike(tmp_path, confidential):
    domain = make_domain([{"name": f"x{j}", "kind": "integer", "bounds": (0, j % 7)} for j in range(100)])
    columns = {f"x{j}": [(i * (j + 3)) % (j % 7 + 1) for i in range(50)] for j in range(100)}
    pq.write_table(pa.table(columns), tmp_path / "wide.parquet")
    counts = count_cells(make_release(tmp_path / "wide.parquet", domain), confidential)
    assert len(words(domain)) > 1
    assert as_counter(counts) == count_by_hand(columns, domain)


def test_numbers_as_written_in_csv_are_read_by_the_domain_alone(tmp_path, confidential):
    attributes = [
        {"name": "n", "kind": "integer", "bounds": (-5, 5), "missing": "category"},
        {"name": "x", "kind": "numeric", "bounds": (0, 10), "bins": 5, "missing": "category", "outside": "clamp"},
    ]
    domain = make_domain(attributes)
    text = '\ufeffn,x\r\n+5,1e0\r\n-5.0,.5\r\n,NaN\r\n"",Infinity\r\n5.,-inf\r\n'
    (tmp_path / "a.csv").write_text(text, encoding="utf-8", newline="")
    rows = as_counter(count_cells(make_release(tmp_path / "a.csv", domain), confidential))
    assert rows == Counter([(10, 0), (0, 0), (11, 5), (11, 4), (10, 0)])
    for broken in ("1_000", "0x5", " 5", "5 ", "1e", "five", "1,5"):
        (tmp_path / "b.csv").write_text(f'n,x\n"{broken}",1\n', encoding="utf-8")
        with pytest.raises(DataInvalid):
            count_cells(make_release(tmp_path / "b.csv", domain), confidential)


def people(ids: list, ages: list) -> pa.Table:
    return pa.table({"id": ids, "age": ages})


AGE = ({"name": "age", "kind": "integer", "bounds": (0, 9)},)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), min_size=1, max_size=30), st.integers(1, 3), st.randoms())
def test_dropped_rows_depend_on_their_own_person_alone(rows, bound, random):
    domain = make_domain(AGE, column="id", rows_per_person=bound, excess="drop")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        all_together = counted(people(*map(list, zip(*rows, strict=True))), domain, folder)
        shuffled = random.sample(rows, len(rows))
        assert counted(people(*map(list, zip(*shuffled, strict=True))), domain, folder) == all_together
        one_by_one = Counter()
        for person in {person for person, _ in rows}:
            ages = [age for who, age in rows if who == person]
            alone = counted(people([person] * len(ages), ages), domain, folder)
            assert alone.total() == min(bound, len(ages))
            one_by_one += alone
        assert one_by_one == all_together


def test_the_fingerprint_ignores_the_order_of_rows_and_sees_one_record_more(tmp_path, confidential):
    def printed(frame, key=b"key"):
        frame.to_parquet(tmp_path / "records.parquet", index=False)
        counts = count_cells(make_release(tmp_path / "records.parquet"), confidential)
        return fingerprint(counts, make_domain(), key)

    frame = good_frame()
    assert printed(frame) == printed(frame[::-1])
    assert printed(frame) != printed(frame[1:])
    assert printed(frame) != printed(pd.concat([frame, frame[:1]]))
    assert printed(frame) != printed(frame, b"another key")


def test_cells_are_kept_in_the_narrowest_type_that_holds_codes_and_problems():
    from schemas.tables import PROBLEMS, code_type
    from tasks.reading import encoding_sql as coding

    assert len(coding.PROBLEMS) == PROBLEMS
    for size in (2, 253, 254, 65_533, 65_534):
        highest = size + PROBLEMS - 1
        assert np.iinfo(code_type(size).to_pandas_dtype()).max >= highest
    assert [str(code_type(size)) for size in (253, 254, 65_533, 65_534)] == ["uint8", "uint16", "uint16", "int32"]


def test_counts_that_were_shuffled_have_the_same_fingerprint():
    codes, count = np.array([[0, 1], [1, 0], [1, 1]], np.int32), np.array([3, 1, 2])
    domain = make_domain([{"name": n, "kind": "integer", "bounds": (0, 1)} for n in "ab"])
    same = Counts(codes[[2, 0, 1]], count[[2, 0, 1]])
    other = Counts(codes, count[[1, 0, 2]])
    assert (
        fingerprint(Counts(codes, count), domain, b"k") == fingerprint(same, domain, b"k") != fingerprint(other, domain, b"k")
    )


def test_a_rule_break_is_not_counted_away(tmp_path, confidential):
    domain = make_domain(rules=[{"never": {"voted": "yes", "age": 20}}])
    good_frame().to_parquet(tmp_path / "records.parquet")
    with pytest.raises(DataInvalid):
        count_cells(make_release(tmp_path / "records.parquet", domain), confidential)


def test_what_duckdb_says_midway_through_an_answer_does_not_leave_with_it(tmp_path: Path):
    """The first block is answered, a later one fails: the error quotes a record, and nothing that is raised holds it."""
    import duckdb

    from tasks.reading.sources import ReadingFailed, query_in_blocks

    fails = "CASE WHEN i = 9000 THEN error('secret: ' || i) ELSE i::VARCHAR END"
    with duckdb.connect(config={"threads": 1}) as connection:
        blocks = query_in_blocks(connection, f"SELECT {fails} AS said FROM range(10000) t(i)", 1000)
        with pytest.raises(ReadingFailed) as caught:
            list(blocks)
    assert "secret" in caught.value.confidential and "secret" not in str(caught.value)
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    with duckdb.connect() as connection:
        sizes = [len(block) for block in query_in_blocks(connection, "SELECT i FROM range(10000) t(i)", 3000)]
    assert sizes == [3000, 3000, 3000, 1000]


def _without_memory(monkeypatch, blocks_before: int, threads: list[str]):
    """DuckDB runs out of memory where more than one thread counts, after so many blocks; which threads were asked is kept."""

    def asked(connection, sql, rows):
        threads.append(str(connection.execute("SELECT current_setting('threads')").fetchone()[0]))
        found = answered(connection, sql, rows)
        if threads[-1] != "1":
            yield from [next(found) for _ in range(blocks_before)]
            raise InfrastructureFault("no memory")
        yield from found

    answered = counting.query_in_blocks
    monkeypatch.setattr(counting, "query_in_blocks", asked)


def test_where_two_threads_find_no_memory_one_counts_the_same(tmp_path, monkeypatch):
    good_frame().to_parquet(tmp_path / "r.parquet")
    release, threads = make_release(tmp_path / "r.parquet"), []
    whole = count_cells(release, tmp_path)
    _without_memory(monkeypatch, 0, threads)
    again = count_cells(release, tmp_path)
    assert threads == ["2", "1"]
    assert np.array_equal(again.codes, whole.codes) and np.array_equal(again.count, whole.count)


def test_what_was_answered_in_part_is_never_asked_again(tmp_path, monkeypatch):
    """Else cells that were told before the memory ran out would be counted twice."""
    good_frame().to_parquet(tmp_path / "r.parquet")
    threads: list[str] = []
    _without_memory(monkeypatch, 1, threads)
    with pytest.raises(InfrastructureFault):
        count_cells(make_release(tmp_path / "r.parquet"), tmp_path)
    assert threads == ["2"]
