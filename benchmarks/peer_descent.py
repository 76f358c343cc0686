"""Mirror descent of the peers' models, step for step as dpmm has it, on bare arrays: axes are worked out once for a model.

dpmm works out anew for every product, in every iteration, how two tables lie to each other, which is most of its time while
tables are small. Same potentials, same messages, same line search; measurements of one table are added up beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Tables = list[np.ndarray]
HALVINGS = 25  # of a step, at most


@dataclass(frozen=True)
class Part:
    """Some attributes of a clique as a table of their own: which axes are summed over, and how it spreads out again."""

    summed: tuple[int, ...]
    shape: tuple[int, ...]

    def of(self, table: np.ndarray) -> np.ndarray:
        return table.sum(axis=self.summed)

    def log_of(self, table: np.ndarray) -> np.ndarray:
        top = table.max(axis=self.summed, keepdims=True)
        below = table - top
        return np.log(np.exp(below, out=below).sum(axis=self.summed)) + top.reshape(self.kept)

    def spread(self, part: np.ndarray) -> np.ndarray:
        return part.reshape(self.shape)

    @property
    def kept(self) -> tuple[int, ...]:
        return tuple(size for axis, size in enumerate(self.shape) if axis not in self.summed)


def part(domain: Any, clique: tuple[str, ...], attributes: tuple[str, ...]) -> Part:
    """Its axes stay in the clique's order, which is the domain's."""
    summed = tuple(axis for axis, name in enumerate(clique) if name not in attributes)
    return Part(summed, tuple(domain.config[name] if name in attributes else 1 for name in clique))


@dataclass(frozen=True)
class Seen:
    """All measurements y of one table x: Σ((q·x − y)/σ)², cell by cell, is weight·(x − mean)² and a constant."""

    clique: int
    part: Part
    weight: np.ndarray
    mean: np.ndarray


def factors_of(query: Any, cells: int) -> np.ndarray:
    """The diagonal q of a query: MST counts categories that it joined as one with a factor below 1."""
    found, trial = query @ np.ones(cells), np.arange(1.0, cells + 1)
    if not np.allclose(query @ trial, found * trial):
        raise ValueError("a measurement mixes cells: that is not foreseen here")
    return found


def seen_in(engine: Any, cliques: list[tuple[str, ...]]) -> list[Seen]:
    found: dict[tuple[int, tuple[str, ...]], list[np.ndarray]] = {}
    for number, clique in enumerate(cliques):
        for query, values, noise, attributes in engine.groups[clique]:
            order = tuple(name for name in clique if name in attributes)
            factors, sizes = factors_of(query, values.size), [engine.domain.config[name] for name in attributes]
            both = np.stack([factors**2, factors * values]).reshape(2, *sizes) / noise**2
            turned = both.transpose(0, *(1 + attributes.index(name) for name in order))
            found.setdefault((number, order), []).append(turned)
    return [_seen(engine.domain, cliques, *key, sum(measured)) for key, measured in found.items()]


def _seen(domain: Any, cliques: list[tuple[str, ...]], number: int, order: tuple[str, ...], both: np.ndarray) -> Seen:
    weight, pull = both
    return Seen(number, part(domain, cliques[number], order), weight, pull / weight)


@dataclass(frozen=True)
class Passing:
    """Messages of belief propagation, in the order of the junction tree."""

    total: float
    order: list[tuple[int, int, Part, Part]]

    def marginals(self, potentials: Tables) -> Tables:
        beliefs, messages = [table.copy() for table in potentials], dict[tuple[int, int], np.ndarray]()
        for one, other, leaving, arriving in self.order:
            back = messages.get((other, one))
            table = beliefs[one] if back is None else beliefs[one] - leaving.spread(back)
            messages[one, other] = leaving.log_of(table)
            beliefs[other] += arriving.spread(messages[one, other])
        top = beliefs[0].max()
        log_z = np.log(np.exp(beliefs[0] - top).sum()) + top
        for table in beliefs:
            table += np.log(self.total) - log_z
            np.exp(table, out=table)
        return beliefs


def passing(model: Any) -> Passing:
    number, domain = {clique: at for at, clique in enumerate(model.cliques)}, model.domain
    order = []
    for one, other in model.message_order:
        common = tuple(model.sep_axes[one, other])
        order.append((number[one], number[other], part(domain, one, common), part(domain, other, common)))
    return Passing(model.total, order)


def gradient_at(seen: list[Seen], marginals: Tables) -> tuple[float, Tables, Tables]:
    """Loss but for a constant, its slope by each measured table, and those tables."""
    tables = [each.part.of(marginals[each.clique]) for each in seen]
    apart = [table - each.mean for each, table in zip(seen, tables, strict=True)]
    slopes = [each.weight * one for each, one in zip(seen, apart, strict=True)]
    return float(sum(0.5 * np.vdot(slope, one) for slope, one in zip(slopes, apart, strict=True))), slopes, tables


def stepped(potentials: Tables, seen: list[Seen], slopes: Tables, step: float) -> Tables:
    moved = [table.copy() for table in potentials]
    for each, slope in zip(seen, slopes, strict=True):
        moved[each.clique] -= each.part.spread(step * slope)
    return moved


def descended(start: Tables, seen: list[Seen], messages: Passing, iterations: int) -> tuple[Tables, Tables]:
    """Potentials and marginals; a step is at first twice the one before, and halved until the loss falls as it should."""
    potentials, marginals, step = start, messages.marginals(start), 1 / messages.total**2
    now = gradient_at(seen, marginals)
    for _ in range(iterations):
        begun, (before, slopes, tables), step = potentials, now, 2 * step
        for _halving in range(HALVINGS):
            potentials = stepped(begun, seen, slopes, step)
            marginals = messages.marginals(potentials)
            now = gradient_at(seen, marginals)
            promised = sum(np.vdot(slope, old - new) for slope, old, new in zip(slopes, tables, now[2], strict=True))
            if before - now[0] >= 0.5 * step * promised:
                break
            step *= 0.5
    return potentials, marginals


def mirror_descent(engine: Any, measurements: list[Any], total: float | None = None, callback: Any = None) -> None:
    """In place of FactoredInference.mirror_descent with its line search and the squared loss."""
    engine._setup(measurements, total)
    model, factors = engine.model, engine.model.potentials
    start = [factors[clique].values for clique in model.cliques]
    found = descended(start, seen_in(engine, model.cliques), passing(model), engine.iters)
    for made, name in zip(found, ("potentials", "marginals"), strict=True):
        tables = zip(model.cliques, made, strict=True)
        of_factors = {clique: type(factors[clique])(factors[clique].domain, table) for clique, table in tables}
        setattr(model, name, type(factors)(of_factors))
