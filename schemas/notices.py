"""What is signed beside a bundle and leaves its bytes as they are: that it was taken back, and the signer's earlier keys."""

from __future__ import annotations

from typing import Any, Literal

from schemas.identity import canonical
from schemas.manifest import Day, Hash
from schemas.plan import Frozen
from schemas.spec.domain import Name


class Withdrawn(Frozen):
    """That a release is not to be used any more, and why."""

    date: Day
    why: str


class Superseded(Frozen):
    """Which release takes its place."""

    date: Day
    by: Name


class Notice(Frozen):
    """notice.json: what was said about a bundle after it was published."""

    format: Literal["steps-notice/1"] = "steps-notice/1"
    release: Name
    manifest_sha256: Hash
    withdrawn: Withdrawn | None = None
    superseded: Superseded | None = None
    page_sha256: Hash
    key: Hash  # the signer's public key, raw
    signature: str = ""

    @property
    def signed(self) -> bytes:
        return canonical(self.model_dump(mode="json", exclude={"signature"}, exclude_none=True)).encode()

    @property
    def document(self) -> bytes:
        return canonical(self.model_dump(mode="json", exclude_none=True)).encode()

    @property
    def sentence(self) -> str:
        """What a reader must know."""
        said = [f"was withdrawn on {self.withdrawn.date}: {self.withdrawn.why}"] if self.withdrawn else []
        if self.superseded:
            said.append(f'was superseded on {self.superseded.date} by "{self.superseded.by}"')
        return "; ".join(said)


class KeyLink(Frozen):
    """One change of the signing key. Rotated: the previous key signs the new one. Lost or revoked: it does not."""

    date: Day
    kind: Literal["rotated", "lost", "revoked"]
    previous: Hash
    key: Hash
    by_previous: str | None = None
    by_key: str = ""

    @property
    def signed(self) -> bytes:
        said: dict[str, Any] = self.model_dump(mode="json", exclude={"by_previous", "by_key"})
        return canonical({"format": "steps-key/1", **said}).encode()


class KeyHistory(Frozen):
    """key-history.json: every change of the signing key, oldest first."""

    format: Literal["steps-keys/1"] = "steps-keys/1"
    links: tuple[KeyLink, ...]

    @property
    def document(self) -> bytes:
        return canonical(self.model_dump(mode="json", exclude_none=True)).encode()
