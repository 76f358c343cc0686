"""A registry is a folder: its files are its entries, in their places, and a file that is none is named."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from schemas.errors import SpecError
from schemas.registry import Registry


@dataclass(frozen=True)
class Bird:
    name: str
    place: int


@pytest.fixture
def birds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Makes a package of birds from the text of its files."""

    def make(package: str, **files: str) -> Registry[Bird]:
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
        for name, text in files.items():
            (tmp_path / package / f"{name}.py").write_text(f"from {__name__} import Bird\n{text}")
        monkeypatch.syspath_prepend(tmp_path)
        return Registry(package, Bird)

    return make


def test_the_files_of_a_folder_are_its_entries_in_the_order_of_their_places(birds):
    registry = birds("some_birds", auk="ENTRY = Bird('auk', 2)", wren="ENTRY = Bird('wren', 1)", emu="ENTRY = Bird('emu', 2)")
    assert [bird.name for bird in registry.entries()] == ["wren", "auk", "emu"]
    assert registry.named("emu").place == 2


def test_what_is_not_there_is_refused_with_what_is(birds):
    registry = birds("two_birds", auk="ENTRY = Bird('auk', 2)", wren="ENTRY = Bird('wren', 1)")
    with pytest.raises(SpecError, match="there is no 'dodo'; known are wren, auk"):
        registry.named("dodo")


def test_a_file_without_an_entry_is_named(birds):
    registry = birds("few_birds", auk="ENTRY = Bird('auk', 1)", egg="ENTRY = 'not yet'")
    with pytest.raises(TypeError, match="few_birds.egg must hold ENTRY, a Bird; it has str"):
        registry.entries()


def test_two_files_cannot_hold_the_same_entry(birds):
    registry = birds("twin_birds", auk="ENTRY = Bird('auk', 1)", great_auk="ENTRY = Bird('auk', 2)")
    with pytest.raises(TypeError, match="same name: auk, auk"):
        registry.entries()
