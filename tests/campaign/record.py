"""What a campaign has found so far, one line of JSON per trial; and the table of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.campaign.trials import COLUMNS, Found

ROOT = Path(__file__).parents[2]
CODE = ("flows", "tasks", "steps_engine", "schemas", "tests")


def code_hash() -> str:
    """Of everything that a trial's answer depends on: what was found of other code does not count."""
    sha = hashlib.sha256()
    for path in sorted(path for folder in CODE for path in (ROOT / folder).rglob("*.py")):
        sha.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return sha.hexdigest()


@dataclass
class Record:
    """The trials of one seed and one state of the code."""

    path: Path
    found: dict[tuple[str, int], Found] = field(default_factory=dict)
    planned: dict[str, int] = field(default_factory=dict)  # trials of a whole campaign, where preparing says how many

    @classmethod
    def opened(cls, folder: Path, seed: int) -> Record:
        folder.mkdir(parents=True, exist_ok=True)
        record = cls(folder / f"seed-{seed}-{code_hash()[:16]}.jsonl")
        for said in record._read():
            family = said.pop("family")
            if "planned" in said:
                record.planned[family] = said["planned"]
                continue
            number = said.pop("number")
            record.found[family, number] = Found(**{name: tuple(x) if name in COLUMNS else x for name, x in said.items()})
        return record

    def _read(self) -> Iterator[dict[str, Any]]:
        for line in self.path.read_text().splitlines() if self.path.exists() else ():
            with suppress(json.JSONDecodeError):  # the last line of a campaign that was killed while it wrote
                yield json.loads(line)

    def _write(self, said: dict[str, Any]) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(said) + "\n")

    def plan(self, family: str, trials: int) -> None:
        self.planned[family] = trials
        self._write({"family": family, "planned": trials})

    def add(self, family: str, number: int, found: Found) -> None:
        self.found[family, number] = found
        self._write({"family": family, "number": number, **asdict(found)})

    def done(self, family: str) -> set[int]:
        return {number for name, number in self.found if name == family}

    def of(self, family: str) -> list[Found]:
        return [found for (name, _), found in sorted(self.found.items()) if name == family]


def sums(found: Iterable[Found], planned: int) -> dict[str, int]:
    """One row of the table: of how many trials of a whole campaign so many are done, and what was found in all of these."""
    found = list(found)
    columns = {name: sum(len(getattr(each, name)) for each in found) for name in COLUMNS}
    survived = sum(each.tried - max(len(getattr(each, name)) for name in COLUMNS) for each in found)
    of = {"done": len(found), "planned": planned}
    return {**of, "tried": sum(each.tried for each in found), "survived": survived, **columns}


def table(rows: dict[str, dict[str, int]]) -> str:
    """As Markdown, which a terminal shows as well as a page."""
    names = ("tried", "survived", *COLUMNS)
    total = {name: sum(row[name] for row in rows.values()) for name in ("done", "planned", *names)}
    lines = [("family", "trials", *names)]
    for family, row in (rows | {"all": total}).items():
        lines.append((family, f"{row['done']:,} of {row['planned']:,}", *(f"{row[name]:,}" for name in names)))
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    written = [_line(line, widths) for line in lines]
    rule = "|".join(("", "-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:]), ""))
    return "\n".join((written[0], rule, *written[1:]))


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    padded = [cells[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))]
    return f"| {' | '.join(padded)} |"


def clean(rows: dict[str, dict[str, int]]) -> bool:
    """Something was tried in every family, and nothing was lost, overspent or leaked."""
    return all(row["tried"] and not any(row[name] for name in COLUMNS) for row in rows.values())


def extent(rows: dict[str, dict[str, int]]) -> str:
    """Whether every trial of a whole campaign was made, and which were not."""
    cut = [f"{name} ({row['done']:,} of {row['planned']:,})" for name, row in rows.items() if row["done"] < row["planned"]]
    if cut:
        return f"This was no whole campaign: of these not all trials were made: {', '.join(cut)}."
    return "Every trial of these families was made."
