"""What the catalogue says of a published bundle: read from its own files, which were verified before."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_UP
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import pyarrow.parquet as pq

from schemas.budget import show_nanos
from schemas.notices import Notice
from schemas.spec.domain import Domain
from steps_engine.accounting.measures import MEASURES, PURE
from tasks.publishing import bundle
from tasks.publishing.privacy_loss import power, short

MOST_WORDS = 400  # of a release that the search knows


@dataclass(frozen=True)
class Shelved:
    """A published release."""

    folder: Path
    manifest: bundle.AnyManifest
    manifest_sha256: str
    domain: Domain
    rows: int
    beside: Mapping[str, bytes]  # what was said of it later, as it was when this was read

    @cached_property
    def notice(self) -> Notice | None:
        said = self.beside.get(bundle.NOTICE)
        return Notice.model_validate(json.loads(said)) if said is not None else None

    @property
    def name(self) -> str:
        return self.manifest.release

    @property
    def title(self) -> str:
        return getattr(self.manifest, "title", None) or self.domain.title or self.name

    @property
    def called(self) -> str:
        """Its title and its name, which are one where nobody gave it a title."""
        return self.name if self.title == self.name else f"{self.title}: {self.name}"

    @property
    def about(self) -> str:
        """What its publisher says of it."""
        said = (getattr(self.manifest, "description", None), self.domain.description)
        return " ".join(dict.fromkeys(f"{text.rstrip('.')}." for text in said if text))

    @property
    def population(self) -> str:
        return self.manifest.population

    @property
    def day(self) -> str:
        """When it was made; the first format told the second."""
        return self.manifest.made_at[:10]

    @property
    def changed(self) -> str:
        """The last day on which something was said of it."""
        said = [each.date for each in (self.notice.withdrawn, self.notice.superseded) if each] if self.notice else []
        return max([self.day, *said])

    @property
    def state(self) -> str:
        if self.notice is None:
            return "in use"
        return "withdrawn" if self.notice.withdrawn else "superseded"

    @property
    def promise(self) -> str:
        said = self.manifest.guarantee
        if not said.rho or not said.delta:
            return f"ε = {said.epsilon}"
        return f"ρ = {said.rho} (ε = {short(Fraction(said.epsilon), ROUND_UP)} at δ = {power(said.delta)})"

    @property
    def cost(self) -> str:
        """What was charged, in the measure of the account."""
        charge = self.manifest.ledger.charge
        symbol = MEASURES[getattr(charge, "measure", None) or PURE.name].symbol
        return f"{symbol} = {show_nanos(charge.amount)}"

    @property
    def address(self) -> str:
        return f"releases/{self.name}/"

    @cached_property
    def page(self) -> str:
        """What a reader opens: the notice first, where there is one."""
        return self.address + (bundle.NOTICE_PAGE if self.notice else bundle.PAGE)

    @cached_property
    def words(self) -> str:
        """What the search finds it by."""
        said = [self.name, self.title, self.domain.name, self.population, self.state, *self._said()]
        unique = dict.fromkeys(word for text in said for word in text.casefold().split())
        return " ".join(list(unique)[:MOST_WORDS])

    def _said(self) -> Iterator[str]:
        yield from filter(None, (self.about, self.domain.publisher, self.domain.source))
        for attribute in self.domain.counted.attributes:
            yield from filter(None, (attribute.name, attribute.title, attribute.description))
        for derived in self.domain.derived:
            yield from filter(None, (derived.name, derived.title, derived.description))
        for attribute in self.domain.counted.attributes:
            yield from attribute.label_texts.values()


def read_shelved(folder: Path) -> Shelved:
    """Of a bundle that verifies."""
    content = (folder / bundle.MANIFEST).read_bytes()
    manifest = bundle.read_manifest(content)
    beside = {name: (folder / name).read_bytes() for name in sorted(bundle.BESIDE) if (folder / name).is_file()}
    return Shelved(
        folder=folder,
        manifest=manifest,
        manifest_sha256=hashlib.sha256(content).hexdigest(),
        domain=bundle.read_domain((folder / bundle.DOMAIN).read_bytes(), bundle.form_of(manifest)),
        rows=pq.read_metadata(folder / "synthetic-1.parquet").num_rows,
        beside=beside,
    )


def in_order(releases: Iterable[Shelved]) -> list[Shelved]:
    """The newest first; what is in use before what was taken back."""
    return sorted(
        sorted(releases, key=lambda each: each.name), key=lambda each: (each.state == "in use", each.day), reverse=True
    )


def versions(releases: Iterable[Shelved]) -> dict[str, list[Shelved]]:
    """Of each release the line it stands in, oldest first: what it took the place of, itself, what took its place."""
    known = {each.name: each for each in releases}
    before: dict[str, list[str]] = {}
    for each in known.values():
        if each.notice and each.notice.superseded and each.notice.superseded.by in known:
            before.setdefault(each.notice.superseded.by, []).append(each.name)
    return {name: [known[other] for other in _line(name, known, before)] for name in known}


def _line(name: str, known: Mapping[str, Shelved], before: Mapping[str, list[str]]) -> list[str]:
    """Walked once over: a circle of successors ends where it began."""
    line, waiting = {name}, [name]
    while waiting:
        each = waiting.pop()
        notice = known[each].notice
        after = [notice.superseded.by] if notice and notice.superseded and notice.superseded.by in known else []
        new = [other for other in (*before.get(each, ()), *after) if other not in line]
        line.update(new)
        waiting += new
    return sorted(line, key=lambda other: (known[other].day, other))
