"""What is public was never abandoned, what is abandoned is never public: the ledger consents before the bundle has its place."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace

import pytest

from schemas.errors import EvidenceBroken, InfrastructureFault, SpecError
from tasks.publishing import publication
from tasks.publishing.publication import publish
from tasks.stages.audit import check_ledger
from tasks.stages.decide import decide
from tasks.stores.home import Home
from tasks.stores.ledger import Ledger, open_ledger
from tasks.verify.bundle import holds, verify_bundle
from tests.tasks.publishing.making import GIVEN, POLL, a_release, make, some_counts

NAME = "poll-2026"


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Everything up to publication, made once. Not to be changed."""
    return make(tmp_path_factory.mktemp("drawn") / "home", a_release(POLL, GIVEN), some_counts(POLL, 1000))


@pytest.fixture
def made(drawn, tmp_path):
    home = Home(shutil.copytree(drawn.home.path, tmp_path / "home"))
    return replace(drawn, home=home, ledger=open_ledger(home))


def public(made) -> list[str]:
    return sorted(path.name for path in made.home.public.iterdir())


class Killed(BaseException):
    """Nothing after it runs, as after kill -9."""


def kill_at(monkeypatch: pytest.MonkeyPatch, place: object, name: str) -> None:
    def die(*_: object, **__: object) -> None:
        raise Killed

    monkeypatch.setattr(place, name, die)


@pytest.mark.whole
def test_killed_between_the_entry_and_the_rename_it_cannot_be_abandoned_and_the_next_run_finishes_it(made, monkeypatch):
    with monkeypatch.context() as patch:
        kill_at(patch, publication, "_place")
        with pytest.raises(Killed):
            publish(*made.arguments)
    assert not (made.home.public / NAME).exists() and made.ledger.state(NAME) == "published"
    assert any("missing" in problem for problem in check_ledger(made.home))
    for verdict in ("abandon", "reject"):
        with pytest.raises(SpecError, match=f"run again; then take it back: steps withdraw {NAME}"):
            decide(made.home, NAME, verdict, "ada", "the board said no")
    before = made.ledger.entries()
    folder = publish(*made.arguments).folder
    assert made.ledger.entries() == before and holds(verify_bundle(folder, made.home.keys / "signing-key.pub"))
    assert public(made) == [NAME] and folder.stat().st_mode & 0o777 == 0o755 and check_ledger(made.home) == []


@pytest.mark.parametrize("verdict", ["abandon", "reject"])
@pytest.mark.whole
def test_what_is_abandoned_while_its_bundle_is_built_is_never_public(made, monkeypatch, verdict):
    consent = Ledger.publish

    def a_moment_too_late(ledger: Ledger, *said: str):
        decide(made.home, NAME, verdict, "ada", "the board said no")
        return consent(ledger, *said)

    monkeypatch.setattr(Ledger, "publish", a_moment_too_late)
    with pytest.raises(SpecError, match="is abandoned|is rejected"):
        publish(*made.arguments)
    assert public(made) == [] and check_ledger(made.home) == []


@pytest.mark.whole
def test_a_rename_without_consent_would_be_found_by_the_audit(made, monkeypatch):
    """The control: the order of version 0.1, the ledger last."""
    monkeypatch.setattr(publication, "_must_consent", lambda *_: made.ledger.abandon(NAME, "a race"))
    with pytest.raises(SpecError, match="is abandoned"):
        publish(*made.arguments)
    assert public(made) == [NAME]
    (problem,) = check_ledger(made.home)
    assert f'is public, though the ledger has "{NAME}" as abandoned' in problem


@pytest.mark.whole
def test_a_folder_that_no_entry_knows_is_found(made):
    publish(*made.arguments)
    assert check_ledger(made.home) == []
    shutil.copytree(made.home.public / NAME, made.home.public / "planted")
    (problem,) = check_ledger(made.home)
    assert 'the ledger has "planted" as uncharged' in problem and "move the folder away" in problem


@pytest.mark.whole
def test_a_bundle_of_an_earlier_version_that_the_ledger_does_not_know_is_not_abandoned(made, monkeypatch):
    """Version 0.1 renamed first; killed then, its folder was public and the ledger said drawn."""
    with monkeypatch.context() as patch:
        kill_at(patch, Ledger, "publish")
        patch.setattr(publication, "_must_consent", lambda *_: None)
        with pytest.raises(Killed):
            publish(*made.arguments)
    assert public(made) == [NAME] and made.ledger.state(NAME) == "drawn"
    with pytest.raises(SpecError, match="is public: .* Run it again"):
        decide(made.home, NAME, "abandon", "ada", "no")
    publish(*made.arguments)
    assert made.ledger.state(NAME) == "published" and check_ledger(made.home) == []


@pytest.mark.whole
def test_consent_whose_answer_was_lost_is_found_by_the_next_run(made, monkeypatch):
    consent = Ledger.publish

    def committed_and_not_heard(ledger: Ledger, *said: str):
        consent(ledger, *said)
        raise InfrastructureFault("the anchor is out of reach")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "publish", committed_and_not_heard)
        with pytest.raises(InfrastructureFault):
            publish(*made.arguments)
    assert publish(*made.arguments).folder.is_dir() and public(made) == [NAME] and check_ledger(made.home) == []


@pytest.mark.whole
def test_a_rename_that_fails_leaves_the_bundle_for_the_next_run(made, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", lambda *_: (_ for _ in ()).throw(PermissionError(13, "Permission denied")))
        with pytest.raises(InfrastructureFault, match="Permission denied"):
            publish(*made.arguments)
    publish(*made.arguments)
    assert public(made) == [NAME] and check_ledger(made.home) == []


@pytest.mark.whole
def test_a_published_bundle_that_is_gone_is_never_made_a_second_time(made):
    shutil.rmtree(publish(*made.arguments).folder)
    with pytest.raises(EvidenceBroken, match="never made a second time: restore the folder"):
        publish(*made.arguments)
    assert public(made) == []
