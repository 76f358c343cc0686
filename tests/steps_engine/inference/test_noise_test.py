"""The test of the noise: its chances are those of the laws, it hardly ever raises a false alarm, and it sees what is missing."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from steps_engine.accounting.mechanisms import GAUSSIAN, TWO_SIDED_GEOMETRIC, CountNoise
from steps_engine.inference.noise_test import LEVEL, Contrasts, Laws, chances, noise_test
from steps_engine.noise import SeededRandomness

LAPLACE = CountNoise(TWO_SIDED_GEOMETRIC, Fraction(18))
NORMAL = CountNoise(GAUSSIAN, Fraction(82))
LAWS: dict[str, Laws] = {
    "one": ((LAPLACE, 1),),
    "a difference": ((LAPLACE, 2),),
    "a family": ((LAPLACE, 1), (CountNoise(TWO_SIDED_GEOMETRIC, Fraction(3)), 7)),
    "hardly any": ((CountNoise(TWO_SIDED_GEOMETRIC, Fraction(1, 3)), 2),),
    "Gaussian": ((NORMAL, 5),),
    "large": ((CountNoise(TWO_SIDED_GEOMETRIC, Fraction(10**5)), 3),),
    "many": ((LAPLACE, 4000),),
}


def sums(laws: Laws, size: int, seed: int = 1) -> np.ndarray:
    source = SeededRandomness(seed)
    return sum(noise.draw(size * times, source).reshape(times, size).sum(axis=0) for noise, times in laws)


@pytest.mark.parametrize("name", LAWS)
def test_chances_are_those_of_the_law(name):
    size = 2_000 if name == "many" else 40_000
    found = np.abs(sums(LAWS[name], size))
    for quantile in (0.02, 0.3, 0.7, 0.98):
        at = np.quantile(found, quantile, method="inverted_cdf").astype(np.int64)
        small, large = chances(np.array([at]), LAWS[name])
        for chance, truth in ((small[0], (found <= at).mean()), (large[0], (found >= at).mean())):
            assert abs(chance - truth) < 5 * np.sqrt(chance * (1 - chance) / size) + 1e-9


def test_one_noise_has_its_textbook_chances():
    q = np.exp(-1 / 18)
    small, large = chances(np.array([0, 1, 40]), LAWS["one"])
    assert np.allclose(small, [(1 - q) / (1 + q), 1 - 2 * q**2 / (1 + q), 1 - 2 * q**41 / (1 + q)], rtol=1e-9)
    assert np.allclose(large, [1, 2 * q / (1 + q), 2 * q**40 / (1 + q)], rtol=1e-9)


def test_chances_of_sound_noise_are_no_smaller_than_even():
    """P(chance ≤ u) ≤ u: what Fisher's test needs."""
    for which in chances(np.abs(sums(LAWS["a family"], 50_000)), LAWS["a family"]):
        for u in (0.01, 0.1, 0.5):
            assert (which <= u).mean() < u + 5 * np.sqrt(u / 50_000)


def alarms_in(values: np.ndarray, laws: Laws) -> tuple[str, ...]:
    return noise_test([{"pairs": [Contrasts(values, laws, ("x",))]}], ["x"]).problems


@pytest.mark.parametrize("name", ["a difference", "a family", "Gaussian", "hardly any"])
def test_sound_noise_passes_and_other_noise_does_not(name):
    laws = LAWS[name]
    for seed in range(60):
        assert alarms_in(sums(laws, 30, seed), laws) == ()
    missing, more = alarms_in(np.zeros(30, dtype=np.int64), laws), alarms_in(4 * sums(laws, 300), laws)
    if name == "hardly any":  # noise that is nearly always nought is hardly missed
        assert missing == ()
    else:
        assert len(missing) == 1 and "noise is missing" in missing[0]
    assert len(more) == 1 and "larger" in more[0]


def test_half_the_noise_is_seen_where_there_are_enough_contrasts_and_twice_as_much():
    half = ((CountNoise(TWO_SIDED_GEOMETRIC, Fraction(9)), 2),)
    assert alarms_in(sums(half, 400), LAWS["a difference"]) and alarms_in(sums(LAWS["a difference"], 400), half)


def test_the_level_holds_where_it_can_be_seen(monkeypatch):
    """At a level of one in five, about one in five at most."""
    from steps_engine.inference import noise_test as module

    monkeypatch.setattr(module, "LEVEL", 0.2)
    alarms = sum(bool(alarms_in(sums(LAWS["a difference"], 20, seed), LAWS["a difference"])) for seed in range(400))
    assert 20 < alarms < 80 + 5 * 8
    assert LEVEL <= 1e-9


def test_what_was_measured_once_is_named():
    found = noise_test([{"pairs": [Contrasts(np.array([3]), LAWS["one"], ("x",))], "none": []}, {}], ["x", "y"])
    assert (found.contrasts, found.untested) == (1, ("y",))
    assert noise_test([], ["x"]).untested == ("x",) and noise_test([], ["x"]).contrasts == 0


@pytest.mark.parametrize("scale", [18, 20_000], ids=["exact", "coarse"])
def test_a_part_without_values_hides_no_missing_noise(scale):
    """Beside it as without it, in a group and all together; noise that is there passes in the same company."""
    laws = ((CountNoise(TWO_SIDED_GEOMETRIC, Fraction(scale)), 2),)
    nothing = Contrasts(np.zeros(0, dtype=np.int64), laws, ("y",))
    for values, told in ((np.zeros(500, dtype=np.int64), 2), (sums(laws, 500), 0)):
        part = Contrasts(values, laws, ("x",))
        assert len(alarms_in(values, laws)) == told // 2
        found = noise_test([{"pairs": [part, nothing], "others": [nothing]}], ["x", "y"])
        assert len(found.problems) == told and all("noise is missing" in each for each in found.problems)
        assert found.untested == ("y",)


def test_a_chance_that_is_no_number_is_no_pass(monkeypatch):
    from steps_engine.inference import noise_test as module

    monkeypatch.setattr(module, "_log_moments", lambda named: np.full(len(module.POWERS), np.nan))
    assert any("noise is missing" in each for each in alarms_in(sums(LAWS["one"], 30), LAWS["one"]))
