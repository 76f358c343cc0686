"""SPSS: .sav and .zsav. Values that the file declares missing are missing."""

from __future__ import annotations

import datetime
import re

from tasks.reading.formats import Ends
from tasks.reading.statistical import Program, format_of_program

SPSS = Program(
    name="SPSS",
    reader="read_sav",
    epoch=datetime.date(1582, 10, 14),
    days=re.compile(r"[AEJS]?DATE[0-9]"),
    moments=re.compile(r"DATETIME|YMDHMS"),
    seconds_per_day=86_400,
    per_second=1,
)


def _claims(ends: Ends) -> bool:
    return ends.suffix in (".sav", ".zsav") or ends.first in (b"$FL2", b"$FL3")


ENTRY = format_of_program(SPSS, 3, _claims, "an SPSS file is named .sav")
