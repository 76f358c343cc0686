"""Generated examples are the same in every run: a failure can be repeated, and a good day is not luck."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
