"""A timestamp authority of its own for tests: `openssl ts` with a root and a certificate made for it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

SETTINGS = """
[tsa]
default_tsa = here
[here]
serial = {folder}/serial
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256, sha512
accuracy = secs:1
ess_cert_id_alg = sha256
[stamping]
basicConstraints = critical,CA:FALSE
keyUsage = critical,digitalSignature
extendedKeyUsage = {purpose}
"""


@dataclass(frozen=True)
class Authority:
    """Where its certificates and keys lie."""

    folder: Path

    @property
    def root(self) -> Path:
        return self.folder / "root.pem"

    def answer(self, request: Path, out: Path) -> Path:
        signer = ["-signer", self.folder / "tsa.pem", "-inkey", self.folder / "tsa.key"]
        openssl("ts", "-reply", "-config", self.folder / "ts.cnf", "-queryfile", request, *signer, "-out", out)
        return out


def make_authority(folder: Path, purpose: str = "critical,timeStamping") -> Authority:
    """A root, and beneath it a certificate for this purpose."""
    folder.mkdir()
    (folder / "ts.cnf").write_text(SETTINGS.format(folder=folder, purpose=purpose))
    (folder / "serial").write_text("01\n")
    new = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30"]
    openssl(*new, "-subj", f"/CN=Root of {folder.name}", "-keyout", folder / "root.key", "-out", folder / "root.pem")
    above = [
        "-CA",
        folder / "root.pem",
        "-CAkey",
        folder / "root.key",
        "-config",
        folder / "req.cnf",
        "-extensions",
        "stamping",
    ]
    (folder / "req.cnf").write_text("[req]\ndistinguished_name=dn\n[dn]\n" + SETTINGS.format(folder=folder, purpose=purpose))
    openssl(*new, *above, "-subj", f"/CN=Clock of {folder.name}", "-keyout", folder / "tsa.key", "-out", folder / "tsa.pem")
    return Authority(folder)


def openssl(*words: object) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, timeout=60)
