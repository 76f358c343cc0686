"""Populations that share people: a lifetime cap over all of them holds in the transaction of the charge, whoever asks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
import sqlalchemy as sql
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import BudgetRefused, EvidenceBroken, SpecError
from tasks.stores import lifetimes
from tasks.stores.acts import cap
from tasks.stores.charging import ChargeRequest
from tasks.stores.database import META, SCHEMA_VERSION, version_of
from tasks.stores.entries import NO_HASH, Entry, chain_hash, content_hash
from tasks.stores.home import Home
from tasks.stores.ledger import Ledger, open_ledger
from tasks.stores.public_chain import public_chain
from tasks.stores.waves import Waves, in_rho, wave_problems
from tests.tasks.stores import children

ONE = 10**9
Ask = Callable[..., ChargeRequest]


@pytest.fixture
def waves(any_home: Home) -> Ledger:
    """A ledger with three waves of ε = 10 each, and a lifetime cap of 5 on the first; the second and third stand alone yet."""
    ledger = open_ledger(any_home)
    for year in ("y25", "y26", "y27"):
        ledger.grant(year, 10 * ONE, "pilot")
    cap(ledger, "y25", 5 * ONE, "pure", "the board")
    return ledger


def test_a_population_that_says_so_shares_the_cap_and_is_refused_beyond_it(waves: Ledger, ask: Ask):
    waves.charge(ask("a", population="y25", nanos=3 * ONE))
    paid = waves.charge(ask("b", population="y26", nanos=2 * ONE, overlaps=("y25",)))
    assert paid.entry.details["waves"] == {"populations": ["y25", "y26"], "measure": "pure", "total": "5", "cap": "5"}
    before = waves.entries()
    for population in ("y25", "y26"):
        with pytest.raises(BudgetRefused) as refused:
            waves.charge(ask("c", population=population, nanos=1))
        for part in (
            'in all of "y25", "y26" would have lost ε=5.000000001',
            "(ε=5 so far)",
            "the cap is 5",
            "budget cap y25 EPSILON",
        ):
            assert part in str(refused.value)
    assert waves.entries() == before and waves.account("y25").balance == 7 * ONE
    assert waves.charge(ask("b", population="y26", nanos=2 * ONE, overlaps=("y25",))).new is False, "a retry pays nothing"


def test_what_was_said_cannot_be_unsaid_by_a_later_spec_and_reaches_further(waves: Ledger, ask: Ask):
    waves.charge(ask("b", population="y26", nanos=ONE, overlaps=("y25",)))
    waves.charge(ask("c", population="y27", nanos=ONE, overlaps=("y26",)))
    assert waves.account("y25").loss.populations == ("y25", "y26", "y27")
    with pytest.raises(BudgetRefused, match='in all of "y25", "y26", "y27"'):
        waves.charge(ask("d", population="y27", nanos=3 * ONE + 1))
    waves.charge(ask("d", population="y27", nanos=3 * ONE))
    assert {waves.account(each).loss.total for each in ("y25", "y26", "y27")} == {5 * ONE}
    assert waves.verify(waves.anchor) == []


def test_without_a_cap_losses_are_told_and_nothing_is_refused(ledger: Ledger, ask: Ask):
    for year in ("y25", "y26"):
        ledger.grant(year, 10 * ONE, "pilot")
    assert ledger.charge(ask("a", population="y25", nanos=ONE)).entry.details.keys().isdisjoint({"waves", "overlaps"})
    entry = ledger.charge(ask("b", population="y26", nanos=2 * ONE, overlaps=("y25",))).entry
    assert entry.details["overlaps"] == ["y25"]
    assert entry.details["waves"] == {"populations": ["y25", "y26"], "measure": "pure", "total": "3"}
    shown = public_chain(ledger.entries())[-1].content["shown"]
    assert shown["waves"] == entry.details["waves"] and shown["overlaps"] == ["y25"]


def test_epsilon_and_rho_add_up_in_rho(any_home: Home, ask: Ask):
    ledger = open_ledger(any_home)
    ledger.grant("y25", 10 * ONE, "pilot")
    ledger.grant("y26", ONE, "pilot", measure="zcdp")
    for release in ("a", "b"):  # ε = 0.5 twice: ρ = 0.125 each, not (0.5 + 0.5)²/2
        ledger.charge(ask(release, population="y25", nanos=ONE // 2))
    ledger.charge(ask("c", population="y26", nanos=ONE // 10, measure="zcdp", overlaps=("y25",)))
    ledger.charge(ask("d", population="y26", nanos=ONE // 5))  # pure, paid in ρ: 0.02
    assert (ledger.account("y25").loss.measure, ledger.account("y25").loss.total) == ("zcdp", 370_000_000)
    with pytest.raises(SpecError, match='"y25", "y26" share people, and the lifetime cap over them is in ε.* set the cap in ρ'):
        cap(ledger, "y25", 5 * ONE, "pure", "the board")
    cap(ledger, "y25", 370_000_001, "zcdp", "the board")
    with pytest.raises(BudgetRefused, match="steps budget cap y25 --rho RHO"):
        ledger.charge(ask("e", population="y25", nanos=100_000))  # ρ = 0.000000005
    ledger.charge(ask("e", population="y25", nanos=40_000))  # ρ = 0.0000000008, rounded up
    assert ledger.account("y26").loss.total == 370_000_001 and ledger.verify(ledger.anchor) == []


def test_losses_that_have_no_sum_are_refused_with_what_to_do(ledger: Ledger, ask: Ask):
    ledger.grant("y25", 10 * ONE, "pilot")
    ledger.grant("homes", 10 * ONE, "pilot", unit="household")
    ledger.grant("swaps", 10 * ONE, "pilot", neighbours="substitute")
    ledger.grant("y26", ONE, "pilot", measure="zcdp")
    cap(ledger, "y25", 5 * ONE, "pure", "the board")
    before = ledger.entries()
    for terms, said in (
        ({"population": "homes", "unit": "household"}, "different units .household, person."),
        ({"population": "swaps", "neighbours": "substitute"}, "different neighbours"),
        ({"population": "y26", "measure": "zcdp"}, "set the cap in ρ"),
    ):
        with pytest.raises(SpecError, match=said):
            ledger.charge(ask("b", overlaps=("y25",), **terms))
    assert ledger.entries() == before
    cap(ledger, "y25", ONE, "zcdp", "in ρ from now on")
    ledger.charge(ask("b", population="y26", measure="zcdp", overlaps=("y25",)))


@pytest.mark.parametrize(
    ("others", "said"),
    [(("youth",), "overlap itself"), (("y2025",), "does not know .it knows y25, youth."), (("Not a name",), "is not a name")],
)
def test_an_overlap_with_itself_or_with_nobody_known_is_refused_and_charges_nothing(ledger: Ledger, ask: Ask, others, said):
    for population in ("y25", "youth"):
        ledger.grant(population, ONE, "pilot")
    for act in (ledger.charge, ledger.must_afford):
        with pytest.raises(SpecError, match=said):
            act(ask("a", overlaps=others))
    with pytest.raises(SpecError, match=said):
        cap(ledger, "youth", ONE, "pure", "why", others)
    assert {entry.kind for entry in ledger.entries()} == {"grant"}


def test_a_cap_is_set_once_moved_on_purpose_and_the_tightest_holds(waves: Ledger, ask: Ask):
    first, new = cap(waves, "y25", 5 * ONE, "pure", "again")
    assert not new and first.kind == "cap" and first.amount == 0
    cap(waves, "y26", 2 * ONE, "pure", "with the first", ("y25",))
    assert waves.account("y25").loss.cap.population == "y26"
    with pytest.raises(BudgetRefused, match="budget cap y26"):
        waves.charge(ask("a", population="y25", nanos=3 * ONE))
    cap(waves, "y26", 4 * ONE, "pure", "raised")
    waves.charge(ask("a", population="y25", nanos=3 * ONE))
    cap(waves, "y26", ONE, "pure", "lowered below what was lost: nothing more is paid")
    with pytest.raises(BudgetRefused):
        waves.charge(ask("b", population="y26", nanos=1))
    assert waves.verify(waves.anchor) == []
    with pytest.raises(BudgetRefused, match="has no grant"):
        cap(waves, "nobody", ONE, "pure", "why")
    with pytest.raises(SpecError, match="needs a reason"):
        cap(waves, "y25", ONE, "pure", " ")


def test_the_look_before_a_run_refuses_what_the_charge_would(waves: Ledger, ask: Ask):
    waves.must_afford(ask("a", population="y26", nanos=5 * ONE, overlaps=("y25",)))
    with pytest.raises(BudgetRefused, match="the cap is 5"):
        waves.must_afford(ask("a", population="y26", nanos=5 * ONE + 1, overlaps=("y25",)))
    assert len(waves.entries()) == 4


def test_a_ledger_from_before_there_were_caps_is_raised_by_the_first_and_keeps_its_hashes(home: Home, ask: Ask):
    ledger = open_ledger(home)
    ledger.grant("y25", 10 * ONE, "pilot")
    ledger.charge(ask("a", population="y25"))
    before = ledger.entries()
    with ledger.database.writing() as connection:
        connection.execute(sql.update(META).values(schema_version=4))
    cap(ledger, "y25", 5 * ONE, "pure", "the board")
    with ledger.database.reading() as connection:
        assert version_of(connection) == SCHEMA_VERSION == 5
    assert ledger.entries()[:-1] == before and ledger.verify(ledger.anchor) == []


def rewritten(entries: list[Entry], place: int, **changes: object) -> list[Entry]:
    """The same ledger with one entry that says something else, and the chain made good."""
    made: list[Entry] = []
    for number, entry in enumerate(entries):
        entry = dataclasses.replace(entry, previous=made[-1].hash if made else NO_HASH)
        entry = dataclasses.replace(entry, **changes) if number == place else entry
        made.append(dataclasses.replace(entry, hash=chain_hash(entry.previous, content_hash(entry))))
    return made


def test_verifying_finds_a_charge_beyond_the_cap_or_that_tells_another_loss(waves: Ledger, ask: Ask):
    waves.charge(ask("a", population="y25", nanos=3 * ONE))
    waves.charge(ask("b", population="y26", nanos=ONE, overlaps=("y25",)))
    entries = waves.entries()
    assert [*wave_problems(entries)] == []
    last = entries[-1].body
    for body, said in (
        (last.replace('"total":"4"', '"total":"1"'), "does not follow from the entries"),
        (last.replace('"overlaps":["y25"],', ""), "does not follow from the entries"),
        (last.replace('"overlaps":["y25"]', '"overlaps":7'), "does not say what such an entry says"),
    ):
        assert body != last
        assert [said in problem for problem in wave_problems(rewritten(entries, len(entries) - 1, body=body))] == [True]
    beyond = last.replace('"total":"4"', '"total":"6"')
    found = [*wave_problems(rewritten(entries, len(entries) - 1, body=beyond, amount=3 * ONE))]
    assert found == ["entry 6 (charge): somebody in y25, y26 has lost more than the lifetime cap allows"]
    lower = entries[3].body.replace('"cap":"5"', '"cap":"2"')
    assert any("does not follow" in each or "more than" in each for each in wave_problems(rewritten(entries, 3, body=lower)))


def own_population_only(waves: Waves, request: ChargeRequest, price) -> dict:
    """The broken variant: counts what was charged on the own population, and forgets the others."""
    alone = Waves({request.population: waves.spent[request.population]}, waves.caps)
    loss = alone.loss({request.population}, (request.population, price.nanos))
    if loss is not None and loss.is_too_much:
        raise BudgetRefused("beyond the cap")
    return {"waves": loss.said} if loss else {}


def must_keep_the_cap(ledger: Ledger, ask: Ask) -> None:
    ledger.charge(ask("a", population="y25", nanos=3 * ONE))
    with pytest.raises(BudgetRefused):
        ledger.charge(ask("b", population="y26", nanos=3 * ONE, overlaps=("y25",)))
    assert ledger.verify(ledger.anchor) == []


def test_the_cap_is_kept(waves: Ledger, ask: Ask):
    must_keep_the_cap(waves, ask)


def test_a_control_that_sums_only_the_own_population_is_caught(waves: Ledger, ask: Ask, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tasks.stores.ledger.must_fit", own_population_only)
    with pytest.raises(pytest.fail.Exception):
        must_keep_the_cap(waves, ask)
    assert any("y25, y26" in problem for problem in waves.verify(waves.anchor)), "and the ledger that it leaves does not verify"
    with pytest.raises(EvidenceBroken, match="does not verify"):
        waves.charge(ask("c", population="y27"))
    assert lifetimes.must_fit is not own_population_only


@pytest.mark.slow
def test_processes_racing_on_different_waves_spend_exactly_the_cap(any_home: Home):
    ledger = open_ledger(any_home)
    for number in range(4):
        ledger.grant(f"wave-{number}", 100 * ONE, "race")
    cap(ledger, "wave-0", ONE, "pure", "race", ("wave-1", "wave-2", "wave-3"))
    outcomes = children.run("race_over_waves", any_home, processes=32, waves=4, nanos=ONE // 20)
    assert outcomes.count("charged") == 20 and outcomes.count("BudgetRefused") == 12
    assert sum(each.charged for each in ledger.accounts()) == ONE and ledger.verify(ledger.anchor) == []


def test_a_control_that_looks_first_and_pays_later_goes_beyond_the_cap(waves: Ledger, ask: Ask):
    """Both looks are before both payments: each alone fits. The transaction is what keeps the cap."""
    asked = [ask(name, population=name, nanos=3 * ONE, overlaps=() if name == "y25" else ("y25",)) for name in ("y25", "y26")]
    for each in asked:
        waves.must_afford(each)
    waves.charge(asked[0])
    with pytest.raises(BudgetRefused):
        waves.charge(asked[1])


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd"), st.integers(1, 10**10)), max_size=12))
def test_groups_are_connected_components_and_sums_are_theirs(said: list[tuple[str, str, int]]):
    """Against a search through the graph, and sums charge by charge."""
    entries = [_entry(n, "grant", name, {"neighbours": "add_remove", "unit": "person"}) for n, name in enumerate("abcd")]
    waves, edges, spent = Waves(), {name: {name} for name in "abcd"}, dict.fromkeys("abcd", 0)
    for entry in entries:
        assert [*waves.problems(entry)] == []
    for own, other, amount in said:
        shared = {"overlaps": [other]} if other != own else {}
        [*waves.problems(_entry(9, "charge", own, shared, amount))]
        edges[own].add(other), edges[other].add(own)
        spent[own] += amount
    for name in "abcd":
        reached = {name}
        while grown := {far for near in reached for far in edges[near]} - reached:
            reached |= grown
        loss = waves.loss(waves.group(name))
        assert waves.group(name) == reached
        assert (loss.total if loss else spent[name]) == sum(spent[each] for each in reached)
    assert sum(each.rho for each in waves.spent.values()) == sum(in_rho(amount) for _, _, amount in said)


def _entry(seq: int, kind: str, population: str, said: dict, amount: int = 0) -> Entry:
    from tasks.stores.entries import body_of

    return Entry(seq, "", "", kind, population, None, f"{seq}", amount, 0, 0, body_of(said), "", "")
