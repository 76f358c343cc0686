"""Puts what a campaign found into docs/reliability.md, between two marks."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

from tests.campaign.record import extent, table

BEGIN, END = "<!-- begin: written by `make campaign ASKED=--write` -->", "<!-- end -->"


def write(page: Path, rows: dict[str, dict[str, int]], seed: int, code: str) -> None:
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not rest or not after:
        raise ValueError(f"{page} lacks the marks between which the table stands")
    page.write_text(f"{before}{BEGIN}\n\n{table(rows)}\n\n{extent(rows)} {where(seed, code)}\n\n{END}{after}", encoding="utf-8")


def where(seed: int, code: str) -> str:
    """When, on what, and of which code: its hash is that of every Python file of the program and its tests."""
    load = ", ".join(f"{each:.0f}" for each in os.getloadavg())
    system = f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, Python {platform.python_version()}"
    return f"Seed {seed}, ended {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC; {system}, load averages {load}; code {code[:16]}."
