"""What computed a release, as a bill of materials: CycloneDX 1.6 of this program and everything that it needs.

The same installation gives the same bytes: no time, no chance, no path, no name of a machine or a user.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import re
import uuid
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from schemas.identity import canonical
from tasks.publishing.code import IMAGE, PACKAGE, image_digest

LOCK = "requirements.lock"
LOCK_PLACE = "STEPS_LOCK"  # where it does not lie beside the code: in a container
LONGEST_LICENCE = 100  # characters of a licence's name; longer ones are the licence itself
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")

Needs = dict[str, set[str]]  # of a package the others that it asks for here, by canonical names


@cache
def bill_of_materials() -> bytes:
    """sbom.cdx.json of this installation."""
    needs = installed_needs(PACKAGE)
    allowed = locked(_lock_file())
    parts = [_component(name, allowed) for name in sorted(needs) if name != PACKAGE]
    said = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"lifecycles": [{"phase": "operations"}], "component": _component(PACKAGE, {}) | {"type": "application"}},
        "components": [*parts, _python(), *_container()],
        "dependencies": [{"ref": _ref(name), "dependsOn": sorted(map(_ref, needs[name]))} for name in sorted(needs)],
    }
    number = uuid.uuid5(uuid.NAMESPACE_OID, hashlib.sha256(canonical(said).encode()).hexdigest())
    return canonical(said | {"serialNumber": f"urn:uuid:{number}"}).encode()


def installed_needs(root: str) -> Needs:
    """Whatever the package asks for in this environment and is installed, directly or through others, extras included."""
    needs: Needs = {}
    asked = [(canonicalize_name(root), frozenset(_extras(root)))]
    seen = set()
    while asked:
        name, extras = asked.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        further = [(canonicalize_name(each.name), frozenset(each.extras)) for each in _requirements(name, extras)]
        further = [(each, wanted) for each, wanted in further if _version(each) is not None]
        needs.setdefault(name, set()).update(each for each, _ in further if each != name)
        asked += further
    return needs


def locked(file: Path | None) -> dict[tuple[str, str], list[str]]:
    """SHA-256 of the archives that a lock file allows, by name and version."""
    text = file.read_text(encoding="utf-8") if file is not None and file.is_file() else ""
    entries = (entry for entry in re.split(r"(?<!\\)\n", text) if _PINNED.match(entry))
    pinned = ((_PINNED.match(entry), sorted(_HASH.findall(entry))) for entry in entries)
    return {(canonicalize_name(found[1]), found[2]): hashes for found, hashes in pinned if found is not None}


def _lock_file() -> Path | None:
    told = os.environ.get(LOCK_PLACE)
    return Path(told) if told else Path(__file__).parents[2] / LOCK


def _extras(name: str) -> list[str]:
    """The parts of this program that are installed; what its tests and pages need has no part in a release."""
    return [extra for extra in ("pipeline", "dask", "token") if extra in (_metadata(name).get_all("Provides-Extra") or ())]


def _requirements(name: str, extras: Iterable[str]) -> Iterator[Requirement]:
    for text in _metadata(name).get_all("Requires-Dist") or ():
        try:
            asked = Requirement(text)
        except InvalidRequirement:
            continue
        if asked.marker is None or any(asked.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield asked


@cache
def _metadata(name: str) -> Any:
    return importlib.metadata.metadata(name)


def _version(name: str) -> str | None:
    try:
        version: str = _metadata(name)["Version"]
    except importlib.metadata.PackageNotFoundError:
        return None
    return version


def _ref(name: str) -> str:
    return f"pkg:pypi/{name}@{_version(name)}".replace("+", "%2B")


def _component(name: str, allowed: dict[tuple[str, str], list[str]]) -> dict[str, Any]:
    version = _version(name) or ""
    part: dict[str, Any] = {"type": "library", "bom-ref": _ref(name), "name": name, "version": version, "purl": _ref(name)}
    if licence := _licence(name):
        part["licenses"] = [licence]
    if hashes := allowed.get((name, version)):
        said = [{"alg": "SHA-256", "content": each} for each in hashes]
        part["externalReferences"] = [{"type": "distribution", "url": _ref(name), "comment": "one of these", "hashes": said}]
    return part


def _licence(name: str) -> dict[str, Any] | None:
    """As the package says it: an SPDX expression, else a short text, else its classifiers."""
    said = _metadata(name)
    if expression := said.get("License-Expression"):
        return {"expression": expression}
    classified = [each.rpartition(" :: ")[2] for each in said.get_all("Classifier") or () if each.startswith("License :: ")]
    text = " ".join((said.get("License") or "").split())
    words = text if 0 < len(text) <= LONGEST_LICENCE and text != "UNKNOWN" else " and ".join(classified)
    return {"license": {"name": words}} if words else None


def _python() -> dict[str, Any]:
    version = platform.python_version()
    purl = f"pkg:generic/python@{version}"
    return {"type": "platform", "bom-ref": purl, "name": "python", "version": version, "purl": purl}


def _container() -> list[dict[str, Any]]:
    digest = image_digest()
    return [{"type": "container", "bom-ref": digest, "name": IMAGE, "version": digest}] if digest else []
