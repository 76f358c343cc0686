"""Publication: an allow-list, built without confidential/, whole or not at all, and silent about what was not paid for."""

from __future__ import annotations

import csv
import errno
import getpass
import io
import os
import re
import shutil
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from schemas.errors import EvidenceBroken, InfrastructureFault
from tasks.publishing import bundle, code
from tasks.publishing.publication import charge_proof, preview, publish, published_heads
from tasks.stores.artifacts import Reference, Store
from tasks.stores.home import Home
from tasks.stores.ledger import open_ledger
from tasks.stores.public_chain import public_chain
from tasks.verify.bundle import holds, verify_bundle
from tests.tasks.publishing import making
from tests.tasks.publishing.making import GIVEN, POLL, a_release, make, some_counts

_watched: list[str] | None = None


def _watch(event: str, arguments: tuple) -> None:
    if _watched is not None and event in ("open", "os.listdir", "os.scandir") and "confidential" in str(arguments[0]):
        _watched.append(str(arguments[0]))


sys.addaudithook(_watch)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Everything up to publication, made once. Not to be changed."""
    return make(tmp_path_factory.mktemp("drawn") / "home", a_release(POLL, GIVEN), some_counts(POLL, 4003))


@pytest.fixture
def made(drawn, tmp_path):
    """The same in a home of its own."""
    shutil.copytree(drawn.home.path, tmp_path / "home")
    home = Home(tmp_path / "home")
    return replace(drawn, home=home, ledger=open_ledger(home))


@pytest.fixture
def looks_at_confidential():
    """Every path under confidential/ that this process opens or lists during the test."""
    global _watched
    _watched = []
    yield _watched
    _watched = None


def test_a_bundle_is_the_allow_list_and_nothing_else(given):
    folder = given.home.public / given.release.name
    assert {path.name for path in folder.iterdir()} == bundle.file_names(2, ("parquet", "csv"))
    assert {path.name for path in given.home.public.iterdir()} == {folder.name}
    assert holds(verify_bundle(folder, given.home.keys / "signing-key.pub"))
    assert folder.stat().st_mode & 0o777 == 0o755 and (folder / "index.html").stat().st_mode & 0o777 == 0o644


def test_publishing_twice_gives_the_same_bundle(made):
    first = publish(*made.arguments)
    content = {path.name: path.read_bytes() for path in first.folder.iterdir()}
    made.ledger.grant("elsewhere", 1, "the ledger's head moves on")
    later = charge_proof(made.ledger.entries(), made.release.name)
    second = publish(made.home, made.release, made.plan, made.references, later)
    assert second == first
    assert {path.name: path.read_bytes() for path in first.folder.iterdir()} == content


def test_another_release_under_the_same_name_is_refused(made, tmp_path):
    publish(*made.arguments)
    other = make(tmp_path / "other", a_release(POLL, GIVEN), some_counts(POLL, 4003), seed=8)
    shutil.copytree(other.home.staging, made.home.staging, dirs_exist_ok=True)
    with pytest.raises(EvidenceBroken, match="another release under this name"):
        publish(made.home, made.release, made.plan, other.references, made.proof)


def test_a_published_bundle_that_was_changed_is_not_taken_for_the_release(made):
    folder = publish(*made.arguments).folder
    (folder / "plan.json").write_bytes(b"{}")
    with pytest.raises(EvidenceBroken, match="plan.json"):
        publish(*made.arguments)


@pytest.mark.parametrize("how", ["removed", "renamed", "unreadable", "a file in its place"])
@pytest.mark.whole
def test_publishing_needs_no_confidential_folder(made, how, looks_at_confidential):
    confidential = made.home.confidential
    if how == "renamed":
        confidential.rename(confidential.with_name("elsewhere"))
    elif how == "unreadable":
        confidential.chmod(0)
    else:
        shutil.rmtree(confidential)
    if how == "a file in its place":
        confidential.touch()
    looks_at_confidential.clear()
    assert holds(verify_bundle(publish(*made.arguments).folder))
    assert looks_at_confidential == []
    if how != "unreadable":
        assert not confidential.is_dir()


def test_the_watch_over_confidential_would_notice(made, looks_at_confidential):
    (made.home.confidential / "canary").write_text("seen")
    assert any("canary" in path for path in looks_at_confidential)


def test_a_confidential_reference_is_refused(made):
    store = Store(made.home)
    schema = making.tables.EVALUATION
    secret = store.write(made.release.name, "evaluation", schema.empty_table(), schema, side="confidential")
    disguised = secret.model_copy(update={"stage": "tree"})
    others = made.references[1:]
    for references in ((disguised, *others), (*made.references, secret)):
        with pytest.raises(EvidenceBroken, match="confidential|nothing more or less"):
            publish(made.home, made.release, made.plan, references, made.proof)
    assert not (made.home.public / made.release.name).exists()


def test_calling_a_confidential_reference_public_does_not_help(made):
    store, schema = Store(made.home), making.tables.EVALUATION
    secret = store.write(made.release.name, "evaluation", schema.empty_table(), schema, side="confidential")
    forged = Reference(release=secret.release, stage="tree", side="public", id=secret.id, digest="0" * 64)
    with pytest.raises((EvidenceBroken, InfrastructureFault)):
        publish(made.home, made.release, made.plan, (forged, *made.references[1:]), made.proof)


def test_an_artifact_that_is_not_what_was_sealed_is_refused(made):
    tree = made.references[0]
    path = made.home.staging / tree.release / tree.stage / f"{tree.id}.parquet"
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(EvidenceBroken, match="not what was sealed"):
        publish(*made.arguments)


def test_a_missing_or_foreign_artifact_is_refused(made):
    with pytest.raises(EvidenceBroken, match="synthetic-2"):
        publish(made.home, made.release, made.plan, made.references[:-1], made.proof)
    foreign = made.references[0].model_copy(update={"release": "another"})
    with pytest.raises(EvidenceBroken, match="another release"):
        publish(made.home, made.release, made.plan, (foreign, *made.references[1:]), made.proof)


def test_a_full_disk_leaves_nothing_half_published(made, monkeypatch):
    write = bundle.write_durably

    def full(path, content):
        if path.name == "index.html":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path, content)

    monkeypatch.setattr(bundle, "write_durably", full)
    with pytest.raises(InfrastructureFault, match="No space left"):
        publish(*made.arguments)
    assert list(made.home.public.iterdir()) == []


def test_what_a_killed_publisher_left_is_removed(made):
    left = made.home.public / f".{made.release.name}.tmp-abc"
    left.mkdir()
    (left / "tree.parquet").write_bytes(b"half")
    publish(*made.arguments)
    assert [path.name for path in made.home.public.iterdir()] == [made.release.name]


def test_a_bundle_that_does_not_verify_is_never_published(made, monkeypatch):
    monkeypatch.setattr(bundle, "signature_of", lambda key, manifest: b"bm8=")
    with pytest.raises(EvidenceBroken, match="does not verify"):
        publish(*made.arguments)
    assert list(made.home.public.iterdir()) == []


def _numbers_and_text(folder) -> tuple[set[int], bytes]:
    """Every whole number in the tables, row counts included, and all readable text."""
    numbers, text = set(), b""
    for path in folder.iterdir():
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            numbers.add(table.num_rows)
            for column in (c for c in table.columns if str(c.type) in ("int64", "double")):
                numbers |= set(np.round(column.drop_null().to_numpy()).astype(int).tolist())
        else:
            text += path.read_bytes()
    return numbers, text


@pytest.mark.parametrize("total", ["estimated", "invariant"])
@pytest.mark.whole
def test_the_exact_number_of_rows_is_published_only_when_it_is_invariant(tmp_path, total):
    canary = 40_037
    release = a_release(POLL, GIVEN, total=total)
    made = make(tmp_path / "home", release, some_counts(POLL, canary))
    numbers, text = _numbers_and_text(publish(*made.arguments).folder)
    found = canary in numbers or re.search(rb"(?<![0-9.])40,?037(?![0-9])", text) is not None
    assert found == (total == "invariant")  # the invariant total is the control: this search finds it
    assert (b"exact number of rows" in text) == (total == "invariant")


def test_a_bundle_names_no_machine_user_path_or_fingerprint(given):
    folder = given.home.public / given.release.name
    secrets = {str(given.home.path), "f" * 64, "who-voted", given.ledger.entries()[1].body}
    secrets |= {f'"{name}"' for name in (getpass.getuser(), socket.gethostname())}
    for path in folder.iterdir():
        content = path.read_bytes()
        assert not [secret for secret in secrets if secret.encode() in content], path.name


def test_rows_are_not_in_the_order_of_the_cells(given):
    folder = given.home.public / given.release.name
    voted = pq.read_table(folder / "synthetic-1.parquet")["voted"].to_pylist()
    assert voted not in (sorted(voted), sorted(voted, reverse=True))


def test_csv_is_rfc_4180_and_reads_back_as_the_parquet_rows(given):
    folder = given.home.public / given.release.name
    content = (folder / "synthetic-1.csv").read_bytes()
    table = pq.read_table(folder / "synthetic-1.parquet")
    assert content.count(b"\r\n") == content.count(b"\n") == table.num_rows + 1
    rows = list(csv.reader(io.StringIO(content.decode(), newline="")))
    assert rows[0] == table.column_names
    wanted = zip(*(column.to_pylist() for column in table.columns), strict=True)
    assert rows[1:] == [["" if value is None else str(value) for value in row] for row in wanted]
    assert not [cell for row in rows for cell in row if cell[:1] in tuple("=+-@\t\r")]


def test_a_preview_shows_what_would_be_published_and_publishes_nothing(made):
    folder = preview(*made.arguments)
    assert made.home.public not in folder.parents and list(made.home.public.iterdir()) == []
    assert {path.name for path in folder.iterdir()} == {"index.html", "plan.json", "domain.json", "manifest.json"}
    assert preview(*made.arguments) == folder


def test_published_heads_reveal_a_ledger_that_was_set_back(made):
    publish(*made.arguments)
    (known,) = published_heads(made.home)
    consent = public_chain(made.ledger.entries())[-1].content
    assert consent["kind"] == "publish", "the ledger consented to a manifest that knows what was before"
    assert (known.seq, known.hash) == public_chain(made.ledger.entries())[-2].head and made.release.name in known.source
    assert made.ledger.verify(made.ledger.anchor, published_heads(made.home)) == []
    newer = [known._replace(seq=known.seq + 2)]
    assert made.ledger.verify(made.ledger.anchor, newer)


def test_a_proof_hides_later_entries_and_still_leads_to_the_head(made):
    made.ledger.grant("elsewhere", 5, "a reason nobody else may read")
    proof = charge_proof(made.ledger.entries(), made.release.name)
    assert "nobody" not in proof.model_dump_json() and "elsewhere" not in proof.model_dump_json()
    assert (proof.head_seq, proof.head) == public_chain(made.ledger.entries())[-1].head
    folder = publish(made.home, made.release, made.plan, made.references, proof).folder
    assert holds(verify_bundle(folder))


def test_the_commit_is_that_of_the_program_not_of_whoever_contains_it(tmp_path):
    file = tmp_path / "program.py"
    file.write_text("")
    assert code._commit(file) is None
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "t"], check=True)
    assert code._commit(file) is None  # in somebody's repository, but not part of it
    subprocess.run([*git, "add", "program.py"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "t"], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    assert code._commit(file) == head
    file.write_text("changed")
    assert code._commit(file) == f"{head}-dirty"


KILLED = """
import os, sys
from pathlib import Path
from steps_engine.noise import SeededRandomness
from steps_engine.methods.planning import make_plan
from tasks.publishing import publication as publish
from tasks.publishing.bundle import table_stages
from tasks.stores.artifacts import Store
from tasks.stores.home import Home
from tests.tasks.publishing.making import GIVEN, POLL, a_release

rename = os.rename
def die(*paths):
    if sys.argv[2] == "after":
        rename(*paths)
    os.kill(os.getpid(), 9)
os.rename = die
home, release = Home(Path(sys.argv[1])), a_release(POLL, GIVEN)
store, plan = Store(home), make_plan(release, SeededRandomness(7))
references = [store.find(release.name, stage) for stage in table_stages(plan.sets)]
publish.publish(home, release, plan, references, publish.charge_proof(store.ledger.entries(), release.name))
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.whole
def test_a_publisher_killed_around_the_rename_publishes_all_or_nothing(made, when):
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", KILLED, str(made.home.path), when]
    killed = subprocess.run(command, cwd=root, env=os.environ | {"PYTHONPATH": str(root)}, capture_output=True, text=True)
    assert killed.returncode == -9, killed.stderr
    folder = made.home.public / made.release.name
    assert folder.exists() == (when == "after")
    if when == "after":
        before = (folder / bundle.MANIFEST).read_bytes()
    published = publish(*made.arguments)
    assert holds(verify_bundle(published.folder)) and [path.name for path in made.home.public.iterdir()] == [folder.name]
    if when == "after":
        assert (folder / bundle.MANIFEST).read_bytes() == before


def test_two_publishers_at_once_publish_one_bundle(made):
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: publish(*made.arguments), range(2))
    assert first == second


@pytest.mark.whole
def test_the_reason_for_a_large_epsilon_is_on_page_and_manifest_where_one_was_given(made, tmp_path):
    silent = publish(*made.arguments)
    assert (
        "why" not in silent.manifest.model_dump()
        and b"The reason that was given" not in (silent.folder / "index.html").read_bytes()
    )
    reason = "these <margins> are public already"
    release = a_release(POLL, GIVEN, epsilon="12", why=reason)
    told = publish(*make(tmp_path / "told", release, some_counts(POLL, 400)).arguments)
    assert (told.manifest.why, told.manifest.format) == (
        reason,
        "steps-release/3",
    ) and silent.manifest.format == "steps-release/2"
    assert "these &lt;margins&gt; are public already" in (told.folder / "index.html").read_text()
    assert holds(verify_bundle(told.folder))


def test_a_page_says_from_the_beginning_where_a_notice_would_lie(made):
    page = (publish(*made.arguments).folder / "index.html").read_text()
    assert '<a href="notice.html">' in page.partition("<main>")[0]
