"""The campaign's own book: what is found is counted, kept, and never counted for other code."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.campaign import __main__ as command
from tests.campaign import record as book
from tests.campaign.families import FAMILIES
from tests.campaign.lies import LIES
from tests.campaign.page import BEGIN, END, write
from tests.campaign.record import ROOT, Record, clean, extent, sums, table
from tests.campaign.running import run_family
from tests.campaign.trials import Family, Found, Trial


def every_third_loses(trial: Trial) -> Found:
    """A family for these tests; a trial of number 7 fails itself."""
    if trial.number == 7:
        raise KeyError("a bug in the campaign")
    return Found.in_one("kind", ["lost a file", "and another"] if trial.number % 3 == 0 else [])


TOY = Family("toy", "Loses something in every third trial.", share=1, attempt=every_third_loses, trials=8, at_once=1)


@pytest.mark.whole
def test_a_trial_that_finds_something_is_counted_and_the_campaign_fails(tmp_path: Path):
    record = Record.opened(tmp_path, 1)
    said: list[str] = []
    run_family(TOY, record, 1, time.monotonic() + 60, said.append)
    row = sums(record.of("toy"), TOY.trials)
    assert row == {"done": 8, "planned": 8, "tried": 8, "survived": 4, "lost": 4, "overspent": 0, "leaked": 0}, (
        "0, 3, 6, and 7, which failed itself"
    )
    assert any("LOST: the trial itself failed" in line and "a bug in the campaign" in line for line in said)
    assert not clean({"toy": row}) and "|     4 |        4 |" not in table({"toy": row})
    assert clean({"toy": sums([Found(tried=3)], 1)})


def test_a_family_that_was_not_tried_is_no_success():
    assert not clean({"toy": sums([], 8)})


def test_a_table_of_a_campaign_that_was_cut_cannot_be_taken_for_a_whole_one():
    cut, whole = {"toy": sums([Found(tried=256)] * 3, 8)}, {"toy": sums([Found(tried=256)] * 8, 8)}
    assert "| toy    | 3 of 8 |   768 |" in table(cut) and "| all    | 3 of 8 |" in table(cut)
    assert extent(cut) == "This was no whole campaign: of these not all trials were made: toy (3 of 8)."
    assert "| toy    | 8 of 8 | 2,048 |" in table(whole) and extent(whole) == "Every trial of these families was made."


def test_an_interrupted_campaign_goes_on_where_it_was(tmp_path: Path, monkeypatch):
    first = Record.opened(tmp_path, 1)
    first.add("toy", 1, Found(lost=("a charge",)))
    first.add("toy", 2, Found(tried=256))
    with first.path.open("a") as file:
        file.write('{"family": "toy", "num')  # killed while it wrote
    again = Record.opened(tmp_path, 1)
    assert again.found == first.found and again.done("toy") == {1, 2}
    assert Record.opened(tmp_path, 2).found == {}, "another seed is another campaign"
    monkeypatch.setattr(book, "code_hash", lambda: "0" * 64)
    assert Record.opened(tmp_path, 1).found == {}, "what was found of other code does not count"


def test_when_time_is_over_no_further_trial_begins(tmp_path: Path):
    record = Record.opened(tmp_path, 1)
    said: list[str] = []
    run_family(TOY, record, 1, time.monotonic() - 1, said.append)
    assert record.found == {} and said[-1].startswith("toy: cut short, its time is over: 0 of 8 trials")


@contextmanager
def of_four(_: Path) -> Iterator[dict[str, Any]]:
    yield {"trials": 4}


@pytest.mark.whole
def test_a_family_is_whole_when_all_that_was_prepared_is_tried(tmp_path: Path):
    record, said = Record.opened(tmp_path, 1), []
    run_family(replace(TOY, preparing=of_four), record, 1, time.monotonic() + 60, said.append)
    assert record.done("toy") == {0, 1, 2, 3} and not any("cut short" in line for line in said)
    assert record.planned == Record.opened(tmp_path, 1).planned == {"toy": 4}, "the table says of how many"


def test_the_command_prints_one_table_and_fails_where_nothing_was_tried(tmp_path: Path, capsys):
    assert command.main(["--only", "lies", "--minutes", "0", "--state", str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    assert f"| lies   | 0 of {len(LIES) * 2} |     0 |        0 |    0 |         0 |      0 |" in printed
    assert "Nothing was tried of lies." in printed and f"lies (0 of {len(LIES) * 2})" in printed


def test_the_table_takes_its_place_on_the_page_and_is_replaced_by_the_next(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(f"before\n\n{BEGIN}\nold\n{END}\nafter\n")
    for tried in (3, 5):
        write(page, {"toy": sums([Found()] * tried, 5)}, 1, "c" * 64)
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    assert (
        text.count("| toy ") == 1
        and "| 5 of 5 |" in text
        and "no whole campaign" not in text
        and "|     5 |        5 |    0 |" in text
        and "Seed 1" in text
    )


def test_every_family_is_told_in_the_documentation():
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    assert [family.name for family in FAMILIES if f"| {family.name} " not in page] == []
