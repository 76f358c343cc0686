"""Hostile records: tables and texts that no honest supplier sends, with a person's number in every row."""

from __future__ import annotations

import datetime as dt
import decimal
import gzip
import os
import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.flows.small import PERSON

ROWS = 400
MARKUP = "<script>alert(1)</script>"

Source = Callable[[Path, random.Random], str]  # writes the files, and says what `source` is


def columns() -> dict[str, list]:
    rows = range(ROWS)
    working = ["yes" if n % 3 != 2 and n % 7 == 0 else "no" for n in rows]
    regions = [("north", "south", "west")[n % 3] for n in rows]
    return {"region": regions, "working": working, "age": [18 + n % 5 for n in rows], "person": [PERSON + n for n in rows]}


def _parquet(path: Path, table: dict[str, pa.Array | list], **options: object) -> None:
    pq.write_table(pa.table(table), path, **options)


def a_column_of_another_type(folder: Path, chance: random.Random) -> str:
    n, day = ROWS, dt.date(2000, 1, 1)
    others = (
        pa.array([float("nan")] * n), pa.array([float("inf")] * n), pa.array([b"\xff\0"] * n), pa.array([["x"]] * n), pa.array([{"b": 1}] * n), pa.nulls(n),
        pa.array([2**64 - 1] * n, pa.uint64()), pa.array([decimal.Decimal("18.5")] * n), pa.array([day] * n), pa.array([dt.datetime(2000, 1, 1, 12)] * n),
        pa.array([True, False] * (n // 2)), pa.array(["north", None] * (n // 2)), pa.array(["x\0y"] * n), pa.array([MARKUP] * n), pa.array([1e300] * n),
        pa.array(["a" * 100_000] * n), pa.array([dt.time(1)] * n), pa.array([dt.timedelta(1)] * n), pa.array([-(2**63)] * n), pa.array([18.5] * n),
        pa.array([PERSON] * n), pa.array(["\ud7ff\u202e"] * n), pa.array([10**14] * n, pa.timestamp("s")), pa.array([str(PERSON)] * n).dictionary_encode(),
    )  # fmt: skip
    _parquet(folder / "s.parquet", columns() | {chance.choice(("region", "working", "age", "person")): chance.choice(others)})
    return "s.parquet"


def one_value_that_does_not_fit(folder: Path, chance: random.Random) -> str:
    table, name = columns(), chance.choice(("region", "working", "age", "person"))
    odd = {
        "region": [MARKUP, "", "North", "north ", None, str(PERSON)],
        "working": ["maybe", None, "\0"],
        "age": [17, 23, None, 2**40, -1],
        "person": [PERSON, None],
    }
    table[name][chance.randrange(1, ROWS)] = chance.choice(odd[name])
    _parquet(folder / "s.parquet", table)
    return "s.parquet"


def a_broken_table(folder: Path, chance: random.Random) -> str:
    path = folder / "s.parquet"
    _parquet(path, columns(), compression=chance.choice(("none", "zstd", "snappy")), use_dictionary=chance.random() < 0.5)
    content = bytearray(path.read_bytes())
    if chance.random() < 0.4:
        content = content[: chance.randrange(len(content))]
    for _ in range(chance.choice((1, 3, 30))):
        if content:
            content[chance.randrange(len(content))] ^= chance.randrange(1, 256)
    path.write_bytes(content)
    return "s.parquet"


def other_columns(folder: Path, chance: random.Random) -> str:
    table = columns()
    kind = chance.choice(("lacking", "more", "twice", "case", "no rows", "no columns", "markup", "many"))
    if kind == "lacking":
        del table[chance.choice(list(table))]
    elif kind == "many":
        table |= {f"c{i}": [0] * ROWS for i in range(3000)}
    elif kind in ("more", "case", "markup"):
        table |= {{"more": str(PERSON), "case": "REGION", "markup": MARKUP}[kind]: [0] * ROWS}
    made = pa.table(table)
    made = made.append_column("age", made["age"]) if kind == "twice" else made.slice(0, 0) if kind == "no rows" else made
    pq.write_table(made.select([]) if kind == "no columns" else made, folder / "s.parquet")
    return "s.parquet"


def an_odd_text(folder: Path, chance: random.Random) -> str:
    rows = list(zip(*columns().values(), strict=True))
    lines = ["region,working,age,person", *(",".join(map(str, row)) for row in rows)]
    odd = (
        f'"{PERSON},no,18,1', f"north,no,{PERSON},1", "north,no,18", f"north,no,18,1,{PERSON},x", "north,no,18,\0", "", ",,,", "=1+1,no,18,5", "north;no;18;7", "north,no,0x12,8",
        "north,no,١٨,9", "north,no,1e1,10", "north,no," + "9" * 400 + ",11", "x" * 3_000_000 + ",no,18,12", "north,no,nan,13", "north,no,18.0,14", '"north","no","18","15"',
    )  # fmt: skip
    lines.insert(chance.choice((0, 1, len(lines))), chance.choice(odd))
    text = chance.choice(("\n", "\r\n", "\r")).join(lines) + "\n"
    content = text.encode(chance.choice(("utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-32")))
    content += chance.choice((b"", b"", b"\xff\xfe", b"\0" * 4096))
    (folder / "s.csv").write_bytes(gzip.compress(content) if chance.random() < 0.1 else content)
    return "s.csv"


def no_file_at_all(folder: Path, chance: random.Random) -> str:
    path, secret = folder / "s.csv", folder / "secret.txt"
    secret.write_text("somebody:x:0:0\n")
    kind = chance.choice(
        ("missing", "folder", "loop", "device", "pipe", "passwords", "empty", "header", "glob", "outside", "other")
    )
    if kind == "folder":
        path.mkdir()
    elif kind in ("loop", "device", "passwords"):
        path.symlink_to({"loop": path, "device": "/dev/zero", "passwords": secret}[kind])
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind in ("empty", "header"):
        path.write_text("" if kind == "empty" else "region,working,age,person\n")
    elif kind == "other":
        (folder / "s.xlsx").write_bytes(b"PK\x03\x04" + os.urandom(100))
    return {"glob": "'**/**/*.parquet'", "outside": "../../../../etc/hostname", "other": "s.xlsx"}.get(kind, "s.csv")


def files_that_disagree(folder: Path, chance: random.Random) -> str:
    (folder / "s").mkdir()
    _parquet(folder / "s" / "1.parquet", columns())
    kind = chance.choice(("other columns", "a link", "a hard link", "a text", "a folder", "a name"))
    if kind == "other columns":
        _parquet(folder / "s" / "2.parquet", {"region": ["north"], "working": ["no"], "age": ["eighteen"], "person": [1]})
    elif kind == "a link":
        (folder / "s" / "2.parquet").symlink_to(folder / "s" / "1.parquet")
    elif kind == "a hard link":
        os.link(folder / "s" / "1.parquet", folder / "s" / "2.parquet")
    elif kind == "a text":
        (folder / "s" / "2.csv").write_text("region,working,age,person\nnorth,no,18,1\n")
    elif kind == "a folder":
        (folder / "s" / "2.parquet").mkdir()
    else:
        _parquet(folder / "s" / "2'; DROP TABLE x;--\n.parquet", {name: values[:1] for name, values in columns().items()})
    return chance.choice(("s", "'s/*'", "'s/*.parquet'", "'s/**'"))


SOURCES: tuple[Source, ...] = (
    a_column_of_another_type, one_value_that_does_not_fit, a_broken_table, a_broken_table, other_columns, an_odd_text, an_odd_text, no_file_at_all, files_that_disagree,
)  # fmt: skip
