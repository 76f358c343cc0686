"""What a bundle says of people in several waves: every lie that one charge can give away is told."""

from __future__ import annotations

import pytest

from schemas.identity import digest
from schemas.manifest import ChargeEntry
from tasks.verify.waves import overlap_problems, wave_problems
from tests.tasks.publishing.making import POLL

TRUE = {
    "seq": 3,
    "date": "2026-11-17",
    "kind": "charge",
    "population": "town",
    "release": "poll",
    "key": "charge:poll#1",
    "amount": 10**9,
    "granted_after": 4 * 10**9,
    "charged_after": 2 * 10**9,
    "shown": {
        "plan_hash": "0" * 64,
        "spec_hash": "1" * 64,
        "neighbours": "add_remove",
        "unit": "person",
        "overlaps": ["last-year"],
        "waves": {"populations": ["last-year", "town"], "measure": "pure", "total": "2.5", "cap": "3"},
    },
}


def charge(account: str | None = None, overlaps=("last-year",), **waves) -> ChargeEntry:
    said = {**TRUE["shown"]["waves"], **waves}
    shown = {**TRUE["shown"], "overlaps": [*overlaps], "waves": {key: value for key, value in said.items() if value}}
    return ChargeEntry.model_validate({**TRUE, "shown": shown} | ({"measure": account} if account else {}))


def test_a_true_charge_holds_and_is_hashed_as_the_ledger_does():
    entry = ChargeEntry.model_validate(TRUE)
    assert [*wave_problems(entry)] == [*wave_problems(charge(cap=None))] == []
    assert digest(entry.model_dump(mode="json")) == digest(TRUE)
    plain = {**TRUE, "shown": {key: value for key, value in TRUE["shown"].items() if key not in ("overlaps", "waves")}}
    assert digest(ChargeEntry.model_validate(plain).model_dump(mode="json")) == digest(plain), "as before there were waves"


LIES = {
    "less than the own charges": ({"total": "1.999999999"}, "less than this population's charges alone"),
    "beyond the cap": ({"total": "3.1"}, "more than the lifetime cap of 3"),
    "without itself": ({"populations": ["last-year"]}, "leave out one"),
    "without one that it names": ({"populations": ["other", "town"]}, "leave out one"),
    "twice": ({"populations": ["last-year", "town", "town"]}, "leave out one"),
    "ρ in ε": ({"account": "zcdp"}, "told in ε"),
    "ε in ρ, too little": ({"measure": "zcdp", "total": "0.499", "cap": None}, "less than this population's"),
}


@pytest.mark.parametrize("changes, says", LIES.values(), ids=LIES)
def test_a_lie_is_told(changes: dict, says: str):
    changes = dict(changes)
    (problem,) = wave_problems(charge(changes.pop("account", None), **changes))
    assert says in problem


def test_the_domain_and_the_charge_name_the_same_overlaps():
    overlapping = POLL.model_copy(update={"overlaps": ("last-year",)})
    assert [*overlap_problems(charge(), overlapping)] == []
    assert [*overlap_problems(charge(), POLL)] == ["the charge names other overlapping populations than the domain"]
    unsaid = {**TRUE, "shown": {key: value for key, value in TRUE["shown"].items() if key != "waves"}}
    assert ["not what somebody" in each for each in wave_problems(ChargeEntry.model_validate(unsaid))] == [True]
