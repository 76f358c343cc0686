"""YAML for people and programs: one way to write a value, texts of several lines as blocks."""

from __future__ import annotations

import io
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString

WIDTH = 10**6  # lines are not broken: where, would depend on the library


def yaml_bytes(value: Any) -> bytes:
    """
    >>> yaml_bytes({"day": "2026-01-31", "lines": "a: 1\\nb"}).decode()
    "day: '2026-01-31'\\nlines: |-\\n  a: 1\\n  b\\n"
    """
    writer = YAML()
    writer.width, writer.allow_unicode = WIDTH, True
    writer.indent(mapping=2, sequence=4, offset=2)
    text = io.StringIO()
    writer.dump(_blocks(value), text)
    return text.getvalue().encode()


def _blocks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _blocks(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_blocks(part) for part in value]
    return LiteralScalarString(value) if isinstance(value, str) and "\n" in value else value
