"""Files as SAS, SPSS and Stata write them: the examples of the R package haven, which scripts/system-packages.sh fetches."""

from __future__ import annotations

from pathlib import Path

import pytest

EXAMPLES = Path("usr/lib/R/site-library/haven/examples")
PLACES = (Path(__file__).parents[1] / ".cache" / "haven", Path("/"))


def example(name: str) -> Path:
    """iris.sas7bdat, iris.sav or iris.dta."""
    for place in PLACES:
        if (path := place / EXAMPLES / name).is_file():
            return path
    pytest.skip(f"no {name} at hand: scripts/system-packages.sh fetches it")
