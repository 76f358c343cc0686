"""What double precision takes from a score or adds to it: the bounds of PRIVACY.md against exact arithmetic, up to the cap."""

from __future__ import annotations

import itertools
import subprocess
import sys
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import SpecError
from schemas.spec.attributes import MOST_CATEGORIES
from schemas.spec.method import method_spec
from steps_engine import laws
from steps_engine.domain.cells import Space
from steps_engine.domain.counting import Counts
from steps_engine.methods.cascade.growth import _rows_for_growing, elect_order, mean_dependence
from steps_engine.methods.choosing import candidates
from steps_engine.methods.planning import make_plan
from steps_engine.methods.privbayes.network import elect_network
from steps_engine.methods.tree.election import AIC, BIC, UNEVEN, UTILITIES, _gaps, _groupings, _with_stop
from steps_engine.methods.tree.growth import Growth
from steps_engine.methods.tree.structure import build_tree
from steps_engine.noise import GRID, SeededRandomness
from steps_engine.scores import ERROR, MOST_ROWS, dependence, log_likelihood, mean_of
from tests.steps_engine.shapes import domain, release


def exact_dependence(table: np.ndarray) -> Fraction:
    whole = table.astype(object)
    n, rows, columns = int(whole.sum()), whole.sum(axis=1), whole.sum(axis=0)
    cells = itertools.product(range(table.shape[0]), range(table.shape[1]))
    return Fraction(sum(abs(n * int(whole[z, x]) - int(rows[z]) * int(columns[x])) for z, x in cells), 2 * max(n, 1))


def table_of(rows: int, shape: tuple[int, int], seed: int, evenness: float) -> np.ndarray:
    """A table with so many rows, from nearly even to a few huge cells, dependence along a diagonal."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(shape[0] * shape[1], evenness)).reshape(shape) + 3 * np.eye(*shape) * rng.random()
    table = np.floor(shares / shares.sum() * rows)
    table[0, 0] += rows - table.sum()
    return table


def formula_in_floats(table: np.ndarray) -> float:
    z, x = table.sum(axis=1, keepdims=True), table.sum(axis=0, keepdims=True)
    return float(np.abs(table - z * x / table.sum()).sum() / 2)


# --- dependence

ROWS = (1, 7, 1000, 2**26 - 1, 2**26, 2**26 + 1, 10**9 + 7, MOST_ROWS - 1, MOST_ROWS)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("shape", [(2, 2), (7, 3), (40, 60)])
@pytest.mark.parametrize("evenness", [0.02, 1, 100])
def test_dependence_is_rounded_no_more_than_half_the_grid_up_to_the_cap(rows, shape, evenness):
    for seed in range(3):
        table = table_of(rows, shape, seed, evenness)
        error = abs(Fraction(float(dependence(table))) - exact_dependence(table))
        assert error <= (GRID / 2 if rows > 2**26 else Fraction(rows, 2**53)) * Fraction(1 + 2**-20)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, MOST_ROWS // 6), min_size=6, max_size=6))
def test_dependence_is_exact_enough_on_any_table_near_the_cap(counts):
    table = np.array(counts, dtype=float).reshape(2, 3)
    assert abs(Fraction(float(dependence(table))) - exact_dependence(table)) <= GRID / 2


def test_control_the_formula_in_floats_passes_the_grid():
    table = table_of(10**11 + 1, (40, 60), 1, 1.0)
    assert abs(Fraction(formula_in_floats(table)) - exact_dependence(table)) > GRID


def test_nodes_of_one_table_are_scored_one_by_one_whatever_arithmetic_the_largest_needs():
    tables = np.stack([table_of(rows, (3, 4), 2, 1.0) for rows in (10, 10**5, 2**30)])
    assert dependence(tables).tolist()[:2] == [float(dependence(table)) for table in tables[:2]]
    assert dependence(np.zeros((2, 3, 4))).tolist() == [0, 0] and dependence(np.zeros((0, 3, 4))).tolist() == []


def test_a_mean_of_dependences_stays_within_the_grid_however_many_they_are():
    rng = np.random.default_rng(3)
    tables = [table_of(MOST_ROWS - int(k), (2, 2), int(k), 0.3) for k in rng.integers(0, 1000, 300)]
    pairs, exact = np.zeros((301, 301)), [exact_dependence(table) for table in tables]
    pairs[0, 1:] = [float(dependence(table)) for table in tables]
    placed = mean_dependence(pairs, [0], list(range(1, 301)))[0]
    assert abs(Fraction(float(placed)) - sum(exact) / 300) <= GRID * 7 / 8
    assert mean_of(np.array([[1e16, 1.0, 1.0, -1e16]]), 2).tolist() == [1.0]


# --- unevenness, stopping, groups


@pytest.mark.parametrize("categories", [2, 7, MOST_CATEGORIES + 1])
@pytest.mark.parametrize("rows", [MOST_ROWS, MOST_ROWS - 1, 10**6 + 3])
def test_unevenness_is_rounded_once(rows, categories):
    histogram = np.random.default_rng(categories).multinomial(
        rows, np.random.default_rng(1).dirichlet(np.full(categories, 0.1))
    )
    exact = Fraction(sum(abs(categories * int(n) - rows) for n in histogram), 2 * categories)
    computed = UNEVEN.score(histogram[None].astype(float), np.array([categories]), None)[0]
    assert abs(Fraction(float(computed)) - exact) <= UNEVEN.error == ERROR


def test_no_price_of_a_split_is_too_large_to_be_taken_off():
    """At ε = 10^−7 the noise of a thousand categories would misplace 2·10^10 rows: the price is cut at the cap."""
    of = domain(1000, 1000)
    elect = {"layers": 1, "utility": "uneven", "stop": True, "share": Fraction(1, 2)}
    plan = make_plan(release(of, method_spec(decomposition="tree", elect=elect), "0.0000001"))
    assert laws.mean_size(max(d.scale for d in plan.draws if d.kind == "count")) * 1000 / 2 > 2 * MOST_ROWS
    scores, eligible = np.full((1, 2), 12.25), np.ones((1, 2), dtype=bool)
    scores, eligible = _with_stop(Growth.from_root(Space(of)), plan, 0, scores, eligible)
    assert scores.tolist() == [[12.25 - MOST_ROWS, 12.25 - MOST_ROWS, 0.0]]
    assert UNEVEN.candidate_error("attributes", stop=True) <= GRID


@pytest.mark.parametrize("size", [2.0**31 - 1, 10.0**6, 30.0])
def test_the_gap_of_two_means_is_exact_enough_for_any_grouping(size):
    importance = np.random.default_rng(5).random(9) * size
    labels = _groupings(9, 2)
    computed = _gaps(importance, labels == 0, labels == 1)
    for row, gap in zip(labels[::7], computed[::7], strict=True):
        means = [sum(Fraction(float(s)) for s in importance[row == g]) / int((row == g).sum()) for g in (0, 1)]
        assert abs(Fraction(float(gap)) - (means[0] - means[1])) <= GRID * 5 / 8


def test_every_utility_of_ours_stays_within_the_grid_in_every_election():
    for utility, what in itertools.product(UTILITIES.values(), ("attributes", "groups")):
        assert utility.candidate_error(what, stop=utility.in_rows and what == "attributes") <= GRID


# --- likelihood

DEEP = Context(prec=60)


def exact_g(n: int) -> Decimal:
    """log n! − n log n + n: by the factorial below 200, by Stirling's series beyond, where it is good to 30 digits."""
    if n < 200:
        logs = DEEP.multiply(n, DEEP.ln(n)) if n else Decimal(0)
        factorial = DEEP.ln(Decimal(int(np.prod(np.arange(1, n + 1, dtype=object)))))
        return DEEP.add(DEEP.subtract(factorial, logs), n)
    x, two_pi = Decimal(n), Decimal("6.283185307179586476925286766559005768394338798750211641949889")
    bernoulli = ((12, 1), (-360, 3), (1260, 5), (-1680, 7), (1188, 9))
    series = [DEEP.divide(1, DEEP.multiply(c, DEEP.power(x, p))) for c, p in bernoulli]
    series.append(DEEP.divide(-691, DEEP.multiply(360_360, DEEP.power(x, 11))))
    total = DEEP.divide(DEEP.ln(DEEP.multiply(two_pi, x)), 2)
    for term in series:
        total = DEEP.add(total, term)
    return total


def exact_log_likelihood(histogram: list[int]) -> Decimal:
    total = exact_g(sum(histogram))
    for n in histogram:
        total = DEEP.subtract(total, exact_g(n))
    return total


def error_of(histogram: list[int]) -> Decimal:
    computed = Decimal(float(log_likelihood(np.array([histogram], dtype=float))[0]))
    return abs(DEEP.subtract(computed, exact_log_likelihood(histogram)))


def test_the_likelihood_of_every_single_small_count_and_of_huge_ones_keeps_its_bound():
    for n in (*range(300), 10**6 + 1, 2**31, 2**40 + 3, 10**15, 2**52):
        assert error_of([n, n]) <= Decimal(3 * 2.0**-42), n


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(st.integers(0, 100), st.integers(0, 2**45)), min_size=1, max_size=60))
def test_the_likelihood_of_any_histogram_keeps_its_bound(histogram):
    assert error_of(histogram) <= Decimal((len(histogram) + 1) * 2.0**-42)


@pytest.mark.parametrize("counts", [[1], [63, 64], [1, 2, 3, 1000], [2**36]])
def test_a_likelihood_of_the_most_categories_is_within_what_its_utility_declares(counts):
    categories = MOST_CATEGORIES + 1
    histogram = np.resize(np.array(counts, dtype=float), categories)
    exact, times = exact_g(int(histogram.sum())), np.unique(histogram, return_counts=True)
    for n, number in zip(*times, strict=True):
        exact = DEEP.subtract(exact, DEEP.multiply(int(number), exact_g(int(n))))
    computed = AIC.score(histogram[None], np.array([categories]), None)[0]
    wanted = DEEP.subtract(DEEP.multiply(2, exact), 2 * categories)
    assert abs(DEEP.subtract(Decimal(float(computed)), wanted)) <= Decimal(float(AIC.error))
    assert AIC.error == BIC.error == ERROR and 2 * (categories + 1) * 2.0**-42 + 2.0**-30 < float(ERROR)


# --- the cap

BEYOND = 2 * MOST_ROWS


def plans_that_elect_by_rows(of):
    uneven = method_spec(decomposition="tree", elect={"layers": 1, "utility": "uneven"})
    return (lambda: make_plan(release(of, method_spec(decomposition="cascade"))),
            lambda: make_plan(release(of, method_spec(decomposition="privbayes"))),
            lambda: make_plan(release(of, uneven)))  # fmt: skip


@pytest.mark.parametrize("which", range(3))
def test_a_plan_for_more_rows_than_scores_are_exact_for_is_refused(which):
    assert plans_that_elect_by_rows(domain(2, 2, expected_rows=MOST_ROWS))[which]().draws
    with pytest.raises(SpecError, match="expected_rows: 4,294,967,296 is more than"):
        plans_that_elect_by_rows(domain(2, 2, expected_rows=BEYOND))[which]()


def test_what_elects_nothing_or_by_likelihood_takes_any_number_of_rows():
    of = domain(2, 2, expected_rows=10**12)
    for method in (method_spec(decomposition="flat"), method_spec(decomposition="tree", elect={"layers": 1})):
        assert make_plan(release(of, method)).draws
    assert make_plan(release(domain(2, expected_rows=10**12), method_spec(decomposition="privbayes"))).draws
    assert {c.spec.decomposition: c.predicted_error for c in candidates(release(of, method_spec()))}["cascade"] == 1


def test_an_election_among_more_rows_ends_with_an_error_that_names_no_number_of_them():
    of, many = domain(2, 2, 2), Counts(np.array([[0, 0, 0], [1, 1, 1]]), np.array([MOST_ROWS, 4711]))
    uneven = make_plan(release(of, method_spec(decomposition="tree", elect={"layers": 1, "utility": "uneven"})))
    cascade = make_plan(release(of, method_spec(decomposition="cascade", order="elected")))
    privbayes = make_plan(release(of, method_spec(decomposition="privbayes")))
    for run in (
        lambda: build_tree(of, uneven, many, SeededRandomness(1)),
        lambda: elect_order(of, cascade, many, SeededRandomness(1)),
        lambda: elect_network(of, privbayes, many, SeededRandomness(1)),
    ):
        with pytest.raises(ValueError, match="more rows than the 2,147,483,648") as refused:
            run()
        assert "4711" not in str(refused.value) and "2147488359" not in str(refused.value).replace(",", "")


def test_the_rows_that_splits_are_weighed_against_never_pass_the_cap():
    of = domain(2, 2)
    plan = make_plan(release(of, method_spec(decomposition="cascade"), "0.000000001"))
    drawn = [_rows_for_growing(of, plan, Counts(np.zeros((1, 2), int), np.array([1])), SeededRandomness(i)) for i in range(40)]
    assert max(drawn) == MOST_ROWS and min(drawn) == 1


# --- exp


def test_the_exp_of_this_numpy_is_as_good_as_elections_need():
    laws.must_have_a_good_exp()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda right: lambda x: right(x) * (1 + 2.0**-40),
        lambda right: lambda x: right(x.astype(np.float32)).astype(float),
        lambda right: lambda x: np.where(x < -700, 1e-3, right(x)),
        lambda right: lambda x: np.where(x < -1e15, np.nan, right(x)),
        lambda right: lambda x: right(x) + (2.0**-40 if x.size >= 8 else 0),  # long arrays take another way than short ones
        lambda right: lambda x: right(x) + (2.0**-40 if x.size < 8 else 0),
    ],
)
def test_control_a_wrong_exp_is_found(wrong, monkeypatch):
    monkeypatch.setattr(np, "exp", wrong(np.exp))
    with pytest.raises(ImportError, match="exp in this NumPy is off"):
        laws.must_have_a_good_exp()


def test_noise_cannot_be_imported_with_a_wrong_exp():
    program = "import numpy as np; e = np.exp; np.exp = lambda x: e(x) * 1.0001\nimport steps_engine.noise"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode and "exp in this NumPy is off" in done.stderr
