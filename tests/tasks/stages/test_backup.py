"""A backup holds all that cannot be made again; a restored home goes on under its charges, and never forgets one."""

from __future__ import annotations

import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from schemas.errors import EvidenceBroken, SpecError
from tasks.stages.audit import check_ledger
from tasks.stages.restore import restore
from tasks.stages.status import status
from tasks.stores import backup
from tasks.stores.backup import back_up
from tasks.stores.home import Home
from tasks.stores.identity import keys_of
from tasks.stores.ledger import open_ledger
from tests.flows.small import Small
from tests.flows.without_prefect import run_stages
from tests.tasks.stages import test_home

PASSPHRASE = "correct horse battery"
stopped, _silent = test_home.stopped, test_home._silent


@pytest.fixture
def small(stopped: Small, tmp_path: Path) -> Small:
    return Small(Path(shutil.copytree(stopped.folder, tmp_path / "copy")))


@pytest.fixture
def home(small: Small) -> Home:
    return Home(small.home)


@pytest.fixture
def saved(home: Home, tmp_path: Path) -> Path:
    out = tmp_path / "backup.tar"
    assert back_up(home, out, PASSPHRASE)["entries"] == open_ledger(home).head()[0]
    return out


@pytest.mark.whole
def test_the_drill_a_half_done_release_goes_on_in_another_folder_under_its_charge(home, small, saved, tmp_path):
    noisy = test_home.files_of(home, "noisy-counts")[0].read_bytes()
    known = keys_of(home)
    shutil.rmtree(home.path)
    other = Home(tmp_path / "elsewhere" / "home")
    said = restore(other, saved, PASSPHRASE)
    assert said["entries"] == open_ledger(other).head()[0] and keys_of(other) == known
    assert run_stages(other, small.release) is False, "nothing is charged again"
    assert (other.public / "small-1" / "noisy-counts.parquet").read_bytes() == noisy and check_ledger(other) == []
    for place, mode in ((other.keys, 0o700), (other.staging, 0o700), (other.keys / "artifacts.key", 0o600)):
        assert place.stat().st_mode & 0o777 == mode
    assert list(other.path.glob(".restoring-*")) == []
    with pytest.raises(SpecError, match="has a ledger already"):
        restore(other, saved, PASSPHRASE)


@pytest.mark.whole
def test_a_backup_that_would_forget_a_charge_is_refused_by_the_anchor_outside(home, small, saved, tmp_path):
    anchored = replace(home, anchor_path=tmp_path / "anchor.log")
    shutil.copy(home.anchor_file, anchored.anchor_file)
    open_ledger(anchored).grant("small-people", 1, "after the backup")
    new = Home(tmp_path / "new", anchor_path=anchored.anchor_file)
    with pytest.raises(EvidenceBroken, match="would forget what was charged since.*anchor.*old copy.*Nothing was restored"):
        restore(new, saved, PASSPHRASE)
    assert not (new.path / "ledger.db").exists() and not list(new.path.rglob("*.key"))
    back_up(anchored, tmp_path / "newer.tar", PASSPHRASE)
    restore(new, tmp_path / "newer.tar", PASSPHRASE)  # the control


@pytest.mark.slow
def test_a_backup_that_would_forget_a_charge_is_refused_by_a_bundle_that_survived(home, small, saved, tmp_path):
    run_stages(home, small.release)
    new = Home(tmp_path / "new")
    shutil.copytree(home.public / "small-1", new.public / "small-1")
    assert restore(new, saved, PASSPHRASE)["entries"], "the bundle's head is in the backup: its charge is not forgotten"
    open_ledger(home).grant("small-people", 5 * 10**8, "another release")
    small.write(name="small-2")
    run_stages(home, small.release)
    late = Home(tmp_path / "late")
    shutil.copytree(home.public / "small-2", late.public / "small-2")
    with pytest.raises(EvidenceBroken, match='bundle "small-2" knows public entry .* it is an old copy'):
        restore(late, saved, PASSPHRASE)


@pytest.mark.whole
def test_keys_are_unreadable_without_the_passphrase_and_every_other_byte_is_checked(home, saved, tmp_path):
    content = saved.read_bytes()
    for path in home.keys.iterdir():
        assert path.read_bytes() not in content
    assert saved.stat().st_mode & 0o777 == 0o600
    with pytest.raises(SpecError, match="not the one that this backup was made with"):
        restore(Home(tmp_path / "a"), saved, "another passphrase")
    with pytest.raises(SpecError, match="at least 12"):
        back_up(home, tmp_path / "weak.tar", "short")
    with pytest.raises(SpecError, match="overwrites nothing"):
        back_up(home, saved, PASSPHRASE)
    with tarfile.open(saved) as archive:
        places = [member.offset_data for member in archive.getmembers() if member.size]
    for place in places:
        changed = bytearray(content)
        changed[place] ^= 1
        (spoilt := tmp_path / "spoilt.tar").write_bytes(changed)
        with pytest.raises((EvidenceBroken, SpecError)):
            restore(Home(tmp_path / "b"), spoilt, PASSPHRASE)
    assert not (tmp_path / "b" / "ledger.db").exists()


def test_a_backup_with_a_file_that_leads_elsewhere_is_refused(saved, tmp_path):
    with tarfile.open(saved, "a") as archive:
        info = tarfile.TarInfo("public/../../planted")
        archive.addfile(info)
    with pytest.raises(EvidenceBroken, match="files that no backup has"):
        restore(Home(tmp_path / "a"), saved, PASSPHRASE)
    assert not (tmp_path / "planted").exists()


@pytest.mark.whole
def test_a_restoration_cut_short_is_no_home_and_is_finished_by_the_same_command(saved, tmp_path, monkeypatch):
    from tasks.stages import restore as stage

    home = Home(tmp_path / "new")
    replace_file, left = stage.os.replace, [3]

    def fails(*places: object) -> None:
        left[0] -= 1
        if not left[0]:
            raise OSError(28, "No space left on device")
        replace_file(*places)

    with monkeypatch.context() as patch:
        patch.setattr(stage.os, "replace", fails)
        with pytest.raises(Exception, match="No space left"):
            restore(home, saved, PASSPHRASE)
    assert not (home.path / "ledger.db").exists()
    restore(home, saved, PASSPHRASE)
    assert check_ledger(home) == []


@pytest.mark.whole
def test_draws_of_a_release_that_is_charged_while_a_backup_is_made_are_not_in_it(home, small, tmp_path, monkeypatch):
    """They would say of the restored ledger that it is an old copy: it never charged them."""
    add_tree = backup._add_tree

    def meanwhile(archive, folder, name, hashes):
        if name == "public":
            small.write(name="small-2")
            test_home.stop_before("correct", home, small.release)
        add_tree(archive, folder, name, hashes)

    monkeypatch.setattr(backup, "_add_tree", meanwhile)
    back_up(home, tmp_path / "backup.tar", PASSPHRASE)
    other = Home(tmp_path / "other")
    restore(other, tmp_path / "backup.tar", PASSPHRASE)
    assert check_ledger(other) == [] and not (other.staging / "small-2").exists()
    (home.path / "ledger.db").unlink()
    home.anchor_file.unlink()
    with pytest.raises(EvidenceBroken, match='would forget.*draws of release "small-2" lie in staging'):
        restore(home, tmp_path / "backup.tar", PASSPHRASE)


@pytest.mark.slow
def test_a_backup_made_while_a_run_seals_holds_all_that_its_ledger_knows(home, small, tmp_path, monkeypatch):
    """Between the ledger's copy and the artifacts' the run goes on: nothing sealed is missing, no bundle knows more."""
    add_tree = backup._add_tree

    def meanwhile(archive, folder, name, hashes):
        if name.startswith("staging/") and open_ledger(home).state("small-1") == "drawn":
            run_stages(home, small.release)
        add_tree(archive, folder, name, hashes)

    monkeypatch.setattr(backup, "_add_tree", meanwhile)
    back_up(home, tmp_path / "backup.tar", PASSPHRASE)
    other = Home(tmp_path / "other")
    restore(other, tmp_path / "backup.tar", PASSPHRASE)
    assert open_ledger(other).state("small-1") == "drawn" and check_ledger(other) == []
    assert run_stages(other, small.release) is False


def test_status_says_what_has_to_be_done(home, small):
    said = status(home)
    assert said["ok"] and said["public"] == 0 and said["running"] == []
    assert [(each["release"], each["state"]) for each in said["stopped"]] == [("small-1", "drawn")]
    assert said["exact_counts"] == [{"release": "small-1", "running": False}]
    from tasks.stores.running import running

    with running(home, "small-1"):
        assert status(home)["running"] == ["small-1"] and status(home)["stopped"] == []
    (home.keys / "artifacts.key").unlink()
    assert not status(home)["ok"] and "artifacts.key is missing" in status(home)["problems"][0]
    (home.public / "planted").mkdir()
    assert any("planted" in problem for problem in status(home)["problems"])
