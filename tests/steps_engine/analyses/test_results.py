"""What sets say of an analysis: combined as the rule says, honest where that was measured, silent where it was not."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.formula.api as smf

from schemas.spec.attributes import Categorical
from steps_engine.analyses.honesty import honesty
from steps_engine.analyses.results import columns_of, results_of
from steps_engine.domain.cells import possible_cells
from steps_engine.domain.counting import Counts, count_codes
from steps_engine.evaluation.combining import combine, interval
from steps_engine.methods.planning import make_plan, plan_with_analyses
from steps_engine.methods.run_in_memory import run_plan
from steps_engine.noise import SeededRandomness
from tests.steps_engine.analyses.asking import FLAT, PAIRS, PEOPLE, asking
from tests.tasks.publishing.making import POLL, some_counts

ROWS = 20_000


def people(seed: int = 1):
    """Voting depends on age and region, wages on age."""
    rng = np.random.default_rng(seed)
    region, age = rng.integers(0, 3, ROWS), rng.integers(0, 4, ROWS)
    voted = (rng.random(ROWS) < 0.3 + 0.1 * age - 0.1 * (region == 2)).astype(int)
    wage = np.minimum(rng.integers(0, 4, ROWS) + (age > 2), 3)
    return count_codes(np.stack([voted, region, age, wage], axis=1))


@pytest.fixture(scope="module")
def made():
    asked = (
        ("voted", "age"),
        "voted ~ age + region",
        {"model": "wage ~ C(age)", "where": {"region": ("north", "west")}},
    )
    release = asking(*asked, method=PAIRS, epsilon="2")
    return run_plan(PEOPLE, make_plan(release), people(), SeededRandomness(3))


@pytest.fixture(scope="module")
def results(made):
    return results_of(made.plan, PEOPLE, made.records)


def by_hand(frames, formula, family=None):
    fits = [(smf.logit if family else smf.ols)(formula, frame).fit(disp=0) for frame in frames]
    values, variances = np.array([fit.params for fit in fits]), np.array([fit.bse**2 for fit in fits])
    combined = combine(values, variances, "shared")
    freedom = np.minimum(combined.freedom, np.inf if family else min(fit.df_resid for fit in fits))
    return combined.value, interval(combined.value, combined.variance, freedom)


def numbers(result):
    return np.array([[each.estimate, each.low, each.high] for each in result.estimates]).T


@pytest.mark.whole
def test_a_tables_shares_are_those_of_the_sets_combined(made, results):
    frames = [frame.assign(cell=frame["voted"].astype(str) + frame["age"].astype(str)) for frame in made.frames]
    shares = np.stack([frame["cell"].value_counts(normalize=True).sort_index() for frame in frames])
    rows = np.array([[len(frame)] for frame in frames])
    combined = combine(shares, shares * (1 - shares) / rows, "shared")
    low, high = interval(combined.value, combined.variance, combined.freedom)
    assert numbers(results[0]) == pytest.approx(np.stack([combined.value, low, high]), rel=1e-4)
    assert results[0].estimates[0].name == "voted = no, age = 18"
    assert results[0].achieved_width == pytest.approx(((high - low) / 2).mean(), rel=1e-4)


@pytest.mark.whole
def test_a_logistic_model_is_the_one_that_another_program_fits(made, results):
    frames = [frame.assign(y=(frame["voted"] == "yes").astype(int)) for frame in made.frames]
    value, (low, high) = by_hand(frames, "y ~ age + region", "binomial")
    ours = {each.name: each for each in results[1].estimates}
    theirs = dict(
        zip(["Intercept", "region[T.south]", "region[T.west]", "age"], zip(value, low, high, strict=True), strict=True)
    )
    assert set(theirs) == set(ours)
    for name, found in theirs.items():
        assert (ours[name].estimate, ours[name].low, ours[name].high) == pytest.approx(found, rel=1e-3, abs=1e-4)


def test_a_model_of_some_rows_is_fitted_on_those(made, results):
    frames = [frame[frame["region"] != "south"].astype({"age": str}) for frame in made.frames]
    value, (low, high) = by_hand(frames, "wage ~ C(age)")
    assert numbers(results[2]) == pytest.approx(np.stack([value, low, high]), rel=1e-3)


def test_intervals_hold_what_the_people_say(results):
    truth = people()
    share = np.bincount(truth.codes[:, 0] * 4 + truth.codes[:, 2], truth.count) / ROWS
    _, low, high = numbers(results[0])
    assert ((low <= share) & (share <= high)).mean() >= 0.75
    assert all(each.honest and each.measured for each in results)


def test_rows_that_lack_a_value_are_left_out():
    release = asking("voted ~ age", {"model": "age ~ since"}, method=FLAT | {"sets": {"count": 2}}, domain=POLL, epsilon="3")
    made = run_plan(POLL, make_plan(release), some_counts(POLL, 4000), SeededRandomness(1))
    assert made.frames[0]["age"].isna().any()
    found = results_of(made.plan, POLL, made.records)
    assert all(each.estimates and each.achieved_width for each in found)


def test_what_was_not_measured_has_no_estimate_and_says_that_the_data_do_not_say():
    release = asking(("voted", "age"), method={"decomposition": "cascade", "sets": {"count": 2}})
    made = run_plan(PEOPLE, make_plan(release), people(), SeededRandomness(1))
    (found,) = results_of(made.plan, PEOPLE, made.records)
    assert not found.measured and not found.honest and found.estimates == () and found.achieved_width is None
    assert "The data do not say" in found.why and "voted × age" in found.why


def test_one_set_is_not_honest_about_its_noise():
    plan = make_plan(asking(("voted", "age"), method=FLAT | {"sets": {"count": 1}}))
    honest, why = honesty(plan.analyses[0], plan)
    assert not honest and "one set" in why


def test_sets_that_cannot_be_fitted_say_so_instead_of_failing():
    plan = make_plan(asking("voted ~ age", ("voted", "age"), method=FLAT))
    made = run_plan(PEOPLE, plan, people(), SeededRandomness(1))
    empty = [records.slice(0, 0) for records in made.records]
    for found in results_of(plan, PEOPLE, empty):
        assert found.estimates == () and not found.honest and "too few rows" in found.why


def test_a_coefficient_that_the_sets_do_not_determine_has_no_number():
    domain = POLL  # whoever is not registered never votes: among them voting is separated
    release = asking("voted ~ registered", method=FLAT | {"sets": {"count": 2}}, domain=domain, epsilon="3")
    made = run_plan(domain, make_plan(release), some_counts(domain, 4000), SeededRandomness(1))
    (found,) = results_of(made.plan, domain, made.records)
    assert [each.estimate for each in found.estimates if each.name.startswith("registered")] == [None]


def test_a_cell_that_is_empty_in_every_set_is_not_known_to_be_empty_unless_rules_say_so():
    table = ("voted", "registered", "age")
    release = asking(table, method=FLAT | {"sets": {"count": 3, "budget": "split"}}, domain=POLL, epsilon="90")
    counts = some_counts(POLL, 4000)
    age = counts.codes[:, POLL.index("age")]
    seen = Counts(counts.codes[age != 1], counts.count[age != 1])
    made = run_plan(POLL, make_plan(release), seen, SeededRandomness(1))
    (found,) = results_of(made.plan, POLL, made.records)
    possible = possible_cells(POLL, [POLL.index(name) for name in table])
    value, low, high = (each.reshape(possible.shape) for each in numbers(found))
    assert not possible.all() and (value[..., 1] == 0).all() and (low[..., 1] == 0).all()
    assert (high[~possible] == 0).all() and (high[possible] > 0).all()
    assert (0.0001 < high[..., 1][possible[..., 1]]).all() and (high[..., 1] < 0.001).all()


def test_only_columns_that_are_looked_at_are_needed(made, results):
    assert columns_of(made.plan.analyses) == ("age", "region", "voted", "wage")
    fewer = made.plan.model_copy(update={"analyses": made.plan.analyses[:1]})
    assert columns_of(fewer.analyses) == ("age", "voted")
    assert results_of(fewer, PEOPLE, [records.select(["age", "voted"]) for records in made.records]) == results[:1]


@pytest.mark.whole
def test_an_attribute_of_one_category_does_no_harm():
    one = {"name": "one", "kind": "categorical", "categories": ("only",)}
    domain = PEOPLE.model_copy(update={"attributes": (*PEOPLE.attributes, Categorical.model_validate(one))})
    release = asking(("one", "age"), "wage ~ age + one", domain=domain, method=PAIRS)
    counts = people()
    counts = count_codes(np.repeat(np.column_stack([counts.codes, np.zeros(len(counts.count), int)]), counts.count, axis=0))
    made = run_plan(domain, make_plan(release), counts, SeededRandomness(1))
    table, model = results_of(made.plan, domain, made.records)
    assert len(table.estimates) == 4 and table.honest and model.honest


def test_split_sets_are_not_called_honest_since_each_is_shrunk_by_itself():
    plan = plan_with_analyses(asking(("voted", "age"), method=PAIRS | {"sets": {"count": 4, "budget": "split"}}))
    assert honesty(plan.analyses[0], plan) == (
        False, "Measured, but each set was shrunk by its own noise: ask for shared sets, whose intervals cover."
    )  # fmt: skip


def test_only_methods_whose_intervals_were_measured_to_cover_are_called_honest():
    pairs, flat = (plan_with_analyses(asking(("voted", "age"), method=method)) for method in (PAIRS, FLAT))
    assert honesty(pairs.analyses[0], pairs)[0] and flat.analyses[0].measured
    assert honesty(flat.analyses[0], flat) == (
        False, "Measured, but sets of decomposition flat were not found to cover as they say at every budget."
    )  # fmt: skip
