"""Entries of registries that exist in tests alone: one file each, put beside the real ones by `added`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest


def added(patch: pytest.MonkeyPatch, package: str, folder: str) -> None:
    """The package as if the files of a folder here lay in it too."""
    module = import_module(package)
    patch.setattr(module, "__path__", [*module.__path__, str(Path(__file__).parent / folder)])
