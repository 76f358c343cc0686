"""`steps init`: from a codebook to a plan without a touch; what is not known is asked for, in a terminal or in the files."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.flows.small import Small, write_records
from tests.flows.test_start import ROOT, imported
from tests.tasks.describing.codebooks import COMPLETE, write


@pytest.mark.parametrize("name", COMPLETE)
@pytest.mark.whole
def test_a_complete_codebook_goes_through_the_plan_untouched(name: str, small: Small, steps, tmp_path: Path):
    made = steps("init", tmp_path / "new", "--from", write(tmp_path, name), "--json")
    assert made.code == 0 and made.json["complete"] and made.json["gaps"] == [], made.err
    planned = steps("plan", tmp_path / "new" / "release.yaml", "--json")
    assert planned.code == 0 and planned.json["cells"] > 1, planned.err
    assert not small.home.exists() or not list(small.home.glob("confidential/*"))


def test_it_says_what_it_took_from_where(steps, tmp_path: Path):
    said = steps("init", tmp_path / "new", "--from", write(tmp_path, "wages.xml")).out
    assert "from      DDI codebook wages.xml" in said
    assert "categories of 2" in said and "bounds of 2" in said and "publisher" in said
    assert "compare with the questionnaire" in said and "steps plan" in said
    text = (tmp_path / "new" / "dataset.yaml").read_text()
    assert "# Written by `steps init` from the DDI codebook wages.xml; look it through." in text


@pytest.mark.parametrize("command", ["plan", "run", "validate"])
def test_gaps_of_a_plain_table_are_refused_by_every_command_that_would_use_it(
    command: str, small: Small, steps, tmp_path: Path
):
    write_records(tmp_path / "records.parquet", 20)
    made = steps("init", tmp_path / "new", "--from", tmp_path / "records.parquet", "--json").json
    refused = steps(command, tmp_path / "new" / "release.yaml")
    assert refused.code == 2 and not small.home.exists(), "nothing is left behind"
    lines = refused.err.strip().split("\n")
    assert [
        f"line {gap['line']}: {gap['key']}: still TODO" in line for gap, line in zip(made["gaps"], lines, strict=False)
    ] == [True] * 4
    assert {gap["key"] for gap in made["gaps"]} == {
        f"attributes.{name}" for name in ("region.categories", "working.categories", "age.bounds", "person.bounds")
    }


def test_a_file_that_is_there_stays_as_it_is(steps, tmp_path: Path):
    (tmp_path / "release.yaml").write_text("mine")
    refused = steps("init", tmp_path, "--from", write(tmp_path, "schema.json"))
    assert refused.code == 2 and "is never overwritten; give another folder" in refused.err
    assert (tmp_path / "release.yaml").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "this is none; give a codebook, a schema or a table: --from FILE"),
        (["--from", "absent.json"], "cannot read 'absent.json': No such file"),
        (["--from", "SCHEMA", "--name", "No Name"], "--name: 'No Name' is not a name"),
        (["--from", "SCHEMA", "--population", "../x"], "--population: '../x' is not a name"),
        (["--from", "SCHEMA", "--epsilon", "much"], "--epsilon: "),
        (["--from", "SCHEMA", "--epsilon", "0"], "--epsilon: "),
        (["--from", "SCHEMA", "--only", "age,wage"], "--only names 'wage'"),
        (["--from", "SCHEMA", "--out", "elsewhere"], "two folders are given"),
    ],
)
def test_what_cannot_be_done_is_told_and_nothing_is_written(words: list[str], told: str, steps, tmp_path: Path):
    schema = str(write(tmp_path, "schema.json"))
    refused = steps("init", tmp_path / "new", *(schema if word == "SCHEMA" else word for word in words))
    assert refused.code == 2 and told in refused.err and not (tmp_path / "new").exists()


@pytest.mark.whole
def test_it_imports_neither_prefect_nor_validation(small: Small, tmp_path: Path):
    schema = write(tmp_path, "schema.json")
    found = imported(small.home, "init", tmp_path / "new", "--from", schema)
    assert not {"prefect", "great_expectations", "matplotlib", "sklearn"} & set(found)


def in_a_terminal(folder: Path, answers: str) -> tuple[int, str]:
    """The command with a terminal of its own, into which a person types."""
    ours, theirs = pty.openpty()
    program = [sys.executable, "-c", "from flows.cli import main; main()", "init", "new"]
    process = subprocess.Popen(
        program, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    os.close(theirs)
    os.write(ours, answers.encode())
    said = b""
    try:
        while part := os.read(ours, 4096):
            said += part
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    return process.wait(timeout=60), said.decode()


@pytest.mark.whole
def test_in_a_terminal_it_asks_and_blank_lines_keep_what_is_proposed(steps, tmp_path: Path):
    write(tmp_path, "schema.json")
    code, said = in_a_terminal(tmp_path, "schema.json\nwages\n\nhousehold\nid\nwages.csv\nmany\n4000\n0.5\n12\n")
    assert code == 0 and "many is no whole number above 0" in said, said
    text = (tmp_path / "new" / "dataset.yaml").read_text()
    assert "population: wages " in text and "unit: {who: household, column: id, rows_per_person: 12}" in text
    assert "expected_rows: 4000" in text and "epsilon: 0.5" in (tmp_path / "new" / "release.yaml").read_text()
    assert steps("plan", tmp_path / "new" / "release.yaml").code == 0


def test_in_a_terminal_without_a_codebook_everything_else_is_a_gap(steps, tmp_path: Path):
    code, said = in_a_terminal(tmp_path, "\n" * 8)
    assert code == 0, said
    refused = steps("plan", tmp_path / "new" / "release.yaml")
    assert refused.code == 2 and "attributes: still TODO; write one entry per column" in refused.err


def test_what_is_to_be_written_is_told_once_where_many_columns_want_the_same(steps, tmp_path: Path):
    (tmp_path / "plain.csv").write_text("a,b,c\n1,x,\n")
    out = steps("init", tmp_path / "new", "--from", tmp_path / "plain.csv").out
    assert [f"attributes.{name}.kind" in out for name in "abc"] == [True] * 3
    assert out.count("bounds: [low, high]") == 1
