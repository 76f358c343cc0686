"""One ledger, one home: a lost mount, a second home or a lost key is refused, and burns nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.runtime.finished import return_finished
from schemas.budget import Asked
from schemas.errors import BudgetRefused, EvidenceBroken, SpecError
from tasks.specs import load_release
from tasks.stages.audit import check_ledger, must_be_current
from tasks.stages.burn import burn
from tasks.stages.forget import exact_counts
from tasks.stages.grant import begin_anchor, grant
from tasks.stages.take_back import withdraw
from tasks.stages.validate import silent_gx
from tasks.stores import identity
from tasks.stores.acts import homes
from tasks.stores.home import Home
from tasks.stores.identity import make_keys, must_be_ours
from tasks.stores.ledger import open_ledger
from tasks.stores.rotation import rotate
from tests.flows import without_prefect
from tests.flows.small import Small, make_small
from tests.flows.without_prefect import run_stages

pytestmark = pytest.mark.whole


@pytest.fixture(scope="module", autouse=True)
def _silent() -> None:
    silent_gx()


class Stopped(Exception):
    """The run ends here."""


def stop_before(stage: str, home: Home, path: Path) -> None:
    """Runs the release up to a stage of the flow, as a run that is killed there."""

    def stop(*_: object, **__: object) -> None:
        raise Stopped

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(without_prefect, stage, stop)
        with pytest.raises(Stopped):
            run_stages(home, path)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Small:
    """A release whose sets are sealed and which was killed before it was published. Not to be changed."""
    small = make_small(tmp_path_factory.mktemp("stopped"), rows=303)
    open_ledger(Home(small.home)).grant("small-people", 10**9, "two releases")
    stop_before("publish_release", Home(small.home), small.release)
    return small


@pytest.fixture
def small(stopped: Small, tmp_path: Path) -> Small:
    return Small(Path(shutil.copytree(stopped.folder, tmp_path / "copy")))


@pytest.fixture
def home(small: Small) -> Home:
    return Home(small.home)


def charged(home: Home) -> int:
    return open_ledger(home).account("small-people").charged


def elsewhere(home: Home, folder: Path) -> Home:
    """Another home on the same ledger, as on PostgreSQL: the same database under another folder."""
    other = Home(folder)
    other.ledger_file.parent.mkdir(parents=True, exist_ok=True)
    for path in home.path.glob("ledger.db*"):
        shutil.copy(path, other.path / path.name)
    shutil.copy(home.anchor_file, other.anchor_file)
    return other


def test_the_first_charge_registers_the_home_once(home: Home, small: Small):
    (entry,) = homes(open_ledger(home))
    assert entry.details["keys"].keys() == {"artifacts.key", "excess.key", "fingerprint.key", "signing-key.pem"}
    stop_before("build_tree", home, small.release)
    assert homes(open_ledger(home)) == [entry]


def test_a_refused_charge_registers_nothing(home: Home, small: Small, tmp_path: Path):
    poor = Home(tmp_path / "poor")
    open_ledger(poor).grant("small-people", 1, "next to nothing")
    with pytest.raises(BudgetRefused):
        run_stages(poor, small.release)
    assert homes(open_ledger(poor)) == []


def test_a_mount_that_is_missing_is_refused_and_burns_nothing(home: Home, small: Small, tmp_path: Path):
    empty = elsewhere(home, tmp_path / "mount")
    before = open_ledger(empty).entries()
    for _ in range(2):
        with pytest.raises(EvidenceBroken, match="has no keys.*not mounted.*Nothing was charged, drawn, burnt"):
            run_stages(empty, small.release)
    assert open_ledger(empty).entries() == before and not (empty.path / "keys").exists()
    assert run_stages(home, small.release) is False, "the control: where it was made, it resumes"


def test_another_home_is_refused_and_burns_nothing(home: Home, small: Small, tmp_path: Path):
    make_keys(other := elsewhere(home, tmp_path / "other"))
    with pytest.raises(EvidenceBroken, match="is another home.*One ledger, one home"):
        run_stages(other, small.release)
    with pytest.raises(EvidenceBroken, match="is another home"):
        burn(other, "small-1", "it looks lost from here")
    assert open_ledger(other).state("small-1") == "drawn"


def test_a_ledger_and_an_anchor_that_are_set_back_together_forget_no_draw(home: Home, small: Small, tmp_path: Path):
    """Neither anchor nor bundle knows better; what was drawn still lies there."""
    old = Home(tmp_path / "old")
    open_ledger(old).grant("small-people", 5 * 10**8, "one release")
    (home.path / "ledger.db").write_bytes((old.path / "ledger.db").read_bytes())
    home.anchor_file.write_bytes(old.anchor_file.read_bytes())
    small.write(name="small-2")
    forgotten = 'draws of release "small-1" lie in staging/, and this ledger never charged it: it is an old copy'
    with pytest.raises(EvidenceBroken, match=f"{forgotten}. Nothing was charged or drawn"):
        run_stages(home, small.release)
    assert check_ledger(home) == [forgotten]
    with pytest.raises(EvidenceBroken, match=forgotten):
        grant(home, "small-people", Asked("pure", 10**9, None), "more", "add_remove", "person")
    home.anchor_file.unlink()
    with pytest.raises(EvidenceBroken, match=f"{forgotten}. No anchor was begun"):
        begin_anchor(home, "it was lost")
    shutil.rmtree(home.staging / "small-1")
    begin_anchor(home, "the control")


@pytest.mark.parametrize("key", ["artifacts.key", "excess.key", "fingerprint.key", "signing-key.pem", "all"])
def test_a_lost_key_is_refused_before_anything_is_charged_or_signed_by_another(home: Home, small: Small, key: str):
    before, kept = open_ledger(home).entries(), {path: path.read_bytes() for path in home.keys.iterdir()}
    for path in kept if key == "all" else [home.keys / key]:
        path.unlink()
    small.write(name="small-2")
    with pytest.raises(EvidenceBroken, match="Nothing was charged.*Restore keys/.*steps keys replace"):
        run_stages(home, small.release)
    assert open_ledger(home).entries() == before
    for path, content in kept.items():
        path.write_bytes(content)
        path.chmod(0o600)
    must_be_current(home)


def test_the_private_half_alone_being_gone_is_no_reason_for_a_new_key(tmp_path: Path):
    from tasks.stores.keys import signing_key

    home = Home(tmp_path / "home")
    signing_key(home)
    (home.keys / "signing-key.pem").unlink()
    with pytest.raises(EvidenceBroken, match="sign as somebody else"):
        signing_key(home)
    assert not (home.keys / "signing-key.pem").exists()


def test_a_ledger_of_an_earlier_version_is_known_by_the_names_of_its_draws(
    home: Home, small: Small, tmp_path: Path, monkeypatch
):
    monkeypatch.setattr(identity, "homes", lambda _: [])  # as before homes were registered
    must_be_ours(home, open_ledger(home))
    (home.keys / "artifacts.key").write_bytes(b"k" * 32)
    with pytest.raises(EvidenceBroken, match="another keys/artifacts.key"):
        must_be_current(home)
    with pytest.raises(EvidenceBroken, match="no keys/artifacts.key"):
        must_be_current(elsewhere(home, tmp_path / "mount"))


def meanwhile(monkeypatch: pytest.MonkeyPatch, look: str, act: Callable[[], object]) -> None:
    """After this look of `must_be_ours`, and before its next, another process acts; once."""
    looked, acted = getattr(identity, look), []

    def look_and_be_late(*asked: object) -> object:
        seen = looked(*asked)
        if not acted:
            acted.append(True)
            act()
        return seen

    monkeypatch.setattr(identity, look, look_and_be_late)


@pytest.mark.parametrize("look", ["homes", "keys_of"])
def test_a_first_release_that_another_process_makes_between_two_looks_is_ours(small: Small, tmp_path: Path, monkeypatch, look):
    home = Home(tmp_path / "fresh")
    ledger = open_ledger(home)
    ledger.grant("small-people", 10**9, "two releases")
    meanwhile(monkeypatch, look, lambda: run_stages(home, small.release))
    must_be_ours(home, ledger)
    assert ledger.state("small-1") == "evaluated"
    (home.keys / "artifacts.key").unlink()  # the control: one that was lost is
    with pytest.raises(EvidenceBroken, match="Nothing was charged"):
        must_be_ours(home, ledger)


@pytest.mark.parametrize("look", ["homes", "keys_of"])
def test_a_signing_key_that_is_rotated_between_two_looks_is_ours(home: Home, monkeypatch, look):
    ledger, before = open_ledger(home), (home.keys / "signing-key.pem").read_bytes()
    meanwhile(monkeypatch, look, lambda: rotate(home, ledger, "every year"))
    must_be_ours(home, ledger)
    assert len(homes(ledger)) == 2
    (home.keys / "signing-key.pem").write_bytes(before)  # the control: the one before is another's by now
    with pytest.raises(EvidenceBroken, match="signing-key.pem is another"):
        must_be_ours(home, ledger)


def files_of(home: Home, stage: str) -> list[Path]:
    return sorted((home.staging / "small-1" / stage).glob("*.parquet"))


@pytest.mark.parametrize("stage", ["plan", "tree", "consistent-counts", "synthetic-1"])
def test_what_follows_from_public_inputs_and_paid_noise_is_made_again(home: Home, small: Small, stage: str):
    noisy = files_of(home, "noisy-counts")[0].read_bytes()
    for path in files_of(home, stage):
        path.unlink()
    assert run_stages(home, small.release) is False
    assert (home.public / "small-1" / "noisy-counts.parquet").read_bytes() == noisy
    assert charged(home) == 500_000_000 and check_ledger(home) == []


def test_a_lost_draw_waits_for_a_person_who_gives_its_charge_up(home: Home, small: Small):
    with pytest.raises(SpecError, match="nothing that was paid for is lost"):
        burn(home, "small-1", "in vain")
    (path,) = files_of(home, "noisy-counts")
    whole = path.read_bytes()
    path.unlink()
    before = open_ledger(home).entries()
    with pytest.raises(EvidenceBroken, match="nothing was burnt.*steps burn small-1"):
        run_stages(home, small.release)
    assert open_ledger(home).entries()[: len(before)] == before and open_ledger(home).state("small-1") == "drawn"
    with pytest.raises(SpecError, match="needs a reason"):
        burn(home, "small-1", " ")
    assert burn(home, "small-1", "the disk is gone") == "burnt" == burn(home, "small-1", "again")
    assert run_stages(home, small.release) is True and charged(home) == 10**9
    assert (home.public / "small-1" / "noisy-counts.parquet").read_bytes() != whole


def test_a_lost_set_is_no_reason_to_burn(home: Home, small: Small):
    for path in files_of(home, "synthetic-1"):
        path.unlink()
    with pytest.raises(SpecError, match="nothing that was paid for is lost"):
        burn(home, "small-1", "in vain")


def test_what_was_rejected_from_another_home_leaves_no_exact_counts_in_this_one(home: Home, small: Small):
    assert exact_counts(home) == ["small-1"]
    open_ledger(home).decide("small-1", "reject", "ada", "said where its counts do not lie")
    with pytest.raises(SpecError, match="was rejected"):
        run_stages(home, small.release)
    assert exact_counts(home) == []


def test_a_release_that_was_taken_back_is_returned_without_its_source_and_says_so(home: Home, small: Small, monkeypatch):
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    run_stages(home, small.release)
    asked = load_release(small.release)
    assert "taken_back" not in (return_finished(home, asked, small.release) or {}), "the control"
    withdraw(home, "small-1", "wrong weights")
    (small.folder / "records.parquet").unlink()
    before = open_ledger(home).head()
    said = return_finished(home, asked, small.release)
    assert said is not None and said["taken_back"] == "withdrawn" and open_ledger(home).head() == before


def test_a_finished_release_whose_staging_is_gone_is_put_back_from_its_bundle(home: Home, small: Small):
    run_stages(home, small.release)
    before = open_ledger(home).entries()
    shutil.rmtree(home.staging / "small-1")
    assert run_stages(home, small.release) is False
    assert [entry for entry in open_ledger(home).entries()[len(before) :] if entry.details.get("stage") != "plan"] == []
    assert files_of(home, "noisy-counts") and files_of(home, "synthetic-2")
