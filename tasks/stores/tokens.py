"""Keys of people on a PKCS#11 token (a smart card, a hardware security module): the key signs there, and never leaves it.

Named as RFC 7512 does: `pkcs11:token=LABEL;object=LABEL`. The PIN comes from STEPS_KEY_PIN or from the person at the terminal.
"""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

from schemas.errors import InfrastructureFault, SpecError

SCHEME = "pkcs11:"
PIN, MODULE = "STEPS_KEY_PIN", "STEPS_PKCS11_MODULE"
NAMED = {"token": "token_label", "serial": "token_serial", "object": "label", "id": "id"}  # in the URI, and in the library
OF_TOKEN = ("token_label", "token_serial")
POINTS = {32: b"", 34: b"\x04\x20", 35: b"\x03\x21\x00"}  # how tokens wrap the 32 bytes, by length


class TokenSigner:
    """A private Ed25519 key on a token. Every signature opens a session of its own: a process may be forked in between."""

    def __init__(self, uri: str) -> None:
        self._wanted, self._module = _parsed(uri)
        self._name = uri.partition("?")[0]
        self._pin = _pin(self._name)
        with self._session() as session:
            self._found(session, "PRIVATE_KEY")
            self._public = _raw_point(self._name, self._found(session, "PUBLIC_KEY")).hex()

    @property
    def public(self) -> str:
        return self._public

    def sign(self, statement: bytes) -> str:
        import pkcs11

        with self._session() as session:
            signed: bytes = self._found(session, "PRIVATE_KEY").sign(statement, mechanism=pkcs11.Mechanism.EDDSA)
        return signed.hex()

    @contextmanager
    def _session(self) -> Iterator[Any]:
        import pkcs11

        try:
            token = pkcs11.lib(self._module).get_token(**{n: v for n, v in self._wanted.items() if n in OF_TOKEN})
            with token.open(user_pin=self._pin) as session:
                yield session
        except (pkcs11.PinIncorrect, pkcs11.PinInvalid, pkcs11.PinLenRange, pkcs11.PinLocked) as error:
            what = "is locked after too many wrong PINs" if isinstance(error, pkcs11.PinLocked) else "did not take the PIN"
            raise SpecError(f"the token of {self._name} {what}. Nothing was written, and it was not tried again.") from None
        except (pkcs11.NoSuchToken, pkcs11.MultipleTokensReturned):
            raise SpecError(f"no token, or more than one, is {self._name}. Nothing was written.") from None
        except (pkcs11.PKCS11Error, RuntimeError) as error:  # by its kind: a driver's text may hold anything
            raise InfrastructureFault(
                f"the token of {self._name} cannot be used ({type(error).__name__}). Nothing was written. Is it plugged in, "
                f"and {MODULE} its driver?"
            ) from None

    def _found(self, session: Any, kind: str) -> Any:
        import pkcs11

        wanted = {name: value for name, value in self._wanted.items() if name not in OF_TOKEN}
        try:
            return session.get_key(object_class=pkcs11.ObjectClass[kind], key_type=pkcs11.KeyType.EC_EDWARDS, **wanted)
        except (pkcs11.NoSuchKey, pkcs11.MultipleObjectsReturned):
            half = kind.partition("_")[0].lower()
            raise SpecError(
                f"the token has not exactly one {half} Ed25519 key for {self._name}. Nothing was written."
            ) from None


def _parsed(uri: str) -> tuple[dict[str, Any], str]:
    """What is looked for on which token, and the token's driver."""
    path, _, query = uri.removeprefix(SCHEME).partition("?")
    said = dict(part.partition("=")[::2] for part in path.split(";") if part)
    asked = dict(part.partition("=")[::2] for part in query.split("&") if part)
    if "pin-value" in asked or "pin-value" in said:
        raise SpecError(f"a PIN does not belong into the name of a key, which others see. Set {PIN}, or type it when asked.")
    if unknown := sorted({*said} - {*NAMED}) + sorted({*asked} - {"module-path"}):
        raise SpecError(f'"{unknown[0]}" in {SCHEME}… is not known here. Use {", ".join(NAMED)}, and ?module-path=FILE.')
    if not {"token", "serial"} & {*said} or not {"object", "id"} & {*said}:
        raise SpecError(f"{SCHEME}… names a token and a key on it, such as pkcs11:token=board;object=ada.")
    module = unquote(asked.get("module-path", "")) or os.environ.get(MODULE)
    if not module:
        raise SpecError(f"{uri} needs the token's driver: set {MODULE} to its file, such as /usr/lib/softhsm/libsofthsm2.so.")
    _must_be_installed()
    wanted: dict[str, Any] = {NAMED[name]: unquote(value) for name, value in said.items() if name != "id"}
    return wanted | ({"id": unquote(said["id"], encoding="latin-1").encode("latin-1")} if "id" in said else {}), module


def _must_be_installed() -> None:
    from importlib.util import find_spec

    if find_spec("pkcs11") is None:
        raise SpecError('a key on a token needs its library: pip install "steps-release[token]"')


def _pin(name: str) -> str:
    said = os.environ.get(PIN)
    if said is None and sys.stdin.isatty():
        said = getpass.getpass(f"PIN of {name}: ")
    if not said:
        raise SpecError(f"the key {name} needs its PIN: set {PIN}, or run this at a terminal. Nothing was written.")
    return said


def _raw_point(name: str, key: Any) -> bytes:
    """The 32 bytes of an Ed25519 key, bare or in a DER string of octets or bits."""
    import pkcs11

    point = bytes(key[pkcs11.Attribute.EC_POINT])
    wrapping = POINTS.get(len(point))
    if wrapping is None or not point.startswith(wrapping):
        raise SpecError(f"the key {name} is no Ed25519 key. Nothing was written.")
    return point[len(wrapping) :]
