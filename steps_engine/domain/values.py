"""Numbers and category codes of one attribute: which code a number has, and which numbers a code stands for. All public."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from schemas.spec.attributes import Ranged
from schemas.spec.numbers import NumberBase
from schemas.spec.ranged import multiple, reaching
from schemas.spec.shapes import Above, Weighted

LARGEST = 2.0**53  # whole numbers beyond are not exact
HALVINGS = 40  # until a part of a bin is known to 10⁻¹²
GRID = 256  # values of a category that stand for all of them in its moments


def codes_of_numbers(numbers: np.ndarray, attribute: Ranged) -> np.ndarray:
    """The category code of each number, -1 for one that the attribute does not have."""
    edges, layout = attribute.edge_values, attribute.layout
    bin_ = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, len(edges) - 2)
    codes = np.where((numbers >= edges[0]) & (numbers <= attribute.highest), layout.bin_code[bin_], -1)
    if attribute.spikes:
        near = np.minimum(np.searchsorted(layout.spike, numbers), len(layout.spike) - 1)
        codes = np.where(layout.spike[near] == numbers, layout.spike_code[near], codes)
    return np.where(numbers > attribute.highest, attribute.present - 1, codes) if attribute.is_open else codes


def has_wide_bins(attribute: Ranged) -> bool:
    """Whether some code stands for more than one value."""
    return attribute.step is None or attribute.is_open or bool((attribute.layout.number > 1).any())


def values_of_codes(codes: np.ndarray, attribute: Ranged, uniform: np.ndarray | None) -> np.ndarray:
    """A value of each code, by where a number of [0, 1) falls in the public shape of its bin; the first without a number."""
    layout = attribute.layout
    bin_of = np.zeros(attribute.present, dtype=np.int64)
    bin_of[layout.bin_code] = np.arange(len(layout.bin_code))
    bin_, share = bin_of[codes], np.zeros(len(codes)) if uniform is None else uniform
    if isinstance(attribute, NumberBase) and isinstance(attribute.within, Weighted):
        values = _weighted(bin_, attribute, attribute.within, share)
    elif attribute.step is None:
        values = _anywhere(bin_, attribute, _shaped(bin_, attribute, share))
    else:
        values = multiple(_steps(bin_, attribute, _shaped(bin_, attribute, share)), attribute.step)
    if attribute.spikes:
        values = np.where(np.isin(codes, layout.spike_code), layout.low[codes], values)
    if isinstance(attribute, NumberBase) and attribute.above is not None:
        values = np.where(codes == attribute.present - 1, _beyond(attribute, attribute.above, share), values)
    return values


def values_between(codes: np.ndarray, attribute: Ranged, low: np.ndarray, high: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """A value of each code as above, given that it lies between two numbers of its bin; where it has none there, the nearer."""
    first = _reached(codes, attribute, lambda values: values < low)
    last = _reached(codes, attribute, lambda values: values <= high)
    return np.asarray(np.clip(values_of_codes(codes, attribute, first + uniform * (last - first)), low, high))


def _reached(codes: np.ndarray, attribute: Ranged, holds: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Up to which part of its bin something holds of values, by halving: they rise with their part."""
    least, most = np.zeros(len(codes)), np.ones(len(codes))
    for _ in range(HALVINGS):
        middle = (least + most) / 2
        here = holds(values_of_codes(codes, attribute, middle))
        least, most = np.where(here, middle, least), np.where(here, most, middle)
    return least


def _anywhere(bin_: np.ndarray, attribute: Ranged, share: np.ndarray) -> np.ndarray:
    """Between the edges; never the upper one, and never a spike."""
    low, high = attribute.edge_values[bin_], attribute.edge_values[bin_ + 1]
    values: np.ndarray = np.minimum(low + share * (high - low), np.nextafter(high, low))
    if not attribute.spikes:
        return values
    return np.where(np.isin(values, attribute.layout.spike), np.nextafter(values, high), values)


def _steps(bin_: np.ndarray, attribute: Ranged, share: np.ndarray) -> np.ndarray:
    """One of the multiples in each bin, counted in steps: whoever stands at a spike or behind it moves on by one."""
    number = attribute.layout.number[bin_]
    steps: np.ndarray = attribute.layout.first[bin_] + np.minimum(share * number, number - 1).astype(np.int64)
    for hole, home in zip(attribute.layout.hole, attribute.layout.hole_bin, strict=True):  # a handful, increasing
        steps += (bin_ == home) & (steps >= hole)
    return steps


def _shaped(bin_: np.ndarray, attribute: Ranged, share: np.ndarray) -> np.ndarray:
    """Where in its bin a value stands, from 0 to 1: the inverse of the shape's distribution function."""
    within = attribute.within if isinstance(attribute, NumberBase) else None
    if within == "triangular":
        return np.asarray(1 - np.sqrt(1 - share))
    if within == "geometric":
        low, high = attribute.edge_values[bin_].astype(float), attribute.edge_values[bin_ + 1].astype(float)
        ratio = np.divide(high, low, out=np.full(len(low), 2.0), where=low > 0)
        return np.where(low > 0, (ratio**share - 1) / (ratio - 1), share)
    return share


def _weighted(bin_: np.ndarray, attribute: Ranged, within: Weighted, share: np.ndarray) -> np.ndarray:
    """One of the listed values of each bin, in proportion to their weights."""
    values, weights = np.array(within.weights).T
    ends = np.append(np.searchsorted(values, attribute.edge_values[:-1]), len(values))
    sums = np.append(0.0, np.cumsum(weights))
    low, high = sums[ends[bin_]], sums[ends[bin_ + 1]]
    target = np.minimum(low + share * (high - low), np.nextafter(high, low))
    found: np.ndarray = values[np.searchsorted(sums, target, side="right") - 1]
    return found


def _beyond(attribute: NumberBase, above: Above, share: np.ndarray) -> np.ndarray:
    """Above the bounds, by the inverse of the survival function; to the next multiple where values are some."""
    high, rest = attribute.highest, 1 - share
    if above.mean is not None:
        values = high - _scale(above.mean - high, attribute.is_whole) * np.log(rest)
    else:
        values = high * rest ** (-1 / (above.alpha or np.inf))
    values = np.clip(values, np.nextafter(high, np.inf), LARGEST / 2 if attribute.is_whole else None)
    return values if attribute.step is None else multiple(reaching(values, attribute.step), attribute.step)


def _scale(mean: float, is_whole: bool) -> float:
    """Of an exponential law with this mean, or of one that has it when rounded up to whole numbers: 1/(1 − e^(−1/s))."""
    return float(-1 / np.log1p(-1 / mean)) if is_whole else mean


def moments(attribute: Ranged) -> tuple[np.ndarray, np.ndarray]:
    """Of each category that is not the missing one: its mean, and the squared width of an even bin with its variance."""
    edges = attribute.edge_values
    if attribute.is_plain:
        whole = attribute.is_whole
        return (edges[:-1] + edges[1:] - whole) / 2, np.diff(edges) ** 2 - (1.0 if whole else 0.0)
    codes, shares = np.repeat(np.arange(attribute.present), GRID), np.tile((np.arange(GRID) + 0.5) / GRID, attribute.present)
    values = values_of_codes(codes, attribute, shares).reshape(attribute.present, GRID)
    return values.mean(axis=1), 12 * values.var(axis=1)
