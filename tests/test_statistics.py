"""Intervals keep what they promise: coverage by simulation, and every degenerate sample."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgrerun.record import statistics
from pgrerun.record.statistics import Interval

SPREAD = math.sqrt(math.log(1 + 0.03**2))  # lognormal with a coefficient of variation of 3 %


def pair(rng, n, effect=1.0, outlier_share=0.0):
    """Times of two variants: 3 % noise each, 10 % drift that both share, some outliers x1.5."""
    drift = np.exp(rng.normal(0, 0.1, n))
    noise = lambda: (
        np.exp(rng.normal(0, SPREAD, n)) * np.where(rng.random(n) < outlier_share, 1.5, 1.0)
    )
    return effect * drift * noise(), drift * noise()


@pytest.mark.parametrize(("n", "outlier_share"), [(7, 0.0), (7, 0.05), (12, 0.0)])
def test_ratio_interval_covers_the_true_ratio(n, outlier_share, monkeypatch):
    monkeypatch.setattr(statistics, "RESAMPLES", 499)
    rng = np.random.default_rng(n)
    trials = 400
    covered = 0
    for _ in range(trials):
        found = statistics.ratio(*pair(rng, n, 1.2, outlier_share))
        covered += found.low <= 1.2 <= found.high
    # 95 % nominal; the standard error of 400 trials is 1 %. A bare bootstrap of medians gets 88 %
    # at n=7.
    assert 0.92 <= covered / trials <= 0.985


@pytest.mark.parametrize(
    ("a", "b", "ends", "enough"),
    [
        ([2, 2.1, 2.2, 1.9], [1] * 4, (1.9, 2.2), False),
        ([2] * 5, [1] * 5, (2, 2), True),
        ([2], [1], (0, math.inf), False),  # one pair knows nothing
        ([3] * 7, [2] * 7, (1.5, 1.5), True),
    ],
)
def test_few_pairs_give_an_interval_but_no_licence_for_a_verdict(a, b, ends, enough):
    found = statistics.ratio(a, b)
    assert ((found.low, found.high), found.enough) == (ends, enough)


@given(st.lists(st.sampled_from([1.0, 1.0, 1.0, 1.01, 2.0, 50.0]), min_size=1, max_size=12))
@settings(max_examples=40)
def test_any_sample_gives_an_ordered_interval(values):
    found = statistics.ratio(values, [1.0] * len(values))
    assert 0 <= found.low <= found.estimate <= found.high and found.n == len(values)
    assert min(values) <= found.estimate <= max(values)


@pytest.mark.parametrize(
    "call",
    [
        lambda: statistics.ratio([], []),
        lambda: statistics.ratio([1, 2], [1]),
        lambda: statistics.share(3, 2),
        lambda: Interval(3.0, 1.0, 2.0, 7),  # an estimate outside of its interval
        # four levels make a law
        lambda: statistics.scalability([1, 1, 2, 2, 4], [10, 11, 19, 20, 35]),
    ],
)
def test_what_can_be_no_statistic_is_refused(call):
    with pytest.raises(ValueError):
        call()


IMPOSSIBLE = [0.0, -2.0, math.nan, math.inf, -math.inf]


@pytest.mark.parametrize("bad", IMPOSSIBLE)
def test_a_ratio_of_what_cannot_be_is_disturbed_and_never_enough(bad):
    a, b = [2.0, 2.2, bad, 1.8, 2.1, 2.0, 1.9], [1.0] * 7
    for found in (statistics.ratio(a, b), statistics.ratio(b, a).inverse()):
        assert found.disturbed and not found.enough and found.n == 0
        assert found.estimate == pytest.approx(2.0) and (found.low, found.high) == (0, math.inf)
    assert statistics.ratio_of_medians(a, b).disturbed
    assert not statistics.equivalent(statistics.ratio(a, b), 0.05)


@pytest.mark.parametrize("bad", IMPOSSIBLE)
def test_without_any_value_that_can_be_there_is_no_estimate(bad):
    found = statistics.ratio([bad], [1.0])
    assert math.isnan(found.estimate) and found.disturbed and not found.enough
    assert found.inverse().disturbed


@pytest.mark.parametrize("bad", IMPOSSIBLE[2:])
def test_a_median_of_what_is_not_finite_is_disturbed(bad):
    found = statistics.median([1.0, 3.0, bad])
    assert found.disturbed and found.estimate == 2 and not found.enough
    assert not statistics.median([-1.0, 0.0, 1.0]).disturbed  # those have no ratio, but a median


@pytest.mark.parametrize("bad", IMPOSSIBLE)
def test_fits_to_what_cannot_be_are_disturbed(bad):
    measured = throughput(0.1, 0.004)
    measured[3] = bad
    found = statistics.scalability(CLIENTS, measured)
    assert all(x.disturbed for x in (found.scale, found.sigma, found.kappa, found.peak))


@pytest.mark.parametrize(
    ("low", "high", "n", "equivalent"),
    [
        (0.97, 1.03, 9, True),
        (0.90, 1.03, 9, False),
        (0.97, 1.03, 4, False),
        (1 / 1.05, 1.05, 9, True),  # the ends belong to it
    ],
)
def test_equivalence_needs_the_whole_interval_and_enough_pairs(low, high, n, equivalent):
    assert statistics.equivalent(Interval(1.0, low, high, n), 0.05) == equivalent


def test_inverse_reads_the_comparison_the_other_way():
    found = Interval(2.0, 1.6, 2.5, 9, method="m")
    assert found.inverse() == Interval(0.5, 0.4, 0.625, 9, method="m")
    assert Interval(2.0, 0.0, math.inf, 1).inverse().high == math.inf


CLIENTS = np.repeat([1, 2, 4, 8, 16, 32], 3)


def throughput(sigma, kappa, seed=0):
    exact = statistics.usl(CLIENTS.astype(float), 1000, sigma, kappa)
    return exact * np.exp(np.random.default_rng(seed).normal(0, SPREAD, CLIENTS.size))


def test_scalability_law_finds_its_parameters_and_its_peak():
    found = statistics.scalability(CLIENTS, throughput(0.1, 0.004))
    for part, planted in (("sigma", 0.1), ("kappa", 0.004), ("peak", 15)):  # sqrt(0.9 / 0.004)
        assert getattr(found, part).low <= planted <= getattr(found, part).high, part
    assert found.scale.estimate == pytest.approx(1000, rel=0.1)
    assert found.sigma.n == 6
    endless = statistics.scalability(CLIENTS, throughput(0.2, 0.0), resamples=60)
    assert endless.peak.high == math.inf and endless.kappa.low < 1e-6


def test_scalability_bears_a_repeat_that_nearly_stood_still():
    measured = throughput(0.1, 0.004)
    measured[4] *= 0.005
    found = statistics.scalability(CLIENTS, measured, resamples=60)
    assert (
        found.sigma.low <= 0.1 <= found.sigma.high and found.kappa.low <= 0.004 <= found.kappa.high
    )
    assert found.scale.high < 2000


def test_two_independent_runs_are_compared_by_their_medians():
    rng = np.random.default_rng(10)
    a, b = 1.3 * np.exp(rng.normal(0, SPREAD, 9)), np.exp(rng.normal(0, SPREAD, 12))
    found = statistics.ratio_of_medians(a, b)
    assert found.low < 1.3 < found.high and found.n == 9 and found.low > 1.1
    assert statistics.ratio_of_medians([2, 2], [1, 1]).high == 2
    assert not statistics.ratio_of_medians([2], [1, 1]).enough


@pytest.mark.parametrize(
    ("many", "of", "low", "high"),
    [(5, 100, 0.0215, 0.1118), (0, 20, 0, 0.1611), (20, 20, 0.8389, 1)],
)
def test_a_share_has_wilsons_interval(many, of, low, high):
    found = statistics.share(many, of)
    assert found.estimate == many / of
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-4)
