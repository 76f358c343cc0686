"""What a stranger's bundle may cost: nothing is opened that is not signed, and no table that unpacks to more than it may."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from flows.cli import main
from tasks.publishing import bundle
from tasks.publishing.publication import publish
from tasks.verify import files
from tasks.verify.bundle import examine, verify_bundle

TABLES = ("tree", "noisy-counts", "consistent-counts", "synthetic-1")


@pytest.fixture
def opened(monkeypatch) -> list[str]:
    """The names of the files that are opened while a bundle is verified."""
    seen: list[str] = []
    honest, parquet = Path.open, pq.ParquetFile

    def watched(self: Path, *arguments, **named):
        seen.append(self.name)
        return honest(self, *arguments, **named)

    def read(path, *arguments, **named):
        seen.append(f"table {Path(path).name}")
        return parquet(path, *arguments, **named)

    monkeypatch.setattr(Path, "open", watched)
    monkeypatch.setattr(pq, "ParquetFile", read)
    return seen


def sign_as_stranger(folder: Path) -> None:
    """All files hashed and signed by a key of the stranger's own, which lies beside them."""
    own = Ed25519PrivateKey.generate()
    (folder / bundle.PUBLIC_KEY).write_bytes(bundle.public_pem(own))
    manifest = json.loads((folder / bundle.MANIFEST).read_bytes())
    for name in manifest["files"]:
        manifest["files"][name] = bundle.facts_of((folder / name).read_bytes()).model_dump()
    content = bundle.to_bytes(manifest)
    (folder / bundle.MANIFEST).write_bytes(content)
    (folder / bundle.SIGNATURE).write_bytes(bundle.signature_of(own, content))


def test_nothing_but_manifest_signature_and_key_is_opened_under_a_wrong_signature(given, given_copy, opened):
    sign_as_stranger(given_copy)
    opened.clear()
    found = examine(given_copy, given.home.keys / "signing-key.pub")
    assert any("does not sign this manifest" in each.text for each in found.problems)
    assert set(opened) <= {bundle.MANIFEST, bundle.SIGNATURE, bundle.PUBLIC_KEY} and found.told is None
    opened.clear()
    assert (
        verify_bundle(given_copy) and f"table {TABLES[0]}.parquet" in opened
    )  # signed by its own key: what it is can be looked at


def bomb(path: Path, rows: int) -> None:
    """The same row again and again: next to nothing in a file, a lot in memory."""
    one = pq.read_table(path).slice(0, 1)
    with pq.ParquetWriter(path, one.schema, compression="zstd") as writer:
        for _ in range(rows // 1_000_000):
            writer.write_table(one.take(pa.array(np.zeros(1_000_000, dtype=np.int64))), row_group_size=1_000_000)


@pytest.mark.parametrize("stage", TABLES)
def test_a_table_that_unpacks_to_too_much_is_not_read(given_copy, stage, monkeypatch):
    monkeypatch.setattr(files, "ROOM", 2**22)
    bomb(given_copy / f"{stage}.parquet", 1_000_000)
    sign_as_stranger(given_copy)
    reads: list[object] = []
    honest = pq.ParquetFile.read
    monkeypatch.setattr(pq.ParquetFile, "read", lambda self: reads.append(self.metadata.num_rows) or honest(self))
    told = [each for each in verify_bundle(given_copy) if each.file == f"{stage}.parquet"]
    assert any("it is not opened" in each.text or "as many rows" in each.text for each in told)
    assert 1_000_000 not in reads


def test_tables_of_a_release_are_far_from_the_limit(given, monkeypatch):
    """The control: with no room for anything but what a file's own size allows, an honest release verifies."""
    monkeypatch.setattr(files, "ROOM", 0)
    folder = publish(*given.arguments).folder
    assert [each for each in verify_bundle(folder) if not each.note] == []


def test_a_footer_that_promises_more_than_there_is_is_refused(tmp_path):
    schema = pa.schema([pa.field("of", pa.list_(pa.int16()), nullable=False)])
    pq.write_table(pa.table({"of": [[1] * 1000] * 1000}, schema=schema), tmp_path / "t.parquet")
    footer = pq.read_metadata(tmp_path / "t.parquet")
    files._must_have_room(footer, schema, 10**6)
    with pytest.MonkeyPatch.context() as small:
        small.setattr(files, "ROOM", 10**6)
        with pytest.raises(ValueError, match="not opened"):
            files._must_have_room(footer, schema, 100)


def test_a_file_longer_than_was_signed_is_not_read(given_copy, opened):
    with (given_copy / "tree.parquet").open("r+b") as file:
        os.truncate(file.fileno(), 2**40)  # a hole: hashing it would take hours
    assert any(each.file == "tree.parquet" and "size differs" in each.text for each in verify_bundle(given_copy))


def said_of(*words: object) -> tuple[int, list[str]]:
    done = CliRunner().invoke(main, ["verify", *map(str, words)])
    return done.exit_code, done.stdout.replace("\n  ", " ").splitlines()


def test_the_command_says_what_it_looked_at_so_that_a_replayed_bundle_is_seen(given, given_copy):
    key = given.home.keys / "signing-key.pub"
    code, lines = said_of(given_copy, "--key", key)
    made_at = json.loads((given_copy / bundle.MANIFEST).read_bytes())["made_at"]
    assert code == 0 and lines[0] == f"poll-2026 · town · ε=1 · {made_at}"
    assert lines[1].startswith("key ") and len(lines[1]) == 68 and lines[-1] == "everything holds"
    answer = json.loads(CliRunner().invoke(main, ["verify", str(given_copy), "--key", str(key), "--json"]).stdout)
    assert answer["bundle"]["release"] == "poll-2026" and answer["bundle"]["guarantee"] == "ε=1"
    assert answer["noise"]["contrasts"] > 0 and answer["recomputed"] is None


def test_without_a_key_the_last_line_says_that_the_signer_is_not_established(given_copy):
    code, lines = said_of(given_copy)
    assert code == 0 and lines[-1] == "who signed is not established: give the publisher's --key"
    assert sum("not established" in line for line in lines) == 1, "said once"


def test_under_a_wrong_signature_nothing_of_the_bundle_is_repeated(given, given_copy):
    sign_as_stranger(given_copy)
    code, lines = said_of(given_copy, "--key", given.home.keys / "signing-key.pub")
    assert code == 5 and "poll-2026" not in " ".join(lines[:-1]) and "must not be relied on" in lines[-1]


def test_recompute_is_an_option_of_the_command(given_copy):
    answer = json.loads(CliRunner().invoke(main, ["verify", str(given_copy), "--recompute", "--json"]).stdout)
    assert answer["ok"] and answer["recomputed"]["files"] == {} and "cannot be recomputed" in answer["recomputed"]["why_not"]
    code, lines = said_of(given_copy, "--recompute")
    assert code == 0 and any("cannot be recomputed" in line for line in lines)
