"""Writes the public stand-in of the paper's data. Seeded: it holds no person's record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from schemas.errors import SpecError
from steps_engine.noise import SeededRandomness
from steps_engine.studies.standin import ROWS, youth_voter


def write_standin(out: Path, rows: int | None, seed: int) -> dict[str, Any]:
    """The stand-in as CSV or Parquet, by the suffix of `out`."""
    if out.suffix not in (".csv", ".parquet"):
        raise SpecError(f"{out} must end in .csv or .parquet; the suffix chooses the format.")
    frame = youth_voter(rows or ROWS, SeededRandomness(seed))
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        frame.to_csv(out, index=False) if out.suffix == ".csv" else frame.to_parquet(out, index=False)
    except OSError as error:
        raise SpecError(f"cannot write {out}: {error.strerror}. Choose a place that can be written.") from None
    return {"path": str(out), "rows": len(frame), "columns": len(frame.columns), "seed": seed}
