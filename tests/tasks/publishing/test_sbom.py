"""The bill of materials: CycloneDX that its own library accepts, the same bytes for one installation, and nothing of the machine."""

from __future__ import annotations

import getpass
import hashlib
import importlib.metadata
import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tasks.publishing import bundle, sbom
from tasks.publishing.code import code_facts
from tasks.publishing.publication import publish
from tasks.verify.bundle import holds, verify_bundle
from tests.import_graph import ROOT
from tests.tasks.publishing.making import GIVEN, POLL, a_release, make, sign_again, some_counts


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    made = make(tmp_path_factory.mktemp("sbom") / "home", a_release(POLL, GIVEN), some_counts(POLL, 500))
    return publish(*made.arguments), made.home


def faults(document: bytes) -> str | None:
    """What CycloneDX's own library finds wrong."""
    cyclonedx = pytest.importorskip("cyclonedx.validation.json", reason="needs cyclonedx-python-lib[json-validation]")
    from cyclonedx.schema import SchemaVersion

    found = cyclonedx.JsonStrictValidator(SchemaVersion.V1_6).validate_str(document.decode())
    return None if found is None else str(found)


@pytest.mark.whole
def test_cyclonedx_accepts_it_and_would_refuse_another():
    document = sbom.bill_of_materials()
    assert faults(document) is None
    for wrong in (b'"type":"library"', b'"alg":"SHA-256"', b'"specVersion":"1.6"'):
        assert wrong in document and faults(document.replace(wrong, b'"alg":"SHA-0"', 1)) is not None, wrong


def test_it_names_what_is_installed_with_licences_and_the_lock_s_hashes():
    said = json.loads(sbom.bill_of_materials())
    parts = {part["name"]: part for part in said["components"]}
    assert said["metadata"]["component"]["name"] == "steps-release" and "timestamp" not in said["metadata"]
    for name in ("numpy", "prefect", "pydantic-core", "ruamel-yaml"):  # what is asked for, and what that asks for
        version = importlib.metadata.version(name)
        assert (parts[name]["version"], parts[name]["purl"]) == (version, f"pkg:pypi/{name}@{version}") and parts[name][
            "licenses"
        ]
    assert "pytest" not in parts and parts["python"]["type"] == "platform"
    allowed = sbom.locked(ROOT / "requirements.lock")
    hashes = [each["content"] for each in parts["numpy"]["externalReferences"][0]["hashes"]]
    assert hashes == allowed["numpy", parts["numpy"]["version"]] and len(hashes) > 1
    edges = {each["ref"]: each["dependsOn"] for each in said["dependencies"]}
    assert parts["pydantic-core"]["purl"] in edges[parts["pydantic"]["purl"]]


def test_another_version_than_the_lock_pins_has_no_hash_of_it(tmp_path):
    lock = tmp_path / "requirements.lock"
    lock.write_text(f"numpy==0.0.1 \\\n    --hash=sha256:{'a' * 64}\nRuamel.yaml==9 \\\n    --hash=sha256:{'b' * 64}\n")
    assert sbom.locked(lock) == {("numpy", "0.0.1"): ["a" * 64], ("ruamel-yaml", "9"): ["b" * 64]}
    assert "externalReferences" not in sbom._component("numpy", sbom.locked(lock))
    assert sbom.locked(tmp_path / "none") == {}


def test_one_installation_gives_the_same_bytes_and_nothing_of_its_machine():
    again = [
        sys.executable,
        "-c",
        "import sys; from tasks.publishing import sbom; sys.stdout.buffer.write(sbom.bill_of_materials())",
    ]
    document = sbom.bill_of_materials()
    assert subprocess.run(again, cwd=ROOT, capture_output=True, check=True).stdout == document
    text = document.decode()
    for private in (str(ROOT), socket.gethostname(), "/home/", "/root/", "site-packages", f"/{getpass.getuser()}/"):
        assert private not in text


@pytest.mark.whole
def test_a_container_s_digest_is_in_it(monkeypatch):
    monkeypatch.setenv("STEPS_IMAGE_DIGEST", f"sha256:{'c' * 64}")
    elsewhere = json.loads(sbom.bill_of_materials())["serialNumber"]
    sbom.bill_of_materials.cache_clear()
    try:
        assert json.loads(sbom.bill_of_materials())["serialNumber"] != elsewhere  # which follows from what is said
        assert faults(sbom.bill_of_materials()) is None
        assert {"type": "container", "version": f"sha256:{'c' * 64}"}.items() <= json.loads(sbom.bill_of_materials())[
            "components"
        ][-1].items()
    finally:
        sbom.bill_of_materials.cache_clear()


def test_a_bundle_has_it_and_its_manifest_its_hash(published):
    bundled, home = published
    content = (bundled.folder / bundle.SBOM).read_bytes()
    assert bundled.manifest.files[bundle.SBOM].sha256 == hashlib.sha256(content).hexdigest()
    assert holds(verify_bundle(bundled.folder, home.keys / "signing-key.pub"))
    assert code_facts().version == json.loads(content)["metadata"]["component"]["version"]


def altered(bundled, home, tmp_path, change, files=lambda manifest: None):
    """A copy whose bill says something else, signed again with the true key."""
    folder = Path(shutil.copytree(bundled.folder, tmp_path / "bundle"))
    change(folder / bundle.SBOM)
    sign_again(folder, home, files)
    return [str(problem) for problem in verify_bundle(folder, home.keys / "signing-key.pub")]


@pytest.mark.parametrize("version", ["0.0.1", None])
def test_a_bill_that_disagrees_with_the_manifest_is_found(published, tmp_path, version):
    def lie(path):
        said = json.loads(path.read_bytes())
        next(part for part in said["components"] if part["name"] == "numpy")["version"] = version
        path.write_bytes(bundle.to_bytes(said))

    assert altered(*published, tmp_path, lie) == [
        f"{bundle.SBOM}: names another program, or other versions, than the manifest does"
    ]


def test_what_is_no_bill_is_found(published, tmp_path):
    assert "no bill of materials" in altered(*published, tmp_path, lambda path: path.write_bytes(b"[]"))[0]


def test_a_bundle_of_an_earlier_version_has_none_and_verifies(published, tmp_path):
    assert altered(*published, tmp_path, Path.unlink, lambda manifest: manifest["files"].pop(bundle.SBOM)) == []
