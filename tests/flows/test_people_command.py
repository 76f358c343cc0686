"""`steps keys`, `steps people` and what they change for everybody else, from the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from schemas.errors import SpecError, WaitingForApproval
from tasks.specs import load_release
from tasks.stages.charge import charge, must_be_signable
from tasks.stages.discretize import discretize
from tasks.stages.plan import plan
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tests.flows.small import Small

WHY = ("--why", "a test")


@pytest.fixture
def keys(small: Small, steps) -> dict[str, Path]:
    made = {name: small.folder / f"{name}.pem" for name in ("ada", "bo", "ola")}
    for path in made.values():
        assert steps("keys", "new", path).code == 0
    return made


def register(steps, keys: dict[str, Path], name: str, role: str, *by: str) -> dict:
    for each in by:
        said = steps("people", "add", name, "--role", role, "--key", f"{keys[name]}.pub", "--as", keys[each], "--json")
    assert said.code == 0, said.err
    return said.json


@pytest.fixture
def registered(steps, keys: dict[str, Path]) -> dict[str, Path]:
    register(steps, keys, "ada", "approver", "ada")
    register(steps, keys, "bo", "approver", "ada")
    assert register(steps, keys, "ola", "operator", "ada")["waits"]
    assert not register(steps, keys, "ola", "operator", "bo")["waits"]
    return keys


def drawn(small: Small, key: Path, approval: str = "required") -> Home:
    """A release that was drawn, without Prefect."""
    home = Home(small.home, key_file=key)
    asked = load_release(small.write(more=f"approval: {approval}\n"))
    charge(home, asked, plan(home, asked), discretize(home, asked), {})
    open_ledger(home).seal("small-1", "noisy", "public", "0" * 32, "f" * 64, 10)
    return home


def test_a_ledger_without_people_says_so(small, steps):
    open_ledger(Home(small.home))
    assert "nobody is registered" in steps("people", "list").out
    assert steps("people", "list", "--json").json == {"people": [], "proposed": [], "approvers_needed": 0}


@pytest.mark.parametrize("words", [("budget", "grant", "small-people", "1", *WHY), ("budget", "show"), ("status",)])
def test_a_ledger_without_people_says_that_no_signature_is_asked(steps, keys, words: tuple[str, ...]):
    steps("budget", "grant", "small-people", "1", *WHY)
    shown = steps(*words).out
    assert shown.count("nobody is registered: no signature is asked") == 1
    assert "no signature is asked" not in steps(*words, "--json").out, "programs are told by a key, or not at all"
    register(steps, keys, "ada", "approver", "ada")
    assert "nobody is registered" not in steps(*words, "--as", keys["ada"]).out, "the control"


def test_people_are_shown_with_what_waits_for_a_second_approver(steps, registered):
    assert register(steps, registered, "ola", "board", "ada")["waits"]
    shown = steps("people", "list").out
    assert "operator" in shown and "waits for another approver: add ola as board, said by ada" in shown
    assert "one more approver" in steps("people", "remove", "bo", "--as", registered["ada"]).out
    assert steps("people", "add", "eve", "--role", "approver", "--key", f"{registered['bo']}.pub").code == 2


@pytest.mark.whole
def test_a_name_from_the_environment_decides_nothing(small: Small, steps, registered, monkeypatch):
    monkeypatch.setenv("LOGNAME", "ada")
    assert steps("budget", "grant", "small-people", "1", *WHY).code == 2
    assert steps("budget", "grant", "small-people", "1", *WHY, "--as", registered["ola"]).code == 2
    assert steps("budget", "grant", "small-people", "1", *WHY, "--as", registered["ada"]).code == 0
    drawn(small, registered["ola"])
    before = open_ledger(Home(small.home)).head()
    for words in ((), ("--as", registered["ola"])):
        said = steps("approve", "small-1", *words)
        assert said.code == 2 and "Nothing was written" in said.err
    assert open_ledger(Home(small.home)).head() == before
    said = steps("approve", "small-1", "--as", registered["bo"], "--json").json
    assert (said["state"], said["who"]) == ("approved", "bo")
    assert steps("budget", "verify", "--json").json["ok"]


def test_who_signed_is_told_and_not_whose_account_it_was(small: Small, steps, registered):
    steps("budget", "grant", "small-people", "1", *WHY, "--as", registered["ada"])
    drawn(small, registered["ola"])
    entries = {each["kind"]: each for each in steps("budget", "log", "--json").json["entries"]}
    granted, charged, sealed = (entries[kind] for kind in ("grant", "charge", "seal"))
    assert [each["signer"] for each in (granted, charged, sealed)] == ["ada", "ola", None]
    assert granted["actor"] == charged["actor"] == sealed["actor"] != "ola", "accounts stay what they were"
    who = [line.split()[3:5] for line in steps("budget", "log").out.splitlines()]
    assert ["ada", "grant"] in who and ["ola", "charge"] in who and [sealed["actor"], "seal"] in who
    (release,) = steps("releases", "--json").json["releases"]
    assert (release["signer"], release["actor"]) == ("ola", charged["actor"])
    assert steps("releases").out.splitlines()[1].split()[6] == "ola"


def test_where_nobody_is_registered_the_account_is_told(small: Small, steps):
    steps("budget", "grant", "small-people", "1", *WHY)
    (entry,) = steps("budget", "log", "--json").json["entries"]
    assert entry["signer"] is None and steps("budget", "log").out.splitlines()[1].split()[3] == entry["actor"]


@pytest.mark.whole
def test_two_of_a_board_have_to_approve(small: Small, steps, registered):
    steps("budget", "grant", "small-people", "1", *WHY, "--as", registered["ada"])
    drawn(small, registered["ola"], "{required: 2, from: [approver]}")
    said = steps("approve", "small-1", "--as", registered["ada"], "--json").json
    assert said["state"] == "waiting" and "1 more of approver must approve" in said["next"] and "so far: ada" in said["next"]
    assert steps("approve", "small-1", "--as", registered["bo"], "--json").json["state"] == "approved"
    assert steps("show", "small-1", "--json").json["approver"] == "ada, bo"


def test_what_cannot_be_approved_as_it_asks_is_refused_before_anything_is_charged(small: Small, steps, registered):
    asked = load_release(small.write(more="approval: {required: 2, from: [board]}\n"))
    home = Home(small.home, key_file=registered["ola"])
    with pytest.raises(SpecError, match="needs 2 approval.*by board.*registered so: nobody"):
        must_be_signable(home, asked)
    with pytest.raises(SpecError, match="is no operator"):
        must_be_signable(Home(small.home, key_file=registered["ada"]), asked)
    with pytest.raises(SpecError, match="no key was given"):
        must_be_signable(Home(small.home), asked)
    must_be_signable(home, load_release(small.write(more="approval: required\n")))  # the control
    with pytest.raises(SpecError, match="nobody is registered"):
        must_be_signable(Home(small.folder / "another"), asked)


def test_an_approval_says_how_many_and_from_whom_and_old_words_keep_their_hash(small: Small):
    from schemas.identity import spec_hash

    plain = spec_hash(load_release(small.write()))
    assert spec_hash(load_release(small.write(more="approval: none\n"))) == plain
    required = load_release(small.write(more="approval: required\n"))
    assert json.loads(required.spec.model_dump_json())["approval"] == "required"
    two = load_release(small.write(more="approval: {required: 2, from: [board]}\n"))
    assert (two.spec.approval.required, two.spec.approval.from_) == (2, ("board",))
    assert len({plain, spec_hash(required), spec_hash(two)}) == 3
    for wrong in ("{required: 0}", "{required: 2, from: [Board]}", "{required: 2, of: [board]}", "sometimes"):
        with pytest.raises(SpecError, match="approval|required|from|of"):
            load_release(small.write(more=f"approval: {wrong}\n"))


@pytest.mark.parametrize("name", ["[/x]", "[red]income", "[link=x]y"])
@pytest.mark.whole
def test_markup_in_a_name_is_shown_as_it_is(small: Small, steps, name: str):
    steps("budget", "grant", "small-people", "1", *WHY)
    home = drawn(small, None)
    open_ledger(home).decide("small-1", "approve", name, "fine")
    assert name in steps("releases").out
    text = (small.folder / "dataset.yaml").read_text()
    (small.folder / "dataset.yaml").write_text(
        text.replace("name: working", f"name: 'pay {name}'").replace("working:", f"'pay {name}':")
    )
    small.write("small-2")
    said = steps("plan", small.release)
    assert said.code == 0 and f"pay {name}" in said.out.replace("\n", "")


def test_who_approves_is_the_account_and_not_what_the_environment_says(small: Small, steps, monkeypatch):
    monkeypatch.setenv("LOGNAME", "director-general")
    steps("budget", "grant", "small-people", "1", *WHY)
    drawn(small, None)
    said = steps("approve", "small-1", "--json").json
    assert said["who"] != "director-general" and "no people are registered" in said["note"]


def test_a_full_disk_is_met_before_anything_is_begun(small: Small, steps, monkeypatch):
    steps("budget", "grant", "small-people", "1", *WHY)
    usage = shutil.disk_usage(small.home)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=4 * 2**20))
    said = steps("run", small.release)
    assert said.code == 1 and "4 MiB of room" in said.err and "Free space" in said.err
    assert len(open_ledger(Home(small.home)).entries()) == 1 and not (small.home / "prefect").exists()


def test_a_grant_said_again_adds_nothing_and_says_so(steps):
    assert steps("budget", "grant", "small-people", "4", *WHY).code == 0
    again = steps("budget", "grant", "small-people", "4", *WHY)
    assert again.code == 0 and "nothing was added: entry 1" in again.out and "--key" in again.out
    assert steps("budget", "grant", "small-people", "4", *WHY, "--key", "second", "--json").json["granted"] == "8"
    assert steps("budget", "grant", "small-people", "4", *WHY, "--key", "second", "--json").json["found"]["seq"] == 2


class Deployed:
    """A flow run of a deployment, which Prefect suspends and resumes."""

    id = "a deployment"


@pytest.mark.whole
def test_a_suspended_run_goes_on_by_signatures_and_not_by_what_somebody_typed(small: Small, steps, registered, monkeypatch):
    from flows.runtime import approval

    steps("budget", "grant", "small-people", "1", *WHY, "--as", registered["ada"])
    home = drawn(small, registered["ola"], "{required: 2, from: [approver]}")
    told, suspended = [], []

    def suspend(**asked: object) -> None:
        """Somebody resumes it at once with a name; then one after the other signs."""
        suspended.append(asked)
        if len(suspended) > 1:
            steps("approve", "small-1", "--as", registered[("ada", "bo")[len(suspended) - 2]])

    monkeypatch.setattr(approval, "suspend_flow_run", suspend)
    monkeypatch.setattr(approval, "preview_release", lambda *_: small.folder)
    monkeypatch.setattr(approval.ui_artifacts, "ask_for_signatures", lambda *words: told.append(words[-1]))
    asked = load_release(small.release)
    with pytest.raises(WaitingForApproval, match="2 more of approver must approve.*--as FILE"):
        approval.wait_for_decision(home, asked, None, ())
    monkeypatch.setattr(approval.runtime, "deployment", Deployed)
    approval.wait_for_decision(home, asked, None, ())
    assert len(suspended) == 3 and not any("wait_for_input" in asked for asked in suspended)
    assert "1 more of approver" in told[-1] and open_ledger(home).state("small-1") == "approved"


def test_without_a_key_a_run_is_refused_before_prefect_is_started(small: Small, steps, registered, monkeypatch):
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    assert steps("budget", "grant", "small-people", "1", *WHY, "--as", registered["ada"]).code == 0
    for words in ((), ("--as", registered["ada"])):
        refused = steps("run", small.write(), *words)
        assert refused.code == 2 and ("no key was given" in refused.err or "is no operator" in refused.err)
    assert not (small.home / "prefect").exists()


@pytest.mark.whole
def test_a_decision_stands_though_prefect_s_server_is_out_of_reach(small: Small, steps, monkeypatch):
    from prefect.settings import PREFECT_API_URL, temporary_settings

    steps("budget", "grant", "small-people", "1", *WHY)
    home = Home(small.home)
    asked = load_release(small.write(more="approval: required\n"))
    charge(home, asked, plan(home, asked), discretize(home, asked), {})
    open_ledger(home).seal("small-1", "noisy", "public", "0" * 32, "f" * 64, 10)
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")  # where nobody listens
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}):
        said = steps("approve", "small-1", "--why", "fine", "--json")
    assert said.code == 0 and said.json["state"] == "approved"
    assert "this is decided; Prefect's server could not be told" in said.err and "Traceback" not in said.err
