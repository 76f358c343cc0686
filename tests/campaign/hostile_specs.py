"""Hostile dataset.yaml and release.yaml: an honest pair, spoilt in one or two of many ways, as chance has it."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.campaign.ways import METHODS
from tests.flows.small import DATASET

RELEASE = """name: small-1
dataset: dataset.yaml
source: records.parquet
privacy: {epsilon: 0.5}
method: METHOD
approval: none
"""
MARKUP = "<script>alert(1)</script>"
VALUES = (
    '"a\\u0000b"', "9" * 40, "-" + "9" * 400, "1e400", "1e-400", "1e999999999", ".nan", ".inf", "-.inf", "true", "null", "~", "[]", "{}",
    "[[[[[]]]]]", "{a: {b: {c: 1}}}", f'"{MARKUP}"', '"[/red][bold]x"', '"../../../etc/passwd"', "/etc/passwd", "/dev/zero", '"\\u202Egnp"',
    '"\\uFEFF=1+1"', '"\\u001b[2J"', "a" * 100_000, "{year}{year}{year}", "'{bad}'", "-1", "0", "0.12345678912345", "2000-02-30", "0x10", "1_000",
    "٣", "'1'", "!!python/object/apply:os.system [id]", "&a [*a]", "*nobody", "|\n  text", "NO", "'$(id)'", "'; DROP TABLE entries;--'", "🦄",
    "[1, two, {three: 3}]", '"\\ud800"', "2000-01-01", "<<: {name: r}", "''", "'  '", "{from: 1, to: [1]}", "'a\tb'", "1e308", "'" + "é" * 300 + "'",
)  # fmt: skip

Spoil = Callable[[Path, random.Random], None]


def write_specs(folder: Path, chance: random.Random) -> None:
    (folder / "dataset.yaml").write_text(DATASET)
    (folder / "release.yaml").write_text(RELEASE.replace("METHOD", METHODS[chance.choice(list(METHODS))]))


def _either(folder: Path, chance: random.Random) -> Path:
    return folder / chance.choice(("dataset.yaml", "release.yaml"))


def another_value(folder: Path, chance: random.Random) -> None:
    """Some value of some key becomes another one."""
    path = _either(folder, chance)
    text = path.read_text()
    places = [place for place, letter in enumerate(text) if letter == ":" and text[place + 1 : place + 2] == " "]
    at = chance.choice(places) + 2
    end = min(found for mark in ",}\n" if (found := text.find(mark, at)) >= 0)
    path.write_text(text[:at] + chance.choice(VALUES) + text[end:])


def another_key(folder: Path, chance: random.Random) -> None:
    path = _either(folder, chance)
    key = chance.choice((MARKUP, "naem", "a" * 5000, "🦄", "__class__", "? [a, b]", "''", "null", "1", "name "))
    path.write_text(f"{path.read_text()}{key}: {chance.choice(VALUES)}\n")


def a_line_twice_gone_or_elsewhere(folder: Path, chance: random.Random) -> None:
    path = _either(folder, chance)
    lines = path.read_text().splitlines(keepends=True)
    line = lines.pop(chance.randrange(len(lines)))
    for _ in range(chance.randrange(3)):
        lines.insert(chance.randrange(len(lines) + 1), line)
    path.write_text("".join(lines))


def cut_or_damaged(folder: Path, chance: random.Random) -> None:
    path = _either(folder, chance)
    content = bytearray(path.read_bytes())
    if chance.random() < 0.5:
        content = content[: chance.randrange(len(content))]
    for _ in range(chance.randrange(4)):
        content[chance.randrange(len(content)) : 0] = bytes([chance.randrange(256)]) if content else b"\0"
    path.write_bytes(content)


def another_encoding(folder: Path, chance: random.Random) -> None:
    path = _either(folder, chance)
    text = path.read_text() + "# é\n"
    encoding = chance.choice(("utf-16", "utf-32", "latin-1", "utf-8-sig", "cp037"))
    path.write_bytes(text.encode(encoding))


def a_bomb(folder: Path, chance: random.Random) -> None:
    laughs = "".join(f"b{i + 1}: &b{i + 1} [{', '.join([f'*b{i}'] * 9)}]\n" for i in range(12))
    bombs = (
        f"b0: &b0 [x]\n{laughs}", "x: " + "[" * chance.choice((500, 100_000)) + "\n", "\n".join(" " * i + "a:" for i in range(1500)) + "\n",
        "x: [" + "a," * 400_000 + "]\n", "x" * 1_000_000 + ": 1\n", "".join(f"k{i}: 1\n" for i in range(60_000)), "#" * 5_000_000 + "\n", "x: {" * 3000,
    )  # fmt: skip
    path = _either(folder, chance)
    path.write_text(chance.choice(bombs) + path.read_text())


def a_huge_domain(folder: Path, chance: random.Random) -> None:
    many = range(chance.choice((60, 300, 1001)))
    texts = (
        "".join(f"  - {{name: a{i}, kind: integer, bounds: [0, 999]}}\n" for i in many),
        f"  - {{name: a, kind: categorical, categories: [{', '.join(f'c{i}' for i in range(chance.choice((20_000, 200_000))))}]}}\n",
        f"  - {{name: a, kind: integer, bounds: [0, {chance.choice((10**18, 10**29, 2**53))}], bins: {chance.choice((2, 10**5, 10**9))}}}\n",
        "  - {name: a, kind: integer, bounds: [0, 9007199254740992]}\n",
        f"  - {{name: a, kind: numeric, bounds: [{chance.choice(('-1e308', '0', '1'))}, {chance.choice(('1e308', '1e-320', '1'))}], bins: 10}}\n",
        "  - {name: a, kind: date, bounds: [0001-01-01, 9999-12-31]}\n",
    )
    path = folder / "dataset.yaml"
    path.write_text(path.read_text().replace("attributes:\n", f"attributes:\n{chance.choice(texts)}"))


def odd_names(folder: Path, chance: random.Random) -> None:
    names = (
        MARKUP,
        "income [/eur]",
        "a\u202eb",
        "Region",
        "e\u0301",
        "(count)",
        "x" * 300,
        "a\nb",
        "{{7*7}}",
        "region ",
        "\u212a",
        "",
        "person",
        "🦄",
        "a,b",
    )
    name = chance.choice(names).replace("\n", "\\n")
    path = folder / "dataset.yaml"
    path.write_text(path.read_text().replace(chance.choice(("name: region", "[north", "name: age")), f'name: "{name}"', 1))


def odd_rules(folder: Path, chance: random.Random) -> None:
    rules = (
        "never: {age: {from: [1]}}", "never: {age: {from: null}}", "never: {region: [north, south, west]}", "never: {nobody: 1}", "never: {}", "never: []",
        "never: {region: [[north]]}", "always: {age: 3}", "never: {age: {from: 1e999}}", "never: {age: {from: 22, to: 18}}", "{}", "[]", "never: {region: {x: y}}",
        "never: {age: [" + ", ".join(map(str, range(18, 23))) + "], region: north}",
    )  # fmt: skip
    path = folder / "dataset.yaml"
    path.write_text(path.read_text() + "".join(f"  - {chance.choice(rules)}\n" for _ in range(chance.choice((1, 1, 300)))))


def another_method(folder: Path, chance: random.Random) -> None:
    methods = (
        "tree, order: [nobody]", "tree, elect: {layers: 64}", "tree, elect: {layers: 2, share: 1e-300}", "tree, elect: {layers: 2, utility: __import__}",
        "uh, layers: 64", "privbayes", "flat, sets: {count: 101}", "tree, order: [age], shares: [1e300, 1]", "tree, order: [[]]", "cascade, order: elected",
        "pairs, pairs: -1", "pairs, pairs: 10000", "pairs, importance: {age: 1e300}", "pairs, importance: {age: 0}", "tree, order: [age, age]", "oracle", "auto",
        "tree, elect: {layers: 2, share: 0.99999999999999999999999}", "flat, sets: {count: 0}", "tree, order: [[region, working, age]]",
    )  # fmt: skip
    path = folder / "release.yaml"
    lines = [line for line in path.read_text().splitlines() if not line.startswith("method")]
    path.write_text("\n".join([*lines, f"method: {{decomposition: {chance.choice(methods)}}}", ""]))


def analyses(folder: Path, chance: random.Random) -> None:
    wanted = ("[region, nobody]", "age ~ __import__('os')", "age ~ region ** 9", "[[]]", "{table: [region], kind: x}", "age ~ I(age ** 400)", "[region, region]", "~", "age ~", "'age ~ " + "region:" * 500 + "region'")  # fmt: skip
    path = folder / "release.yaml"
    path.write_text(f"{path.read_text()}analyses:\n  - {chance.choice(wanted)}\n  - {chance.choice(wanted)}\n")


def another_kind_of_file(folder: Path, chance: random.Random) -> None:
    path = _either(folder, chance)
    path.unlink()
    secret = folder / "secret.txt"
    secret.write_text("somebody:x:0:0\n")
    kind = chance.choice(
        ("missing", "folder", "link to itself", "link to a device", "link to passwords", "pipe", "empty", "unreadable text")
    )
    if kind == "folder":
        path.mkdir()
    elif kind.startswith("link"):
        path.symlink_to({"link to itself": path, "link to a device": "/dev/zero", "link to passwords": secret}[kind])
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind != "missing":
        path.write_bytes(b"" if kind == "empty" else bytes(range(256)))


SPOILS: tuple[Spoil, ...] = (
    another_value, another_value, another_value, another_key, a_line_twice_gone_or_elsewhere, cut_or_damaged, another_encoding, a_bomb, a_huge_domain,
    odd_names, odd_rules, another_method, analyses,
)  # fmt: skip


def spoil(folder: Path, chance: random.Random) -> str:
    """One or two of them, or another kind of file; what is no plain file any more is not written to. Says which."""
    if chance.random() < 0.07:
        another_kind_of_file(folder, chance)
        return another_kind_of_file.__name__
    kinds = chance.sample(SPOILS, chance.choice((1, 1, 2)))
    for kind in kinds:
        with suppress(ValueError, IndexError):  # the second finds nothing to spoil where the first was at work
            kind(folder, chance)
    return " and ".join(kind.__name__ for kind in kinds)
