"""Two waves with some of the same people, whole: what is said, refused, published and verified of somebody in both."""

from __future__ import annotations

import json

import pytest

from schemas.errors import SpecError
from schemas.identity import FORMAT_3, spec_hash
from tasks.specs import load_release
from tests.flows.small import Small
from tests.prefect_server import PrefectServer

REASON = ("--why", "a test")


def say(small: Small, population: str, overlaps: str = "") -> None:
    path = small.folder / "dataset.yaml"
    lines = [line for line in path.read_text().splitlines() if not line.startswith(("population", "overlaps"))]
    path.write_text("\n".join([*lines, f"population: {population}", *([f"overlaps: {overlaps}"] if overlaps else [])]) + "\n")


@pytest.mark.slow
def test_the_second_wave_tells_what_somebody_in_both_has_lost_and_a_third_is_refused(
    small: Small, steps, prefect_server: PrefectServer
):
    for population in ("wave-1", "wave-2"):
        steps("budget", "grant", population, "4", *REASON)
    assert steps("budget", "cap", "wave-1", "1.2", *REASON).code == 0
    say(small, "wave-1")
    small.write("first", "0.5")
    assert steps("run", small.release).code == 0
    say(small, "wave-2", "[wave-1]")
    small.write("second", "0.7")
    assert steps("plan", small.release, "--json").json["lifetime"]["total"] == "0.5"
    assert (
        "lifetime  a person in all of wave-1, wave-2 has lost ε = 0.5 in all, of at most 1.2"
        in steps("plan", small.release).out
    )
    run = steps("run", small.release, "--json")
    assert run.code == 0
    shown = json.loads((small.home / "public" / "second" / "manifest.json").read_text())["ledger"]["charge"]["shown"]
    assert shown["waves"] == {"populations": ["wave-1", "wave-2"], "measure": "pure", "total": "1.2", "cap": "1.2"}
    assert shown["overlaps"] == ["wave-1"]
    first = json.loads((small.home / "public" / "first" / "manifest.json").read_text())["ledger"]["charge"]["shown"]
    assert first["waves"] == {"populations": ["wave-1"], "measure": "pure", "total": "0.5", "cap": "1.2"}
    page = (small.home / "public" / "second" / "index.html").read_text()
    assert "Some of these people are also in wave-1. A person who is in both had lost <strong>ε = 1.2</strong> in total" in page
    assert "no more than ε = 1.2 may be lost in a lifetime" in page
    assert steps("verify", small.home / "public" / "second").code == steps("verify", small.home / "public" / "first").code == 0
    say(small, "wave-1")
    small.write("third", "0.1")
    refused = steps("run", small.release)
    assert refused.code == 3 and "would have lost ε=1.3 in a lifetime (ε=1.2 so far), where the cap is 1.2" in refused.err
    assert steps("budget", "verify").code == 0


def test_the_cap_command_answers_and_show_tells_the_loss(steps):
    for population in ("wave-1", "wave-2"):
        steps("budget", "grant", population, "4", *REASON)
    said = steps("budget", "cap", "wave-2", "5", "--with", "wave-1", *REASON, "--json").json
    lifetime = {"cap": "5", "capped_by": "wave-2", "populations": ["wave-1", "wave-2"], "measure": "pure", "total": "0"}
    assert said["lifetime"] == lifetime
    assert steps("budget", "show", "wave-1", "--json").json["lifetime"] == lifetime
    assert "a person in all of wave-1, wave-2 has lost ε = 0 in all, of at most 5" in steps("budget", "show").out
    assert steps("budget", "show").out.count("in all of wave-1") == 1, "once for the group"
    steps("budget", "cap", "wave-2", "--rho", "0.5", *REASON)
    in_rho = steps("budget", "show", "wave-1", "--json").json["lifetime"]
    assert (in_rho["measure"], in_rho["cap"], in_rho["delta"]) == ("zcdp", "0.5", "1e-9")
    for words, says in (
        (("wave-2", "5", "--with", "wave-3"), "does not know"),
        (("wave-2", "5", "--with", "wave-2"), "overlap itself"),
        (("wave-2",), "no amount was asked"),
        (("wave-2", "5", "--rho", "1"), "one measure"),
        (("wave-2", "-1"), "No such option|positive"),
    ):
        refused = steps("budget", "cap", *words, *REASON)
        assert refused.code == 2 and any(each in refused.err for each in says.split("|")), refused.err


def test_an_unknown_overlap_is_refused_at_the_door_and_nothing_is_charged(small: Small, steps):
    steps("budget", "grant", "wave-2", "4", *REASON)
    say(small, "wave-2", "[wave-1]")
    refused = steps("run", small.release)
    assert refused.code == 2 and '"wave-1", which this ledger does not know (it knows wave-2)' in refused.err
    assert [entry["kind"] for entry in steps("budget", "log", "--json").json["entries"]] == ["grant"]


@pytest.mark.parametrize("overlaps", ["[wave-2]", "[wave-1, wave-1]", "['Not a name']", "wave-1", "[7]"])
def test_an_overlap_with_itself_or_without_a_name_is_refused_with_its_line(small: Small, overlaps: str):
    say(small, "wave-2", overlaps)
    with pytest.raises(SpecError, match=r"dataset.yaml, line \d+: overlaps"):
        load_release(small.release)


def test_overlaps_are_part_of_what_is_asked_and_their_absence_changes_no_hash(small: Small):
    say(small, "wave-2")
    plain = load_release(small.release)
    assert "overlaps" not in plain.model_dump(mode="json")["domain"]
    say(small, "wave-2", "[wave-1]")
    asked = load_release(small.release)
    assert spec_hash(asked) != spec_hash(plain) and FORMAT_3 == 3
    assert asked.model_dump(mode="json")["domain"]["overlaps"] == ["wave-1"]
