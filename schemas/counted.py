"""A number of things, in words."""

from __future__ import annotations


def counted(number: int, one: str) -> str:
    """
    >>> counted(1, "set"), counted(2000, "set"), counted(0, "torn line")
    ('1 set', '2,000 sets', '0 torn lines')
    """
    return f"{number:,} {one}" if number == 1 else f"{number:,} {one}s"
