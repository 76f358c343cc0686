"""The ledger: append-only grants, charges, seals and decisions. What was spent is known here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sql

from schemas.budget import LARGEST, show_nanos
from schemas.errors import BudgetRefused, EvidenceBroken, SpecError

from .anchor import Anchor
from .approvals import sealed_hash
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
from .database import PATIENCE, Database, open_database
from .entries import Draft, Entry, Head, KnownHead, body_of, must_be_name
from .home import Home, KeyPlace, is_there
from .lifetimes import must_fit
from .people import People
from .queries import read_account, read_accounts, read_by_key, read_entries, read_head
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
from .soundness import anchor_problems, must_be_sound, problems_of
from .walk import walked
from .writing import append, name_of

NEIGHBOURS = ("add_remove", "substitute")
DEFAULT_DELTA = "1e-9"  # where the ε of a budget in ρ is quoted, until a grant says another


def open_ledger(home: Home, patience: float = PATIENCE) -> Ledger:
    """This home's ledger, made on first use; `patience` is how many seconds to wait for another writer."""
    return Ledger(open_database(home, patience), Anchor(home.anchor_file), home.key_file)


def ledger_if_any(home: Home) -> Ledger | None:
    """For who only looks: None where nobody began one, and none is made."""
    return open_ledger(home) if home.ledger_url or is_there(home) else None


@dataclass(frozen=True)
class Ledger:
    """One ledger. An entry is committed, and its head anchored, before its caller hears of it."""

    database: Database
    anchor: Anchor
    key_file: KeyPlace | None = None  # of the person who acts, where people are registered

    def entries(self, population: str | None = None, release: str | None = None) -> list[Entry]:
        with self.database.reading() as connection:
            if release is None:  # also of a ledger that does not verify
                return [entry for entry in read_entries(connection) if population in (None, entry.population)]
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

    def must_afford(self, request: ChargeRequest) -> None:
        """What a charge would be refused for, were it made now; it decides again when it is made."""
        with self.database.reading() as connection:
            price = must_be_affordable(request, read_account(connection, request.population))
            must_fit(walked(connection).waves, request, price)

    def accounts(self) -> list[Account]:
        with self.database.reading() as connection:
            return read_accounts(connection)

    def releases(self) -> list[ReleaseState]:
        """Every release that was charged, in the order of its first entry."""
        with self.database.reading() as connection:
            histories = [*walked(connection).by_release.values()]
        return [summarise(history) for history in histories if attempt_of(history)]

    def state(self, release: str) -> str:
        return state_of(self.entries(release=release))

    def sealed(self, release: str, stage: str) -> Entry | None:
        return find_seal(self.entries(release=release), stage)

    def decision(self, release: str) -> Entry | None:
        return find_decision(self.entries(release=release))

    def verify(self, anchor: Anchor, published_heads: Iterable[KnownHead] = (), drawn: Iterable[str] = ()) -> list[str]:
        """Every sign that the ledger was edited, cut or replaced by an old copy; empty when it is sound."""
        # The anchor is read first: an entry is committed before it is anchored, so a ledger read later holds it. And once more
        # afterwards: an entry is written when the one before it is anchored, so an anchor read later holds all but the last.
        anchored, entries = anchor.read().heads, self.entries()
        problems = problems_of(entries, anchor, anchored, published_heads, drawn)
        return [*self.database.problems(), *problems, *anchor_problems(len(entries), anchor, anchor.read().heads)]

    def must_be_current(self, anchor: Anchor, published_heads: Iterable[KnownHead] = (), drawn: Iterable[str] = ()) -> None:
        """Refuses to go on with a ledger that does not verify."""
        must_be_sound(self.database.name, self.verify(anchor, published_heads, drawn), "Nothing was charged or drawn")

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
        """Pays for a release once. Balance, lifetime caps, payment and the search for an earlier one are one transaction."""
        must_be_name("release", request.release)
        must_be_amount(request.nanos, request.measure)

        def draft(connection: sql.Connection) -> Draft | Entry:
            history = read_entries(connection, release=request.release)
            if attempt_of(history):
                must_be_same_release(request, history)
                if state_of(history) != "burnt":
                    return current(history)[0]
            price = must_be_affordable(request, read_account(connection, request.population))
            shared = must_fit(walked(connection).waves, request, price)
            attempt = attempt_of(history) + 1
            body, key = body_of(request.body(attempt) | shared), f"charge:{request.release}#{attempt}"
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
        """A person's "approve" or "reject", once. Where people are registered, `who` is whose key signs."""
        if verdict not in ("approve", "reject"):
            raise SpecError(f'a release is approved or rejected; "{verdict}" is neither.')
        me = self.me()
        return self._mark(verdict, release, who=who, why=why) if me is None else self._voice(verdict, release, me, why)

    def me(self) -> str | None:
        """Whose key acts here; None where nobody is registered."""
        with self.database.reading() as connection:
            return name_of(walked(connection).people, self.key_file)

    def people(self) -> People:
        with self.database.reading() as connection:
            return walked(connection).people

    def _voice(self, verdict: str, release: str, who: str, why: str) -> Entry:
        """One of several who may decide; each says it once of what is sealed now."""

        def draft(connection: sql.Connection) -> Draft | Entry:
            history = read_entries(connection, release=release)
            entries = current(history)
            sealed = sealed_hash(entries)
            key = f"{verdict}:{release}#{attempt_of(history)}:{who}:{sealed[:16]}"
            if (said := read_by_key(connection, key)) is not None:
                return said
            must_follow(verdict, release, history)
            return _under(entries[0], verdict, key, body_of({"who": who, "why": why, "sealed": sealed}))

        return self._write(draft)[0]

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

    def _write(self, decide: Callable[[sql.Connection], Draft | Entry], new_anchor: bool = False) -> tuple[Entry, bool]:
        """Appends what `decide` drafts, in one transaction; False: the entry was there already."""
        return append(self.database, self.anchor, decide, self.key_file, new_anchor)


def _under(charge: Entry, kind: str, key: str, body: str) -> Draft:
    """A draft of what follows a release's charge: the totals beside it are in the charge's measure."""
    return Draft(kind, key, charge.population, charge.release, body, measure=charge.measure)
