"""A format of records that is one file: whatever opens a source reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.errors import DataInvalid, SpecError
from tasks.reading.partial_counts import shares_of_source
from tasks.reading.sources import open_source
from tasks.stages.validate import validate_records
from tests.tasks.reading.records import count_cells, good_frame, make_domain, make_release
from tests.toys import added


@pytest.fixture
def new_format(monkeypatch: pytest.MonkeyPatch) -> None:
    added(monkeypatch, "tasks.reading.formats", "source_formats")


@pytest.fixture
def ssv(tmp_path: Path) -> Path:
    good_frame().to_csv(tmp_path / "records.ssv", sep=";", index=False)
    return tmp_path / "records.ssv"


def test_it_is_opened_validated_and_counted_like_any_other(new_format, ssv: Path, confidential: Path):
    assert (open_source(ssv).format, open_source(ssv).names) == ("ssv", ("voted", "age", "wage", "born"))
    release = make_release(ssv)
    validate_records(release, confidential)
    found = count_cells(release, confidential)
    good_frame().to_parquet(ssv.with_suffix(".parquet"), index=False)
    expected = count_cells(make_release(ssv.with_suffix(".parquet")), confidential)
    assert found.codes.tolist() == expected.codes.tolist() and found.count.tolist() == expected.count.tolist()


def test_its_files_are_shared_out_and_their_bad_values_are_found(new_format, ssv: Path, confidential: Path):
    good_frame().assign(age=[18, 20, 22, 99]).to_csv(ssv.with_name("more.ssv"), sep=";", index=False)
    assert len(shares_of_source(make_release(ssv.parent / "*.ssv"))) == 2
    with pytest.raises(DataInvalid, match="data fail validation"):
        validate_records(make_release(ssv.parent / "*.ssv"), confidential)


def test_refusals_name_it_with_the_others(new_format, ssv: Path):
    ssv.with_suffix(".txt").write_text("notes")
    hint = (
        r"neither Parquet, CSV, SPSS, Stata, SAS nor SSV \(a CSV file is named .csv; .*an SSV file is named .ssv\); convert it"
    )
    with pytest.raises(SpecError, match=hint):
        open_source(ssv.with_suffix(".txt"))
    ssv.with_suffix(".txt").rename(ssv.with_suffix(".csv"))
    with pytest.raises(SpecError, match="CSV and SSV files together"):
        open_source(ssv.parent)


def test_a_release_of_such_a_source_runs_from_its_plan_on(new_format, tmp_path: Path):
    """From release.yaml to counts, by the stages that `steps run` calls."""
    from tasks.stages.discretize import discretize
    from tasks.stages.plan import load_plan, plan
    from tasks.stages.validate import validate
    from tasks.stores.artifacts import Store
    from tasks.stores.home import Home

    good_frame().to_csv(tmp_path / "records.ssv", sep=";", index=False)
    home, release = Home(tmp_path / "home"), make_release(tmp_path / "records.ssv", make_domain())
    assert load_plan(Store(home), plan(home, release)).release == "small"
    validate(home, release)
    assert sum(Store(home).read(discretize(home, release))["(count)"].to_pylist()) == 4


def test_without_its_file_it_is_refused_as_before(ssv: Path):
    with pytest.raises(
        SpecError, match=r"neither Parquet, CSV, SPSS, Stata nor SAS \(a CSV file is named .csv.*\); convert it"
    ):
        open_source(ssv)
