"""How many pairs are elected: a sum over pairs, or over so many that it is taken as an integral."""

from __future__ import annotations

import numpy as np
import pytest

from steps_engine.methods.pairs import division


def test_the_integral_is_the_sum_of_many(monkeypatch: pytest.MonkeyPatch):
    noise = np.linspace(1e-4, 0.5, division.ADDED_UP)
    added_up = division.explained(noise)
    monkeypatch.setattr(division, "ADDED_UP", 0)
    integral = division.explained(noise)
    assert np.allclose(added_up, integral, rtol=1e-6)
    assert abs(int(added_up.argmax()) - int(integral.argmax())) <= 1
    assert not np.allclose(added_up, 1.001 * integral, rtol=1e-6)  # control


def test_half_a_million_pairs_are_divided_at_once():
    assert division.explained(np.linspace(1e-4, 0.5, 499_500)).shape == (499_500,)
