"""What others wrote reaches a terminal as text: no name, key or path in a message moves a cursor or turns a line around."""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path

import pytest

from flows.output.terminal import say, shown_table
from schemas.errors import KeyRefused, SpecError, StepsError
from schemas.visible import invisible, visible
from tasks.specs import load_release

HIDDEN = {"right-to-left": ("\u202e", "\\u202e"), "escape": ("\x1b[2J", "\\x1b[2J"), "bytes": ("\udcff", "\\udcff")}
DATASET = "name: d\npopulation: p\nattributes:\n  - {name: sex, kind: categorical, categories: [a, b]}\n"
RELEASE = "name: r-1\ndataset: dataset.yaml\nsource: r.csv\nprivacy: {epsilon: 1}\n"


def test_what_is_seen_stays_as_it_is_and_what_is_not_is_told_by_its_number():
    texts = [chr(code) for code in range(sys.maxunicode + 1)]
    hidden = [text for text in texts if invisible(text) is not None]
    assert [text for text in texts if visible(text) != text] == [text for text in hidden if text != "\n"]
    assert all(visible(text).isascii() and visible(text).isprintable() for text in hidden if text != "\n")
    assert {unicodedata.category(text) for text in hidden} == {"Cc", "Cf", "Cs", "Zl", "Zp"}


@pytest.mark.parametrize("kind", [StepsError, SpecError, KeyRefused])
@pytest.mark.parametrize(("raw", "shown"), HIDDEN.values(), ids=HIDDEN)
def test_an_error_shows_what_it_quotes(kind: type[StepsError], raw: str, shown: str):
    assert str(kind(f"no {raw} here\nbut there")) == f"no {shown} here\nbut there"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: sex", 'name: "sex\\u202E"'),
        ("kind: categorical", 'kind: categorical, "k\\u202Eey": 1'),
        ("kind: categorical", 'kind: "cat\\u202E"'),
        ("[a, b]", '["a\\u202E", b]'),
        ("dataset: dataset.yaml", 'dataset: "\\u202E.yaml"'),
        ("source: r.csv", 'source: r.csv\n"\\e[31mred": 1'),
        ("name: r-1", 'name: "r\\e[31m"'),
    ],
)
def test_names_labels_keys_and_paths_of_a_spec_are_told_visibly(tmp_path: Path, old: str, new: str):
    assert old in DATASET + RELEASE
    (tmp_path / "dataset.yaml").write_text(DATASET.replace(old, new))
    (tmp_path / "release.yaml").write_text(RELEASE.replace(old, new))
    with pytest.raises(SpecError) as refused:
        load_release(tmp_path / "release.yaml")
    told = str(refused.value)
    assert invisible(told.replace("\n", "")) is None and ("\\u202e" in told or "\\x1b" in told), told


def test_lines_and_tables_on_a_terminal_are_visible(capsys):
    say("a\x1b[2Jb")
    shown_table(["\u202ename"], [["c\x1b[2Jd"]])
    shown = capsys.readouterr().out
    assert "a\\x1b[2Jb" in shown and "c\\x1b[2Jd" in shown and "\\u202ename" in shown
