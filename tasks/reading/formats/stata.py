"""Stata: .dta. All of Stata's missing values are missing."""

from __future__ import annotations

import datetime
import re

from tasks.reading.formats import Ends
from tasks.reading.statistical import Program, format_of_program

STATA = Program(
    name="Stata",
    reader="read_dta",
    epoch=datetime.date(1960, 1, 1),
    days=re.compile(r"%-?t?d"),
    moments=re.compile(r"%-?t[cC]"),
    seconds_per_day=1,
    per_second=1000,
)


def _claims(ends: Ends) -> bool:
    return ends.suffix == ".dta" or ends.first == b"<sta"


ENTRY = format_of_program(STATA, 4, _claims, "a Stata file is named .dta")
