"""What releases, populations, stages and data sets may be called."""

from __future__ import annotations

import re

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
