"""Every relative link of the documents leads to a file, and to a heading where it names one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "steps_engine" / "PRIVACY.md"])
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def links(text: str) -> list[str]:
    """Where a document leads to, apart from its code and addresses of the network."""
    prose = re.sub(r"`[^`\n]*`", "`code`", FENCED.sub("", text))
    found = (first or second for first, second in LINK.findall(prose))
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def headings(path: Path) -> set[str]:
    """The anchors of a document's headings, those of a file that it includes too."""
    text = path.read_text(encoding="utf-8")
    included = [ROOT / name for name in re.findall(r"^--8<-- \"(.*)\"", text, re.MULTILINE)]
    found = re.findall(r"^#+ (.*)$", FENCED.sub("", text), re.MULTILINE)
    return {anchor(heading) for heading in found}.union(*(headings(other) for other in included))


def anchor(heading: str) -> str:
    """
    The anchor that the site gives a heading.

    >>> anchor("What to do when …"), anchor("`method.sets`, *and* more")
    ('what-to-do-when', 'methodsets-and-more')
    """
    words = re.sub(r"[^\w\s-]", "", heading.encode("ascii", "ignore").decode()).strip().lower()
    return re.sub(r"[-\s]+", "-", words)


def broken(path: Path, text: str) -> Iterator[str]:
    for link in links(text):
        name, _, heading = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.exists():
            yield f"{link}: no such file"
        elif heading and heading not in headings(target):
            yield f"{link}: no such heading"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(path: Path):
    assert list(broken(path, path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("link", ["nothing.md", "tutorial.md#nothing", "#nothing", "pictures/nothing.svg", "../docs/nothing/"])
def test_a_broken_link_is_found(link: str):
    assert list(broken(ROOT / "docs" / "index.md", f"see [this]({link})"))


def test_links_in_code_and_in_the_network_are_left_alone():
    text = "`[a](b.md)`\n```yaml\n[c](d.md)\n```\n[e](https://example.org)"
    assert list(broken(ROOT / "README.md", text)) == []


MODULE = re.compile(r"`([\w/]+\.(?:py|sh))`")


def lost_modules(text: str) -> list[str]:
    """Modules that a document names and nobody finds."""
    return [name for name in MODULE.findall(text) if not any(ROOT.glob(f"[!.]*/**/{name}")) and not (ROOT / name).exists()]


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if path.name != "PRIVACY.md"], ids=lambda path: path.name)
def test_every_module_that_is_named_exists(path: Path):
    assert lost_modules(path.read_text(encoding="utf-8")) == []


def test_a_module_that_is_gone_is_noticed():
    assert lost_modules("see `steps_engine/nothing.py` and `nothing.py`, not `cli.py`") == [
        "steps_engine/nothing.py",
        "nothing.py",
    ]


def test_there_are_links_to_check():
    assert sum(len(links(path.read_text(encoding="utf-8"))) for path in DOCUMENTS) > 80
