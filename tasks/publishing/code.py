"""What made a bundle: versions of this program and of what it runs on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from schemas.manifest import Code

PACKAGE = "steps-release"
IMAGE = "container-image"


def version_facts() -> dict[str, str | None]:
    """Which program this is: what `steps --version` tells, and must tell at once."""
    return {"package": PACKAGE, "version": importlib.metadata.version(PACKAGE), "commit": _commit(Path(__file__))}


def code_facts() -> Code:
    """Versions of this program and of what it runs on; no name of a machine, a user or a path."""
    from schemas.manifest import Code

    declared = importlib.metadata.requires(PACKAGE) or ()
    needed = (text for text in declared if "extra ==" not in text or 'extra == "pipeline"' in text)
    names = (found.group() for text in needed if (found := re.match(r"[A-Za-z0-9._-]+", text)))
    return Code(
        package=PACKAGE,
        version=importlib.metadata.version(PACKAGE),
        commit=_commit(Path(__file__)),
        python=platform.python_version(),
        dependencies={name: importlib.metadata.version(name) for name in names} | _image(),
    )


def image_digest() -> str | None:
    """The container image that this runs in: whoever starts it knows its digest, the image itself does not."""
    digest = os.environ.get("STEPS_IMAGE_DIGEST", "")
    return digest if re.fullmatch(r"sha256:[0-9a-f]{64}", digest) else None


def _image() -> dict[str, str]:
    digest = image_digest()
    return {IMAGE: digest} if digest else {}


def _commit(file: Path) -> str | None:
    """The commit of the work tree that this file belongs to; None when it is not under version control."""
    tracked = ["git", "ls-files", "--error-unmatch", file.name]
    describe = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        run = [subprocess.run(c, cwd=file.parent, capture_output=True, text=True, timeout=20) for c in (tracked, describe)]
    except (OSError, subprocess.TimeoutExpired):
        return None
    commit = run[1].stdout.strip()
    return commit if all(done.returncode == 0 for done in run) and re.fullmatch(r"[0-9a-f]{40}(-dirty)?", commit) else None
