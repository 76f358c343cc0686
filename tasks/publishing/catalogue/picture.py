"""Geometry of the picture of a budget: plain numbers for the template to draw as SVG."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

from schemas.budget import UNIT
from tasks.publishing.catalogue.accounts import Account, days_of
from tasks.publishing.pictures import rounded_axis

LEFT, TOP, WIDTH, HEIGHT = 46, 14, 570, 170
MOST_MARKS = 6
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


def burn_down(account: Account) -> dict[str, Any]:
    """What was left, day by day, as steps; what is scheduled goes on from there, dashed."""
    days = [datetime.date.fromisoformat(day) for day in days_of(account)]
    first, last = days[0], max(days[-1], days[0] + datetime.timedelta(days=1))
    most = max(step.left for step in account.steps) / UNIT
    top, apart = rounded_axis(most if most > 0 else 1.0)

    def x(day: str) -> float:
        return LEFT + WIDTH * (datetime.date.fromisoformat(day) - first).days / (last - first).days

    def y(left: int) -> float:
        return TOP + HEIGHT * (1 - max(left, 0) / UNIT / top)

    line, known_until = [], account.ahead.seen_on if account.ahead else last.isoformat()
    for place, step in enumerate(account.steps):
        until = account.steps[place + 1].day if place + 1 < len(account.steps) else known_until
        line += [(x(step.day), y(step.left)), (x(until), y(step.left))]
    return {
        "line": line,
        "dots": [{"x": x(step.day), "y": y(step.left), "releases": step.releases} for step in account.steps if step.releases],
        "ahead": list(_ahead(account, x, y)),
        "dry": x(account.ahead.dry_on) if account.ahead and account.ahead.dry_on else None,
        "up": [{"y": y(round(n * apart * UNIT)), "label": f"{n * apart:,.10g}"} for n in range(round(top / apart) + 1)],
        "across": [{"x": x(day.isoformat()), "label": label} for day, label in _marks(first, last)],
        "left": LEFT, "top": TOP, "width": WIDTH, "height": HEIGHT,
    }  # fmt: skip


def _ahead(account: Account, x: Any, y: Any) -> Iterator[tuple[float, float]]:
    if account.ahead is None or not account.ahead.runs:
        return
    left = account.steps[-1].left
    yield x(account.ahead.seen_on), y(left)
    for run in account.ahead.runs:
        yield x(run.day), y(left)
        left = run.left
        yield x(run.day), y(left)


def _marks(first: datetime.date, last: datetime.date) -> list[tuple[datetime.date, str]]:
    """At most six days with what they are called: first days of months, or both ends of a short time.

    >>> [label for _, label in _marks(datetime.date(2026, 1, 31), datetime.date(2027, 11, 17))]
    ['May 2026', 'Sep 2026', 'Jan 2027', 'May 2027', 'Sep 2027']
    >>> [label for _, label in _marks(datetime.date(2026, 3, 1), datetime.date(2026, 3, 9))]
    ['2026-03-01', '2026-03-09']
    """
    months = range(first.year * 12 + first.month, last.year * 12 + last.month)  # numbers of the first of each month after
    if len(months) < 2:
        return [(first, first.isoformat()), (last, last.isoformat())]
    apart = next(n for n in (1, 2, 3, 4, 6, 12, 24, 60, 120, 600) if len(months) <= n * MOST_MARKS)
    days = [datetime.date(month // 12, month % 12 + 1, 1) for month in months if month % 12 % min(apart, 12) == 0]
    chosen = [day for day in days if apart <= 12 or day.year % (apart // 12) == 0]
    return [(day, f"{MONTHS[day.month - 1]} {day.year}") for day in chosen]
