"""SPECKS: 0 for equal data, 1 for disjoint data, and the textbook's number in between."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ks_2samp

from schemas.errors import SpecError
from steps_engine.evaluation.classifiers import resolve
from steps_engine.evaluation.coded import Coded, resample, row_keys, stack
from steps_engine.evaluation.measures.specks import specks
from steps_engine.noise import SeededRandomness
from tests.steps_engine.evaluation.tables import coded, dependent, shuffled, voters

CLASSIFIERS = ["logistic", "logistic_interactions", "cart"]


def measure(original, synthetic, classifier="auto", **options):
    return specks(original, [synthetic], SeededRandomness(5), classifier, **({"null": 0} | options))


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_identical_data_have_distance_exactly_0(classifier):
    table = dependent(500, 1)
    assert measure(table, table, classifier).ks == 0.0


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_the_same_records_three_times_over_have_distance_exactly_0(classifier):
    table = dependent(500, 1)
    assert measure(table, coded(np.tile(table.codes, (3, 1)), table.sizes), classifier).ks == 0.0


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_an_attribute_without_common_category_gives_1(classifier):
    table = dependent(500, 1)
    other = table.codes.copy()
    low, high = table.codes.copy(), other
    low[:, 2], high[:, 2] = low[:, 2] % 2, 2 + high[:, 2] % 2
    found = measure(coded(low, table.sizes), coded(high, table.sizes), classifier)
    assert found.ks == pytest.approx(1.0, abs=1e-12)
    assert found.separated


def test_the_distance_is_that_of_scikit_learn_on_the_stacked_records():
    from sklearn.linear_model import LogisticRegression

    from steps_engine.evaluation.logistic import design

    _, original = voters(4000, 1)
    synthetic = shuffled(original, 2)
    x = design(np.concatenate([original.codes, synthetic.codes]), original.sizes, interactions=False)[:, 1:]
    y = np.repeat([0, 1], 4000)
    # Unequal sizes of the classes and only half the synthetic records, or main effects would see equal margins.
    keep = np.r_[0:4000, 4000:6000]
    model = LogisticRegression(C=np.inf, tol=1e-8, max_iter=10_000).fit(x[keep], y[keep])
    score = model.predict_proba(x[keep])[:, 1].round(12)
    expected = ks_2samp(score[:4000], score[4000:]).statistic
    half = Coded(original.names, original.sizes, synthetic.codes[:2000])
    assert measure(original, half, "logistic").ks == pytest.approx(expected, abs=0.002)


@pytest.mark.slow
def test_with_interactions_too_on_the_whole_voter_file():
    from sklearn.linear_model import LogisticRegression

    from steps_engine.evaluation.logistic import design

    _, original = voters(44_821, 1)
    synthetic = resample(original, original.total, SeededRandomness(9))
    everyone = np.concatenate([original.codes, np.repeat(synthetic.codes, synthetic.counts, axis=0)])
    x = design(everyone, original.sizes, interactions=True)[:, 1:]
    y = np.repeat([0, 1], original.total)
    score = LogisticRegression(C=np.inf, tol=1e-6, max_iter=10_000).fit(x, y).predict_proba(x)[:, 1].round(12)
    expected = ks_2samp(score[y == 0], score[y == 1], method="asymp").statistic
    assert measure(original, synthetic, "logistic_interactions").ks == pytest.approx(expected, abs=0.002)


def test_weights_mean_repeated_records():
    table, other = dependent(300, 1), dependent(300, 2, strength=0.3)
    weight = np.arange(300) % 4
    repeated = Coded(other.names, other.sizes, np.repeat(other.codes, weight, axis=0))
    weighted = Coded(other.names, other.sizes, other.codes, weight)
    assert measure(table, weighted).ks == pytest.approx(measure(table, repeated).ks, abs=1e-12)


def test_a_second_sample_looks_like_the_null_and_broken_dependence_does_not():
    table = dependent(4000, 1)
    honest = measure(table, dependent(4000, 2), null=10)
    broken = measure(table, shuffled(table, 3), null=10)
    assert honest.ratio < 2.5 and honest.pmse_ratio < 4
    assert broken.ratio > 4 and broken.pmse_ratio > 20
    assert measure(table, shuffled(table, 3), "logistic").ks == 0.0  # main effects see margins only


def test_cross_fitting_takes_the_optimism_out_and_keeps_real_differences():
    (_, table), (_, other) = voters(2000, 1), voters(2000, 2)
    assert measure(table, other, cross_fit=5).ks < measure(table, other).ks / 2
    chain = dependent(600, 1)
    assert measure(chain, shuffled(chain, 3), cross_fit=5).ks > 0.1


def test_pmse_is_the_mean_squared_distance_from_the_share():
    table, other = coded([[0]] * 60 + [[1]] * 40, (2,)), coded([[0]] * 20 + [[1]] * 80, (2,))
    found = measure(table, other, "logistic")
    scores = np.repeat([20 / 80, 80 / 120], [80, 120])
    assert found.pmse == pytest.approx(((scores - 0.5) ** 2).mean(), rel=1e-4)
    assert found.ks == pytest.approx(0.4)


def test_the_distance_is_the_mean_over_sets():
    table, sets = dependent(500, 1), [dependent(500, 2), shuffled(dependent(500, 3), 4)]
    found = specks(table, sets, SeededRandomness(1), null=0)
    assert found.ks_of_sets == tuple(measure(table, one).ks for one in sets)
    assert found.ks == pytest.approx(np.mean(found.ks_of_sets))
    assert sum(found.histogram["original"]) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("name", ["RandomForestClassifier", "KNeighborsClassifier", "GaussianNB"])
@pytest.mark.whole
def test_any_scikit_learn_classifier_can_be_named(name):
    table = dependent(400, 1)
    found = measure(table, shuffled(table, 2), name)
    assert 0 < found.ks <= 1


@pytest.mark.parametrize("name", ["os.system", "sklearn.tree.DecisionTreeClassifier", "LinearSVC", "nothing"])
def test_other_names_are_refused_and_nothing_is_imported(name):
    table = dependent(50, 1)
    with pytest.raises(SpecError, match="no classifier"):
        measure(table, table, name)


def test_a_classifier_that_needs_arguments_is_refused_clearly():
    table = dependent(50, 1)
    with pytest.raises(SpecError, match="cannot be fitted here"):
        measure(table, table, "VotingClassifier")


def test_too_many_columns_are_refused_and_auto_finds_what_fits():
    with pytest.raises(SpecError, match="at most 4,000"):
        resolve("logistic_interactions", (100, 100))
    assert resolve("auto", (100, 100)) == "logistic"
    assert resolve("auto", (2, 2)) == "logistic_interactions"
    assert resolve("auto", (100_000,)) == "cart"


def test_a_constant_attribute_does_no_harm():
    table = dependent(300, 1)
    constant = np.column_stack([table.codes, np.zeros(300, int)])
    sizes = (*table.sizes, 3)
    assert measure(coded(constant, sizes), coded(constant, sizes)).ks == 0.0
    assert measure(coded(constant, sizes), coded(constant, sizes), null=3).null_ks > 0


def test_one_attribute_with_one_value_has_no_ratio():
    table = coded([[0]] * 20, (2,))
    found = measure(table, table, null=3)
    assert (found.ks, found.null_ks, found.ratio, found.pmse_ratio) == (0.0, 0.0, None, None)


@pytest.mark.parametrize(
    ("synthetics", "message"),
    [
        ([], "no synthetic set"),
        ([coded(np.zeros((0, 2)), (2, 2))], "set 1 has no rows"),
        ([coded([[0, 0]], (2, 2)), coded([[0, 0, 0]], (2, 2, 2))], "set 2 does not have"),
        ([coded([[0, 0]], (2, 3))], "attributes and categories"),
    ],
)
def test_tables_that_cannot_be_compared_are_refused(synthetics, message):
    with pytest.raises(SpecError, match=message):
        specks(coded([[0, 1]], (2, 2)), synthetics, SeededRandomness(1))


def test_an_empty_original_is_refused():
    with pytest.raises(SpecError, match="original has no rows"):
        measure(coded(np.zeros((0, 1)), (2,)), coded([[0]], (2,)))


@pytest.mark.parametrize("codes", [[[0, 2]], [[-1, 0]]])
def test_codes_outside_the_domain_are_refused_without_telling_them(codes):
    with pytest.raises(SpecError, match="outside the domain") as caught:
        coded(codes, (2, 2))
    assert "2" not in str(caught.value) and "-1" not in str(caught.value)


@pytest.mark.parametrize("weight", [[0.5, 0.5], [1, -1], [1]])
def test_weights_that_count_no_records_are_refused(weight):
    with pytest.raises(SpecError, match="whole number"):
        coded([[0], [1]], (2,), weight=weight)


def test_more_folds_than_records_are_refused():
    with pytest.raises(SpecError, match="folds"):
        measure(coded([[0], [1]], (2,)), coded([[0], [1]], (2,)), cross_fit=5)


def test_a_table_shows_only_its_shape():
    assert repr(dependent(9, 1)) == "Coded(4 attributes)"


def test_rows_are_told_apart_even_when_the_domain_outgrows_64_bits():
    codes = np.random.default_rng(1).integers(0, 3, (500, 60))
    codes[250:] = codes[:250]
    keys = row_keys(codes, (3,) * 60)
    assert len(np.unique(keys)) == len(np.unique(codes, axis=0)) == 250
    assert (keys[:250] == keys[250:]).all()


def test_stacking_counts_like_a_dictionary():
    first, second = dependent(200, 1), dependent(100, 2)
    rows = stack(first, second)
    for table, counts in ((first, rows.original), (second, rows.synthetic)):
        tally: dict = {}
        for row in map(tuple, table.codes.tolist()):
            tally[row] = tally.get(row, 0) + 1
        assert {tuple(r): c for r, c in zip(rows.codes.tolist(), counts, strict=True) if c} == tally


def test_a_bootstrap_has_the_size_asked_for_and_only_rows_of_the_table():
    table = coded([[0], [1], [2]], (3,), weight=[5, 0, 1])
    drawn = resample(table, 10_000, SeededRandomness(1))
    assert drawn.total == 10_000 and drawn.counts[1] == 0
    assert drawn.counts[0] / 10_000 == pytest.approx(5 / 6, abs=0.02)
