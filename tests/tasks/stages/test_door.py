"""At the door: source, columns, budget and reasons are looked at before a record is read, and nothing is kept of a refusal."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors import BudgetRefused, DataInvalid, EvidenceBroken, SpecError
from schemas.identity import FORMAT_3, PLAN_FORMAT, spec_hash
from steps_engine.methods.planning import make_plan
from tasks.specs import load_release
from tasks.stages.door import look_first, must_be_private
from tasks.stores.acts import withdraw
from tasks.stores.home import Home
from tasks.stores.identity import register
from tasks.stores.ledger import open_ledger
from tests.flows.small import Small, drawn, make_small


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return make_small(tmp_path, rows=200)


@pytest.fixture
def home(small: Small) -> Home:
    home = Home(small.home)
    open_ledger(home).grant("small-people", 10**11, "a test")
    return home


def test_what_fits_is_told_in_a_line(small: Small, home: Home):
    seen = look_first(home, load_release(small.release))
    assert seen is not None and seen.words == "one Parquet file, records.parquet" and seen.problems == ()


def without_source(small: Small) -> None:
    (small.folder / "records.parquet").unlink()


def without_a_column(small: Small) -> None:
    path = small.folder / "records.parquet"
    pq.write_table(pq.read_table(path).drop(["age"]).append_column("quetzal", pa.array([1] * 200)), path)


def with_text_for_numbers(small: Small) -> None:
    path = small.folder / "records.parquet"
    table = pq.read_table(path)
    pq.write_table(table.set_column(2, "age", table["age"].cast(pa.string())), path)


def too_dear(small: Small) -> None:
    small.write(epsilon="100.5", release=small.release.read_text().replace("0.5}", "EPSILON, why: a test}"))


def without_grant(small: Small) -> None:
    text = (small.folder / "dataset.yaml").read_text()
    (small.folder / "dataset.yaml").write_text(text.replace("small-people", "nobody"))


def without_a_reason(small: Small) -> None:
    small.write(epsilon="10.5")


REFUSED = {
    without_source: (SpecError, "no such file, folder or match"),
    without_a_column: (DataInvalid, "lacks the column age; has 1 column that the domain does not name"),
    with_text_for_numbers: (DataInvalid, "age is stored as text; whole numbers or numbers"),
    too_dear: (BudgetRefused, "asks ε=100.5; 100 of 100 is left"),
    without_grant: (BudgetRefused, "has no grant"),
    without_a_reason: (SpecError, r"asks ε=10.5; above 10 .* say why it may be as large: privacy: \{why"),
}


@pytest.mark.parametrize("change", REFUSED, ids=lambda change: change.__name__)
def test_it_is_refused_before_a_record_is_read(change, small: Small, home: Home, monkeypatch):
    change(small)
    monkeypatch.setattr("tasks.reading.sources.connect", None)  # nobody reads records here
    entries = len(open_ledger(home).entries())
    kind, words = REFUSED[change]
    with pytest.raises(kind, match=words) as caught:
        look_first(home, load_release(small.release))
    assert "quetzal" not in str(caught.value) and len(open_ledger(home).entries()) == entries


@pytest.mark.parametrize(
    ("lost", "told"), [("signing-key.pem", "signing-key.pem is missing"), ("", "has no keys, though the ledger")]
)
def test_lost_keys_are_told_before_a_record_is_read(small: Small, home: Home, monkeypatch, lost: str, told: str):
    """They were told once the records had been validated and counted; nothing was charged then either."""
    register(home, open_ledger(home))
    asked = load_release(small.release)
    assert look_first(home, asked) is not None, "the control: with its keys it is let in"
    for key in home.keys.iterdir():
        if key.name == lost or not lost:
            key.unlink()
    monkeypatch.setattr("tasks.stages.door.look_at_source", lambda _: pytest.fail("keys come before the source"))
    with pytest.raises(EvidenceBroken, match=f"{told}.*Nothing was charged"):
        look_first(home, asked)


def test_a_large_epsilon_needs_a_reason_and_no_reason_serves_where_noise_vanishes(small: Small, home: Home):
    def asked(epsilon: str, why: str = ""):
        small.write(epsilon=epsilon + why)
        release = load_release(small.release)
        return home, release, make_plan(release)

    must_be_private(*asked("10"))
    with pytest.raises(SpecError, match="say why"):
        must_be_private(*asked("10.000000001"))
    must_be_private(*asked("12", ", why: a public benchmark"))
    with pytest.raises(SpecError, match="No reason serves for that: lower epsilon"):
        must_be_private(*asked("1000", ", why: a public benchmark"))
    small.write(epsilon='12, why: " "')
    with pytest.raises(SpecError, match="found an empty one"):
        load_release(small.release)


def test_a_reason_is_part_of_what_was_asked_and_its_absence_changes_no_hash(small: Small):
    plain = load_release(small.release)
    small.write(epsilon="0.5, why: for comparison")
    with_reason = load_release(small.release)
    assert "why" not in plain.model_dump(mode="json")["spec"]["privacy"]
    assert spec_hash(plain) != spec_hash(with_reason) and PLAN_FORMAT < FORMAT_3


def test_what_was_paid_for_under_earlier_rules_goes_on(small: Small):
    """A release that was charged before there was a rule is resumed, not refused."""
    small.write(epsilon="20")
    home, asked = Home(small.home), load_release(small.release)
    open_ledger(home).grant("small-people", 10**11, "a test")
    with pytest.raises(SpecError, match="say why"):
        look_first(home, asked)
    drawn(small)  # by the stages alone, as an earlier version would have
    must_be_private(home, asked, make_plan(asked))
    assert look_first(home, asked) is not None


def test_a_release_that_came_to_its_end_needs_no_source(small: Small, home: Home):
    drawn(small)
    open_ledger(home).abandon("small-1", "a test")
    without_source(small)
    assert look_first(home, load_release(small.release)) is None


def test_a_release_that_was_taken_back_needs_no_source_either(small: Small, home: Home):
    drawn(small)
    ledger = open_ledger(home)
    ledger.publish("small-1", "a manifest")
    withdraw(ledger, "small-1", "a test")
    without_source(small)
    assert look_first(home, load_release(small.release)) is None


def test_the_reason_is_kept_with_the_charge(small: Small):
    small.write(epsilon="12, why: a public benchmark")
    home = Home(small.home)
    open_ledger(home).grant("small-people", 10**11, "a test")
    drawn(small)
    [charge] = [entry for entry in open_ledger(home).entries() if entry.kind == "charge"]
    assert charge.details["context"]["why"] == "a public benchmark"
