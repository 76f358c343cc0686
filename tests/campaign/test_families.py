"""A few trials of every family; and for each a control, broken on purpose, that the same code counts as what it is."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from schemas.errors import BudgetRefused, EvidenceBroken
from tasks.verify.bundle import Verdict, verify_bundle
from tests.campaign import broken, canaries, disk, flips, hostile, kills, lies, postgres_kills, races, racing, signals, stages
from tests.campaign.subject import drawn, make_subject, overspending
from tests.campaign.trials import CannotTry, Found, Trial
from tests.flows import without_prefect
from tests.flows.small import PERSON
from tests.flows.without_prefect import in_child, killed_at, killed_in

pytestmark = pytest.mark.whole  # every test begins with a release

COLD = {"modules": []}  # nothing imported beforehand


def trial(family: str, folder: Path, number: int = 0, shared: dict | None = None) -> Trial:
    (folder / str(number)).mkdir()
    return Trial(family, number, 1, folder / str(number), shared or {})


def refused(*_) -> Found:
    raise KeyError("a bug")


# Bundles


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    with flips.preparing(tmp_path_factory.mktemp("flips") / "shared") as shared:
        yield shared


@pytest.mark.parametrize("file", ["manifest.sig", "key-history.json", "notice.json", "codebook.csv"])
def test_every_changed_byte_is_found(bundle, tmp_path, file):
    number = [name for _, name, _ in bundle["parts"]].index(file)
    found = flips.attempt(trial("bytes", tmp_path, number, bundle))
    assert found.good and found.tried > 70


def test_a_verifier_that_does_not_look_at_a_file_loses_every_byte_of_it(bundle, tmp_path):
    number = [name for _, name, _ in bundle["parts"]].index("codebook.csv")
    blind = lambda *asked: [each for each in verify_bundle(*asked) if each.file != "codebook.csv"]  # noqa: E731
    found = flips.attempt(trial("bytes", tmp_path, number, bundle), blind)
    assert len(found.lost) == found.tried > 70


def test_every_kind_of_bundle_loses_the_first_bytes_of_every_file(bundle):
    others = {place for place, _, start in bundle["parts"] if start == 0} - {bundle["bundle"]}
    named = {(Path(place).parents[2].name, name) for place, name, _ in bundle["parts"] if place in others}
    assert {("places", "places.csv"), ("households", "person-1.parquet"), ("households", "manifest.sig")} <= named


CHOSEN = [
    place
    for place, lie in enumerate(lies.LIES)
    if lie.name in ("half_the_count_noise", "no noise, given", "a row in another's place, given")
]


def test_lies_are_found(tmp_path):
    assert len(CHOSEN) == 3
    assert all(lies.attempt(trial("lies", tmp_path, number)).good for number in CHOSEN)


def test_a_verifier_that_believes_everything_loses_every_lie(tmp_path):
    believe = lambda *_: Verdict(())  # noqa: E731
    assert not any(lies.attempt(trial("lies", tmp_path, number), believe, believe).good for number in CHOSEN)


def test_of_a_long_file_first_and_last_bytes_are_among_those_that_are_changed():
    assert flips.starts(700) == [0, 256, 512]
    assert len(long := flips.starts(320_000)) == 32 and (long[0], long[-1]) == (0, 320_000 - 256)


# Specs and files


@pytest.mark.slow
def test_hostile_specs_and_files_are_refused_in_words(tmp_path):
    for number in (0, 2, 4, 5, 7):
        assert hostile.attempt(trial("hostile", tmp_path, number, COLD)) == Found(kind="spec" if number % 2 == 0 else "file")


def test_a_command_that_crashes_charges_or_tells_is_counted_as_what_it_is(tmp_path):
    assert "a traceback" in hostile.attempt(trial("hostile", tmp_path, 0, COLD), plan=refused).lost[0]

    def charging(home, _) -> int:
        broken.pay_again(home)
        print("refused", file=sys.stderr)
        return 2

    def telling(home, _) -> int:
        print(f"no such person: {PERSON}", file=sys.stderr)
        return 4

    found = [
        hostile.attempt(trial("hostile", tmp_path, number, COLD), run=run) for number, run in ((3, charging), (5, telling))
    ]
    assert found[0].overspent and not found[0].lost and found[1].leaked and not found[1].lost


# Stages and disks


def test_every_durable_step_is_in_one_chain_of_kills():
    steps = ["plan"] * 2 + ["publish"] * 3 + ["evaluate"] * 2
    chains = stages.chains(steps)
    assert chains[0] == [("plan", 1), ("publish", 1)] and chains[2] == [("publish", 3)] and chains[-1] == [("evaluate", 2)]
    assert sorted(stage for chain in chains for stage, _ in chain) == sorted(steps)
    assert len({each for chain in chains for each in chain}) == len(steps)


def test_a_process_that_has_run_stages_itself_counts_and_kills_at_the_same_steps(tmp_path, monkeypatch):
    """Other families release in the campaign's own process, which then rehearses for this one."""
    for name in ("rehearsed", "killed"):
        (tmp_path / name).mkdir()
    rehearsed, killed = (make_subject(tmp_path / name) for name in ("rehearsed", "killed"))
    monkeypatch.setattr(without_prefect, "stage_now", "forget")  # as a run leaves it
    steps = in_child(lambda _: killed_at(None, rehearsed.home, rehearsed.release, 0))[1][0]
    assert steps[0] != "forget" and steps.count("forget") == 2
    status, said = in_child(lambda _: killed_in(steps[0], 1, killed.home, killed.release))
    assert os.WIFSIGNALED(status), said


@pytest.mark.slow
def test_a_stage_that_is_killed_is_resumed_and_a_broken_one_is_counted(tmp_path):
    shared = COLD | {"places": [("households", [("charge", 3), ("synthesize", 20)]), ("tree", [("charge", 5)])]}
    assert stages.attempt(trial("stages", tmp_path, 0, shared)) == Found(tried=2, kind="households")
    control = trial("stages", tmp_path, 1, shared)

    def sabotage() -> None:
        forget = without_prefect.forget_exact_counts

        def do_harm(home, asked):
            forget(home, asked)
            for harm in broken.HARM:
                harm(home)

        without_prefect.forget_exact_counts = do_harm

    found = stages.attempt(control, sabotage)
    assert found.lost and found.overspent and found.leaked


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1], ids=["SIGSTOP", "SIGTERM"])
def test_a_stage_that_is_stopped_or_ended_does_no_harm_and_a_broken_one_is_counted(tmp_path, number):
    shared = COLD | {"places": [("tree", [("correct", 2)]), ("tree", [("charge", 5), ("publish", 3)])] * 2}
    found = signals.attempt(trial("signals", tmp_path, number, shared))
    assert found == Found(tried=1 + number, kind=f"{'SIGTERM' if number else 'SIGSTOP'} tree")

    def sabotage() -> None:
        if number:  # hears nothing
            signals.signal.signal = lambda *_: None
            os.kill = lambda *_: None
        else:  # forgets that another may have paid
            without_prefect.charge = refused

    assert signals.attempt(trial("signals", tmp_path, number + 2, shared), sabotage).lost


def test_a_draw_that_is_not_the_one_before_counts_as_overspent(tmp_path):
    subject = make_subject(tmp_path)
    assert overspending(subject.home, drawn(subject.home)) == []
    from tasks.specs import load_release
    from tasks.stages.plan import plan

    plan(subject.home, load_release(subject.release))
    assert overspending(subject.home, {"plan": "another digest"}) == ["plan was drawn again"]


@pytest.mark.slow
def test_a_full_disk_is_told_and_one_that_is_not_is_counted(tmp_path):
    shared = COLD | {"places": [("tree", 5)] * 3}
    try:
        assert disk.attempt(trial("disk", tmp_path, 1, shared)).good
    except CannotTry as reason:
        pytest.skip(str(reason))

    def sabotage() -> None:
        from tasks.stores import database, files

        files.InfrastructureFault = database.InfrastructureFault = KeyError

    assert "met a full disk with" in disk.attempt(trial("disk", tmp_path, 2, shared), sabotage).lost[0]


# Races


def test_a_racer_that_never_got_ready_has_said_why_and_a_silent_one_died():
    assert racing.last_said("InfrastructureFault", io.StringIO("")) == "InfrastructureFault"
    assert racing.last_said("ready", io.StringIO("charged\n")) == "charged"
    assert racing.last_said("ready", io.StringIO("")) == racing.last_said("", io.StringIO("")) == "died"


def test_a_racer_says_what_it_was_refused_with_unless_that_is_an_answer():
    assert racing.told(BudgetRefused("a release asks for more")) == "BudgetRefused"
    assert racing.told(EvidenceBroken("a key\nis gone")) == "EvidenceBroken: a key is gone"


@pytest.mark.slow
def test_racers_pay_no_more_than_the_grant_and_careless_ones_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(races, "PROCESSES", 26)
    assert races.attempt(trial("races", tmp_path, 0)).good
    assert races.attempt(trial("races", tmp_path, 1), "careless").overspent
    assert races.attempt(trial("races", tmp_path, 2), "forgetful").lost


@pytest.mark.slow
@pytest.mark.postgres
def test_a_server_that_dies_loses_no_charge_and_one_that_is_forgotten_is_counted(tmp_path):
    try:
        with races.serving(tmp_path) as shared:
            assert postgres_kills.attempt(trial("postgres", tmp_path, 1, shared)).good
            assert (
                "was told that it had paid"
                in postgres_kills.attempt(trial("postgres", tmp_path, 3, shared), "forgetful").lost[0]
            )
    except CannotTry as reason:
        pytest.skip(str(reason))


# Real runs


@pytest.mark.slow
def test_a_real_run_that_is_killed_and_does_harm_is_counted_in_every_column(tmp_path):
    found = kills.attempt(trial("kills", tmp_path, 27), (sys.executable, "-m", "tests.campaign.broken"))
    assert found.lost and found.overspent and found.leaked


@pytest.mark.slow
def test_no_canary_is_found_and_one_in_a_log_is_counted(tmp_path):
    number = list(canaries.CASES).index("a column named by a value")
    assert canaries.attempt(trial("canaries", tmp_path, number)).good
    telling = f"import sys; sys.stderr.write('{canaries.BIRD}'); from flows.cli import main; main()"
    assert canaries.attempt(trial("canaries", tmp_path, number + len(canaries.CASES)), (sys.executable, "-c", telling)).leaked
