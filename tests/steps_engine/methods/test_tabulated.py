"""Tables from noisy counts: the best linear unbiased estimate, with variances that are true. Against dense least squares over
every number that was published, and over repeated noise.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.accounting.mechanisms import contrast_variance
from steps_engine.answers.table import shares_of
from steps_engine.domain.cells import Space
from steps_engine.inference.contrasts import contrast
from steps_engine.inference.least_squares import variances
from steps_engine.methods.pairs.estimate import one_way_with_errors
from steps_engine.methods.pairs.tables import read_measured
from steps_engine.methods.planning import make_plan
from steps_engine.methods.registry import method_of
from steps_engine.methods.tabulated import Asked, Tabulated
from steps_engine.methods.tree.sanitize import NoisyCounts
from steps_engine.methods.tree.tables import read_tree
from steps_engine.noise import SeededRandomness
from tests.tasks.publishing.making import a_release, some_counts

CLUB = Domain.model_validate(
    {
        "name": "club",
        "population": "town",
        "expected_rows": 3000,
        "attributes": (
            {"name": "member", "kind": "categorical", "categories": ("no", "yes")},
            {"name": "sport", "kind": "categorical", "categories": ("chess", "rowing", "golf")},
            {"name": "age", "kind": "integer", "bounds": (18, 21)},
            {"name": "pays", "kind": "categorical", "categories": ("no", "yes")},
        ),
    }
)
RULED = CLUB.model_copy(
    update={"rules": Domain.model_validate({**CLUB.model_dump(), "rules": ({"never": {"member": "no", "pays": "yes"}},)}).rules}
)
GAMES = {"chess": "board", "rowing": "field", "golf": "field"}
TREE = {"decomposition": "tree", "order": ("member", "sport")}
RHO = {"rho": "0.3", "delta": "1e-9"}
QUESTIONS = [Asked((0,), {}), Asked((2, 0), {}), Asked((1,), {3: (1,)}), Asked((2,), {1: (0, 2)})]
QUESTIONS += [Asked((2,), {}, {2: (1, 0, 0, 1)}), Asked((1, 0), {}, {1: (0, 1, 1)}), Asked((2,), {3: (1,)}, {2: (1, -1, 0, 0)})]
LARGE = [*QUESTIONS, Asked((3, 1), {2: (0, 3)}), Asked((0, 1, 2, 3), {})]


def drawn(domain: Domain, method: dict, seed: int, sets: dict | None = None, **privacy) -> tuple[Plan, dict[str, pa.Table]]:
    release = a_release(domain, {**method, "sets": sets or {"count": 2, "budget": "shared"}}, **privacy)
    plan, counts, source = make_plan(release, SeededRandomness(1)), some_counts(domain, 3000), SeededRandomness(seed)
    does = method_of(plan)
    tables = {"tree": does.build(domain, plan, counts, source)}
    tables["noisy-counts"] = does.sanitize(domain, plan, counts, tables["tree"], source)
    tables["consistent-counts"] = does.correct(domain, plan, tables["tree"], tables["noisy-counts"], source)
    return plan, tables


def tabulated(domain: Domain, plan: Plan, tables: dict[str, pa.Table], asked: Asked) -> Tabulated:
    found = method_of(plan).tabulate(domain, plan, tables, asked)
    assert isinstance(found, Tabulated), found
    return found


def of_tree(domain: Domain, plan: Plan, tables: dict[str, pa.Table], codes: np.ndarray) -> Iterator[tuple]:
    """Of every node: which cells it holds, its noisy count and variance."""
    tree, noisy = read_tree(domain, tables["tree"]), NoisyCounts.from_table(tables["noisy-counts"])
    layers = [np.array([[noisy.total or 0]]), *noisy.layers]
    for depth, (counts, variance) in enumerate(zip(layers, variances(tree, plan), strict=True)):
        for fixed, count, v in zip(tree.branches(depth), counts.mean(axis=0), variance, strict=True):
            if np.isfinite(v):
                yield ((codes == fixed) | (fixed < 0)).all(axis=1).astype(float), count, max(v / plan.measurements, 1e-7)


def of_pairs(domain: Domain, plan: Plan, tables: dict[str, pa.Table], codes: np.ndarray) -> Iterator[tuple]:
    """Of every entry of every contrast: its coefficients on all cells, its noisy number and variance."""
    structure, noisy = read_measured(domain, plan, tables)
    margins, m = structure.margins, plan.measurements
    yield np.ones(len(codes)), margins.total.mean(), max(margins.total_variance / m, 1e-7)
    own = [((j,), margins.contrasts[j], contrast_variance(margins.draws[name,][0], (domain.sizes[j],)))
           for j, name in enumerate(domain.names)]  # fmt: skip
    for of, values, variance in [*own, *zip(structure.tables, noisy, structure.variances, strict=True)]:
        assert structure.shape(of) == tuple(domain.sizes[j] for j in of), "nothing is grouped here"
        units = np.zeros((len(codes), *structure.shape(of)), dtype=np.int64)
        units[(np.arange(len(codes)), *codes[:, list(of)].T)] = 1
        effect = np.stack([contrast(unit, margins.centred).ravel() for unit in units], axis=1)
        yield from zip(effect, values.mean(axis=0).ravel(), itertools.repeat(variance / m))


def least_squares_of(rows: Iterator[tuple], sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Generalised least squares over all cells, then sums of them: values and covariances."""
    design, values, noise = map(np.array, zip(*rows, strict=True))
    precision = design.T @ (design / noise[:, None])
    inverse = np.linalg.pinv(precision, hermitian=True, rcond=1e-13)
    return sums @ inverse @ design.T @ (values / noise), sums @ inverse @ sums.T


def sums_of(asked: Asked, domain: Domain, codes: np.ndarray) -> np.ndarray:
    """A row of ones and noughts over the cells for every combination of classes."""
    inside = np.all([np.isin(codes[:, j], held) for j, held in asked.kept.items()], axis=0) if asked.kept else True
    classes = [asked.classes.get(j, range(domain.sizes[j])) for j in asked.attributes]
    wanted = itertools.product(*(range(max(each) + 1) for each in classes))
    found = np.array([[classes[k][row[j]] for k, j in enumerate(asked.attributes)] for row in codes.tolist()])
    return np.array([(found == each).all(axis=1) & inside for each in wanted], dtype=float)


@pytest.mark.parametrize(
    ("domain", "method", "privacy", "rows_of", "questions"),
    [
        (CLUB, TREE, {}, of_tree, LARGE),
        (RULED, TREE, {"epsilon": "0.4"}, of_tree, LARGE),
        (RULED, TREE, {"total": "invariant"}, of_tree, LARGE),
        (CLUB, TREE, RHO, of_tree, LARGE),
        (CLUB, {"decomposition": "flat"}, {}, of_tree, LARGE),
        (CLUB, {"decomposition": "pairs"}, {}, of_pairs, QUESTIONS),
        (CLUB, {"decomposition": "pairs"}, {"total": "invariant"}, of_pairs, QUESTIONS),
        (CLUB, {"decomposition": "pairs"}, RHO, of_pairs, QUESTIONS),
    ],
    ids=["tree", "rules", "known total", "tree in ρ", "flat", "pairs", "pairs, known total", "pairs in ρ"],
)
@pytest.mark.parametrize("budget", ["shared", "split"])
@pytest.mark.whole
def test_a_table_is_generalised_least_squares_over_everything_that_was_published(
    domain: Domain, method: dict, privacy: dict, rows_of, questions: list[Asked], budget: str
):
    plan, tables = drawn(domain, method, 5, {"count": 2, "budget": budget}, **privacy)
    codes = Space(domain).codes(Space(domain).allowed())
    measured = list(rows_of(domain, plan, tables, codes))
    for asked in questions:
        found = tabulated(domain, plan, tables, asked)
        value, covariance = least_squares_of(iter(measured), sums_of(asked, domain, codes))
        scale = float(np.sqrt(np.diag(covariance).max()))
        assert np.allclose(found.estimate, value, atol=1e-3 * scale), asked
        assert np.allclose(found.variance, np.diag(covariance), atol=1e-5 * scale**2), asked
        assert np.allclose(found.cross, covariance.sum(axis=1), atol=1e-5 * scale**2), asked
        assert np.isclose(found.whole, value.sum(), atol=1e-3 * scale)
        assert np.isclose(found.whole_variance, covariance.sum(), atol=1e-5 * scale**2)


def exact(domain: Domain, asked: Asked) -> np.ndarray:
    counts = some_counts(domain, 3000)
    return sums_of(asked, domain, counts.codes) @ counts.count


@pytest.mark.parametrize(
    ("method", "asked", "privacy"),
    [
        (TREE, Asked((1, 2), {}), {}),
        (TREE, Asked((2,), {3: (1,)}), {}),
        ({"decomposition": "pairs"}, Asked((0, 3), {}), {}),  # which the rule ties together
        ({"decomposition": "pairs"}, Asked((2,), {1: (0, 2)}), RHO),
        ({"decomposition": "cascade"}, Asked((2,), {}, {2: (0, 1, 1, 0)}), {}),
        ({"decomposition": "privbayes"}, Asked((2,), {}), {}),
    ],
    ids=[
        "tree",
        "tree, some rows",
        "pairs under a rule",
        "pairs in ρ, some rows",
        "cascade, in classes",
        "privbayes",
    ],
)
@pytest.mark.whole
def test_intervals_hold_the_truth_as_often_as_they_say(method: dict, asked: Asked, privacy: dict):
    truth, held, shares, narrow, squares = exact(RULED, asked), [], [], [], []
    for seed in range(60):
        found = tabulated(RULED, *drawn(RULED, method, seed, **privacy), asked)
        there, away = found.possible, np.abs(found.estimate - truth)
        assert not truth[~there].any() and not found.estimate[~there].any()
        part = shares_of(found)
        held += (away <= found.half)[there].tolist()
        shares += ((part.low <= truth / truth.sum()) & (truth / truth.sum() <= part.high))[there].tolist()
        narrow += (away <= found.half / 2)[there].tolist()
        squares += (away[there] ** 2 / found.variance[there]).tolist()
    assert 0.92 <= np.mean(held) and 0.92 <= np.mean(shares)
    assert np.mean(narrow) < 0.85, "intervals half as wide are caught"
    assert 0.6 < np.mean(squares) < 1.5, "standard errors are neither too small nor too large"


@pytest.mark.parametrize(
    "method",
    [{"decomposition": name} for name in ("pairs", "cascade", "privbayes", "flat")] + [TREE],
    ids=lambda method: method["decomposition"],
)
@pytest.mark.parametrize("budget", ["shared", "split"])
@pytest.mark.whole
def test_a_page_shows_the_numbers_of_a_table(method: dict, budget: str):
    domain = Domain.model_validate({**RULED.model_dump(), "derived": ({"name": "game", "from": "sport", "by": GAMES},)})
    plan, tables = drawn(domain, method, 3, {"count": 2, "budget": budget})
    does = method_of(plan)
    for i in (1, 2):
        tables[f"synthetic-{i}"] = does.synthesize(domain, plan, tables, i, SeededRandomness(i))
    view = does.view(domain, plan, tables)
    assert sorted(margin.attribute for margin in view.margins) == sorted(RULED.names)
    [derived] = view.derived
    assert derived.labels == ("board", "field") and derived.synthetic.sum() == view.margins[0].synthetic.sum()
    for margin in (*view.margins, derived):
        j, classes = (1, {1: (0, 1, 1)}) if margin is derived else (RULED.index(margin.attribute), {})
        found = tabulated(domain, plan, tables, Asked((j,), {}, classes))
        assert np.allclose(margin.estimate, found.estimate) and np.allclose(margin.half, found.half)
        assert np.allclose(margin.error**2, found.variance)


def test_a_margin_of_pairs_is_better_known_than_by_its_own_table():
    plan, tables = drawn(CLUB, {"decomposition": "pairs"}, 3)
    structure, _ = read_measured(CLUB, plan, tables)
    for j in range(4):
        _, alone = one_way_with_errors(structure.margins, j)
        assert (np.sqrt(tabulated(CLUB, plan, tables, Asked((j,), {})).variance) < 0.9 * alone).all()


def test_what_was_not_measured_is_said():
    plan, tables = drawn(CLUB, {"decomposition": "pairs"}, 1)
    said = method_of(plan).tabulate(CLUB, plan, tables, Asked((0, 1), {2: (0,)}))
    assert said == "not measured: member × sport × age"
    assert method_of(plan).lacking(CLUB, plan, tables, [(0, 1), (0, 1, 2)]) == [(), ("member × sport × age",)]


def test_a_cascade_tells_of_what_one_of_its_trees_counts():
    plan, tables = drawn(CLUB, {"decomposition": "cascade"}, 1, epsilon="0.05")
    does, every = method_of(plan), [of for size in (1, 2, 3, 4) for of in itertools.combinations(range(4), size)]
    lacking = does.lacking(CLUB, plan, tables, every)
    assert not any(lacking[:4]) and lacking[-1] == ("member × sport × age × pays",)
    for of, untold in zip(every, lacking, strict=True):
        found = does.tabulate(CLUB, plan, tables, Asked(of, {}))
        assert found == f"no tree of this release counts {untold[0]}" if untold else isinstance(found, Tabulated)


@pytest.mark.whole
def test_categories_that_were_counted_in_groups_are_told_in_groups():
    """Few rows in many bins: noise outweighs most of them, and neighbours are counted together."""
    wide = CLUB.model_copy(
        update={
            "expected_rows": 300,
            "attributes": (
                *CLUB.attributes[:2],
                Domain.model_validate(
                    {**CLUB.model_dump(), "attributes": ({"name": "age", "kind": "integer", "bounds": (18, 97)},)}
                ).attributes[0],
            ),
        }
    )
    squares, truth = [], None
    for seed in range(30):
        plan, tables = drawn(wide, {"decomposition": "pairs"}, seed, epsilon="0.5")
        found = tabulated(wide, plan, tables, Asked((0, 2), {}))
        group = found.group[1]
        assert group[-1] + 1 < 80 and len(found.estimate) == 2 * (group[-1] + 1)
        truth = np.add.reduceat(
            exact(wide, Asked((0, 2), {})).reshape(2, 80), np.flatnonzero(np.diff(group, prepend=-1)), axis=1
        )
        squares += ((found.estimate - truth.ravel()) ** 2 / found.variance).tolist()
        alone = tabulated(wide, plan, tables, Asked((2,), {}))
        assert len(alone.estimate) == 80, "by itself it was counted category by category"
        middle = int(np.argmax(np.bincount(group) > 1))
        divided = tuple(np.flatnonzero(group == middle)[:1].tolist())
        halves = Asked((0, 2), {}, {2: tuple((group > middle).astype(int).tolist())})
        assert np.allclose(
            tabulated(wide, plan, tables, halves).estimate.reshape(2, 2)[:, 1],
            found.estimate.reshape(2, -1)[:, middle + 1 :].sum(axis=1),
        )
        assert "divides one of them" in method_of(plan).tabulate(wide, plan, tables, Asked((0,), {2: divided}))
        whole = tabulated(wide, plan, tables, Asked((0,), {2: tuple(np.flatnonzero(group == middle).tolist())}))
        assert np.allclose(whole.estimate, found.estimate.reshape(2, -1)[:, middle])
    assert 0.7 < np.mean(squares) < 1.3
