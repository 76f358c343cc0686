"""A confidential folder for what reading leaves behind."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def confidential(tmp_path) -> Path:
    folder = tmp_path / "confidential"
    folder.mkdir(mode=0o700)
    return folder
