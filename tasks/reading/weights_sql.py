"""Weights as SQL: the query that counts adds them up, keeps their bounds itself, and rounds every cell to whole units.

A record counts as whole millionths of a unit, so that sums are exact whatever the order of rows and files. Same meaning as
steps_engine/domain/weights.py. Where a weight is out of bounds DuckDB ends the query with an error that names no value.
"""

from __future__ import annotations

from schemas.spec.domain import Domain
from schemas.spec.weights import MILLIONTHS
from tasks.reading.sources import Source
from tasks.reading.values_sql import Column, double

_REFUSED = "error('a record has no weight, or one that is not within the bounds of the domain')"
UNITS = "units"  # of a record, in millionths
WHOLE = "whole"  # of a household, rounded


def weight_column(source: Source, domain: Domain) -> Column:
    """The column of weights as one more attribute, behind the others."""
    assert domain.weight is not None
    place = source.names.index(domain.weight.column)
    return Column(len(domain.names), domain.weight.attribute, source.columns[place][1], f"c{place}", source.csv.decimal == ",")


def weighed_rows(judged: str, domain: Domain) -> str:
    """Rows with their units; `judged` are rows with the weight's value, and its code by the bounds: 0 where it is within."""
    if (weighing := domain.weighing) is None:
        return judged
    j, most = len(domain.names), weighing.most_millionths
    units = f"least(floor(v{j} * {double(weighing.per_weight)} + 0.5)::BIGINT, {most})"
    return f"(SELECT *, CASE WHEN p{j} = 0 THEN {units} ELSE {_REFUSED} END AS {UNITS} FROM {judged})"


def number(domain: Domain, of: str = UNITS) -> str:
    """What is counted of a group of records."""
    return f"sum({of})" if domain.weight else "count(*)"


def rounded(cells: str, words: str, codes: list[str], domain: Domain, key: str) -> str:
    """Cells with whole units: the floor of units + u, where u is uniform in [0, 1) by a keyed hash of the cell alone."""
    if domain.weight is None:
        return cells
    whole = f"SELECT {words}, {_whole('n', ['weight', key], codes)} AS n FROM ({cells})"
    return f"SELECT * FROM ({whole}) WHERE n > 0"


def rounded_households(household: str, key: str) -> str:
    """Whole units of each household, for itself and everybody in it: u is a keyed hash of what tells it apart alone."""
    return f"{_whole(UNITS, ['household', key], [household])} AS {WHOLE}"


def _whole(millionths: str, kept: list[str], told: list[str]) -> str:
    """`kept`: what the lot is for, and the name of the variable that holds its key."""
    text = f"concat_ws('|', '{kept[0]}', getvariable('{kept[1]}'), {', '.join(told)})"
    lot = f"('0x' || substr(sha256({text}), 1, 15))::BIGINT % {MILLIONTHS}"
    return f"(({millionths}::HUGEINT + {lot}) // {MILLIONTHS})::BIGINT"
