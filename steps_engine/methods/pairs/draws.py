"""The draws of a plan of pairs: margins, elections, tables and pairs again, each by its part of what they are paid with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from schemas.plan import Draw
from schemas.plan import Table as Names
from schemas.spec.domain import Domain
from steps_engine.accounting.plans import Allowance
from steps_engine.methods.pairs.division import (
    Block,
    Matter,
    blocks,
    candidates,
    crossed,
    grouped_sizes,
    is_whole,
    shares_of,
    weights,
)
from steps_engine.methods.pairs.kept_back import Again
from steps_engine.methods.pairs.structure import Table

SPREAD = Fraction(1)  # of a pair's score


def election_draws(number: int, cost: Fraction, allowance: Allowance) -> Iterator[Draw]:
    """So many elections of a pair, alike in cost."""
    for i in range(number):
        yield allowance.election(f"election {i + 1}", cost / number, SPREAD, layer=i)


def margin_draws(domain: Domain, matter: Matter, cost: Fraction, counted: bool, allowance: Allowance) -> Iterator[Draw]:
    """The number of rows, where it is not known, and every one-way table; under ε those of two categories together."""
    named: list[Table] = [(), *((j,) for j, size in enumerate(domain.sizes) if size > 1)]
    found = blocks(named if counted else named[1:], domain.sizes, allowance)
    shares = shares_of(weights(found, domain.sizes, matter, allowance)) if found else []
    for set_ in allowance.served:
        for block, share in zip(found, shares, strict=True):
            yield _drawn(domain.names, block, share * cost, _said(set_), "(margins)", set_, 0, allowance)


def _said(set_: int | None) -> str:
    return "all sets" if set_ is None else f"set {set_}"


def table_draws(
    domain: Domain, matter: Matter, tables: Sequence[Table], elected: int, cost: Fraction, allowance: Allowance
) -> Iterator[Draw]:
    """Every table by what its noise is expected to cost in error; elected ones alike."""
    names, all_sizes = domain.names, domain.sizes
    found = blocks(tables, all_sizes, allowance)
    whole = not elected and is_whole(domain, allowance)
    sizes = domain.sizes if whole else grouped_sizes(domain, allowance, float(cost), matter.declared)
    alone = weights([Block((pair,)) for pair in candidates(domain)], sizes, matter, allowance)
    votes = [sum(alone) / len(alone)] * elected  # an elected pair is expected to matter as others do
    shares = shares_of([*weights(found, sizes, matter, allowance), *votes])
    for set_ in allowance.served:
        before = _said(set_)
        for i in range(1, elected + 1):
            name = f"{before}: elected pair {i}"
            yield allowance.interaction(name, shares[-1] * cost, of="elected", tree=f"pair {i}", set_=set_)
        for block, share in zip(found, shares, strict=False):
            shared = [names[j] for j in crossed(block.tables[0], all_sizes)]
            tree = " × ".join([*shared, "(others)"]) if shared else "(pairs)"
            yield _drawn(names, block, share * cost, before, tree, set_, 1, allowance)


def again_draws(waits: Again, cost: Fraction, allowance: Allowance) -> Iterator[Draw]:
    """Of pairs that the first noise chooses: each by the same part of what was kept back."""
    for set_ in allowance.served:
        for i in range(1, waits.number + 1):
            name = f"{_said(set_)}: a pair again, {i}"
            yield allowance.interaction(name, waits.part * cost / waits.number, of="again", tree=f"again {i}", set_=set_)


def _drawn(
    names: Names, block: Block, cost: Fraction, before: str, tree: str, set_: int | None, layer: int, allowance: Allowance
) -> Draw:
    """One table, or many under the name of what they have in common."""
    of: tuple[Names, ...] = tuple(tuple(names[j] for j in table) for table in block.tables)
    if len(of) == 1:
        name = " × ".join(of[0]) or "(rows)"
        return allowance.interaction(f"{before}: {name}", cost, of=of[0], tree=name, set_=set_, layer=layer)
    return allowance.joint(f"{before}: {tree}", cost, of=of, tree=tree, set_=set_, layer=layer)
