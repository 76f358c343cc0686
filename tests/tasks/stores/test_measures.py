"""A population's budget is in ε or in ρ, fixed by its first grant; neither the ledger nor its database mixes them."""

from __future__ import annotations

import dataclasses
import sqlite3
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from math import ceil

import pytest
import sqlalchemy as sql
from hypothesis import given
from hypothesis import strategies as st

from schemas.budget import LARGEST, UNIT
from schemas.errors import BudgetRefused, EvidenceBroken, SpecError
from schemas.manifest import ChargeEntry
from tasks.stores.charging import ChargeRequest, cost_in
from tasks.stores.entries import NO_HASH, Entry, chain_hash, chain_problems, content_hash
from tasks.stores.home import Home
from tasks.stores.ledger import Ledger, open_ledger
from tasks.stores.public_chain import public_chain

ONE = 10**9
Ask = Callable[..., ChargeRequest]


@pytest.fixture
def in_rho(any_home: Home) -> Ledger:
    """A ledger whose population "youth" has ρ = 0.5 and whose "old" has ε = 1."""
    ledger = open_ledger(any_home)
    ledger.grant("youth", ONE // 2, "pilot", measure="zcdp")
    ledger.grant("old", ONE, "pilot")
    return ledger


def test_the_first_grant_fixes_the_measure_and_a_mixed_one_writes_nothing(in_rho: Ledger):
    before = in_rho.entries()
    with pytest.raises(SpecError) as refused:
        in_rho.grant("youth", 4 * ONE, "mixed")
    for part in ('ε=4 was asked for population "youth"', "is in ρ", "cannot change", "steps budget grant youth --rho RHO"):
        assert part in str(refused.value)
    with pytest.raises(SpecError, match="(?s)ρ=0.1 was asked.*is in ε.*steps budget grant old EPSILON"):
        in_rho.grant("old", ONE // 10, "mixed", measure="zcdp")
    assert in_rho.entries() == before
    in_rho.grant("youth", 1, "more", measure="zcdp")
    account = in_rho.account("youth")
    assert (account.granted, account.measure, account.delta, account.symbol) == (ONE // 2 + 1, "zcdp", "1e-9", "ρ")
    old = in_rho.account("old")
    assert (old.measure, old.delta, old.symbol) == ("pure", None, "ε")


def test_epsilon_is_quoted_at_the_delta_of_the_last_grant_that_gave_one(ledger: Ledger):
    first = ledger.grant("youth", ONE, "pilot", measure="zcdp", key="first")
    assert ledger.account("youth").delta == "1e-9"
    ledger.grant("youth", ONE, "pilot", measure="zcdp", delta="2.5e-7")
    assert ledger.account("youth").delta == "2.5e-7"
    ledger.grant("youth", ONE, "pilot", measure="zcdp")
    assert ledger.account("youth").delta == "2.5e-7"
    assert ledger.grant("youth", ONE, "pilot", measure="zcdp", key="first") == first  # said again, it is the same grant
    with pytest.raises(EvidenceBroken, match="says something else"):
        ledger.grant("youth", ONE, "pilot", measure="zcdp", key="first", delta="1e-6")


@pytest.mark.parametrize(
    ("measure", "delta", "said"),
    [
        ("pure", "1e-9", "asked for a budget in ε"),
        ("zcdp", "0", "above 0"),
        ("zcdp", "1", "below 1"),
        ("zcdp", "0.000001", "must be written 1e-6"),
        ("zcdp", "1e-4", "too large to quote an ε at; write 0.00001 or less"),
        ("rdp", None, '"rdp" is none of pure, zcdp'),
    ],
)
def test_a_grant_in_no_measure_or_at_no_delta_is_refused(ledger: Ledger, measure: str, delta: str | None, said: str):
    with pytest.raises(SpecError, match=said):
        ledger.grant("youth", ONE, "pilot", measure=measure, delta=delta)
    assert ledger.entries() == []


@pytest.mark.parametrize("nanos", [0, -1, True, LARGEST + 1])
def test_an_amount_that_is_no_rho_is_refused_as_rho(ledger: Ledger, ask: Ask, nanos: int):
    with pytest.raises(SpecError, match="^ρ must be a positive whole number"):
        ledger.grant("youth", nanos, "pilot", measure="zcdp")
    with pytest.raises(SpecError, match="^ρ must be a positive whole number"):
        ledger.charge(ask(nanos=nanos, measure="zcdp"))
    ledger.grant("youth", LARGEST, "pilot", measure="zcdp")
    with pytest.raises(SpecError, match="more than ρ=1000000"):
        ledger.grant("youth", 1, "pilot", measure="zcdp")


def _request(nanos: int, measure: str = "pure") -> ChargeRequest:
    return ChargeRequest("voter", "youth", nanos, "add_remove", "person", "plan", "spec", "data", measure=measure)


@given(st.integers(1, LARGEST))
def test_a_pure_release_costs_half_of_epsilon_squared_rounded_up(nanos: int):
    exact = Fraction(nanos, UNIT) ** 2 / 2
    cost = cost_in("zcdp", _request(nanos))
    assert cost == ceil(exact * UNIT) and Fraction(cost, UNIT) >= exact > Fraction(cost - 1, UNIT)
    assert cost_in("pure", _request(nanos)) == nanos == cost_in("zcdp", _request(nanos, "zcdp"))
    assert cost_in("pure", _request(nanos, "zcdp")) is None


def test_charges_of_both_kinds_add_up_in_rho(in_rho: Ledger, ask: Ask):
    assert in_rho.charge(ask("gaussian", nanos=20_000_000, measure="zcdp")).entry.amount == 20_000_000
    pure = in_rho.charge(ask("laplace", nanos=100_000_001)).entry  # ε = 0.100000001
    assert (pure.amount, pure.measure) == (5_000_001, "zcdp")
    assert in_rho.account("youth").charged == 25_000_001
    assert [(state.name, state.amount, state.measure) for state in in_rho.releases()] == [
        ("gaussian", 20_000_000, "zcdp"),
        ("laplace", 5_000_001, "zcdp"),
    ]
    assert in_rho.verify(in_rho.anchor) == []


def test_a_pure_release_that_exactly_empties_a_budget_in_rho_is_paid_and_more_is_refused_in_both_measures(
    in_rho: Ledger, ask: Ask
):
    with pytest.raises(BudgetRefused) as refused:
        in_rho.charge(ask("much", nanos=ONE + 1))
    for part in ("asks ε=1.000000001, which costs ρ=0.500000002;", "0.5 of 0.5 is left", "Lower epsilon", "--rho RHO --why"):
        assert part in str(refused.value)
    assert in_rho.charge(ask("voter", nanos=ONE)).entry.amount == ONE // 2
    with pytest.raises(BudgetRefused, match="asks ρ=0.000000001; 0 of 0.5 is left.*Lower rho"):
        in_rho.charge(ask("more", nanos=1, measure="zcdp"))
    with pytest.raises(BudgetRefused, match="steps budget grant nobody --rho RHO"):
        in_rho.charge(ask("more", population="nobody", nanos=1, measure="zcdp"))


def test_a_release_in_rho_has_no_price_in_epsilon(in_rho: Ledger, ask: Ask):
    before = in_rho.entries()
    with pytest.raises(SpecError) as refused:
        in_rho.charge(ask(population="old", nanos=1, measure="zcdp"))
    for part in (
        "asks ρ=0.000000001",
        'population "old" is in ε',
        "no ε-differential privacy for any ε",
        "Nothing was charged",
        "--rho RHO",
    ):
        assert part in str(refused.value)
    assert refused.value.exit_code == 2 and in_rho.entries() == before


def test_a_release_is_found_again_at_its_converted_price_and_is_another_in_the_other_measure(in_rho: Ledger, ask: Ask):
    first = in_rho.charge(ask(nanos=ONE // 2))
    again = in_rho.charge(ask(nanos=ONE // 2))
    assert (first.new, again.new, again.entry) == (True, False, first.entry)
    for changes in ({"nanos": ONE // 3}, {"nanos": ONE // 2, "measure": "zcdp"}):
        with pytest.raises(SpecError, match="another spec"):
            in_rho.charge(ask(**changes))
    pure = in_rho.charge(ask("old-1", population="old", nanos=ONE // 2)).entry
    with pytest.raises(SpecError, match="another spec"):
        in_rho.charge(ask("old-1", population="old", nanos=ONE // 2, measure="zcdp"))
    assert pure.measure is None
    in_rho.burn("voter-1", "lost")
    assert in_rho.charge(ask(nanos=ONE // 2)).attempt == 2 and in_rho.account("youth").charged == ONE // 4


def test_everything_that_follows_a_charge_in_rho_is_in_rho(in_rho: Ledger, ask: Ask):
    in_rho.seal("voter-1", "cells", "confidential", "1" * 32, "a" * 64)
    in_rho.charge(ask(nanos=ONE // 10))
    in_rho.seal("voter-1", "noisy", "public", "2" * 32, "b" * 64, 10)
    in_rho.decide("voter-1", "approve", "ada", "fine")
    in_rho.publish("voter-1", "manifest")
    said = [(entry.population, entry.measure) for entry in in_rho.entries()]
    assert said == [("youth", "zcdp"), ("old", None), (None, None), *[("youth", "zcdp")] * 4]
    assert in_rho.verify(in_rho.anchor) == []


# What the database refuses, and what verification finds


@pytest.mark.parametrize(
    "changes",
    [
        {"measure": None},  # what a program that knows no measure would write
        {"measure": "pure"},
        {"population": "old", "measure": "zcdp"},
        {"population": None, "measure": "zcdp"},
        {"population": "new", "measure": "other"},
    ],
)
def test_the_database_itself_refuses_to_mix_measures(in_rho: Ledger, ask: Ask, changes: dict[str, str | None]):
    last = in_rho.charge(ask(nanos=1, measure="zcdp")).entry
    new = dataclasses.asdict(last) | {"seq": last.seq + 1, "key": "charge:raw#1", "previous": last.hash, "hash": "0" * 64}
    insert = sql.insert(sql.table("entries", *(sql.column(name) for name in new)))
    with in_rho.database.engine.connect() as connection:
        with pytest.raises(sql.exc.IntegrityError, match="measure"):
            connection.execute(insert.values(new | changes))
    with in_rho.database.engine.connect() as connection:  # the control: without the change it is accepted
        connection.execute(insert.values(new))


@pytest.mark.parametrize(("population", "measure"), [("old", "zcdp"), ("youth", None)])
def test_an_entry_whose_measure_was_edited_is_found(home: Home, ledger: Ledger, population: str, measure: str | None):
    ledger.grant("youth", ONE, "pilot", measure="zcdp")
    ledger.grant("old", ONE, "pilot")
    with closing(sqlite3.connect(home.ledger_file)) as raw, raw:
        raw.execute("DROP TRIGGER no_update")
        raw.execute("UPDATE entries SET measure = ? WHERE population = ?", (measure, population))
    (problem,) = ledger.verify(ledger.anchor)
    assert problem.endswith("was changed after it was written")


def _rehashed(entries: list[Entry]) -> list[Entry]:
    chain: list[Entry] = []
    for entry in entries:
        linked = dataclasses.replace(entry, previous=chain[-1].hash if chain else NO_HASH)
        chain.append(dataclasses.replace(linked, hash=chain_hash(linked.previous, content_hash(linked))))
    return chain


def test_a_chain_that_was_hashed_anew_with_mixed_measures_is_found(ledger: Ledger, ask: Ask):
    ledger.grant("youth", ONE, "pilot", measure="zcdp")
    ledger.charge(ask(nanos=1, measure="zcdp"))
    first, last = ledger.entries()
    mixed = _rehashed([first, dataclasses.replace(last, measure=None)])
    assert list(chain_problems(mixed)) == ['entry 2: the amounts of population "youth" are in more than one measure']
    unknown = _rehashed([dataclasses.replace(first, measure="other")])
    assert list(chain_problems(unknown)) == ["entry 1 is in no measure that a ledger writes"]
    assert list(chain_problems(_rehashed([first, last]))) == []  # the control


# The public chain


def test_the_public_chain_says_the_measure_of_rho_and_nothing_new_of_epsilon(in_rho: Ledger, ask: Ask):
    in_rho.charge(ask(nanos=ONE // 10))
    in_rho.charge(ask("old-1", population="old", nanos=ONE // 10))
    in_rho.seal("voter-1", "noisy", "public", "2" * 32, "b" * 64, 10)
    rho, epsilon, paid, pure, seal = (entry.content for entry in public_chain(in_rho.entries()))
    assert rho["measure"] == "zcdp" == paid["measure"]
    assert rho["shown"] == {"neighbours": "add_remove", "unit": "person", "delta": "1e-9"}
    assert epsilon["shown"] == {"neighbours": "add_remove", "unit": "person"}
    assert not any("measure" in content for content in (epsilon, pure, seal))


def test_a_published_charge_hashes_as_it_stands_in_the_chain(in_rho: Ledger, ask: Ask):
    hashes = {"plan_hash": "a" * 64, "spec_hash": "b" * 64}
    in_rho.charge(ask(nanos=ONE // 10, **hashes))
    in_rho.charge(ask("old-1", population="old", nanos=ONE // 10, **hashes))
    _, _, paid, pure = public_chain(in_rho.entries())
    for entry in (paid, pure):
        assert ChargeEntry.model_validate(entry.content).model_dump(mode="json") == entry.content
