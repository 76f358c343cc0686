"""Answers from a published bundle, with the base installation alone: fits, tables and more rows; nothing is charged.

>>> from tasks.answers import read_bundle  # doctest: +SKIP
>>> read_bundle("wages-2026q4").table("sector", "grade")  # doctest: +SKIP
"""

from tasks.answers.bundle import Bundle, read_bundle

__all__ = ["Bundle", "read_bundle"]
