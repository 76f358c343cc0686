"""Canaries: values of the records that must not be found anywhere but under confidential/."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from flows.runtime.boundary import fit_for_public
from schemas.errors import SpecError, StepsError
from tasks.stores.home import Home
from tests.flows.small import LITTLE, PERSON, ROWS, STRANGER, Small, canaries_in, drawn, leaks, write_records
from tests.prefect_server import PREFECT_HOME, PrefectServer


def stored_by_prefect(server: PrefectServer) -> list[Path]:
    """The database with its journal, result storage, memory and logs."""
    return [*server.database.parent.glob(f"{server.database.name}*"), PREFECT_HOME]


@pytest.mark.slow
def test_no_canary_reaches_prefect_the_terminal_or_the_open_part_of_the_home(
    small: Small, steps, prefect_server: PrefectServer, caplog, monkeypatch: pytest.MonkeyPatch
):
    write_records(small.folder / "records.parquet", ROWS)
    steps("budget", "grant", "small-people", "2", "--why", "a test")
    said = [steps("run", small.write(epsilon=LITTLE))]
    assert said[0].code == 0

    small.write(name="canary-2")
    with monkeypatch.context() as broken:  # an exception that quotes a record, deep in a stage
        broken.setattr("steps_engine.methods.tree.method.sanitize", _quote_a_record)
        said.append(steps("run", small.release))
    assert said[1].code == 1 and "ValueError" in said[1].err and "confidential/errors" in said[1].err

    small.write(name="canary-3")
    write_records(small.folder / "records.parquet", ROWS, region=STRANGER)
    said.append(steps("run", small.release))
    assert said[2].code == 4

    assert leaks(*stored_by_prefect(prefect_server), small.home) == []
    printed = "".join(each.out + each.err for each in said) + caplog.text
    assert canaries_in(printed.encode()) == []
    errors = "".join(path.read_text() for path in (small.home / "confidential" / "errors").iterdir())
    assert str(PERSON) in errors, "the control: the details are there, on the confidential side"


def _quote_a_record(*_):
    try:
        raise KeyError(f"person {PERSON}")
    except KeyError as error:
        raise ValueError(f"{ROWS} rows, {STRANGER}") from error


@pytest.mark.slow
def test_the_scan_finds_what_an_unguarded_task_lets_slip(prefect_server: PrefectServer):
    from prefect import flow, task

    secret = "unguarded-ornithomimus"

    @task
    def unguarded() -> None:
        raise ValueError(secret)

    with pytest.raises(ValueError, match=secret):
        flow(lambda: unguarded(), name="unguarded")()
    files = [path for place in stored_by_prefect(prefect_server) for path in ([place] if place.is_file() else place.rglob("*"))]
    assert any(secret.encode() in path.read_bytes() for path in files if path.is_file())


@pytest.mark.slow
def test_prefect_stores_no_pickle_of_ours(small: Small, steps, prefect_server: PrefectServer):
    before = set((PREFECT_HOME / "storage").glob("*"))
    assert steps("run", small.release).code == 3
    kept = [path.read_bytes() for path in set((PREFECT_HOME / "storage").glob("*")) - before]
    assert [content for content in kept if _is_pickle(content)] == []
    assert _is_pickle(b'{"result": "gAWVvQAAAAAAAACMDnNjaGVtYXM="}') and _is_pickle(base64.b64encode(b"\x80\x05\x95"))


def _is_pickle(content: bytes) -> bool:
    return content.startswith((b"\x80\x04", b"\x80\x05", b"gAW", b"gAS")) or b'"gAW' in content or b'"gAS' in content


def test_an_error_leaves_a_stage_without_cause_context_or_foreign_text(small: Small):
    def failing(home: Home) -> None:
        _quote_a_record()

    def refusing(home: Home) -> None:
        try:
            _quote_a_record()
        except ValueError:
            raise SpecError("the order names an unknown attribute")  # noqa: B904

    for function, expected in ((failing, StepsError), (refusing, SpecError)):
        with pytest.raises(expected) as caught:
            fit_for_public("sanitize", function)(Home(small.home))
        assert caught.value.__cause__ is None and caught.value.__context__ is None
        assert canaries_in(str(caught.value).encode()) == []
    written = list((small.home / "confidential" / "errors").iterdir())
    assert len(written) == 1 and written[0].stat().st_mode & 0o777 == 0o600
    assert str(PERSON) in written[0].read_text()


@pytest.mark.whole
def test_correcting_synthesizing_and_publishing_need_nothing_confidential(small: Small):
    from tasks.stages.correct import correct
    from tasks.stages.publish import publish_release
    from tasks.stages.synthesize import synthesize

    home, asked, planned, _, tree, noisy = drawn(small)
    (small.home / "confidential").rename(small.folder / "elsewhere")
    (small.folder / "records.parquet").unlink()
    consistent = correct(home, asked, planned, tree, noisy)
    sets = synthesize(home, asked, planned, tree, noisy, consistent)
    assert publish_release(home, asked, planned, (tree, noisy, consistent, *sets)).is_dir()
    assert not list((small.home / "confidential").rglob("*"))


@pytest.mark.parametrize("most, says", [(400, True), (2 * 10**7, False)])
@pytest.mark.whole
def test_an_evaluation_of_many_rows_takes_some_of_them_and_says_so(small: Small, monkeypatch: pytest.MonkeyPatch, most, says):
    from tasks.stages import evaluate
    from tasks.stages.correct import correct
    from tasks.stages.publish import publish_release
    from tasks.stages.synthesize import synthesize

    monkeypatch.setattr(evaluate, "MOST_VALUES", most)
    home, asked, planned, cells, tree, noisy = drawn(small)
    consistent = correct(home, asked, planned, tree, noisy)
    sets = synthesize(home, asked, planned, tree, noisy, consistent)
    publish_release(home, asked, planned, (tree, noisy, consistent, *sets))
    evaluate.evaluate(home, asked, cells, sets)
    rows = most // len(asked.domain.names)
    assert (f"from {rows:,} rows each" in evaluate.evaluation_page(home, asked.name).read_text()) is says
