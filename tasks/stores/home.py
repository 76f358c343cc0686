"""Where state lives on disk: the ledger, confidential/, staging/, public/, keys/ and the anchor."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from schemas.errors import EvidenceBroken, SpecError

from .files import open_folder, private_folder

LEDGER = "ledger.db"
KeyPlace = Path | str  # a file, or a key on a token: pkcs11:…


def key_place(said: str | None) -> KeyPlace | None:
    """Where a person's private key is, as --as or STEPS_KEY say it."""
    if not said:
        return None
    return said if said.startswith("pkcs11:") else Path(said).absolute()


@dataclass(frozen=True)
class Home:
    """One installation's state. Folders are made on first use; what is not public is for the owner alone."""

    path: Path
    ledger_url: str | None = field(default=None, repr=False)  # PostgreSQL; None: the SQLite file of this home
    anchor_path: Path | None = None
    key_file: KeyPlace | None = None  # the private key of the person who acts, where people are registered

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path).absolute())
        if self.ledger_url is not None and not self.ledger_url.startswith(("postgresql://", "postgresql+psycopg://")):
            raise SpecError("STEPS_LEDGER must be a PostgreSQL URL such as postgresql://user@host/ledger, or unset.")

    @classmethod
    def from_environment(cls, override: str | None = None) -> Home:
        """--home, else STEPS_HOME, else .steps; with STEPS_LEDGER, STEPS_ANCHOR and STEPS_KEY when they are set."""
        anchor = os.environ.get("STEPS_ANCHOR")
        return cls(
            path=Path(override or os.environ.get("STEPS_HOME") or ".steps"),
            ledger_url=os.environ.get("STEPS_LEDGER") or None,
            anchor_path=Path(anchor).absolute() if anchor else None,
            key_file=key_place(os.environ.get("STEPS_KEY")),
        )

    def for_runs(self) -> dict[str, str]:
        """The environment in which processes of a worker find this home, and whose key signs what they do."""
        return {"STEPS_HOME": str(self.path)} | ({"STEPS_KEY": str(self.key_file)} if self.key_file else {})

    @property
    def folder(self) -> Path:
        return open_folder(self.path)

    @property
    def confidential(self) -> Path:
        return private_folder(self.folder / "confidential")

    @property
    def staging(self) -> Path:
        """Paid-for artifacts that nobody has approved yet: outside confidential/, not yet in public/."""
        return private_folder(self.folder / "staging")

    @property
    def public(self) -> Path:
        return open_folder(self.folder / "public")

    @property
    def keys(self) -> Path:
        return private_folder(self.folder / "keys")

    @property
    def ledger_file(self) -> Path:
        return self.folder / LEDGER

    @property
    def anchor_file(self) -> Path:
        return self.anchor_path or self.folder / "anchor.log"


def is_there(home: Home) -> bool:
    """Whether there is a ledger to look at. Opening one makes it, and looking must not; on PostgreSQL a home is its folder."""
    return (home.path if home.ledger_url else home.path / LEDGER).exists()


def must_be_there(home: Home) -> None:
    """Refuses to look at a home that nobody began, or whose ledger was lost: an empty answer would pass for a good one."""
    if not is_there(home):
        missing = LEDGER if home.path.is_dir() else "the folder"
        if left := [place for place in _following(home) if place.is_file() or place.is_dir() and any(place.iterdir())]:
            raise EvidenceBroken(
                f"the ledger of {home.path} was lost: {missing} is missing, and {left[0]} is there, which follows from one. "
                "Nothing was made. Restore the newest backup into a new folder: steps --home NEW restore FILE"
            )
        raise SpecError(
            f"there is no home in {home.path}: {missing} is missing. Nothing was made. "
            "Name the home with --home or STEPS_HOME; is its disk mounted? A first grant makes a new one: steps budget grant"
        )


def _following(home: Home) -> list[Path]:
    """What there is only after an entry of the ledger."""
    anchor = home.anchor_path or home.path / "anchor.log"
    return [anchor, *(home.path / name for name in ("timestamps", "public", "staging"))]


def evaluation_page(home: Home, name: str) -> Path:
    """Where the comparison of a release with its records is to be read. CONFIDENTIAL."""
    return home.confidential / name / "evaluation.html"
