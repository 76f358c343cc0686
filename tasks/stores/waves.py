"""Populations that share people: what somebody in all of them has lost, and the caps on it. Pure values.

Whoever is in several populations meets the releases of all of them: their costs add up (PRIVACY.md, "Several waves"). Sharing
is symmetric and, for want of knowing better, transitive: with A and B, B and C, somebody may be in all three. Once said it
stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from schemas.budget import UNIT, parse_nanos, show_nanos

from .entries import Entry

_NOT_SAID = "it does not say what such an entry says"


def in_rho(epsilon: int) -> int:
    """ε-differential privacy is (ε²/2)-zCDP; both in 10⁻⁹, rounded up.

    >>> in_rho(1_000_000_000), in_rho(1)
    (500000000, 1)
    """
    return -(-(epsilon**2) // (2 * UNIT))


@dataclass(frozen=True)
class Cap:
    """The most that somebody in a population, and in those that share people with it, may lose in all."""

    population: str
    nanos: int
    measure: str


@dataclass(frozen=True)
class Loss:
    """What somebody in all these populations has lost by all charges together, in 10⁻⁹ of a measure; and the tightest cap."""

    populations: tuple[str, ...]
    measure: str
    total: int
    cap: Cap | None = None

    @property
    def said(self) -> dict[str, Any]:
        """As a charge's body has it."""
        plain = {"populations": [*self.populations], "measure": self.measure, "total": show_nanos(self.total)}
        return plain | ({"cap": show_nanos(self.cap.nanos)} if self.cap else {})

    @property
    def is_too_much(self) -> bool:
        return self.cap is not None and self.total > self.cap.nanos


@dataclass(frozen=True)
class Spent:
    """All charges on one population, under the terms of its first grant. `epsilon` means nothing where its measure is ρ."""

    neighbours: str
    unit: str
    measure: str
    epsilon: int = 0
    rho: int = 0

    def and_also(self, amount: int) -> Spent:
        """Every charge is converted by itself: ε₁²/2 + ε₂²/2 is less than (ε₁ + ε₂)²/2, and holds as well."""
        rho = in_rho(amount) if self.measure == "pure" else amount
        return Spent(self.neighbours, self.unit, self.measure, self.epsilon + amount, self.rho + rho)


@dataclass
class Waves:
    """Who shares people with whom, what was charged and which caps stand, as the entries so far leave it."""

    spent: dict[str, Spent] = field(default_factory=dict)
    caps: dict[str, Cap] = field(default_factory=dict)  # the last one that was set on each population
    groups: dict[str, frozenset[str]] = field(default_factory=dict)

    def group(self, population: str, others: Iterable[str] = ()) -> frozenset[str]:
        """Everybody's populations who may be in this one, were it to share people with these others too."""
        return frozenset().union(*(self.groups.get(name, frozenset({name})) for name in (population, *others)))

    def unsummable(self, group: Collection[str], cap: Cap | None = None) -> str | None:
        """Why losses in these populations have no sum; None: they have. `cap`: one that would be set."""
        members = [self.spent[name] for name in sorted(group) if name in self.spent]
        for what, terms in (("neighbours", {each.neighbours for each in members}), ("units", {each.unit for each in members})):
            if len(terms) > 1:
                return f"their budgets are for different {what} ({', '.join(sorted(terms))}), whose losses do not add up"
        caps = self._caps(group, cap)
        if len({each.measure for each in caps}) > 1:
            return "there are lifetime caps in ε and in ρ over them; set those in ε anew in ρ"
        if any(each.measure == "pure" for each in caps) and any(each.measure != "pure" for each in members):
            return (
                "the lifetime cap over them is in ε and a budget of theirs is in ρ, which has no price in ε; set the cap in ρ"
            )
        return None

    def loss(self, group: Collection[str], more: tuple[str, int] | None = None) -> Loss | None:
        """What somebody in all of them has lost, with `more` (a population and an amount); None: one population, no cap."""
        caps = self._caps(group)
        if len(group) < 2 and not caps:
            return None
        spent = [self.spent[name] for name in group if name in self.spent and (more is None or more[0] != name)]
        spent += [self.spent[more[0]].and_also(more[1])] if more is not None else []
        is_pure = caps[0].measure == "pure" if caps else all(each.measure == "pure" for each in spent)
        total = sum(each.epsilon if is_pure else each.rho for each in spent)
        cap = min(caps, key=lambda each: (each.nanos, each.population), default=None)
        return Loss(tuple(sorted(group)), "pure" if is_pure else "zcdp", total, cap)

    def _caps(self, group: Collection[str], cap: Cap | None = None) -> list[Cap]:
        standing = {name: self.caps[name] for name in group if name in self.caps}
        return [*(standing | ({cap.population: cap} if cap else {})).values()]

    def problems(self, entry: Entry) -> Iterator[str]:
        """Takes the entry; what does not hold in it about populations that share people."""
        if entry.kind not in ("grant", "cap", "charge") or entry.population is None:
            return
        try:
            problem = self._take(entry, entry.population, entry.said)
        except (KeyError, TypeError, ValueError, AttributeError):
            problem = _NOT_SAID
        if problem is not None:
            yield f"entry {entry.seq} ({entry.kind}): {problem}"

    def _take(self, entry: Entry, population: str, said: Mapping[str, Any]) -> str | None:
        if entry.kind == "grant":
            terms = Spent(said["neighbours"], said["unit"], entry.measure or "pure")
            self.spent.setdefault(population, terms)
            return None
        if population not in self.spent:
            return None  # told by the sums
        self.join(population, said.get("with" if entry.kind == "cap" else "overlaps", ()))
        if entry.kind == "cap":
            return self._set(population, said)
        self.spent[population] = self.spent[population].and_also(entry.amount)
        return self._unlike(said.get("waves"), self.group(population))

    def join(self, population: str, others: Iterable[str]) -> None:
        """From now on these share people, and all who share people with any of them."""
        group = self.group(population, others)
        self.groups |= dict.fromkeys(group, group) if len(group) > 1 else {}

    def _set(self, population: str, said: Mapping[str, Any]) -> str | None:
        cap = Cap(population, parse_nanos(said["cap"]), said["measure"])
        if cap.measure not in ("pure", "zcdp"):
            return _NOT_SAID
        self.caps[population] = cap
        return self.unsummable(self.group(population))

    def _unlike(self, said: Any, group: Collection[str]) -> str | None:
        """Whether a charge says what follows from all entries up to it, and keeps the caps."""
        names = ", ".join(sorted(group))
        if (why := self.unsummable(group)) is not None:
            return f"{names} share people, and {why}"
        loss = self.loss(group)
        if said != (loss.said if loss else None):
            return f"what it says of losses in {names}, which share people, does not follow from the entries"
        return f"somebody in {names} has lost more than the lifetime cap allows" if loss and loss.is_too_much else None


def wave_problems(entries: Iterable[Entry]) -> Iterator[str]:
    """Charges beyond a lifetime cap, or that say another loss than follows from the entries."""
    waves = Waves()
    for entry in entries:
        yield from waves.problems(entry)
