"""A toy describing file in one file: the attributes' names, one per line."""

from __future__ import annotations

from tasks.publishing.description import Description
from tasks.publishing.descriptions import DescribingFile


def write(said: Description) -> bytes:
    return "".join(f"{column.name}\n" for column in said.columns).encode()


ENTRY = DescribingFile("names.txt", 20, "the attributes' names", write)
