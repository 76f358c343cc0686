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
    must_be_same_release,
    must_share_relation,
    no_grant,
)
from .database import ENTRIES, PATIENCE, Database, open_database, raise_version
from .entries import (
    NO_HASH,
    Draft,
    Entry,
    Head,
    KnownHead,
    Totals,
    body_of,
    chain_problems,
    head_problems,
    link,
    must_be_name,
)
from .home import Home
from .public_chain import public_chain
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

NEIGHBOURS = ("add_remove", "substitute")


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
            return _entries(connection, population=population, release=release)

    def head(self) -> Head:
        with self.database.reading() as connection:
            return _head(connection)

    def account(self, population: str) -> Account:
        with self.database.reading() as connection:
            account = _account(connection, population)
        if account is None:
            raise BudgetRefused(no_grant(population))
        return account

    def accounts(self) -> list[Account]:
        with self.database.reading() as connection:
            names = connection.scalars(sql.select(ENTRIES.c.population).where(ENTRIES.c.kind == "grant").distinct())
            return [account for name in sorted(names) if (account := _account(connection, name)) is not None]

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
        entries = self.entries()
        heads = [*(KnownHead(f"the anchor {anchor.path}", *head) for head in anchored), *published_heads]
        own, public = ([head for head in heads if head.chain == chain] for chain in ("own", "public"))
        problems = [*chain_problems(entries), *head_problems((entry.head for entry in entries), own)]
        problems += head_problems((entry.head for entry in public_chain(entries)), public, "public entry")
        if not anchored and any(entry.kind == "charge" for entry in entries):
            problems.append(f"the anchor {anchor.path} is missing or empty, though charges were anchored")
        return problems

    def must_be_current(self, anchor: Anchor, published_heads: Iterable[KnownHead] = ()) -> None:
        """Refuses to go on with a ledger that does not verify."""
        problems = self.verify(anchor, published_heads)
        if problems:
            more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
            raise EvidenceBroken(
                f"the ledger {self.database.name} does not verify: {'; '.join(problems[:3])}{more}. Nothing was "
                "charged or drawn. Restore the newest ledger and anchor; see: steps budget verify"
            )

    def grant(
        self,
        population: str,
        nanos: int,
        why: str,
        neighbours: str = "add_remove",
        unit: str = "person",
        key: str | None = None,
    ) -> Entry:
        """Adds to a population's budget; its first grant fixes neighbours and unit."""
        must_be_name("population", population)
        must_be_name("unit", unit)
        must_be_amount(nanos)
        if neighbours not in NEIGHBOURS:
            raise SpecError(f'neighbours "{neighbours}" is none of {", ".join(NEIGHBOURS)}.')
        if not why.strip():
            raise SpecError(f'a grant to population "{population}" needs a reason: --why "…"')

        def draft(connection: sql.Connection) -> Draft:
            account = _account(connection, population)
            if account is not None:
                must_share_relation(account, neighbours, unit)
                if account.granted + nanos > LARGEST:
                    raise SpecError(f'population "{population}" would be granted more than ε={show_nanos(LARGEST)}.')
            name = key or f"{population}:{_head(connection)[0] + 1}"
            body = body_of({"why": why, "neighbours": neighbours, "unit": unit})
            return Draft("grant", f"grant:{name}", population, None, body, nanos)

        return self._write(draft)[0]

    def charge(self, request: ChargeRequest) -> Charge:
        """Pays for a release once. Balance, payment and the search for an earlier payment are one transaction."""
        must_be_name("release", request.release)
        must_be_amount(request.nanos)

        def draft(connection: sql.Connection) -> Draft | Entry:
            history = _entries(connection, release=request.release)
            if attempt_of(history):
                must_be_same_release(request, history)
                if state_of(history) != "burnt":
                    return current(history)[0]
            must_be_affordable(request, _account(connection, request.population))
            attempt = attempt_of(history) + 1
            body, key = body_of(request.body(attempt)), f"charge:{request.release}#{attempt}"
            return Draft("charge", key, request.population, request.release, body, request.nanos)

        return Charge(*self._write(draft))

    def seal(self, release: str, stage: str, side: str, identity: str, digest: str, size: int | None = None) -> Entry:
        """Makes an artifact readable: `digest` is its hash (public) or keyed hash (confidential, and no size)."""
        must_be_name("release", release)
        must_be_name("stage", stage)
        body = body_of({"stage": stage, "side": side, "id": identity, "digest": digest, "size": size})

        def draft(connection: sql.Connection) -> Draft:
            if stage in BEFORE_DRAW:
                return Draft("seal", f"seal:{release}:{stage}:{identity}", None, release, body)
            history = _entries(connection, release=release)
            must_follow("seal", release, history)
            key = f"seal:{release}#{attempt_of(history)}:{stage}"
            return Draft("seal", key, current(history)[0].population, release, body)

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
            history = _entries(connection, release=release)
            said = next((entry for entry in current(history) if entry.kind == kind), None)
            if said is not None:
                return said
            must_follow(kind, release, history)
            key = f"{kind}:{release}#{attempt_of(history)}"
            return Draft(kind, key, current(history)[0].population, release, body_of(details))

        return self._write(draft)[0]

    def _write(self, decide: Callable[[sql.Connection], Draft | Entry]) -> tuple[Entry, bool]:
        """Appends what `decide` drafts, in one transaction; False: the entry was there already."""
        with self.database.writing() as connection:
            head = _head(connection)
            if head != (0, NO_HASH):
                self.anchor.append(*head)  # so the anchor lacks one entry at most, wherever a process is killed
            draft = decide(connection)
            if isinstance(draft, Entry):
                return draft, False
            if (found := _by_key(connection, draft.key)) is not None:
                _must_say(found, draft)
                return found, False
            entry = link(draft, head, _totals(connection, draft.population), _now(), _actor())
            raise_version(connection)
            connection.execute(sql.insert(ENTRIES).values(asdict(entry)))
        self.anchor.append(*entry.head)
        return entry, True


def _must_say(found: Entry, draft: Draft) -> None:
    if not found.says(draft):
        raise EvidenceBroken(f'entry {found.seq} of the ledger has the key "{draft.key}" and says something else.')


def _entries(connection: sql.Connection, **columns: str | None) -> list[Entry]:
    wanted = [ENTRIES.c[name] == value for name, value in columns.items() if value is not None]
    rows = connection.execute(sql.select(ENTRIES).where(*wanted).order_by(ENTRIES.c.seq))
    return [Entry(**row) for row in rows.mappings()]


def _by_key(connection: sql.Connection, key: str) -> Entry | None:
    return next(iter(_entries(connection, key=key)), None)


def _head(connection: sql.Connection) -> Head:
    last = connection.execute(sql.select(ENTRIES.c.seq, ENTRIES.c.hash).order_by(ENTRIES.c.seq.desc()).limit(1)).first()
    return (last.seq, last.hash) if last else (0, NO_HASH)


def _totals(connection: sql.Connection, population: str | None) -> Totals:
    columns = sql.select(ENTRIES.c.granted_after, ENTRIES.c.charged_after)
    last = columns.where(ENTRIES.c.population == population).order_by(ENTRIES.c.seq.desc()).limit(1)
    found = connection.execute(last).first()
    return Totals(found.granted_after, found.charged_after) if found else Totals()


def _account(connection: sql.Connection, population: str) -> Account | None:
    granted = ENTRIES.c.kind == "grant", ENTRIES.c.population == population
    row = connection.execute(sql.select(ENTRIES).where(*granted).order_by(ENTRIES.c.seq).limit(1)).mappings().first()
    if row is None:
        return None
    terms, totals = Entry(**row).details, _totals(connection, population)
    return Account(population, totals.granted, totals.charged, terms["neighbours"], terms["unit"])


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _actor() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name  # the account that runs the process, not what its environment says
    except KeyError:
        return str(os.geteuid())
