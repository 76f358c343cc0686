"""A person's key on a PKCS#11 token signs entries as one in a file does; the PIN is asked for once and told to nobody."""

from __future__ import annotations

import shutil
import subprocess
import traceback
from pathlib import Path

import pytest

from schemas.errors import InfrastructureFault, SpecError
from tasks.stores import signatures, tokens
from tasks.stores.home import Home, key_place
from tests.flows.conftest import steps_in
from tests.flows.small import make_small

PIN_OF_TOKEN = "40719386"
DRIVER = next((str(path) for path in Path("/usr/lib").glob("**/softhsm/libsofthsm2.so")), None)
ADA, BO = "pkcs11:token=board;object=ada", "pkcs11:token=board;object=bo"

pkcs11 = pytest.importorskip("pkcs11", reason="needs python-pkcs11 (the extra token)")
pytestmark = pytest.mark.skipif(
    DRIVER is None or shutil.which("softhsm2-util") is None,
    reason="needs SoftHSM (Debian's softhsm2; scripts/system-packages.sh)",
)


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """A token "board" with two Ed25519 keys. One driver is set up per process: it reads its folder once."""
    from pkcs11.util.ec import encode_named_curve_parameters

    folder = tmp_path_factory.mktemp("softhsm")
    (folder / "softhsm2.conf").write_text(f"directories.tokendir = {folder}\nobjectstore.backend = file\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOFTHSM2_CONF", str(folder / "softhsm2.conf"))
        new = ["softhsm2-util", "--init-token", "--free", "--label", "board", "--pin", PIN_OF_TOKEN, "--so-pin", "12345678"]
        subprocess.run(new, check=True, capture_output=True, timeout=60)
        with pkcs11.lib(DRIVER).get_token(token_label="board").open(user_pin=PIN_OF_TOKEN, rw=True) as session:
            curve = {pkcs11.Attribute.EC_PARAMS: encode_named_curve_parameters("1.3.101.112")}
            parameters = session.create_domain_parameters(pkcs11.KeyType.EC_EDWARDS, curve, local=True)
            for name in ("ada", "bo"):
                parameters.generate_keypair(mechanism=pkcs11.Mechanism.EC_EDWARDS_KEY_PAIR_GEN, store=True, label=name)
        yield DRIVER


@pytest.fixture(autouse=True)
def _ready(driver, monkeypatch):
    monkeypatch.setenv(tokens.MODULE, driver)
    monkeypatch.setenv(tokens.PIN, PIN_OF_TOKEN)
    signatures.read_signer.cache_clear()
    yield
    signatures.read_signer.cache_clear()


def test_what_a_token_signs_is_an_ed25519_signature():
    signer = signatures.read_signer(ADA)
    assert signatures.holds(signer.public, signer.sign(b"an entry"), b"an entry")
    assert not signatures.holds(signer.public, signer.sign(b"an entry"), b"another entry")
    assert not signatures.holds(signatures.read_signer(BO).public, signer.sign(b"an entry"), b"an entry")


def test_people_whose_keys_are_on_a_token_act_on_a_ledger(tmp_path):
    steps = steps_in(make_small(tmp_path, rows=20))
    for name, key in (("ada", ADA), ("bo", BO)):
        assert steps("keys", "public", tmp_path / f"{name}.pub", "--as", key).code == 0
        added = steps("people", "add", name, "--role", "approver", "--key", tmp_path / f"{name}.pub", "--as", ADA)
        assert added.code == 0, added.err
    assert steps("budget", "grant", "small-people", "4", "--why", "a test").code == 2, "nobody signed"
    assert steps("budget", "grant", "small-people", "4", "--why", "a test", "--as", BO).code == 0
    assert steps("budget", "verify").code == 0
    (entry,) = (each for each in steps("budget", "log", "--json").json["entries"] if each["kind"] == "grant")
    assert entry["details"]["signed"]["by"] == "bo"


def test_a_wrong_pin_is_refused_without_a_word_of_it(monkeypatch, caplog):
    monkeypatch.setenv(tokens.PIN, "99998888")
    with pytest.raises(SpecError, match="did not take the PIN") as refused:
        signatures.read_signer(ADA)
    told = "".join(traceback.format_exception(refused.value)) + caplog.text
    assert "99998888" not in told and PIN_OF_TOKEN not in told


def test_without_a_pin_nobody_is_asked_where_there_is_no_terminal(monkeypatch):
    monkeypatch.delenv(tokens.PIN)
    with pytest.raises(SpecError, match="needs its PIN"):
        signatures.read_signer(ADA)


@pytest.mark.parametrize(
    ("uri", "said"),
    [
        ("pkcs11:token=board;object=nobody", "not exactly one private Ed25519 key"),
        ("pkcs11:token=other;object=ada", "no token, or more than one"),
        ("pkcs11:token=board", "names a token and a key on it"),
        ("pkcs11:token=board;object=ada;slot=1", '"slot" in pkcs11:… is not known'),
        (f"{ADA}?pin-value=40719386", "a PIN does not belong into the name"),
    ],
)
def test_what_names_no_key_is_refused_in_words(uri, said):
    with pytest.raises(SpecError, match=said) as refused:
        signatures.read_signer(uri)
    assert PIN_OF_TOKEN not in str(refused.value)


def test_a_driver_that_is_not_there_is_a_fault_that_can_be_mended(tmp_path, monkeypatch):
    with pytest.raises(InfrastructureFault, match="cannot be used"):
        signatures.read_signer(f"{ADA}?module-path={tmp_path}/none.so")
    monkeypatch.delenv(tokens.MODULE)
    with pytest.raises(SpecError, match="needs the token's driver"):
        signatures.read_signer(ADA)


def test_a_worker_s_processes_are_told_the_key_as_it_was_said(tmp_path, monkeypatch):
    monkeypatch.setenv("STEPS_KEY", ADA)
    home = Home.from_environment(str(tmp_path))
    assert home.key_file == ADA and home.for_runs()["STEPS_KEY"] == ADA
    assert key_place("ada.pem") == Path("ada.pem").absolute() and key_place("") is None
