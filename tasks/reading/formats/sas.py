"""SAS: .sas7bdat and transport files, .xpt, by the same code."""

from __future__ import annotations

import datetime
import re

from tasks.reading.formats import Ends
from tasks.reading.statistical import Program, format_of_program

SAS = Program(
    name="SAS",
    reader="read_sas7bdat",
    epoch=datetime.date(1960, 1, 1),
    days=re.compile(r"(DATE|DDMMYY|MMDDYY|YYMMDD|E8601DA|B8601DA|WORDDATE|WEEKDATE|JULIAN)(?!TIME)"),
    moments=re.compile(r"DATETIME|E8601DT|B8601DT|DATEAMPM"),
    seconds_per_day=1,
    per_second=1,
)


def _claims(ends: Ends) -> bool:
    return ends.suffix in (".sas7bdat", ".xpt", ".xport")


ENTRY = format_of_program(SAS, 5, _claims, "a SAS file is named .sas7bdat or .xpt")
