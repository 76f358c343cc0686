"""Keys are made once and kept secret; the home is where the environment says."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from schemas.errors import EvidenceBroken, StepsError
from tasks.stores.home import Home
from tasks.stores.keys import keyed_hash, secret_key, signing_key

USES = {"artifacts.key": lambda home: secret_key(home, "artifacts"), "signing-key.pem": signing_key}


def test_a_key_is_made_once_and_differs_by_name_and_home(home, tmp_path):
    key = secret_key(home, "artifacts")
    assert len(key) == 32 and secret_key(home, "artifacts") == key
    assert len({key, secret_key(home, "fingerprint"), secret_key(Home(tmp_path / "other"), "artifacts")}) == 3


def test_a_keyed_hash_depends_on_the_key_and_on_the_content():
    assert len({keyed_hash(key, content) for key in (b"a" * 32, b"b" * 32) for content in (b"x", b"y")}) == 4


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_key_that_others_may_read_is_refused(home, mode):
    secret_key(home, "artifacts")
    signing_key(home)
    for name, use in USES.items():
        (home.keys / name).chmod(mode)
        with pytest.raises(StepsError, match="chmod 600"):
            use(home)
        (home.keys / name).chmod(0o600)
        use(home)


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 33])
def test_a_damaged_key_is_not_replaced(home, content):
    for name, use in USES.items():
        path = home.keys / name
        path.write_bytes(content)
        path.chmod(0o600)
        with pytest.raises(EvidenceBroken, match="Restore it from its backup"):
            use(home)
        assert path.read_bytes() == content


def test_the_public_half_lies_beside_the_signing_key_and_verifies_its_signatures(home):
    key = signing_key(home)
    public = load_pem_public_key((home.keys / "signing-key.pub").read_bytes())
    public.verify(key.sign(b"manifest"), b"manifest")
    assert signing_key(home).sign(b"manifest") == key.sign(b"manifest")
    assert stat.S_IMODE((home.keys / "signing-key.pem").stat().st_mode) == 0o600
    (home.keys / "signing-key.pub").unlink()
    signing_key(home)
    assert load_pem_public_key((home.keys / "signing-key.pub").read_bytes()) == public


@pytest.mark.parametrize("looked_at", ["signing-key.pem", "signing-key.pub"])
def test_a_signing_key_that_another_process_makes_between_two_looks_is_no_lost_one(home, monkeypatch, looked_at):
    look, made = Path.exists, []

    def look_and_be_late(path: Path) -> bool:
        seen = look(path)
        if path.name == looked_at and not made:
            made.append(True)
            made[0] = signing_key(home)
        return seen

    monkeypatch.setattr(Path, "exists", look_and_be_late)
    assert signing_key(home).private_bytes_raw() == made[0].private_bytes_raw()
    (home.keys / "signing-key.pem").unlink()  # the control: one that was lost is
    with pytest.raises(EvidenceBroken, match="is gone, and its public half is still there"):
        signing_key(home)


def test_the_home_is_where_the_environment_says(tmp_path, monkeypatch):
    for name in ("STEPS_HOME", "STEPS_LEDGER", "STEPS_ANCHOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    assert Home.from_environment() == Home(tmp_path / ".steps")
    monkeypatch.setenv("STEPS_HOME", "elsewhere")
    assert Home.from_environment().path == tmp_path / "elsewhere"
    assert Home.from_environment("asked").path == tmp_path / "asked"
    monkeypatch.setenv("STEPS_ANCHOR", "safe/anchor.log")
    monkeypatch.setenv("STEPS_LEDGER", "postgresql://steps@host/ledger")
    home = Home.from_environment()
    assert (home.anchor_file, home.ledger_url) == (tmp_path / "safe/anchor.log", "postgresql://steps@host/ledger")
    assert not home.path.exists()  # looking makes nothing


def test_folders_have_their_modes_and_an_existing_home_is_left_as_it_is(tmp_path):
    (tmp_path / "mine").mkdir(mode=0o750)
    home = Home(tmp_path / "mine")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (home.confidential, home.staging, home.keys)}
    assert modes == {"confidential": 0o700, "staging": 0o700, "keys": 0o700}
    assert stat.S_IMODE(home.public.stat().st_mode) == 0o755
    assert stat.S_IMODE(home.path.stat().st_mode) == 0o750
    home.confidential.chmod(0o755)
    assert stat.S_IMODE(home.confidential.stat().st_mode) == 0o700
