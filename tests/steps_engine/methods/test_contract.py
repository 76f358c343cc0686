"""What every method keeps, the toy included: rules, tables as declared, a check that finds nothing, something to show."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from schemas import tables
from schemas.spec.domain import Domain
from schemas.spec.method import METHOD_SPECS, method_spec
from schemas.spec.release import LINKED
from steps_engine.accounting.composition import composition_of
from steps_engine.accounting.conversion import rho_of
from steps_engine.accounting.mechanisms import contrast_variance
from steps_engine.domain.counting import count_codes
from steps_engine.domain.records import codes_of
from steps_engine.methods.registry import METHODS, register
from steps_engine.methods.run_in_memory import run
from steps_engine.noise import SeededRandomness
from tests.steps_engine.shapes import PLACED, RULED, SHAPES, allowed_cells, counted, placed, release
from tests.toys.margins_method import MARGINS

OPTIONS = {
    "flat": {},
    "tree": {"order": ("x0",)},
    "tree, elected": {"elect": {"layers": 1}},
    "uh": {"layers": 1},
    "cascade": {},
    "cascade, order elected": {"order": "elected"},
    "privbayes": {},
    "pairs": {},
    "pairs, elected": {"pairs": 1},
    "places": {},
    "places, elected": {"pairs": 1},
    "auto": {},
    "margins": {"first": 2},
}


def shapes_of(name: str) -> dict[str, Domain]:
    """Places need places; other methods take them for plain categories."""
    if name.startswith("places"):
        return {"places": PLACED, **({"places under rules": RULED} if name == "places" else {})}
    return {**SHAPES, **({"places": PLACED} if name == "auto" else {"places under rules": RULED} if name == "pairs" else {})}


MEASURES = {"pure": {}, "zcdp": {"delta": Decimal("1e-9")}}
SETS = {"one": {}, "split": {"count": 2}, "shared": {"count": 2, "budget": "shared"}}
# In a single cell there is nothing to elect.
CASES = {
    f"{name}: {which}": (name, shape)
    for name in OPTIONS
    for which, shape in shapes_of(name).items()
    if shape.all_cells > 1 or name != "tree, elected"
}
every_case = pytest.mark.parametrize(("name", "shape"), CASES.values(), ids=CASES)
every_measure = pytest.mark.parametrize("measure", MEASURES)
LISTED = {
    which: case for which, case in CASES.items() if not case[0].startswith(("privbayes", "margins", "pairs", "places"))
}  # these draw rows


@pytest.fixture(autouse=True, scope="module")
def toy():
    register(MARGINS)
    yield
    del METHODS["margins"], METHOD_SPECS["margins"]


def made(name: str, shape, counts, epsilon: str = "1", sets: str = "one", **privacy):
    asked = release(shape, method_spec(name.split(",")[0], sets=SETS[sets], **OPTIONS[name]), epsilon, **privacy)
    return run(asked, counts, SeededRandomness((name, sets)))


def test_there_is_a_case_for_every_method():
    linked = {LINKED}  # of another shape of domain: tests/steps_engine/methods/households
    assert {name.split(",")[0] for name in OPTIONS} >= set(METHODS) - linked


@every_case
@every_measure
@pytest.mark.parametrize("sets", SETS)
@pytest.mark.whole
def test_rules_are_kept_tables_are_as_declared_and_the_check_finds_nothing(name, shape, sets, measure):
    found = made(name, shape, counted(shape, 300), sets=sets, **MEASURES[measure])
    allowed = set(allowed_cells(shape))
    for records in found.records:
        assert records.schema == tables.records(shape)
        assert {tuple(row) for row in codes_of(records, shape).tolist()} <= allowed
    for stage, schema in found.method.schemas(found.plan).items():
        assert found.tables[stage].schema.equals(schema), stage
    checked = found.method.check(shape, found.plan, found.tables)
    assert checked.findings == () and checked.ends


@every_case
@every_measure
@pytest.mark.whole
def test_an_empty_table_is_noise_on_zeros(name, shape, measure):
    found = made(name, shape, count_codes(np.zeros((0, len(shape.sizes)), int)), **MEASURES[measure])
    assert len(found.records) == 1 and found.method.view(shape, found.plan, found.tables).total.rows[0] < 2000
    assert {tuple(row) for row in codes_of(found.records[0], shape).tolist()} <= set(allowed_cells(shape))


@pytest.mark.parametrize(("name", "shape"), LISTED.values(), ids=LISTED)
@every_measure
@pytest.mark.whole
def test_a_huge_epsilon_gives_the_exact_margins(name, shape, measure):
    counts = counted(shape, 300)
    found = made(name, shape, counts, "100000", **MEASURES[measure])
    for j, size in enumerate(shape.sizes):
        exact = np.bincount(counts.codes[:, j], weights=counts.count, minlength=size)
        here = np.bincount(codes_of(found.records[0], shape)[:, j], minlength=size)
        sampled = not name.startswith(("flat", "tree", "uh"))  # a cascade walks: its rows are a sample of what it measured
        assert np.abs(here - exact).sum() <= (0.1 * 300 if sampled else 0)


@every_case
@pytest.mark.whole
def test_there_is_something_to_show_before_and_after(name, shape):
    found = made(name, shape, counted(shape, 300), sets="shared")
    sketch = found.method.sketch(found.plan)
    assert len(sketch.rows) == len(found.plan.layers) and sketch.draws.keys() == {draw.name for draw in found.plan.draws}
    view = found.method.view(shape, found.plan, found.tables)
    assert len(view.total.rows) == found.plan.sets and view.heading and (view.tree or view.network)
    assert all(len(margin.labels) == len(margin.estimate) == len(margin.error) for margin in view.margins)
    counts = found.counts(1)
    assert {"estimate", "standard_error"} <= set(counts.columns) and len(counts)


@pytest.mark.parametrize("sets", ["shared", "split"])
@pytest.mark.parametrize("name", OPTIONS)
@every_measure
def test_the_shares_that_are_shown_make_the_whole_budget_with_what_elections_cost(name, measure, sets):
    shape = placed() if name.startswith("places") else SHAPES["uneven"]
    found = made(name, shape, counted(shape, 300), sets=sets, **MEASURES[measure])
    apart = [draw for draw in found.plan.draws if draw.kind == "election" or said_apart(name, draw)]
    shown = sum(float(row.share.rstrip("%")) / 100 for row in found.method.sketch(found.plan).rows)
    assert shown + float(sum(draw.cost for draw in apart) / Fraction(found.plan.cost)) == pytest.approx(1, abs=1e-3)


def said_apart(name: str, draw) -> bool:
    """The number of rows beside a cascade's trees, which a line of its own tells."""
    return name.startswith("cascade") and draw.tree is None


@pytest.mark.parametrize("name", OPTIONS)
@every_measure
@pytest.mark.whole
def test_every_cell_that_is_counted_gets_noise(name, measure):
    """With the scale of a plan at ε = 0.001 a noisy table without a single nonzero value would be a wonder."""
    shape = PLACED if name.startswith("places") else SHAPES["a rule"]
    found = made(name, shape, count_codes(np.zeros((0, len(shape.sizes)), int)), "0.001", **MEASURES[measure])
    columns = [c for c in found.tables["noisy-counts"].column_names if c.startswith("noisy_")]
    values = np.concatenate([found.tables["noisy-counts"][c].to_numpy() for c in columns])
    assert (values != 0).mean() > 0.9
    assert min(contrast_variance(d, ()) for d in found.plan.draws if d.kind == "count") > 10**5


@every_case
@pytest.mark.parametrize("neighbours", ["add_remove", "substitute"])
@pytest.mark.whole
def test_counts_and_elections_are_paid_by_the_mechanisms_of_the_measure(name, shape, neighbours):
    pure, zcdp = (made(name, shape, counted(shape, 300), neighbours=neighbours, **asked).plan for asked in MEASURES.values())
    assert {d.mechanism for d in pure.draws if d.kind == "count" and not d.is_joint} <= {"two_sided_geometric"}
    assert {d.mechanism for d in pure.draws if d.is_joint} <= (
        {"max_norm"} if name.startswith(("pairs", "places", "auto")) else set()
    )
    assert {d.mechanism for d in zcdp.draws if d.kind == "count"} == {"discrete_gaussian"}
    assert {d.mechanism for d in zcdp.draws if d.kind == "election"} <= {"exponential"}
    assert (pure.measure, pure.cost, zcdp.measure, zcdp.epsilon) == ("pure", "1", "zcdp", "1")
    assert composition_of(zcdp).total == Fraction(zcdp.rho) == rho_of(Fraction(1), 1e-9).value
