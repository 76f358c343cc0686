"""What a study leaves behind: tables as Parquet and CSV, pictures as SVG and PNG, and one page that holds them all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from steps_engine.studies import paper
from steps_engine.studies.currencies import currencies
from steps_engine.studies.methods import known
from tasks.publishing.templates import template
from tasks.stores.files import disk_faults, temporary
from tasks.studies.pictures import CAPTIONS, Pictures, as_bytes, simulation_pictures, styled, voter_pictures
from tasks.studies.points import METHODS, Point, Study, read_points
from tasks.studies.tables import Tables, simulation_tables, voter_tables

MAKERS = {"voter": (voter_tables, voter_pictures), "simulation": (simulation_tables, simulation_pictures)}


def report(study: Study, points: list[Point], out: Path) -> dict[str, Any]:
    """Write everything a reader needs, and answer with where it lies and the overview."""
    make_tables, make_pictures = MAKERS[study.name]
    tables = make_tables(read_points(points, out)) | _currencies(study)
    pictures = styled(make_pictures, tables)
    for name, table in tables.items():
        _replace(out / f"{name}.csv", table.to_csv(index=False).encode())
        _replace(out / f"{name}.parquet", table.to_parquet(index=False))
    for name, figure in pictures.items():
        for kind in ("svg", "png"):
            _replace(out / f"{name}.{kind}", as_bytes(figure, kind))
    _replace(out / "index.html", make_page(study, tables, pictures).encode())
    overview = wide_utility(tables) if study.name == "voter" else tables["overview"]
    return {
        "study": study.name,
        "folder": str(out),
        "page": str(out / "index.html"),
        "repeats": study.repeats,
        "methods": [method.name for method in study.methods],
        "epsilons": list(study.epsilons),
        **({"deltas": list(study.deltas)} if study.deltas else {}),
        "figures": overview.astype(object).where(overview.notna(), None).to_dict("records"),
    }


def _currencies(study: Study) -> Tables:
    """Which ρ a method under zero-concentrated privacy spent at each (ε, δ); nothing where all are pure."""
    return {"currencies": currencies(study.epsilons, study.deltas)} if study.deltas else {}


def wide_utility(tables: Tables) -> pd.DataFrame:
    """The paper's table of utility: a row per ε and method, each measure with its rank, then the score; ours, then theirs."""
    long, keys = tables["utility"], ["log_epsilon", "method"]
    rows = long[keys].drop_duplicates().reset_index(drop=True)
    for measure in paper.MEASURES:
        part = long.loc[long["measure"] == measure, [*keys, "value", "rank", "paper", "paper_rank"]]
        names = {"value": measure, "rank": f"{measure} rank"}
        names |= {"paper": f"paper {measure}", "paper_rank": f"paper {measure} rank"}
        rows = rows.merge(part.rename(columns=names), on=keys, how="left")
    return rows.merge(tables["scores"], on=keys, how="left")


def make_page(study: Study, tables: Tables, pictures: Pictures) -> str:
    registry = [*known(METHODS[study.name]).values(), *study.methods]
    return template("study.html", number=_number, whole=_whole).render(
        study=study,
        source=paper.SOURCE,
        measures=paper.MEASURES,
        titles={method.name: method.title for method in registry},
        utility=wide_utility(tables).to_dict("records") if "utility" in tables else [],
        currencies=tables["currencies"].to_dict("records") if "currencies" in tables else [],
        classes=_cross_tables(tables["classes"]) if "classes" in tables else [],
        overview=tables["overview"].to_dict("records") if "overview" in tables else [],
        pictures={name: Markup(_inline(figure)) for name, figure in pictures.items()},  # our own drawings, labels escaped
        captions=CAPTIONS,
        files=sorted(tables),
    )


def _inline(figure: Any) -> str:
    text = as_bytes(figure, "svg").decode()
    return text[text.index("<svg") :]


def _cross_tables(classes: pd.DataFrame) -> list[dict[str, Any]]:
    """One 4 × 4 table per method and ε: (ours, the paper's) in each cell."""
    found = []
    for (method, epsilon), part in classes.groupby(["method", "epsilon"], sort=False):
        rows = [
            {"original": name, "cells": list(zip(row["count"], row["paper"], strict=True))}
            for name, row in part.groupby("original", sort=False)
        ]
        found.append({"method": method, "epsilon": epsilon, "columns": list(part["synthetic"].unique()), "rows": rows})
    return found


def _number(value: Any) -> str:
    return "–" if value is None or pd.isna(value) else f"{value:.3f}"


def _whole(value: Any) -> str:
    return "–" if value is None or pd.isna(value) else f"{value:g}"


def _replace(path: Path, content: bytes) -> None:
    """A report is made anew by every run: the newest stands, whole."""
    with disk_faults(path), temporary(path.parent) as file:
        file.write(content)
        file.flush()
        os.chmod(file.name, 0o644)
        path.unlink(missing_ok=True)
        os.link(file.name, path)
