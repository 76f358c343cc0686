"""Who may act on a ledger: people with a signing key each, registered by entries that approvers sign. Pure values.

Once anybody is registered, grants, charges, decisions, burns, changes of people and of the home's keys need the signature of
a person who has the role for it; names that an environment, an account or a form says decide nothing. One approver alone
changes no people where there are two: whoever could would make the other eyes himself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from schemas.errors import SpecError

from .approvals import is_approved, needs_approval, signer_of
from .entries import NO_HASH, SIGNED, Draft, Entry
from .signatures import holds, statement_of

OPERATOR, APPROVER = "operator", "approver"

# Which entries are people's, and the roles that may sign them; approvals and rejections: whom the release names.
SIGNERS: dict[str, tuple[str, ...]] = {
    "grant": (APPROVER,),
    "cap": (APPROVER,),
    "charge": (OPERATOR,),
    "approve": (),
    "reject": (),
    "abandon": (OPERATOR, APPROVER),
    "burn": (OPERATOR, APPROVER),
    "withdraw": (APPROVER,),
    "supersede": (APPROVER,),
    "person": (APPROVER,),
    "anchor": (APPROVER,),
    "home": (OPERATOR, APPROVER),
}


@dataclass(frozen=True)
class Person:
    """A registered person; `key` is the public key in hexadecimal, `since` the entry that made it count."""

    name: str
    roles: tuple[str, ...]
    key: str
    since: int


@dataclass(frozen=True)
class Change:
    """What approvers say about a person: the same words from enough of them make it so."""

    act: str  # "add" (which also replaces key and roles) or "remove"
    name: str
    roles: tuple[str, ...]
    key: str

    @classmethod
    def of(cls, said: dict[str, Any]) -> Change:
        return cls(said["act"], said["name"], tuple(said["roles"]), said["public_key"])


@dataclass
class People:
    """The people of a ledger, as its entries so far leave them."""

    active: dict[str, Person] = field(default_factory=dict)
    proposed: dict[Change, set[str]] = field(default_factory=dict)  # and who said so
    revoked: set[str] = field(default_factory=set)  # keys that were in use once
    changed: dict[str, int] = field(default_factory=dict)  # by which entry each name was last added, changed or removed
    _asked: dict[str, tuple[str, ...]] = field(default_factory=dict)  # whose approval each release needs
    _waiting: dict[str, list[Entry]] = field(default_factory=dict)  # entries since a signed charge, until enough approved

    @property
    def are_registered(self) -> bool:
        return bool(self.active)

    def having(self, *roles: str) -> list[Person]:
        return [person for person in self.active.values() if set(roles) & set(person.roles)]

    def owner_of(self, key: str) -> Person | None:
        return next((person for person in self.active.values() if person.key == key), None)

    def needed(self) -> int:
        """How many approvers a change of people needs."""
        return min(2, len(self.having(APPROVER)))

    def roles_for(self, kind: str, release: str | None) -> tuple[str, ...]:
        return SIGNERS[kind] or self._asked.get(release or "", (APPROVER,))

    def concerns(self, kind: str) -> bool:
        """Whether an entry of this kind needs a person's signature."""
        return kind in SIGNERS and (self.are_registered or kind == "person")

    def refusal(self, kind: str, release: str | None, public: str, change: Change | None = None) -> str | None:
        """Why the holder of this key may not sign such an entry; None: may."""
        if kind == "person" and not self.are_registered:
            first = change is not None and (change.act, change.key) == ("add", public) and APPROVER in change.roles
            return None if first else f"the first person is an {APPROVER} and signs with the key that is registered"
        person, roles = self.owner_of(public), self.roles_for(kind, release)
        if person is None:
            known = "was revoked" if public in self.revoked else "is not registered"
            return f"the key {public[:16]}… {known}"
        if not set(roles) & set(person.roles):
            return f'"{person.name}" is {" and ".join(person.roles)}, not {" or ".join(roles)}'
        return None

    def problems(self, entry: Entry, ledger: str) -> Iterator[str]:
        """Takes the entry; what does not hold about who wrote it."""
        if self.concerns(entry.kind):
            try:
                problem = self._problem(entry, ledger)
            except (KeyError, TypeError, AttributeError):
                problem = "it does not say what such an entry says"
            if problem is not None:
                yield f"entry {entry.seq} ({entry.kind}): {problem}"
                return
        if entry.kind == "publish" and entry.release in self._waiting:
            yield f'entry {entry.seq} (publish): release "{entry.release}" was not approved as its charge asks'
        self._take(entry)

    def _problem(self, entry: Entry, ledger: str) -> str | None:
        said = entry.said
        if SIGNED not in said:
            return "people were registered before it, and nobody signed it"
        by, public, signature = (said[SIGNED][name] for name in ("by", "key", "signature"))
        change = Change.of(said) if entry.kind == "person" else None
        if (refusal := self.refusal(entry.kind, entry.release, public, change)) is not None:
            return refusal
        if not holds(public, signature, statement_of(entry, said, ledger if entry.seq > 1 else NO_HASH)):
            return f'the signature of "{by}" does not fit what it says'
        owner = self.owner_of(public)
        if by != (owner.name if owner else said.get("name")) or by != said.get("who", by):
            return f'it names "{by}"; the key that signed it is another\'s'
        return self.impossible(change) if change is not None else None

    def impossible(self, change: Change) -> str | None:
        """Why nobody can say this about a person."""
        owner, person = self.owner_of(change.key), self.active.get(change.name)
        if change.act == "add":
            if change.key in self.revoked or (owner is not None and owner.name != change.name):
                return f"the key {change.key[:16]}… is or was another's, or was revoked; make another: steps keys new FILE"
        elif person is None:
            return f'"{change.name}" is not registered'
        left = [each for each in self.having(APPROVER) if each.name != change.name]
        if self.are_registered and not left and APPROVER not in change.roles:
            return f'"{change.name}" is the last {APPROVER}; register another first'
        return None

    def _take(self, entry: Entry) -> None:
        if entry.kind == "charge":
            asked = entry.said.get("context", {}).get("approval")
            named = asked.get("from") if isinstance(asked, dict) else None
            self._asked[entry.release or ""] = tuple(named or (APPROVER,))
            self._waiting.pop(entry.release or "", None)
            if needs_approval(entry) and signer_of(entry) is not None:
                self._waiting[entry.release or ""] = [entry]
        elif entry.kind in ("seal", "approve") and (since := self._waiting.get(entry.release or "")) is not None:
            since.append(entry)
            if entry.kind == "approve" and is_approved(since):
                del self._waiting[entry.release or ""]
        elif entry.kind == "person":
            change = Change.of(entry.said)
            voices = self.proposed.setdefault(change, set())
            voices.add(entry.said[SIGNED]["by"])
            approvers = {person.name for person in self.having(APPROVER)}
            if not self.are_registered or len(voices & approvers) >= self.needed():
                self._make_so(change, entry.seq)

    def _make_so(self, change: Change, seq: int) -> None:
        before = self.active.pop(change.name, None)
        if before is not None and (change.act == "remove" or before.key != change.key):
            self.revoked.add(before.key)
        if change.act == "add":
            self.active[change.name] = Person(change.name, change.roles, change.key, seq)
        self.changed[change.name] = seq
        self.proposed = {each: voices for each, voices in self.proposed.items() if each.name != change.name}


def must_be_allowed(people: People, draft: Draft, public: str | None, change: Change | None = None) -> str:
    """The name under which the holder of this key signs the draft."""
    what = f'"{draft.release}"' if draft.release else f'population "{draft.population}"' if draft.population else "the ledger"
    if public is None:
        roles = " or ".join(people.roles_for(draft.kind, draft.release))
        raise SpecError(
            f"{draft.kind} for {what} needs the signature of {_article(roles)}: people are registered in this ledger. Nothing "
            "was written. Say whose key signs: --as FILE, or STEPS_KEY."
        )
    if (refusal := people.refusal(draft.kind, draft.release, public, change)) is not None:
        raise SpecError(f"{draft.kind} for {what} was refused: {refusal}. Nothing was written. See: steps people list")
    person = people.owner_of(public)
    return person.name if person else change.name if change else ""


def _article(role: str) -> str:
    return f"{'an' if role[0] in 'aeiou' else 'a'} {role}"
