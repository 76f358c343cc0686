"""`steps study` without a server: the same flow in this process. Imports Prefect only after it was told to be quiet."""

from __future__ import annotations

import sys
from typing import Any

from flows.runtime.embedded import stdout_kept_clean
from flows.runtime.prefect_settings import log_in, quiet
from flows.runtime.server import serving
from schemas.errors import InfrastructureFault, StepsError
from tasks.stores.home import Home


def run_study(home: Home, asked: dict[str, Any]) -> dict[str, Any]:
    """Runs the study flow and returns where its tables lie, or raises why there are none."""
    from tasks.studies.points import ask

    asked = asked | {name: list(asked[name]) for name in ("method", "epsilon", "delta")}
    ask(**{key: value for key, value in asked.items() if key != "out"})  # what cannot be run dies at the door
    quiet(home.folder)
    log_in(home)
    try:
        with stdout_kept_clean():
            from flows.runtime.place import embedded_in
            from flows.study import study

            with serving(), embedded_in(home):
                answer: dict[str, Any] = study(**asked)
                return answer
    except StepsError:
        raise
    except KeyboardInterrupt:
        print("steps: stopped; finished points are kept. Run the same command again to go on.", file=sys.stderr)
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
    raise InfrastructureFault(f"the study could not finish ({reason}). Run again to go on.")


def show(answer: dict[str, Any]) -> None:
    """Where the tables lie, and the columns that say most."""
    from rich.console import Console
    from rich.table import Table

    shown = {"voter": ("log_epsilon", "method", "ks", "paper ks", "agreement 0.05", "paper agreement 0.05", "overlap all",
                       "paper overlap all", "score", "paper_score"),
             "simulation": ("model", "rows", "epsilon", "method", "bias", "rmse", "coverage", "prediction")}  # fmt: skip
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in shown[answer["study"]]:
        table.add_column(column.replace("_", " "), justify="left" if column == "method" else "right", overflow="fold")
    for row in answer["figures"]:
        table.add_row(*(_text(row[column]) for column in shown[answer["study"]]))
    console = Console(highlight=False, soft_wrap=True)
    console.print(table)
    console.print(f"points  {answer['points']}; {answer['computed']} computed now, in {answer['seconds']:.0f} s")
    console.print(f"page    {answer['page']}", markup=False)


def _text(value: Any) -> str:
    return "–" if value in (None, "") else f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
