"""Serial fractions and crossings, on times that follow the laws and on such that don't."""

import numpy as np
import pytest

from pgrerun.record import scaling


@pytest.mark.parametrize("fraction", [0.0, 0.1, 1.0])
def test_a_fraction_that_was_put_in_comes_out(fraction):
    p = np.array([2, 4, 8])
    amdahl = np.tile(p / (1 + fraction * (p - 1)), (7, 1))
    gustafson = np.tile((p - fraction * (p - 1)) / p, (7, 1))
    assert scaling.amdahl(p, amdahl).estimate == pytest.approx(fraction)
    assert scaling.gustafson(p, gustafson).estimate == pytest.approx(fraction)


def test_more_than_linear_is_below_nothing():
    assert scaling.amdahl([2], np.full((5, 1), 2.5)).estimate < 0


def test_an_interval_holds_what_varies():
    speed_up = np.array([[1.2], [1.5], [1.4], [1.3], [1.6], [1.45]])
    found = scaling.amdahl([2], speed_up)
    assert found.low < found.estimate < found.high and found.n == 6


@pytest.mark.parametrize("executors, shape", [([1], (5, 1)), ([2, 4], (5, 1)), ([2], (5,))])
def test_values_that_fit_no_law_are_refused(executors, shape):
    with pytest.raises(ValueError):
        scaling.amdahl(executors, np.ones(shape))


SIZES = [1e4, 1e5, 1e6]


def times(start: float, each: float, noise: float = 0.0) -> np.ndarray:
    exact = np.tile(start + each * np.array(SIZES), (7, 1))
    return exact * (1 + noise * np.random.default_rng(1).standard_normal(exact.shape))


def test_lines_cross_where_they_were_put():
    found = scaling.crossing(SIZES, times(0.5, 1e-7), times(0.0, 6e-7))
    assert found.estimate == pytest.approx(1e6)
    disturbed = scaling.crossing(SIZES, times(0.5, 1e-7, 0.05), times(0.0, 6e-7, 0.05))
    assert disturbed.low < 1e6 < disturbed.high


def test_what_starts_later_and_climbs_as_steeply_never_catches_up():
    assert scaling.crossing(SIZES, times(0.5, 7e-7), times(0.0, 6e-7)).estimate == scaling.NEVER


def test_what_starts_earlier_and_climbs_less_is_always_ahead():
    assert scaling.crossing(SIZES, times(0.0, 1e-7), times(0.5, 6e-7)).estimate == 0
