"""The ledger: append-only grants, charges, seals and decisions. What was spent is known here and nowhere else."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sql

from schemas.budget import LARGEST, show_nanos
from schemas.errors import BudgetRefused, EvidenceBroken, SpecError

from .anchor import Anchor
from .charging import (
    Account,
    Charge,
    ChargeRequest,
    must_be_affordable,
    must_be_amount,
    must_be_delta,
    must_be_same_release,
    must_share_measure,
    must_share_relation,
    no_grant,
)
from .database import ENTRIES, PATIENCE, SCHEMA_VERSION, Database, open_database, raise_version, version_of
from .entries import (
    NO_HASH,
    Draft,
    Entry,
    Head,
    KnownHead,
    body_of,
    link,
    must_be_name,
)
from .home import Home
from .queries import read_account, read_accounts, read_by_key, read_entries, read_head, read_totals
from .releases import (
    BEFORE_DRAW,
    ReleaseState,
    attempt_of,
    current,
    find_decision,
    find_seal,
    must_follow,
    state_of,
    summarise,
)
from .soundness import must_be_sound, problems_of

NEIGHBOURS = ("add_remove", "substitute")
DEFAULT_DELTA = "1e-9"  # where the ε of a budget in ρ is quoted, until a grant says another


def open_ledger(home: Home, patience: float = PATIENCE) -> Ledger:
    """This home's ledger, made on first use; `patience` is how many seconds to wait for another writer."""
    return Ledger(open_database(home, patience), Anchor(home.anchor_file))


@dataclass(frozen=True)
class Ledger:
    """One ledger. An entry is committed, and its head anchored, before its caller hears of it."""

    database: Database
    anchor: Anchor

    def entries(self, population: str | None = None, release: str | None = None) -> list[Entry]:
        with self.database.reading() as connection:
            return read_entries(connection, population=population, release=release)

    def head(self) -> Head:
        with self.database.reading() as connection:
            return read_head(connection)

    def account(self, population: str) -> Account:
        with self.database.reading() as connection:
            account = read_account(connection, population)
        if account is None:
            raise BudgetRefused(no_grant(population))
        return account

    def accounts(self) -> list[Account]:
        with self.database.reading() as connection:
            return read_accounts(connection)

    def releases(self) -> list[ReleaseState]:
        """Every release that was charged, in the order of its first entry."""
        histories: dict[str, list[Entry]] = {}
        for entry in self.entries():
            if entry.release is not None:
                histories.setdefault(entry.release, []).append(entry)
        return [summarise(history) for history in histories.values() if attempt_of(history)]

    def state(self, release: str) -> str:
        return state_of(self.entries(release=release))

    def sealed(self, release: str, stage: str) -> Entry | None:
        return find_seal(self.entries(release=release), stage)

    def decision(self, release: str) -> Entry | None:
        return find_decision(self.entries(release=release))

    def verify(self, anchor: Anchor, published_heads: Iterable[KnownHead] = ()) -> list[str]:
        """Every sign that the ledger was edited, cut or replaced by an old copy; empty when it is sound."""
        # The anchor is read first: an entry is committed before it is anchored, so a ledger read later holds it.
        anchored = anchor.read().heads
        return problems_of(self.entries(), anchor, anchored, published_heads)

    def must_be_current(self, anchor: Anchor, published_heads: Iterable[KnownHead] = ()) -> None:
        """Refuses to go on with a ledger that does not verify."""
        must_be_sound(self.database.name, self.verify(anchor, published_heads), "Nothing was charged or drawn")

    def grant(
        self,
        population: str,
        nanos: int,
        why: str,
        neighbours: str = "add_remove",
        unit: str = "person",
        key: str | None = None,
        measure: str = "pure",
        delta: str | None = None,
    ) -> Entry:
        """Adds to a population's budget, whose first grant fixes neighbours, unit and measure; at δ the ε of a ρ is quoted."""
        must_be_name("population", population)
        must_be_name("unit", unit)
        must_be_amount(nanos, measure)
        must_be_delta(delta, measure)
        if neighbours not in NEIGHBOURS:
            raise SpecError(f'neighbours "{neighbours}" is none of {", ".join(NEIGHBOURS)}.')
        if not why.strip():
            raise SpecError(f'a grant to population "{population}" needs a reason: --why "…"')

        def draft(connection: sql.Connection) -> Draft:
            account = read_account(connection, population)
            if account is not None:
                must_share_measure(account, nanos, measure)
                must_share_relation(account, neighbours, unit)
                if account.granted + nanos > LARGEST:
                    most = f"{account.symbol}={show_nanos(LARGEST)}"
                    raise SpecError(f'population "{population}" would be granted more than {most}.')
            name = f"grant:{key or f'{population}:{read_head(connection)[0] + 1}'}"
            terms = {"why": why, "neighbours": neighbours, "unit": unit}
            if measure == "pure":
                return Draft("grant", name, population, None, body_of(terms), nanos)
            said = read_by_key(connection, name)  # a grant that is repeated quotes ε where it did
            quoted = delta or (said.details.get("delta") if said else account and account.delta) or DEFAULT_DELTA
            return Draft("grant", name, population, None, body_of(terms | {"delta": quoted}), nanos, measure)

        return self._write(draft)[0]

    def charge(self, request: ChargeRequest) -> Charge:
        """Pays for a release once. Balance, payment and the search for an earlier payment are one transaction."""
        must_be_name("release", request.release)
        must_be_amount(request.nanos, request.measure)

        def draft(connection: sql.Connection) -> Draft | Entry:
            history = read_entries(connection, release=request.release)
            if attempt_of(history):
                must_be_same_release(request, history)
                if state_of(history) != "burnt":
                    return current(history)[0]
            price = must_be_affordable(request, read_account(connection, request.population))
            attempt = attempt_of(history) + 1
            body, key = body_of(request.body(attempt)), f"charge:{request.release}#{attempt}"
            return Draft("charge", key, request.population, request.release, body, *price)

        return Charge(*self._write(draft))

    def seal(
        self, release: str, stage: str, side: str, identity: str, digest: str, size: int | None = None, remade: int = 0
    ) -> Entry:
        """Makes an artifact readable: `digest` is its hash (public) or keyed hash (confidential, and no size).

        `remade`: how often it was made again under this charge, after it was lost; never a draw.
        """
        must_be_name("release", release)
        must_be_name("stage", stage)
        again = {"remade": remade} if remade else {}
        body = body_of({"stage": stage, "side": side, "id": identity, "digest": digest, "size": size, **again})

        def draft(connection: sql.Connection) -> Draft:
            if stage in BEFORE_DRAW:
                return Draft("seal", f"seal:{release}:{stage}:{identity}", None, release, body)
            history = read_entries(connection, release=release)
            must_follow("seal", release, history)
            key = f"seal:{release}#{attempt_of(history)}:{stage}" + (f"~{remade}" if remade else "")
            return _under(current(history)[0], "seal", key, body)

        return self._write(draft)[0]

    def decide(self, release: str, verdict: str, who: str, why: str) -> Entry:
        """A person's "approve" or "reject", once."""
        if verdict not in ("approve", "reject"):
            raise SpecError(f'a release is approved or rejected; "{verdict}" is neither.')
        return self._mark(verdict, release, who=who, why=why)

    def burn(self, release: str, reason: str) -> Entry:
        """Records that a sealed draw is lost: its charge stays spent and pays for nothing any more."""
        return self._mark("burn", release, reason=reason)

    def abandon(self, release: str, why: str) -> Entry:
        return self._mark("abandon", release, why=why)

    def publish(self, release: str, manifest_hash: str) -> Entry:
        entry = self._mark("publish", release, manifest_hash=manifest_hash)
        if entry.details["manifest_hash"] != manifest_hash:
            raise EvidenceBroken(f'release "{release}" was published with another manifest; it stays as it is.')
        return entry

    def evaluated(self, release: str) -> Entry:
        """Records that the evaluation is sealed: from here on the exact counts may be deleted."""
        return self._mark("evaluate", release)

    def _mark(self, kind: str, release: str, **details: Any) -> Entry:
        """One entry of this kind per charge; saying it again finds the first."""

        def draft(connection: sql.Connection) -> Draft | Entry:
            history = read_entries(connection, release=release)
            said = next((entry for entry in current(history) if entry.kind == kind), None)
            if said is not None:
                return said
            must_follow(kind, release, history)
            key = f"{kind}:{release}#{attempt_of(history)}"
            return _under(current(history)[0], kind, key, body_of(details))

        return self._write(draft)[0]

    def _write(self, decide: Callable[[sql.Connection], Draft | Entry]) -> tuple[Entry, bool]:
        """Appends what `decide` drafts, in one transaction; False: the entry was there already."""
        with self.database.writing() as connection:
            old = self._verified(connection) if version_of(connection) < SCHEMA_VERSION else None
            head = read_head(connection)
            if head != (0, NO_HASH):
                self.anchor.append(*head)  # so the anchor lacks one entry at most, wherever a process is killed
            draft = decide(connection)
            if isinstance(draft, Entry):
                return draft, False
            if (found := read_by_key(connection, draft.key)) is not None:
                _must_say(found, draft)
                return found, False
            entry = link(draft, head, read_totals(connection, draft.population), _now(), _actor())
            if old is not None:
                raise_version(connection)
                self._must_be_unchanged(connection, old)
            connection.execute(sql.insert(ENTRIES).values(asdict(entry)))
        self.anchor.append(*entry.head)
        return entry, True

    def _verified(self, connection: sql.Connection) -> list[Entry]:
        """The entries, which verify: only then may their table be changed."""
        entries = read_entries(connection)
        problems = problems_of(entries, self.anchor, self.anchor.read().heads)
        must_be_sound(self.database.name, problems, "It was not migrated, and nothing was written")
        return entries

    def _must_be_unchanged(self, connection: sql.Connection, before: list[Entry]) -> None:
        if self._verified(connection) != before:
            raise EvidenceBroken(f"the migration of the ledger {self.database.name} changed an entry; it was undone.")


def _under(charge: Entry, kind: str, key: str, body: str) -> Draft:
    """A draft of what follows a release's charge: the totals beside it are in the charge's measure."""
    return Draft(kind, key, charge.population, charge.release, body, measure=charge.measure)


def _must_say(found: Entry, draft: Draft) -> None:
    if not found.says(draft):
        raise EvidenceBroken(f'entry {found.seq} of the ledger has the key "{draft.key}" and says something else.')


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _actor() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name  # the account that runs the process, not what its environment says
    except KeyError:
        return str(os.geteuid())
