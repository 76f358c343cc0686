"""The ledger's entries and the chain they form: pure values, no database."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple

from schemas.errors import SpecError
from schemas.identity import canonical, canonical_flat, chain_hash, ledger_canonical_1, sha256
from schemas.names import NAME

ENTRY_FORMAT = 2  # stands in every body; bodies of version 0.1.0 have none

KINDS = (
    "grant",
    "cap",
    "charge",
    "seal",
    "approve",
    "reject",
    "abandon",
    "burn",
    "publish",
    "evaluate",
    "withdraw",
    "supersede",
    "home",
)
NO_HASH = "0" * 64  # what the first entry follows

_SHOWN_1 = ("plan_hash", "spec_hash", "neighbours", "unit")  # of a body of format 1, what is hashed apart from the rest

KINDS_OF_TRUST = ("person", "anchor")  # about who may act, and where heads are kept
SIGNED = "signed"  # the part of a body that holds a person's signature over the rest

Head = tuple[int, str]  # the number and the hash of an entry


class KnownHead(NamedTuple):
    """A head that is known outside the ledger; bundles of format 1 published those of its own chain."""

    source: str
    seq: int
    hash: str
    chain: Literal["own", "public"] = "own"


@dataclass(frozen=True)
class Draft:
    """An entry before it has its place in the chain. Its key names the event: the same key is the same event."""

    kind: str
    key: str
    population: str | None  # None: nothing was charged for this release so far
    release: str | None
    body: str
    amount: int = 0
    measure: str | None = None  # None: ε


@dataclass(frozen=True)
class Totals:
    """All that was granted to and charged on a population, in 10⁻⁹ of its measure."""

    granted: int = 0
    charged: int = 0

    def after(self, kind: str, amount: int) -> Totals:
        return Totals(self.granted + amount * (kind == "grant"), self.charged + amount * (kind == "charge"))


@dataclass(frozen=True)
class Entry:
    """One line of the ledger; `hash` covers every other field, and through `previous` every entry before.

    `measure` is that of all amounts of its population: None, ε, or "zcdp", ρ.
    """

    seq: int
    at: str
    actor: str
    kind: str
    population: str | None
    release: str | None
    key: str
    amount: int
    granted_after: int
    charged_after: int
    body: str
    previous: str
    hash: str
    measure: str | None = None

    @property
    def details(self) -> dict[str, Any]:
        """What the body says, beside its format."""
        details: dict[str, Any] = json.loads(self.body)
        return {name: value for name, value in details.items() if name != "format"}

    @property
    def said(self) -> dict[str, Any]:
        """`details`, format included; empty where the body is not one that a ledger writes."""
        try:
            details = json.loads(self.body)
        except ValueError:
            return {}
        return details if isinstance(details, dict) else {}

    @property
    def head(self) -> Head:
        return self.seq, self.hash

    def says(self, draft: Draft) -> bool:
        """Whether it is the draft's event, in whichever format it was written and whoever signed it."""
        same = (getattr(self, part.name) == getattr(draft, part.name) for part in fields(draft) if part.name != "body")
        return all(same) and unsigned(json.loads(draft.body)) == {"format": ENTRY_FORMAT, **unsigned(self.details)}


def body_of(details: Mapping[str, Any]) -> str:
    """A new entry's body."""
    return canonical({"format": ENTRY_FORMAT, **details})


def unsigned(details: Mapping[str, Any]) -> dict[str, Any]:
    """What a body says beside its signature."""
    return {name: value for name, value in details.items() if name != SIGNED}


def content_hash(entry: Entry) -> str:
    """Over every field but the links of the chain, and a measure that is ε, in the form that the entry's body records."""
    left_out = ("previous", "hash") if entry.measure is not None else ("previous", "hash", "measure")
    content = {name: value for name, value in vars(entry).items() if name not in left_out}
    said = entry.said
    if said.get("format", 1) != 1:
        return sha256(canonical_flat(content))
    actor, body = content.pop("actor"), content.pop("body")
    shown = {name: said[name] for name in _SHOWN_1 if name in said}
    return sha256(ledger_canonical_1(content | {"shown": shown, "hidden": sha256(ledger_canonical_1([actor, body]))}))


def link(draft: Draft, previous: Head, totals: Totals, at: str, actor: str) -> Entry:
    """The draft as the entry that follows `previous`; `totals` are the population's so far."""
    after = totals.after(draft.kind, draft.amount)
    place: dict[str, Any] = {"seq": previous[0] + 1, "previous": previous[1], "at": at, "actor": actor}
    sums: dict[str, Any] = {"granted_after": after.granted, "charged_after": after.charged}
    unsigned = Entry(**asdict(draft), **place, **sums, hash="")
    return replace(unsigned, hash=chain_hash(previous[1], content_hash(unsigned)))


@dataclass
class Links:
    """The chain as far as it was followed: what the next entry must follow from."""

    last: Head = (0, NO_HASH)
    totals: dict[str | None, Totals] = field(default_factory=dict)
    measures: dict[str | None, str | None] = field(default_factory=dict)

    def problems(self, entry: Entry) -> Iterator[str]:
        """Every way in which the entry is not what a ledger could have written here, one sentence each."""
        if entry.seq != self.last[0] + 1:
            yield f"entry {entry.seq} follows entry {self.last[0]}: entries are missing"
        if entry.previous != self.last[1]:
            yield f"entry {entry.seq} does not follow from the entry before it"
        if entry.hash != _hash_of(entry):
            yield f"entry {entry.seq} was changed after it was written"
        else:
            yield from _sum_problems(entry, self.totals.get(entry.population, Totals()))
            yield from _measure_problems(entry, self.measures.setdefault(entry.population, entry.measure))
        self.totals[entry.population] = Totals(entry.granted_after, entry.charged_after)
        self.last = entry.head


def _hash_of(entry: Entry) -> str | None:
    """None where a field is of a kind that no ledger writes: a broken page can hold anything."""
    try:
        return chain_hash(entry.previous, content_hash(entry))
    except (TypeError, ValueError, AttributeError):
        return None


def chain_problems(entries: Iterable[Entry]) -> Iterator[str]:
    """Every way in which the entries are not what a ledger could have written, one sentence each."""
    links = Links()
    for entry in entries:
        yield from links.problems(entry)


def _sum_problems(entry: Entry, before: Totals) -> Iterator[str]:
    if Totals(entry.granted_after, entry.charged_after) != before.after(entry.kind, entry.amount):
        yield f'entry {entry.seq}: the running totals of population "{entry.population}" do not add up'
    if entry.charged_after > entry.granted_after:
        yield f'entry {entry.seq}: population "{entry.population}" is charged beyond its grant'
    if (
        entry.kind not in (*KINDS, *KINDS_OF_TRUST)
        or entry.amount < 0
        or (entry.amount > 0) != (entry.kind in ("grant", "charge"))
    ):
        yield f"entry {entry.seq} is of no kind and amount that a ledger writes"


def _measure_problems(entry: Entry, first: str | None) -> Iterator[str]:
    if entry.measure != first:
        yield f'entry {entry.seq}: the amounts of population "{entry.population}" are in more than one measure'
    if entry.measure not in (None, "zcdp") or (entry.measure is not None and entry.population is None):
        yield f"entry {entry.seq} is in no measure that a ledger writes"


def head_problems(chain: Iterable[Head], heads: Iterable[KnownHead], what: str = "entry") -> Iterator[str]:
    """Heads known elsewhere that this chain lacks: the ledger was rewritten, or is an old copy. A source says it once."""
    known, by_source = dict(chain), defaultdict(list)
    for head in heads:
        by_source[head.source].append(head)
    for source, told in by_source.items():
        lacking = sorted({head.seq for head in told if head.seq not in known})
        other = sorted({head.seq for head in told if head.seq in known and known[head.seq] != head.hash})
        if lacking:
            more = "" if len(lacking) == 1 else f" and {len(lacking) - 1} more that this ledger lacks"
            lost = "" if known else ", or another one than was meant. If it was lost, restore it: steps restore FILE"
            ends = f"this ledger ends at {what} {max(known, default=0)}: it is an old copy{lost}"
            yield f"{source} knows {what} {lacking[-1]}{more}; {ends}"
        if other:
            more = "" if len(other) == 1 else f" and {len(other) - 1} more"
            yield f"{source} knows another {what} {other[0]}{more} than this ledger holds: the ledger was rewritten"


def must_be_name(what: str, name: str) -> str:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise SpecError(
            f"{what} {name!r} is not a name. Use up to 64 of a-z, 0-9, '-' and '_', beginning with a letter or digit."
        )
    return name
