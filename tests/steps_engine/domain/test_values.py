"""Values of categories: each lies in its own, follows its public shape, and is what the domain says it may be."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.spec.domain import Domain
from steps_engine.domain.encoding import decode
from steps_engine.domain.records import codes_of, numbers_in
from steps_engine.domain.values import codes_of_numbers, moments, values_of_codes
from steps_engine.noise import SeededRandomness

MANY = 40_000
GRID = (np.arange(MANY) + 0.5) / MANY


def attribute(kind: str = "numeric", **said):
    said = {"name": "x", "kind": kind, "bounds": (0, 100), **said}
    return Domain.model_validate({"name": "d", "population": "p", "attributes": (said,)}).attributes[0]


def values_in(of, code: int) -> np.ndarray:
    """Of one category, at evenly spread places of its shape."""
    return values_of_codes(np.full(MANY, code), of, GRID)


ATTRIBUTES = {
    "plain": attribute(bins=3),
    "a spike where a bin begins": attribute(bins=4, at=0),
    "spikes inside": attribute(bins=4, at=(0, 30, 31, 100)),
    "whole numbers with spikes": attribute("integer", bins=4, at=(0, 30, 31, 100)),
    "an open end": attribute(bins=2, above={"shape": "exponential", "mean": 130}),
    "an open end of whole numbers": attribute("integer", bins=2, above={"shape": "pareto", "alpha": Decimal("1.5")}),
    "triangular": attribute(bins=4, within="triangular", at=25),
    "geometric": attribute("integer", bins=4, within="geometric"),
    "weights": attribute(bins=2, within={"weights": ((0, 1), (10, 3), (60, 0), (70, 2), (100, 1))}),
    "multiples": attribute(bins=4, multiples_of=Decimal("0.1"), at=(Decimal("0.3"), 25)),
    "multiples to the end": attribute("integer", bins=2, multiples_of=25, at=25, above={"shape": "exponential", "mean": 150}),
    "times": attribute("time", bounds=("06:00", "24:00"), bins=5),
    "days": attribute("date", bounds=("2000-01-01", "2001-12-31"), bins=7),
}
every_attribute = pytest.mark.parametrize("of", ATTRIBUTES.values(), ids=ATTRIBUTES)


@every_attribute
def test_a_value_of_a_category_is_of_that_category(of):
    codes = np.repeat(np.arange(of.present), 500)
    shares = np.tile(np.append(np.linspace(0, 1, 499, endpoint=False), np.nextafter(1, 0)), of.present)
    values = values_of_codes(codes, of, shares)
    assert codes_of_numbers(values, of).tolist() == codes.tolist()
    assert (of.layout.low[codes] <= values).all() and (values <= of.layout.high[codes]).all()


@every_attribute
def test_values_as_published_are_read_as_the_codes_that_they_had(of):
    domain = Domain.model_validate({"name": "d", "population": "p", "attributes": (of,)})
    codes = np.repeat(np.arange(of.present), 50)[:, None]
    records = decode(codes, domain, SeededRandomness(1))
    assert codes_of(records, domain).tolist() == codes.tolist()
    if of.step is not None:
        assert not (numbers_in(records["x"], of) % 1).any() or of.step < 1


def test_a_value_just_beside_a_spike_is_not_the_spike():
    of = ATTRIBUTES["spikes inside"]
    beside = np.array([np.nextafter(30, 0), 30, np.nextafter(30, 100), -1e-9, 100, np.nextafter(100, 200)])
    labels = [of.labels[code] if code >= 0 else None for code in codes_of_numbers(beside, of)]
    assert labels == ["[25, 50) without 30, 31", "30", "[25, 50) without 30, 31", None, "100", None]


def test_whole_numbers_of_a_bin_are_equally_likely_and_no_spike_is_among_them():
    values, times = np.unique(values_in(ATTRIBUTES["whole numbers with spikes"], 2), return_counts=True)
    assert values.tolist() == [n for n in range(25, 50) if n not in (30, 31)]
    assert np.ptp(times) <= 1


def test_multiples_are_the_decimals_that_were_meant():
    values = np.unique(values_in(ATTRIBUTES["multiples"], 0))
    assert values.tolist() == [k / 10 for k in range(250) if k != 3]


@pytest.mark.parametrize(
    ("of", "mean"),
    [
        (attribute(bins=1, above={"shape": "exponential", "mean": 130}), 130.0),
        (attribute("integer", bins=1, above={"shape": "exponential", "mean": 130}), 130.0),
        (attribute(bins=1, above={"shape": "pareto", "alpha": 3}), 150.0),
    ],
)
def test_values_beyond_the_bounds_have_the_mean_that_was_stated(of, mean):
    assert values_in(of, 1).mean() == pytest.approx(mean, rel=3e-3)
    assert moments(of)[0][1] == pytest.approx(mean, rel=0.03)


def test_a_mean_of_another_shape_would_be_noticed():
    of = attribute(bins=1, above={"shape": "pareto", "alpha": Decimal("2.9")})
    assert values_in(of, 1).mean() != pytest.approx(150.0, rel=3e-3)


@pytest.mark.parametrize(
    ("within", "mean"),
    [(None, 55.0), ("triangular", 10 + 90 / 3), ("geometric", 90 / np.log(10))],
    ids=["even", "falling", "log"],
)
def test_a_shape_within_a_bin_has_its_mean(within, mean):
    of = attribute(bounds=(10, 100), bins=1, within=within or "uniform")
    assert values_in(of, 0).mean() == pytest.approx(mean, rel=1e-3)


def test_a_geometric_bin_that_holds_zero_is_even():
    of = attribute(bounds=(-100, 100), bins=2, within="geometric")
    assert values_in(of, 0).mean() == pytest.approx(-50, rel=1e-3) and values_in(of, 1).mean() == pytest.approx(50, rel=1e-3)


def test_listed_values_come_in_proportion_to_their_weights():
    of = ATTRIBUTES["weights"]
    for code, expected in ((0, {0.0: 0.25, 10.0: 0.75}), (1, {70.0: 2 / 3, 100.0: 1 / 3})):
        values, times = np.unique(values_in(of, code), return_counts=True)
        assert dict(zip(values.tolist(), times / MANY, strict=True)) == pytest.approx(expected, abs=1e-3)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_codes_agree_with_a_search_by_hand(data):
    whole = data.draw(st.booleans())
    edges = sorted(data.draw(st.sets(st.integers(-30, 60), min_size=2, max_size=6)))
    spikes = data.draw(st.sets(st.integers(edges[0], edges[-1]), max_size=4))
    widths = np.diff([*edges[:-1], edges[-1] + 1])
    held = np.histogram(sorted(spikes), bins=[*edges[:-1], edges[-1] + 1])[0] if whole else np.zeros(len(widths))
    if whole and (widths - held < 1).any():
        return
    of = attribute(
        "integer" if whole else "numeric",
        bounds=(edges[0], edges[-1]),
        edges=tuple(edges),
        at=tuple(spikes),
        above={"shape": "exponential", "mean": edges[-1] + 5},
    )
    numbers = np.array(data.draw(st.lists(st.integers(edges[0] - 2, edges[-1] + 3), min_size=1, max_size=20)), dtype=float)
    for number, code in zip(numbers.tolist(), codes_of_numbers(numbers, of).tolist(), strict=True):
        if number < edges[0]:
            assert code == -1
        else:
            assert of.layout.low[code] <= number <= of.layout.high[code]
            assert (number in spikes) == (code in of.layout.spike_code)
