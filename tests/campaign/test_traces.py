"""The search for canaries finds each form in which one could be hidden, and nothing where there is none."""

from __future__ import annotations

import base64
import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.campaign.canaries import BIRD, NUMBER, SECRETS
from tests.campaign.traces import exact_tables, leaks

HIDDEN = {
    "plain": f"x {BIRD} y".encode(),
    "UTF-16": f"ä{BIRD}".encode("utf-16"),
    "base64": base64.b64encode(f"a{BIRD}b".encode()),
    "base64, elsewhere": base64.b64encode(f"ab{BIRD}bcd".encode()),
    "base64, at the start": base64.b64encode(f"{BIRD}!".encode()),
    "hex": f"person {NUMBER}".encode().hex().encode(),
    "packed": b"\1\2" + NUMBER.to_bytes(8, "little") + b"\3",
    "zipped": gzip.compress(f"x {BIRD} y".encode()),
}


@pytest.mark.parametrize("form", HIDDEN)
def test_a_canary_is_found_in_every_form_and_only_outside_confidential(tmp_path: Path, form: str):
    for place in ("confidential", "public"):
        (tmp_path / place).mkdir()
    (tmp_path / "confidential" / "counts").write_bytes(HIDDEN[form])
    (tmp_path / "public" / "page").write_bytes(b"nothing " * 1000)
    assert leaks(SECRETS, tmp_path) == []
    (tmp_path / "public" / "file").write_bytes(HIDDEN[form])
    assert any("file: a planted" in found for found in leaks(SECRETS, tmp_path))
    assert BIRD not in str(leaks(SECRETS, tmp_path)), "what was found is told without telling it"


def test_a_canary_in_a_table_or_in_a_name_is_found(tmp_path: Path):
    pq.write_table(pa.table({"a": [BIRD] * 50}), tmp_path / "t.parquet", compression="zstd")
    (tmp_path / f"{NUMBER}.txt").touch()
    assert len(leaks(SECRETS, tmp_path)) == 2


def test_exact_counts_are_found_and_noisy_ones_are_not(tmp_path: Path):
    exact = [100 + 7 * place for place in range(20)]
    pq.write_table(pa.table({"noisy": [count + place % 5 for place, count in enumerate(exact)]}), tmp_path / "noisy.parquet")
    assert exact_tables(exact, tmp_path) == []
    pq.write_table(pa.table({"estimate": [float(count) for count in exact]}), tmp_path / "exact.parquet")
    pq.write_table(pa.table({"lists": [[count] for count in exact]}), tmp_path / "lists.parquet")
    assert len(exact_tables(exact, tmp_path)) == 1


def test_numbers_of_rows_are_no_exact_counts(tmp_path: Path):
    pq.write_table(pa.table({"household": range(1, 300)}), tmp_path / "rows.parquet")
    assert exact_tables([100 + 7 * place for place in range(20)], tmp_path) == []
