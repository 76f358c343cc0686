"""The catalogue: complete, public, the same every time, whole at every moment; what does not verify is left out and told."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as xml

import pytest

from schemas.errors import EvidenceBroken, SpecError
from tasks.publishing import bundle
from tasks.publishing.catalogue import site
from tasks.stages.catalogue import catalogue
from tasks.stages.take_back import withdraw
from tasks.stores.home import Home
from tasks.verify.bundle import verify_bundle
from tests.tasks.publishing.catalogue.shelves import SECRET, WHY, outlooks, some_shelves
from tests.tasks.publishing.making import edit_table

NAMES = {"poll-2024", "poll-2025", "wages-2026", "wages-2026b"}
PAGES = {"index.html", "feed.xml", "dcat.jsonld", "catalogue.json", "signing-key.pub"}
DAY = "2026-09-12"
SOUND: dict[str, list[str]] = {name: [] for name in NAMES}  # for tests of something else: verified before


@pytest.fixture(scope="module")
def shelves(tmp_path_factory) -> Home:
    """Not to be changed."""
    return some_shelves(tmp_path_factory.mktemp("shelves") / "home")


@pytest.fixture
def home(shelves: Home, tmp_path: Path) -> Home:
    """The same, to be changed."""
    shutil.copytree(shelves.path, tmp_path / "home")
    return Home(tmp_path / "home")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "site"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Links(HTMLParser):
    """Every address in a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attributes if name in ("href", "src") and value]
        self.ids |= {value for name, value in attributes if name == "id" and value}


@pytest.mark.whole
def test_every_published_release_is_there_whole_and_verifies_where_it_lies(shelves: Home, out: Path):
    answer = catalogue(shelves, out)
    assert answer["ok"] and answer["releases"] == 4 and set(answer["copied"]) == NAMES
    assert {path.name for path in out.iterdir()} == PAGES | {"releases"}
    assert {path.name for path in (out / "releases").iterdir()} == NAMES
    for name in NAMES:
        assert contents(out / "releases" / name) == contents(shelves.public / name)
        problems = verify_bundle(out / "releases" / name, shelves.keys / "signing-key.pub")
        assert all(problem.note for problem in problems)


def test_every_link_of_the_index_leads_to_something_within_the_site(shelves: Home, out: Path):
    catalogue(shelves, out, outlooks(), DAY, problems=SOUND)
    page = Links()
    page.feed((out / "index.html").read_text(encoding="utf-8"))
    assert len(page.found) > 20
    for link in page.found:
        assert "://" not in link and not link.startswith("/"), f"{link} leads away"
        assert (link[1:] in page.ids) if link.startswith("#") else (out / link).is_file(), link


def test_the_catalogue_can_be_moved_and_is_complete_without_the_home(shelves: Home, out: Path, tmp_path: Path):
    catalogue(shelves, out, problems=SOUND)
    moved = tmp_path / "elsewhere"
    os.rename(out, moved)
    assert str(shelves.path) not in " ".join(content.decode("utf-8", "ignore") for content in contents(moved).values())


def test_nothing_of_the_ledger_but_its_public_chain_is_told(shelves: Home, out: Path):
    """Canaries: who acted, why, at which time of day, what was never published, what is scheduled under which name."""
    catalogue(shelves, out, outlooks(), DAY, "https://data.example/", problems=SOUND)
    canaries = ["an-operator-nobody-may-know", SECRET, "03:14:15", "926535", "never-seen", "secret-plan", "confidential/"]
    site_files = {name: content for name, content in contents(out).items() if not name.startswith("releases/")}
    for name, content in site_files.items():
        for canary in canaries:
            assert canary.encode() not in content, (name, canary)
    times = {time for content in site_files.values() for time in re.findall(rb"T([0-9]{2}:[0-9]{2}:[0-9]{2})", content)}
    assert times <= {b"00:00:00"}


def test_the_canaries_are_in_the_ledger(shelves: Home):
    """The control: what must not be told is there to be told."""
    from tasks.stores.ledger import open_ledger

    said = " ".join(map(str, open_ledger(shelves).entries()))
    assert all(canary in said for canary in (SECRET, "03:14:15", "never-seen"))


@pytest.mark.whole
def test_the_same_home_makes_the_same_bytes_and_copies_nothing_again(shelves: Home, out: Path, tmp_path: Path):
    catalogue(shelves, out, outlooks(), DAY, problems=SOUND)
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    again = catalogue(shelves, out, outlooks(), DAY, problems=SOUND)
    assert again["copied"] == [] and set(again["kept"]) == NAMES
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()} == before
    catalogue(shelves, tmp_path / "other", outlooks(), DAY, problems=SOUND)
    assert contents(tmp_path / "other") == contents(out)


def test_a_withdrawal_reaches_the_catalogue_and_copies_no_other_bundle(home: Home, out: Path):
    catalogue(home, out, problems=SOUND)
    withdraw(home, "poll-2025", "Wrong <weights>")
    answer = catalogue(home, out, problems=SOUND)
    assert answer["copied"] == ["poll-2025"]
    assert (out / "releases/poll-2025/notice.html").is_file() and "Wrong &lt;weights&gt;" in (out / "index.html").read_text()
    listed = {each["release"]: each for each in json.loads((out / "catalogue.json").read_bytes())["releases"]}
    assert listed["poll-2025"]["state"] == "withdrawn" and listed["poll-2025"]["page"].endswith("notice.html")


@pytest.mark.whole
def test_a_spoilt_copy_is_mended(shelves: Home, out: Path):
    catalogue(shelves, out, problems=SOUND)
    spoilt = out / "releases/poll-2025/margins.csv"
    spoilt.write_bytes(spoilt.read_bytes().replace(b"yes", b"aye"))
    (out / "releases/poll-2024/extra.txt").write_text("?")
    assert set(catalogue(shelves, out, problems=SOUND)["copied"]) == {"poll-2024", "poll-2025"}
    for name in ("poll-2024", "poll-2025"):
        assert contents(out / "releases" / name) == contents(shelves.public / name)


@pytest.mark.whole
def test_a_bundle_that_does_not_verify_is_left_out_told_and_taken_off(home: Home, out: Path):
    catalogue(home, out)
    edit_table(home.public / "poll-2025/synthetic-1.parquet", lambda columns: columns["wage"].reverse())
    answer = catalogue(home, out)
    assert not answer["ok"] and answer["left_out"] == ["poll-2025"] and answer["removed"] == ["poll-2025"]
    assert any("synthetic-1.parquet" in problem for problem in answer["problems"])
    assert "poll-2025" not in json.loads((out / "catalogue.json").read_bytes())["releases"]
    assert not (out / "releases/poll-2025").exists() and 'id="poll-2025"' not in (out / "index.html").read_text()


def test_a_bundle_without_a_readable_manifest_is_left_out_like_any_other(home: Home, out: Path):
    (home.public / "poll-2024/manifest.json").write_bytes(b"{")
    answer = catalogue(home, out, problems={name: [] for name in NAMES - {"poll-2024"}})
    assert not answer["ok"] and answer["left_out"] == ["poll-2024"] and answer["releases"] == 3


def test_a_ledger_that_was_edited_leaves_the_catalogue_as_it_was(home: Home, out: Path):
    import sqlite3

    catalogue(home, out, problems=SOUND)
    before = contents(out)
    with sqlite3.connect(home.ledger_file) as ledger:
        for (trigger,) in ledger.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            ledger.execute(f'DROP TRIGGER "{trigger}"')
        ledger.execute("UPDATE entries SET amount = amount + 1, granted_after = granted_after + 1 WHERE seq = 1")
    with pytest.raises(EvidenceBroken):
        catalogue(home, out, problems=SOUND)
    assert contents(out) == before


@pytest.mark.whole
def test_a_folder_that_the_ledger_never_published_is_left_out(home: Home, out: Path):
    shutil.copytree(home.public / "poll-2025", home.public / "poll-2030")
    answer = catalogue(home, out)
    assert answer["left_out"] == ["poll-2030"] and not (out / "releases/poll-2030").exists()


def test_a_home_without_releases_makes_a_catalogue_that_says_so(tmp_path: Path, out: Path):
    answer = catalogue(Home(tmp_path / "empty"), out)
    assert answer["ok"] and answer["releases"] == 0
    assert "Nothing has been published yet" in (out / "index.html").read_text()
    assert catalogue(Home(tmp_path / "empty"), out)["ok"]


@pytest.mark.parametrize("found", ["other files", "a file", "another kind", "the home", "within the home", "around the home"])
def test_a_folder_that_is_no_catalogue_is_refused_and_stays_as_it_is(home: Home, tmp_path: Path, found: str):
    out = tmp_path / "theirs"
    if found == "a file":
        out.write_text("mine")
    elif found in ("other files", "another kind"):
        out.mkdir()
        (out / ("thesis.txt" if found == "other files" else "catalogue.json")).write_text('{"format": "theirs"}')
    else:
        out = {"the home": home.path, "within the home": home.path / "public", "around the home": tmp_path}[found]
    before = contents(out) if out.is_dir() else out.read_bytes()
    with pytest.raises(SpecError, match=r"no catalogue|is a file|one within the other"):
        catalogue(home, out)
    assert (contents(out) if out.is_dir() else out.read_bytes()) == before


def test_an_address_that_is_none_is_refused(shelves: Home, out: Path):
    with pytest.raises(SpecError, match="where the catalogue will lie"):
        catalogue(shelves, out, address="data.example")
    assert not out.exists()


class Killed(BaseException):
    """What no handler of ours catches."""


class Killer:
    """Lets so many writes happen, and kills at the next."""

    def __init__(self, patch: pytest.MonkeyPatch, writes: int):
        self.left, self.has_killed = writes, False
        patch.setattr(site, "write_over", self.counted(site.write_over))
        patch.setattr(bundle, "write_durably", self.counted(bundle.write_durably))
        patch.setattr(site.os, "rename", self.counted(os.rename))

    def counted(self, function):
        def write(*arguments, **named):
            self.left -= 1
            if self.left < 0:
                self.has_killed = True
                raise Killed
            return function(*arguments, **named)

        return write


@pytest.mark.whole
def test_a_reader_never_finds_a_link_that_leads_nowhere_whenever_the_writer_is_killed(
    home: Home, out: Path, monkeypatch: pytest.MonkeyPatch
):
    """Every write is a moment at which it may be killed; what is there then is a whole catalogue, and the next run ends it."""
    first = catalogue(home, out, problems={"poll-2025": ["not yet"], "poll-2024": ["not yet"]})
    assert set(first["copied"]) == {"wages-2026", "wages-2026b"}
    kills = 0
    for writes in range(0, 80, 5):
        copy = out.with_name(f"site-{writes}")
        shutil.copytree(out, copy)
        with monkeypatch.context() as patch, contextlib.suppress(Killed):
            killer = Killer(patch, writes)
            catalogue(home, copy, problems=SOUND)
        page = Links()
        page.feed((copy / "index.html").read_text(encoding="utf-8"))
        assert [link for link in page.found if not link.startswith("#") and not (copy / link).is_file()] == []
        kills += killer.has_killed
        if not killer.has_killed:
            break
    assert kills > 5 and not killer.has_killed
    assert catalogue(home, out.with_name("site-20"), problems=SOUND)["releases"] == 4
    assert contents(out.with_name("site-20")) == contents(copy)


def test_an_unfinished_copy_is_swept_away(shelves: Home, out: Path):
    catalogue(shelves, out, problems=SOUND)
    left = out / "releases/.copying-killed"
    left.mkdir()
    (left / "manifest.json").write_text("{")
    catalogue(shelves, out, problems=SOUND)
    assert not left.exists()


def test_the_feed_is_atom_and_names_every_release_once_the_newest_first(shelves: Home, out: Path):
    catalogue(shelves, out, address="https://data.example/catalogue", problems=SOUND)
    feed = xml.fromstring((out / "feed.xml").read_bytes())
    atom = "{http://www.w3.org/2005/Atom}"
    entries = feed.findall(f"{atom}entry")
    updated = [entry.findtext(f"{atom}updated") for entry in entries]
    ids = {entry.findtext(f"{atom}id") for entry in entries} | {feed.findtext(f"{atom}id")}
    assert len(entries) == 4 and updated == sorted(updated, reverse=True) and len(ids) == 5
    assert all(identifier.startswith("urn:uuid:") for identifier in ids)
    for needed in ("title", "id", "updated", "author"):
        assert feed.find(f"{atom}{needed}") is not None
    links = [entry.find(f"{atom}link").get("href") for entry in entries]
    assert "https://data.example/catalogue/releases/wages-2026/notice.html" in links
    withdrawn = next(entry for entry in entries if "wages-2026 " in entry.findtext(f"{atom}title"))
    assert WHY in withdrawn.findtext(f"{atom}summary")


def test_dcat_says_publisher_licence_status_and_every_file_with_its_hash(shelves: Home, out: Path):
    from rdflib import DCAT, DCTERMS, RDF, Graph, Literal, Namespace, URIRef

    base = "https://data.example/"
    catalogue(shelves, out, address=base, problems=SOUND)
    graph = Graph().parse(out / "dcat.jsonld", format="json-ld")
    adms, spdx = Namespace("http://www.w3.org/ns/adms#"), Namespace("http://spdx.org/rdf/terms#")
    datasets = set(graph.subjects(RDF.type, DCAT.Dataset))
    assert datasets == {URIRef(f"{base}releases/{name}/") for name in NAMES}
    assert set(graph.objects(URIRef(f"{base}dcat.jsonld"), DCAT.dataset)) == datasets
    poll = URIRef(f"{base}releases/poll-2025/")
    assert graph.value(poll, DCTERMS.license) == URIRef("https://spdx.org/licenses/CC-BY-4.0.html")
    old = URIRef(f"{base}releases/poll-2024/")
    assert graph.value(old, DCTERMS.isReplacedBy) == poll
    assert graph.value(old, adms.status) == URIRef("http://purl.org/adms/status/DEPRECATED")
    first = URIRef(f"{base}releases/poll-2025/synthetic-1.parquet")
    digest = graph.value(graph.value(first, spdx.checksum), spdx.checksumValue)
    assert digest == Literal(bundle.facts_of((shelves.public / "poll-2025/synthetic-1.parquet").read_bytes()).sha256)
    assert len(set(graph.objects(poll, DCAT.distribution))) == 2


def test_budgets_are_those_of_the_ledger_day_by_day(shelves: Home, out: Path):
    from tasks.stores.ledger import open_ledger

    catalogue(shelves, out, problems=SOUND)
    told = {each["population"]: each for each in json.loads((out / "catalogue.json").read_bytes())["budgets"]}
    for account in open_ledger(shelves).accounts():
        assert float(told[account.population]["left"]) * 10**9 == pytest.approx(account.balance)
        assert told[account.population]["measure"] == account.symbol
    assert [day["day"] for day in told["town"]["days"]] == ["2024-03-01", "2025-02-11", "2025-09-30"]
    assert told["town"]["days"][-1]["releases"] == []  # what was charged then was never published, and is not named


def test_labels_cannot_break_out_of_the_page(shelves: Home, out: Path):
    catalogue(shelves, out, problems=SOUND)
    page = (out / "index.html").read_text(encoding="utf-8")
    assert "<by>" not in page and "<turnout>" not in page and "<b>use</b>" not in page
    assert page.count("<script") == 2 and "sha256-" in page


def test_releases_without_a_title_are_told_apart_by_their_names(shelves: Home, out: Path):
    catalogue(shelves, out)
    page = (out / "index.html").read_text()
    heads = re.findall(r"<h3><a [^>]*>([^<]*)</a></h3>", page)
    assert "poll-2024" in heads and len(heads) == len(NAMES)
    assert "poll-2024: poll-2024" not in (out / "feed.xml").read_text()
