"""Expected widths against simulations on balanced data: noise drawn as the plan says, estimates from noisy tables alone."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import reduce
from itertools import combinations

import numpy as np
import pytest
from scipy.special import expit

from schemas.errors import SpecError
from schemas.plan import Plan
from schemas.spec.domain import Domain
from steps_engine.accounting.mechanisms import GAUSSIAN, contrast_noise, joint_noise
from steps_engine.accounting.plans import allowance_of
from steps_engine.analyses.measured import Measured
from steps_engine.analyses.predict import analysis_plans, reach, variances_of
from steps_engine.evaluation.combining import combine, interval
from steps_engine.inference.contrasts import contrast, contrast_shape, residual
from steps_engine.methods.planning import make_plan, plan_with_analyses
from steps_engine.noise import SeededRandomness
from tasks.verify.analyses import _is_measured
from tests.steps_engine.analyses.asking import FLAT, PAIRS, PEOPLE, asking, people

REPEATS = 600
MEASURES = {"ε": {"epsilon": "0.15"}, "ρ": {"rho": "0.0008", "delta": "1e-9"}}  # noise as large as sampling, and larger
either_measure = pytest.mark.parametrize("privacy", MEASURES.values(), ids=MEASURES)


class Noisy:
    """Noisy tables of people as they are expected, by interactions: what a plan of pairs measures."""

    def __init__(self, domain: Domain, plan: Plan, randomness: SeededRandomness, rng: np.random.Generator) -> None:
        chance = reduce(np.multiply.outer, [each.expected_shares for each in domain.attributes])
        self.people = rng.multinomial(domain.expected_rows, chance.ravel()).reshape(domain.sizes)
        self.domain, self.total = domain, self.people.sum()
        self.parts = {}
        for draw in plan.draws:
            tables = {of: self._counts(of) for of in draw.tables}
            together = None
            if draw.is_joint:
                copies = max(_entries(table, centred=False) for table in tables.values())
                together = iter(joint_noise(draw, copies, randomness).T)
            for of, table in tables.items():
                centred = draw.mechanism == GAUSSIAN.name
                entries = _entries(table, centred)
                drawn = next(together) if together else contrast_noise(draw, table.shape).draw(entries, randomness)
                self.parts[frozenset(of)] = self._part(of, table, drawn, centred)

    def _counts(self, of: tuple[str, ...]) -> np.ndarray:
        places = [self.domain.index(name) for name in of]
        return self.people.sum(axis=tuple(j for j in range(len(self.domain.sizes)) if j not in places))

    def _part(self, of: tuple[str, ...], table: np.ndarray, drawn: np.ndarray, centred: bool) -> np.ndarray:
        exact = contrast(table, centred)
        noisy = exact + drawn.reshape(exact.shape)
        return self._spread(residual(noisy, table.shape, centred), [self.domain.index(name) for name in of])

    def _spread(self, table: np.ndarray, places: list[int]) -> np.ndarray:
        """Over all attributes, each having its own axis."""
        shape = [size if j in places else 1 for j, size in enumerate(self.domain.sizes)]
        return table.reshape(shape)

    def table(self, *names: str) -> np.ndarray:
        places = [self.domain.index(name) for name in names]
        shape = [size if j in places else 1 for j, size in enumerate(self.domain.sizes)]
        found = np.full(shape, self.total / np.prod(shape))
        for size in range(1, len(names) + 1):
            for part in combinations(names, size):
                others = np.prod([s for j, s in enumerate(shape) if self.domain.names[j] not in part])
                found = found + self.parts[frozenset(part)] / others
        order = sorted(range(len(names)), key=lambda i: places[i])
        return found.reshape([self.domain.sizes[j] for j in sorted(places)]).transpose(np.argsort(order))


def _entries(table: np.ndarray, centred: bool) -> int:
    return int(np.prod(contrast_shape(table.shape, centred)))


def simulated(domain: Domain, plan: Plan, estimate) -> np.ndarray:
    randomness, rng = SeededRandomness(5), np.random.default_rng(5)
    return np.array([estimate(Noisy(domain, plan, randomness, rng)) for _ in range(REPEATS)])


@either_measure
@pytest.mark.whole
def test_a_cells_share_varies_as_predicted(privacy):
    release = asking(("voted", "age"), **privacy)
    plan = plan_with_analyses(release)
    sampling, noise = variances_of(plan.analyses[0], Measured(PEOPLE, plan))
    found = simulated(PEOPLE, plan, lambda noisy: (noisy.table("voted", "age") / noisy.total).ravel())
    assert found.var(axis=0).mean() == pytest.approx(sampling["cell"] + noise["cell"], rel=0.08)
    assert noise["cell"] > sampling["cell"] / 2  # noise is what is tested here


def ordinary(noisy: Noisy) -> np.ndarray:
    """Least squares of wage on region and age from noisy tables: Ĝ⁻¹ĝ."""
    wage, age = np.arange(1, 8, 2), np.arange(18, 22)
    by_region, by_age, both = noisy.table("region", "wage"), noisy.table("age", "wage"), noisy.table("region", "age")
    region = both.sum(axis=1)
    gram = np.diag([both.sum(), *region[1:], (both @ age**2).sum()])
    gram[0, 1:3] = gram[1:3, 0] = region[1:]
    gram[0, 3] = gram[3, 0] = (both @ age).sum()
    gram[1:3, 3] = gram[3, 1:3] = (both @ age)[1:]
    return np.linalg.solve(gram, [(by_region @ wage).sum(), *(by_region @ wage)[1:], age @ by_age @ wage])


@either_measure
@pytest.mark.whole
def test_a_linear_models_coefficients_vary_as_predicted(privacy):
    plan = plan_with_analyses(asking("wage ~ region + age", **privacy))
    sampling, noise = variances_of(plan.analyses[0], Measured(PEOPLE, plan))
    found = simulated(PEOPLE, plan, ordinary).var(axis=0)
    names = ["Intercept", "region[T.south]", "region[T.west]", "age"]
    # Middles of bins are what tables know of wages: the spread within bins is left out of the sampling here.
    expected = np.array([sampling[name] * 5 / (5 + 4 / 12) + noise[name] for name in names])
    assert found == pytest.approx(expected, rel=0.2)
    assert noise["age"] > sampling["age"] / 2


def logit(noisy: Noisy) -> np.ndarray:
    """Logistic regression of voted on region and age: the score's tables with the outcome, the predictors' joint table."""
    age = np.arange(18, 22)
    by_region, by_age, both = noisy.table("region", "voted"), noisy.table("age", "voted"), noisy.table("region", "age")
    x = np.array([[1, r == 1, r == 2, a] for r in range(3) for a in age], float)
    wanted = np.array([by_region[:, 1].sum(), *by_region[1:, 1], age @ by_age[:, 1]])
    beta = np.zeros(4)
    for _ in range(12):
        p = expit(x @ beta)
        beta = beta + np.linalg.solve(x.T @ ((both.ravel() * p * (1 - p))[:, None] * x), wanted - x.T @ (both.ravel() * p))
    return beta


@either_measure
@pytest.mark.whole
def test_a_logistic_models_coefficients_vary_as_predicted(privacy):
    plan = plan_with_analyses(asking("voted ~ region + age", **privacy))
    sampling, noise = variances_of(plan.analyses[0], Measured(PEOPLE, plan))
    found = simulated(PEOPLE, plan, logit).var(axis=0)
    names = ["Intercept", "region[T.south]", "region[T.west]", "age"]
    assert found == pytest.approx([sampling[name] + noise[name] for name in names], rel=0.2)


@either_measure
@pytest.mark.whole
def test_coefficients_of_rare_categories_vary_as_predicted_where_shares_are_expected(privacy):
    domain = people(voted={"yes": "0.2"}, region={"south": "0.1"})
    privacy = {name: str(4 * Decimal(value)) if name != "delta" else value for name, value in privacy.items()}
    release = asking("voted ~ region + age", domain=domain, **privacy)
    plan = plan_with_analyses(release)
    sampling, noise = variances_of(plan.analyses[0], Measured(domain, plan))
    found = simulated(domain, plan, logit).var(axis=0)
    names = ["Intercept", "region[T.south]", "region[T.west]", "age"]
    assert found == pytest.approx([sampling[name] + noise[name] for name in names], rel=0.2)
    even = plan_with_analyses(release.model_copy(update={"domain": PEOPLE})).analyses[0]
    assert noise["region[T.south]"] > sampling["region[T.south]"] / 3
    assert plan.analyses[0].coefficients["region[T.south]"] > 2 * even.coefficients["region[T.south]"]  # told anew


def test_what_is_expected_of_shares_changes_nothing_that_is_drawn():
    even, rare = (plan_with_analyses(asking("voted ~ region", domain=each)) for each in (PEOPLE, people(voted={"yes": "0.1"})))
    assert even.draws == rare.draws and even.hash != rare.hash


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("share", ["1e-9", "1e-12", "1e-300"])
@pytest.mark.parametrize(
    ("analysis", "of"),
    [
        ("wage ~ voted", "voted"),
        ("voted ~ age", "voted"),
        ({"model": "wage ~ age", "where": {"voted": "yes"}}, "rows where voted"),
    ],
    ids=["a predictor", "the outcome", "a condition"],
)
def test_of_a_share_of_nearly_nothing_no_width_is_told(analysis, of, share):
    """Whichever category is rare, the first or a later one; it is refused in words, without warnings of numpy."""
    rarest = ("yes",) if of.startswith("rows") else ("no", "yes")
    for rare in rarest:
        with pytest.raises(SpecError, match=rf"a share of {float(share):.3g} of all rows is all there is of {of}"):
            plan_with_analyses(asking(analysis, domain=people(voted={rare: share})))


def test_the_rarer_the_wider_down_to_the_least_share():
    """Two rare categories that a model tells apart together are as rare as their product."""
    plan = plan_with_analyses(asking("wage ~ voted", "wage ~ voted * region", method=FLAT))
    widths = []
    for share in ("0.1", "1e-3", "1e-5", "1e-7"):
        sampling, _ = variances_of(plan.analyses[0], Measured(people(voted={"no": share}), plan))
        widths.append(sampling["voted[T.yes]"])
    assert widths == sorted(widths) and widths[-1] / widths[0] == pytest.approx(0.09 / 1e-7, rel=0.01)
    both = people(voted={"yes": "1e-5"}, region={"west": "1e-5"})
    with pytest.raises(SpecError, match="1e-10 of all rows is all there is of voted × region"):
        variances_of(plan.analyses[1], Measured(both, plan))


def test_a_model_within_some_rows_varies_as_predicted():
    """Counts of all cells, each with noise of its own; least squares of wage on age among those who live in the north."""
    release = asking({"model": "wage ~ voted * age", "where": {"region": "north"}}, method=FLAT, epsilon="0.3")
    plan = plan_with_analyses(release)
    sampling, noise = variances_of(plan.analyses[0], Measured(PEOPLE, plan))
    rng, cells = np.random.default_rng(3), int(np.prod(PEOPLE.sizes))
    x = np.array([[1, v, a, v * a] for v in range(2) for a in range(18, 22)], float)
    wage, found = np.arange(1, 8, 2), []
    for _ in range(REPEATS):
        people = rng.multinomial(20_000, np.full(cells, 1 / cells)) + rng.normal(0, plan.layers[-1].expected_error, cells)
        north = people.reshape(PEOPLE.sizes)[:, 0].reshape(-1, 4)
        found.append(np.linalg.solve(x.T @ (north.sum(axis=1)[:, None] * x), x.T @ (north @ wage)))
    expected = [sampling[name] * 5 / (5 + 4 / 12) + noise[name] for name in sampling]
    assert list(sampling) == ["Intercept", "voted[T.yes]", "age", "voted[T.yes]:age"]
    assert np.var(found, axis=0) == pytest.approx(expected, rel=0.2)


@pytest.mark.parametrize(("sets", "budget"), [(5, "split"), (5, "shared"), (2, "shared")])
def test_the_expected_interval_is_that_of_the_combining_rule(sets, budget):
    sampling, noise = 2.0, 3.0
    values = np.random.default_rng(1).normal(size=(sets, 1))
    values = (values - values.mean()) / values.std(ddof=1) * noise**0.5  # whose variance between sets is the noise's
    combined = combine(values, np.full((sets, 1), sampling), budget)
    low, high = interval(combined.value, combined.variance, combined.freedom)
    assert reach(sampling, noise, sets, budget) == pytest.approx(((high - low) / 2).item())


def test_one_set_is_told_the_width_that_would_be_honest():
    assert reach(1.0, 0.0, 1, "shared") < reach(1.0, 3.0, 1, "shared")


def test_more_budget_makes_narrower_intervals_and_more_of_it_for_a_table_too():
    narrow, wide = (
        plan_with_analyses(asking(("voted", "age"), epsilon=epsilon)).analyses[0].expected_width for epsilon in ("4", "1")
    )
    assert narrow < wide


def test_what_is_measured_is_told_by_method():
    asked = ("voted", "age"), ("voted", "age", "region"), "voted ~ age * region"
    measured = {
        name: [each.measured for each in plan_with_analyses(asking(*asked, method=method)).analyses]
        for name, method in {
            "pairs": PAIRS,
            "elected": PAIRS | {"pairs": 2},
            "flat": FLAT,
            "tree": {"decomposition": "tree", "order": ("voted",)},
            "stopping": {"decomposition": "tree", "elect": {"layers": 2, "utility": "uneven", "stop": True}},
            "cascade": {"decomposition": "cascade"},
        }.items()
    }
    all_, none = [True, True, True], [False, False, False]
    assert measured["flat"] == measured["tree"] == measured["pairs"] == measured["elected"] == all_
    assert measured["cascade"] == measured["stopping"] == none


def test_the_share_is_what_the_tables_parts_cost():
    plan = plan_with_analyses(asking(("voted", "age")))
    parts = {("voted",), ("age",), ("voted", "age")}
    assert plan.analyses[0].share == sum(draw.cost for draw in plan.draws if parts.intersection(draw.tables))


def test_without_expected_rows_nothing_is_told_of_widths():
    release = asking(("voted", "age"), domain=PEOPLE.model_copy(update={"expected_rows": None}))
    (analysis,) = analysis_plans(release, make_plan(release))
    assert analysis.measured and analysis.expected_width is None


def test_analyses_cost_nothing_and_change_no_draw():
    asked, plain = make_plan(asking(("voted", "age"), method=FLAT)), make_plan(asking(method=FLAT))
    assert asked.draws == plain.draws and asked.cost == plain.cost
    assert (asked.format, plain.format) == (3, 2) and "analyses" not in plain.document
    assert asked.spec_hash != plain.spec_hash and asked.hash != plain.hash


@pytest.mark.parametrize(("privacy", "counted"), [({"epsilon": "1"}, True), ({"rho": "0.01", "delta": "1e-9"}, False)])
def test_counts_of_a_larger_table_tell_of_all_its_parts(privacy, counted):
    """Under ε, with the noise of the cells that are summed; under ρ its interaction alone is measured. The verifier agrees."""
    three, release = ("voted", "region", "age"), asking(**privacy)
    plan = plan_with_analyses(release)
    draw = allowance_of(release).interaction("three", Fraction(1, 100), of=three, tree="three", set_=None)
    alone = Measured(PEOPLE, plan.model_copy(update={"draws": (draw,)}))
    with_pairs = Measured(PEOPLE, plan.model_copy(update={"draws": (*plan.draws, draw)}))
    for measured, holds in ((Measured(PEOPLE, plan), False), (alone, counted), (with_pairs, True)):
        assert measured.holds(three) == _is_measured(three, measured.plan, PEOPLE) == holds
    if counted:
        assert alone.variance(three) == pytest.approx(contrast_noise(draw, (2, 3, 4)).variance)
        assert alone.variance(("voted",)) == pytest.approx(12 * alone.variance(three))
