"""What the store promises: written once, read only when sealed and unchanged, nothing confidential in sight."""

from __future__ import annotations

import builtins
import errno
import hashlib
import os
import pickle
import stat

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from schemas.errors import EvidenceBroken, InfrastructureFault, SpecError, StepsError
from tasks.stores.artifacts import Reference, Store
from tasks.stores.files import temporary
from tasks.stores.keys import secret_key

SCHEMA = pa.schema([pa.field("cell", pa.int64(), nullable=False), pa.field("count", pa.int32(), nullable=False)])
TABLE = pa.table({"cell": [3, 5, 8], "count": [10, 20, 30]})
OTHER = pa.table({"cell": [3, 5, 8], "count": [11, 19, 30]})


@pytest.fixture
def store(home, ask) -> Store:
    """A store whose release "voter-1" is charged."""
    made = Store(home)
    made.ledger.grant("youth", 10**9, "pilot")
    made.ledger.charge(ask())
    return made


def _file(store: Store, reference: Reference):
    [path] = store.home.path.rglob(f"{reference.id}.parquet")
    return path


@pytest.mark.parametrize("side", ["public", "confidential"])
def test_what_is_written_is_read_in_the_declared_schema(store, side):
    reference = store.write("voter-1", "noisy", TABLE, SCHEMA, side)
    assert store.read(reference) == TABLE.cast(SCHEMA)
    assert store.find("voter-1", "noisy") == reference
    assert Reference.model_validate_json(reference.model_dump_json()) == reference


@pytest.mark.parametrize("side", ["public", "confidential"])
def test_a_second_draw_finds_the_first(store, side):
    first = store.write("voter-1", "noisy", TABLE, SCHEMA, side)
    before = _file(store, first).read_bytes()
    assert store.write("voter-1", "noisy", OTHER, SCHEMA, side) == first
    assert _file(store, first).read_bytes() == before
    assert len(list(store.home.path.rglob("*.parquet"))) == 1


def test_what_no_draw_has_touched_follows_the_data(store):
    first = store.write("voter-1", "cells", TABLE, SCHEMA, "confidential")
    assert store.write("voter-1", "cells", TABLE, SCHEMA, "confidential") == first
    other = store.write("voter-1", "cells", OTHER, SCHEMA, "confidential")
    assert other != first
    assert store.read(first) == TABLE.cast(SCHEMA)
    assert store.read(other) == OTHER.cast(SCHEMA)


def test_no_draw_is_written_before_a_charge(store):
    with pytest.raises(SpecError, match="has not been charged"):
        store.write("voter-2", "noisy", TABLE, SCHEMA, "public")
    assert list(store.home.path.rglob("*.parquet")) == []
    store.write("voter-2", "cells", TABLE, SCHEMA, "confidential")


def _lose(path, how):
    if how == "missing":
        path.unlink()
    elif how == "truncated":
        path.write_bytes(path.read_bytes()[:-7])
    else:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)


@pytest.mark.parametrize("side", ["public", "confidential"])
@pytest.mark.parametrize("how", ["missing", "truncated", "flipped"])
@pytest.mark.whole
def test_a_lost_draw_is_refused_and_burns_nothing_until_a_person_says_so(store, ask, side, how):
    reference = store.write("voter-1", "noisy", TABLE, SCHEMA, side)
    whole, before = _file(store, reference).read_bytes(), store.ledger.entries()
    _lose(_file(store, reference), how)
    with pytest.raises(EvidenceBroken, match="missing or different"):
        store.read(reference)
    for draw_again in (lambda: store.find("voter-1", "noisy"), lambda: store.write("voter-1", "noisy", OTHER, SCHEMA, side)):
        with pytest.raises(EvidenceBroken, match="nothing was burnt. .*Restore it.*steps burn voter-1"):
            draw_again()
    assert store.ledger.entries() == before
    (store._path(side, "voter-1", "noisy", reference.id)).write_bytes(whole)
    assert store.find("voter-1", "noisy") == reference, "restored, it goes on"
    _lose(_file(store, reference), how)
    store.ledger.burn("voter-1", "its disk is lost")
    assert store.find("voter-1", "noisy") is None
    with pytest.raises(SpecError, match="is burnt"):
        store.write("voter-1", "noisy", OTHER, SCHEMA, side)
    assert store.ledger.charge(ask()).attempt == 2
    assert store.find("voter-1", "noisy") is None
    again = store.write("voter-1", "noisy", OTHER, SCHEMA, side)
    assert again.id != reference.id and store.read(again) == OTHER.cast(SCHEMA)
    with pytest.raises(EvidenceBroken, match="not sealed"):
        store.read(reference)
    assert store.ledger.account("youth").charged == 2 * 10**8


def test_lost_cells_are_counted_again_before_and_after_a_draw(store):
    cells = store.write("voter-1", "cells", TABLE, SCHEMA, "confidential")
    _file(store, cells).unlink()
    assert store.find("voter-1", "cells") is None
    assert store.write("voter-1", "cells", TABLE, SCHEMA, "confidential") == cells
    store.write("voter-1", "noisy", OTHER, SCHEMA, "public")
    assert store.find("voter-1", "cells") == cells
    _file(store, cells).unlink()
    assert store.find("voter-1", "cells") is None and store.ledger.state("voter-1") == "drawn"


@pytest.mark.parametrize("how", ["missing", "truncated", "flipped"])
def test_what_follows_from_a_draw_is_made_again_and_the_ledger_says_so(store, how):
    first = store.write("voter-1", "synthetic-1", TABLE, SCHEMA, "public", drawn=False)
    _lose(_file(store, first), how)
    assert store.find("voter-1", "synthetic-1", drawn=False) is None
    again = store.write("voter-1", "synthetic-1", OTHER, SCHEMA, "public", drawn=False)
    assert again.id != first.id and store.find("voter-1", "synthetic-1", drawn=False) == again
    assert store.read(again) == OTHER.cast(SCHEMA) and store.ledger.sealed("voter-1", "synthetic-1").details["remade"] == 1
    with pytest.raises(EvidenceBroken, match="not sealed"):
        store.read(first)
    assert store.write("voter-1", "synthetic-1", TABLE, SCHEMA, "public", drawn=False) == again, "made again once, not twice"


@pytest.mark.parametrize("how", ["missing", "flipped"])
def test_what_is_made_again_to_the_byte_is_put_back_without_a_word(store, how):
    first = store.write("voter-1", "synthetic-1", TABLE, SCHEMA, "public", drawn=False)
    before = store.ledger.entries()
    _lose(_file(store, first), how)
    assert store.write("voter-1", "synthetic-1", TABLE, SCHEMA, "public", drawn=False) == first
    assert store.read(first) == TABLE.cast(SCHEMA) and store.ledger.entries() == before


def test_sets_of_counts_that_were_made_again_are_made_again_too(store):
    counts = store.write("voter-1", "consistent-counts", TABLE, SCHEMA, "public", drawn=False)
    rows = store.write("voter-1", "synthetic-1", TABLE, SCHEMA, "public", drawn=False)
    assert store.find("voter-1", "synthetic-1", drawn=False) == rows
    _file(store, counts).unlink()
    store.write("voter-1", "consistent-counts", OTHER, SCHEMA, "public", drawn=False)
    assert store.find("voter-1", "synthetic-1", drawn=False) is None
    again = store.write("voter-1", "synthetic-1", TABLE, SCHEMA, "public", drawn=False)
    assert again.id != rows.id and store.find("voter-1", "synthetic-1", drawn=False) == again


def test_what_a_person_approved_is_not_replaced_by_something_else(store, ask):
    store.ledger.charge(ask("waits", context={"approval": "required"}))
    rows = store.write("waits", "synthetic-1", TABLE, SCHEMA, "public", drawn=False)
    store.ledger.decide("waits", "approve", "ada", "fine")
    _file(store, rows).unlink()
    with pytest.raises(EvidenceBroken, match="nothing was burnt"):
        store.find("waits", "synthetic-1")
    assert store.find("waits", "synthetic-1", drawn=False) is None, "it may come back as it was"
    with pytest.raises(EvidenceBroken, match="nothing was burnt"):
        store.write("waits", "synthetic-1", OTHER, SCHEMA, "public", drawn=False)
    before = store.ledger.entries()
    assert store.write("waits", "synthetic-1", TABLE, SCHEMA, "public", drawn=False) == rows
    assert store.ledger.entries() == before and store.ledger.state("waits") == "approved"


def test_what_is_published_is_put_back_from_its_bundle_and_from_nothing_else(store):
    noisy = store.write("voter-1", "noisy", TABLE, SCHEMA, "public")
    cells = store.write("voter-1", "cells", TABLE, SCHEMA, "confidential")
    store.ledger.publish("voter-1", "manifest")
    _file(store, cells).unlink()
    assert store.find("voter-1", "cells") is None
    whole = _file(store, noisy).read_bytes()
    _file(store, noisy).unlink()
    with pytest.raises(EvidenceBroken, match="is published and stays so"):
        store.find("voter-1", "noisy")
    with pytest.raises(EvidenceBroken, match="is published and stays so"):
        store.write("voter-1", "noisy", OTHER, SCHEMA, "public", drawn=False)
    (bundle := store.home.public / "voter-1").mkdir()
    (bundle / "noisy.parquet").write_bytes(whole[:-1] + b"x")
    with pytest.raises(EvidenceBroken, match="is published and stays so"):
        store.find("voter-1", "noisy")
    (bundle / "noisy.parquet").write_bytes(whole)
    assert store.find("voter-1", "noisy") == noisy and store.read(noisy) == TABLE.cast(SCHEMA)
    assert store.ledger.state("voter-1") == "published"


def test_an_unsealed_file_is_adopted_and_not_drawn_again(store, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(type(store.ledger), "seal", lambda *_, **__: (_ for _ in ()).throw(InfrastructureFault("busy")))
        with pytest.raises(InfrastructureFault):
            store.write("voter-1", "noisy", TABLE, SCHEMA, "public")
    assert store.ledger.sealed("voter-1", "noisy") is None
    reference = store.write("voter-1", "noisy", OTHER, SCHEMA, "public")
    assert store.read(reference) == TABLE.cast(SCHEMA)


def test_an_unsealed_file_that_is_no_parquet_is_not_sealed(store):
    name = store._identity("voter-1", "noisy")
    folder = store.home.staging / "voter-1" / "noisy"
    folder.mkdir(parents=True)
    (folder / f"{name}.parquet").write_bytes(b"planted")
    with pytest.raises(EvidenceBroken, match="not Parquet and was never sealed"):
        store.find("voter-1", "noisy")
    assert store.ledger.sealed("voter-1", "noisy") is None


def test_only_a_sealed_reference_is_read(store):
    reference = store.write("voter-1", "noisy", TABLE, SCHEMA, "public")
    for forged in ({"id": "0" * 32}, {"digest": "0" * 64}, {"release": "voter-2"}, {"side": "confidential"}):
        with pytest.raises(EvidenceBroken, match="not sealed"):
            store.read(reference.model_copy(update=forged))


@pytest.mark.parametrize("field", ["release", "stage", "id"])
@pytest.mark.parametrize("value", ["../../etc/passwd", "/etc/passwd", "a/b", "", "..", "a\n"])
def test_a_reference_cannot_name_a_path(store, field, value):
    good = store.write("voter-1", "noisy", TABLE, SCHEMA, "public").model_dump()
    with pytest.raises(ValueError):
        Reference(**good | {field: value})


def test_a_planted_pickle_is_never_opened(store, tmp_path):
    canary = tmp_path / "executed"

    class Planted:
        def __reduce__(self):
            return builtins.open, (str(canary), "w")

    reference = store.write("voter-1", "noisy", TABLE, SCHEMA, "public")
    path = _file(store, reference)
    (path.parent / "noisy.pkl").write_bytes(pickle.dumps(Planted()))
    path.write_bytes(pickle.dumps(Planted()))
    with pytest.raises(EvidenceBroken):
        store.read(reference)
    with pytest.raises(EvidenceBroken):
        store.find("voter-1", "noisy")
    assert not canary.exists()
    pickle.loads(pickle.dumps(Planted())).close()  # noqa: S301  the control: opened, it would have run
    assert canary.exists()


def test_no_plain_hash_size_or_name_of_confidential_content_is_outside_the_file(store):
    reference = store.write("voter-1", "cells", TABLE, SCHEMA, "confidential")
    public = store.write("voter-1", "noisy", OTHER, SCHEMA, "public")
    path = _file(store, reference)
    ledger = b"".join(file.read_bytes() for file in store.home.path.glob("ledger.db*"))
    content = path.read_bytes()
    for algorithm in ("sha256", "sha1", "md5", "sha512", "blake2b"):
        digest = hashlib.new(algorithm, content).hexdigest()
        assert digest.encode() not in ledger and digest[:16] not in path.name + reference.model_dump_json()
    assert store.ledger.sealed("voter-1", "cells").details["size"] is None
    assert reference.digest is None
    assert hashlib.sha256(_file(store, public).read_bytes()).hexdigest().encode() in ledger  # the control


def test_another_installation_seals_the_same_counts_with_another_hash(store, tmp_path):
    from tasks.stores.home import Home

    other = Store(Home(tmp_path / "other"))
    other.write("voter-1", "cells", TABLE, SCHEMA, "confidential")
    store.write("voter-1", "cells", TABLE, SCHEMA, "confidential")
    seals = [each.ledger.sealed("voter-1", "cells").details for each in (store, other)]
    assert seals[0]["digest"] != seals[1]["digest"] and seals[0]["id"] != seals[1]["id"]


def test_exact_counts_are_forgotten_and_forgetting_is_repeatable(store):
    store.write("voter-1", "cells", TABLE, SCHEMA, "confidential")
    store.write("voter-1", "cells", OTHER, SCHEMA, "confidential")
    kept = store.write("voter-1", "noisy", TABLE, SCHEMA, "public")
    for _ in range(2):
        store.forget_confidential("voter-1", ["cells", "never-written"])
        assert list(store.home.confidential.rglob("*.parquet")) == []
    assert store.read(kept) == TABLE.cast(SCHEMA)


def test_cleaning_spares_a_living_writer(store):
    store.write("voter-1", "noisy", TABLE, SCHEMA, "public")
    folder = store.home.staging / "voter-1" / "noisy"
    (folder / ".writing-dead").write_bytes(b"half a file")
    with temporary(folder) as living:
        store.clean("voter-1")
        assert [path.name for path in folder.glob(".writing-*")] == [os.path.basename(living.name)]
    assert list(folder.glob(".writing-*")) == []


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_what_is_confidential_is_for_its_owner_alone_whatever_the_umask(home, umask):
    before = os.umask(umask)
    try:
        Store(home).write("voter-1", "cells", TABLE, SCHEMA, "confidential")
    finally:
        os.umask(before)
    for path in [home.confidential, home.keys, *home.confidential.rglob("*"), *home.keys.rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == 0o700 if path.is_dir() else mode & 0o077 == 0


@pytest.mark.parametrize("call", ["fsync", "link"])
def test_a_full_disk_leaves_nothing_and_names_the_folder(store, monkeypatch, call):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (store.home.staging / "voter-1" / "noisy").mkdir(parents=True)
    secret_key(store.home, "artifacts")
    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(InfrastructureFault, match="staging/voter-1.*No space left"):
            store.write("voter-1", "noisy", TABLE, SCHEMA, "public")
    assert [path for path in store.home.staging.rglob("*") if path.is_file()] == []
    assert store.read(store.write("voter-1", "noisy", TABLE, SCHEMA, "public")) == TABLE.cast(SCHEMA)


def test_a_write_that_fails_midway_leaves_nothing(store, monkeypatch):
    def fails(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(pq.ParquetWriter, "write_table", fails)
        with pytest.raises(InfrastructureFault, match="No space left"):
            store.write("voter-1", "noisy", TABLE, SCHEMA, "public")
    assert [path for path in store.home.staging.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    "table, says",
    [
        (pa.table({"cell": [1], "count": [2**40]}), 'column "count" cannot be stored as int32'),
        (pa.table({"cell": [1.5], "count": [1]}), 'column "cell" cannot be stored as int64'),
        (pa.table({"cell": ["secret"], "count": [1]}), 'column "cell" cannot be stored as int64'),
        (pa.table({"cell": [None], "count": [1]}), 'column "cell" must not have missing values'),
        (pa.table({"cell": [1]}), "must have columns cell, count"),
        (pa.table({"count": [1], "cell": [1]}), "must have columns cell, count"),
        (pa.table({"cell": [1], "count": [1], "extra": [1]}), "must have columns cell, count"),
    ],
)
def test_a_table_that_is_not_as_declared_is_refused_without_its_values(store, table, says):
    with pytest.raises(StepsError) as refused:
        store.write("voter-1", "noisy", table, SCHEMA, "public")
    assert says in str(refused.value)
    assert "secret" not in str(refused.value) and str(2**40) not in str(refused.value)
    assert refused.value.__cause__ is None and refused.value.__suppress_context__ == ("stored as" in says)
    assert list(store.home.path.rglob("*.parquet")) == []


def test_a_frame_leaves_no_pandas_notes(store):
    frame = pd.DataFrame({"cell": [1, 2], "count": [3, 4]}, index=["ann", "bob"])
    table = pa.Table.from_pandas(frame, preserve_index=False)
    schema = SCHEMA.with_metadata({"pandas": "{}", "format": "1"})
    path = _file(store, store.write("voter-1", "noisy", table, schema, "public"))
    metadata = pq.read_schema(path).metadata
    assert b"pandas" in table.schema.metadata and metadata == {b"format": b"1"}
    assert b"ann" not in path.read_bytes()
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).compression == "ZSTD"


def test_an_empty_table_is_a_table(store):
    reference = store.write("voter-1", "noisy", TABLE.slice(0, 0), SCHEMA, "public")
    assert store.read(reference).num_rows == 0
