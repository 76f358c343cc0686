"""The page of a release that pays ρ: what ρ means, the curve of ε against δ, and every figure on the safe side."""

from __future__ import annotations

import io
import math
import re
import tarfile
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from schemas.budget import parse_nanos
from schemas.manifest import ChargeEntry, Code, FileFacts, LedgerProof, Manifest, Terms, format_of, guarantee_of
from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.accounting.composition import composition_of
from steps_engine.accounting.conversion import epsilon_of
from steps_engine.accounting.meaning import belief, loss_of
from steps_engine.methods.planning import make_plan
from steps_engine.methods.run_in_memory import run_plan
from steps_engine.noise import SeededRandomness
from tasks.publishing import bundle
from tasks.publishing.page import make_page, view_of
from tests.tasks.publishing.making import ELECTED, GIVEN, POLL, a_release, some_counts
from tests.tasks.publishing.test_page import _Page, phone

FROZEN = Path(__file__).parents[2] / "frozen" / "0.2.0.dev0-pure" / "bundles"
METHODS = {
    "elected": ELECTED,
    "given": GIVEN,
    "cascade": {"decomposition": "cascade"},
    "privbayes": {"decomposition": "privbayes"},
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
UNIT = POLL.unit.model_copy(update={"column": "home", "rows_per_person": 12, "who": "household"})
HOUSEHOLDS = POLL.model_copy(update={"unit": UNIT})


def made(method: dict, domain: Domain = POLL, epsilon: str = "1", delta: str = "1e-9", **privacy) -> tuple[Plan, str]:
    """A plan and its page, made in memory; δ is left out for a pure release."""
    asked = {"delta": Decimal(delta)} if delta else {}
    release, source = a_release(domain, method, epsilon=epsilon, **asked, **privacy), SeededRandomness(7)
    plan = make_plan(release, source)
    return plan, page_of(plan, domain, source, "zcdp")


def page_of(plan: Plan, domain: Domain, source: SeededRandomness, measure: str | None, amount: int | None = None) -> str:
    tables = {stage: _bytes(table) for stage, table in run_plan(domain, plan, some_counts(domain, 500), source).tables.items()}
    return make_page(manifest_of(plan, measure, amount), plan, domain, view_of(plan, domain, tables)).decode()


def _bytes(table) -> bytes:
    pq.write_table(table, file := io.BytesIO())
    return file.getvalue()


def manifest_of(plan: Plan, measure: str | None, amount: int | None = None) -> Manifest:
    """Charged as the second of its kind, with as much left again."""
    amount, guarantee = amount or parse_nanos(plan.cost), guarantee_of(plan)
    shown = Terms(plan_hash=plan.hash, spec_hash=plan.spec_hash, neighbours=plan.neighbours, unit=plan.unit)
    charge = ChargeEntry(
        seq=3, date="2026-11-20", kind="charge", population=plan.population, release=plan.release, key="k", amount=amount,
        granted_after=3 * amount, charged_after=2 * amount, measure=measure, shown=shown,
    )  # fmt: skip
    proof = LedgerProof(charge=charge, previous="0" * 64, later=(), head_seq=3, head="0" * 64)
    return Manifest(
        format=format_of(guarantee, plan.draws, proof), release=plan.release, population=plan.population, made_at="2026-11-20",
        guarantee=guarantee, composition=composition_of(plan), draws=plan.draws, plan_hash=plan.hash, spec_hash=plan.spec_hash,
        ledger=proof, code=Code(package="steps-release", version="0", commit=None, python="3", dependencies={}),
        files={"synthetic-1.parquet": FileFacts(sha256="a" * 64, size=1000)},
    )  # fmt: skip


def text_of(page: str) -> str:
    return _Page(page).text.replace("\xa0", " ")


def rows_of(page: str, after: str) -> list[list[str]]:
    """The cells of the first table after these words."""
    table = page[page.index(after) :].split("<table>")[1].split("</table>")[0]
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in table.split("<tr") if "<td" in row]


def curve_of(page: str) -> list[tuple[float, float]]:
    """(δ, ε) of every point of the curve, read off the picture by its own marks."""
    picture = page[page.index("ε against δ") :].split("</svg>")[0]
    points = [tuple(map(float, p.split(","))) for p in re.search(r'<polyline [^>]*points="([^"]*)"', picture)[1].split()]
    across = re.findall(r'<text x="([0-9.]+)" y="238" class="value" text-anchor="middle">10([⁻⁰-⁹¹²³]+)</text>', picture)
    up = re.findall(r'<text x="37" y="([0-9.]+)" class="value" text-anchor="end">([0-9.,]+)</text>', picture)
    power = [(float(x), int(e.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")))) for x, e in across]
    height = [(float(y) - 4, float(label.replace(",", ""))) for y, label in up]
    return [(10 ** _between(power, x), _between(height, y)) for x, y in points]


def _between(marks: list[tuple[float, float]], place: float) -> float:
    (p, a), (q, b) = marks[0], marks[-1]
    return a + (b - a) * (place - p) / (q - p)


def curve_is_right(curve: list[tuple[float, float]], rho: Fraction) -> bool:
    """Whether every point is what the conversion says, up to the width of a line."""
    most = max(epsilon for _, epsilon in curve)
    return all(abs(epsilon - float(epsilon_of(rho, delta).value)) < 0.004 * most for delta, epsilon in curve)


@every_method
@pytest.mark.whole
def test_the_page_says_rho_where_rho_is_paid(method: dict):
    plan, page = made(method)
    text = text_of(page)
    assert f"ρ = {plan.rho} at most, for each person: ε = 1 at δ = 10⁻⁹" in text
    assert guarantee_of(plan).sentence.replace("1e-9", "10⁻⁹") in text and "What ρ means for one person" in text
    assert "share of ε" not in text.lower() and "Share of ρ" in text
    assert f"ρ = {plan.rho} for this release" in text and f"ρ = {plan.rho} left" in text
    assert "= ε, exactly" not in text and f"in manifest.json, make ρ = {plan.rho}." in text


@every_method
@pytest.mark.whole
def test_the_curve_is_the_conversion_and_a_wrong_one_is_caught(method: dict):
    plan, page = made(method)
    curve = curve_of(page)
    assert len(curve) > 50 and curve[0][0] == pytest.approx(1e-2, rel=0.1) and curve[-1][0] == pytest.approx(1e-15, rel=0.1)
    assert curve_is_right(curve, Fraction(plan.rho))
    assert not curve_is_right([(delta, 1.02 * epsilon) for delta, epsilon in curve], Fraction(plan.rho))
    assert not curve_is_right(curve, Fraction(plan.rho) * 21 / 20)
    assert "ε = 1 at δ = 10⁻⁹" in page[page.index("ε against δ") :].split("</svg>")[0]


@pytest.mark.parametrize(("epsilon", "delta"), [("0.05", "1e-9"), ("1", "3.5e-100"), ("40", "2e-4"), ("3", "1e-300")])
@pytest.mark.whole
def test_the_curve_reaches_the_release_s_own_delta_wherever_it_lies(epsilon: str, delta: str):
    plan, page = made({"decomposition": "flat"}, epsilon=epsilon, delta=delta, delta_why="a test")
    picture = page[page.index("ε against δ") :].split("</svg>")[0]
    (x, y) = map(float, re.search(r'<circle cx="([0-9.]+)" cy="([0-9.]+)"', picture).groups())
    assert 44 <= x <= 442 and 30 <= y <= 220
    line = [tuple(map(float, p.split(","))) for p in re.search(r'points="([^"]*)"', picture)[1].split()]
    assert abs(min(line, key=lambda point: abs(point[0] - x))[1] - y) < 6  # the ring lies on the curve


def test_every_promised_epsilon_is_rounded_up():
    plan, page = made(GIVEN, delta="2.5e-7")
    rows = rows_of(page, "ε against δ")
    assert [row[0] for row in rows] == ["10⁻³", "10⁻⁶", "2.5·10⁻⁷", "10⁻⁹", "10⁻¹²", "10⁻¹⁵"]
    for (_, epsilon, factor), delta in zip(rows, (1e-3, 1e-6, 2.5e-7, 1e-9, 1e-12, 1e-15), strict=True):
        exact = epsilon_of(Fraction(plan.rho), delta).value
        assert exact <= Fraction(epsilon) < exact * Fraction(1002, 1000)
        assert float(factor) >= math.exp(exact)
    assert rows[2][1] == "1"


def test_a_suspicion_grows_as_the_noise_allows_and_no_figure_is_too_small():
    plan, page = made(GIVEN)
    rows = rows_of(page, "What ρ means")
    assert [row[0] for row in rows] == ["1\xa0%", "10\xa0%", "50\xa0%", "90\xa0%"]
    for row, before in zip(rows, (0.01, 0.1, 0.5, 0.9), strict=True):
        for shown, chance in zip(row[1:], (1 / 20, 1e-6, 1e-9), strict=True):
            exact = 100 * belief(before, loss_of(Fraction(plan.rho), chance))
            assert exact <= float(shown.removesuffix("\xa0%")) < exact + 0.11
    assert f"So a suspicion of 50 % becomes one of at most {rows[2][3]}".replace("\xa0", " ") in text_of(page)


@pytest.mark.parametrize(
    ("delta", "columns"),
    [("1e-9", ["1 in 20", "1 in a million", "δ = 10⁻⁹"]), ("1e-6", ["1 in 20", "δ = 10⁻⁶"])],
)
def test_no_chance_has_two_columns(delta: str, columns: list[str]):
    _, page = made(GIVEN, delta=delta, delta_why="a test")
    table = page[page.index("What ρ means") :].split("<table>")[1].split("</table>")[0].replace("\xa0", " ")
    assert re.findall(r'<th scope="col" class="number">(.*?)</th>', table) == columns
    assert f'colspan="{len(columns)}"' in table
    assert {len(row) for row in rows_of(page, "What ρ means")} == {1 + len(columns)}


def test_where_the_number_of_rows_is_published_the_suspicion_is_about_a_replacement():
    plan, page = made(GIVEN, HOUSEHOLDS, total="invariant")
    text = text_of(page)
    assert "What ρ means for one household" in text and "one person" not in text
    assert "of a certain household (all of at most 12 rows) are one thing and not another" in text
    assert f"4ρ = {4 * float(plan.rho):.4}"[:9] in text
    shown = float(rows_of(page, "What ρ means")[2][3].removesuffix("\xa0%"))
    once, twice = (100 * belief(0.5, loss_of(steps * Fraction(plan.rho), 1e-9)) for steps in (1, 4))
    assert once < twice <= shown


def test_the_reason_for_a_large_delta_is_told_and_cannot_become_markup():
    _, page = made(GIVEN, delta="2e-4", delta_why="a <b>drill</b>")
    assert "The reason that was given for δ = 2·10⁻⁴: “a <b>drill</b>”" in text_of(page)
    assert "<b>drill" not in page
    assert "The reason that was given" not in made(GIVEN)[1]


@every_method
@pytest.mark.whole
def test_draws_are_shown_as_short_figures_on_the_safe_side(method: dict):
    plan, page = made(method)
    rows = rows_of(page, "Every draw")
    assert all(len(cell) <= 12 for row in rows for cell in row[3:])
    seen = {(draw.mechanism.replace("_", "-"), draw.sensitivity, draw.cost, draw.scale) for draw in plan.draws}
    assert len(rows) >= len(seen)
    for row in rows:
        assert any(_covers(row, *figures) for figures in seen)
        assert not any(_covers([*row[:4], f"{float(row[4]) * 0.99:.6g}", row[5]], *figures) for figures in seen)
    assert ("Δ² ⁄ 2σ²" in page) and ("⁄ 8" in page) == any(draw.kind == "election" for draw in plan.draws)


def _covers(row: list[str], mechanism: str, sensitivity: Fraction, cost: Fraction, scale: Fraction) -> bool:
    """Whether a line shows this draw: no less sensitivity and cost than it has, no more scale, and nearly as much."""
    said = [Fraction(cell.split("= ")[-1].replace(",", "")) for cell in row[3:]]
    if "σ = " in row[5]:
        said = [said[0] ** 2, said[1], said[2] ** 2]
    least = (sensitivity, cost, 1 / scale)
    shown = (said[0], said[1], 1 / said[2])
    return row[2] == mechanism and all(a <= b < a * Fraction(1003, 1000) for a, b in zip(least, shown, strict=True))


def test_a_pure_release_on_an_account_in_rho_says_what_was_promised_and_what_was_charged():
    source = SeededRandomness(7)
    plan = make_plan(a_release(POLL, GIVEN), source)
    text = text_of(page_of(plan, POLL, source, "zcdp", 500_000_000))
    assert "ε = 1 at most, for each person" in text and "Share of ε" in text and "What ρ means" not in text
    assert "This release promises ε = 1, and the budget is kept in ρ." in text and "rounded up: ρ = 0.5." in text
    assert "ρ = 1.5 had been granted" in text and "ρ = 0.5 for this release" in text


@pytest.mark.browser
def test_the_curve_and_its_tables_fit_a_phone_and_need_nothing(tmp_path: Path):
    plan, page = made(ELECTED, epsilon="0.135335283")
    seen = _Page(page)
    assert not seen.seen & {"script", "img", "link", "iframe"} and ("role", "img") in seen.attributes
    (tmp_path / "index.html").write_text(page)
    driver = phone()
    try:
        driver.get((tmp_path / "index.html").as_uri())
        assert driver.get_log("browser") == []
        wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert driver.execute_script(wide) <= 0, "the page scrolls sideways on a phone"
        within = "return [...document.querySelectorAll('.narrow')].every(e => e.scrollWidth <= e.clientWidth)"
        assert driver.execute_script(within), "a table about ρ must be scrolled on a phone"
        assert driver.find_element("css selector", ".curve svg").size["height"] > 150
    finally:
        driver.quit()


@pytest.mark.parametrize("name", sorted(path.stem for path in FROZEN.glob("*.pub")))
@pytest.mark.whole
def test_the_page_of_an_earlier_pure_release_can_be_made_again_and_says_nothing_of_rho(name: str, tmp_path: Path):
    with tarfile.open(FROZEN / f"{name}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="tar")
    folder = tmp_path / name
    manifest = bundle.read_manifest((folder / bundle.MANIFEST).read_bytes())
    assert isinstance(manifest, Manifest)
    known = manifest.model_copy(update={"files": {n: f for n, f in manifest.files.items() if n != bundle.PAGE}})
    plan, domain = (
        bundle.read_plan((folder / bundle.PLAN).read_bytes()),
        bundle.read_domain((folder / bundle.DOMAIN).read_bytes()),
    )
    tables = {stage: (folder / f"{stage}.parquet").read_bytes() for stage in bundle.table_stages(plan.sets)}
    page = _Page(make_page(known, plan, domain, view_of(plan, domain, tables)).decode()).text
    assert "ρ" not in page and "δ" not in page and manifest.guarantee.sentence in page.replace("\xa0", " ")
    assert "This release can say" in page and all(str(draw.scale) in page for draw in plan.draws)
