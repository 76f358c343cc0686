"""The bill of materials of a bundle against what its manifest says computed it."""

from __future__ import annotations

import re
from typing import Any

from schemas.manifest import Code


def must_agree(bill: Any, code: Code) -> None:
    """Refuses one that names another program, or another version of anything that the manifest names."""
    try:
        made = bill["metadata"]["component"]
        parts = {_same(part["name"]): part["version"] for part in bill["components"]}
        known = bill["bomFormat"], made["name"], made["version"]
    except (KeyError, TypeError):
        raise ValueError("is no bill of materials in CycloneDX") from None
    said = {_same(name): version for name, version in (code.dependencies | {"python": code.python}).items()}
    if known != ("CycloneDX", code.package, code.version) or any(parts.get(name) != said[name] for name in said):
        raise ValueError("names another program, or other versions, than the manifest does")


def _same(name: str) -> str:
    """Names of packages that are the same to those who install them.

    >>> _same("ruamel.yaml") == _same("Ruamel_yaml")
    True
    """
    return re.sub(r"[-_.]+", "-", name).lower()
