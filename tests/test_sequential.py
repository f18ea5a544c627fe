"""Looks at an experiment: when it may end early, and that its intervals are right nevertheless."""

import numpy as np
import pandas as pd
import pytest
from test_claims import claim

from pgrerun.record import claims, sequential, statistics

FIVE_PERCENT = frozenset({1.05})


@pytest.mark.parametrize(
    "pairs, expected", [(5, (5,)), (7, (7,)), (11, (7, 11)), (21, (7, 21)), (41, (7, 17, 41))]
)
def test_looks_are_planned_and_their_shares_make_up_the_error(pairs, expected):
    assert sequential.looks(pairs) == expected
    assert sum(sequential.share(expected, end) for end in expected) == pytest.approx(1)


def test_the_first_look_spends_what_the_range_of_its_pairs_can_be_sure_of():
    ratios = pd.Series([1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6])
    found = statistics.median(statistics.Sample(ratios, sequential.SPENT))
    assert (found.low, found.high, found.confidence) == (1.0, 1.6, 0.95)
    assert found.method.endswith("corrected for looks")


def test_a_word_changes_at_the_margin_and_at_the_printed_size_with_its_tolerance():
    for printed, sizes in ((2.0, [1.9, 2.1]), (0.5, [1 / 0.55, 1 / 0.45])):
        found = sequential.bounds([claim(claims.Predicate.RATIO, printed)])
        assert sorted(found) == pytest.approx([1.05, *sizes])
    assert sequential.bounds([]) == {1 + claims.MARGIN}


def table(**columns):
    frame = pd.DataFrame({"base": np.full(7, 1.0)} | columns).rename_axis("block").reset_index()
    return frame.melt("block", var_name="variant", value_name="time")


WAVES = np.sin(range(7))
FAST = table(fast=np.full(7, 0.2))
NOISY = table(fast=np.full(7, 0.2), faster=0.19 * np.exp(0.2 * WAVES))


@pytest.mark.parametrize(
    ("seen", "against", "settled"),
    [
        # only what is compared has to be plain
        (NOISY, [], False),
        (NOISY, [{"base"}], True),
        # a look with a block left out goes on
        (FAST, [], True),
        (FAST[FAST["block"] != 3], [], False),
        # no effect is plain once its interval is within the margin
        (table(same=1 + 0.01 * WAVES), [], True),
        (table(same=1 + 0.1 * WAVES), [], False),
    ],
)
def test_an_experiment_is_settled_where_its_words_are_plain(seen, against, settled):
    assert sequential.settled(seen, ["time"], (7, 15), FIVE_PERCENT, *against) == settled


EXPERIMENTS = 1000


@pytest.mark.parametrize("tails", ["lognormal", "heavy", "skewed"])
@pytest.mark.parametrize("effect, pairs", [(1.0, 15), (1.05, 21), (1.06, 11), (2.0, 21)])
def test_intervals_are_right_as_often_as_they_say_wherever_one_stops(effect, pairs, tails):
    """Planted effects, no clock. Stopping where it is plain is what makes naive intervals wrong."""
    rng = np.random.default_rng([pairs, int(100 * effect), len(tails)])
    shape = (EXPERIMENTS, pairs)
    errors = {
        "lognormal": lambda: rng.normal(0, 0.05, shape),
        "heavy": lambda: 0.03 * rng.standard_t(2, shape),
        "skewed": lambda: 0.08 * (rng.exponential(size=shape) - np.log(2)),
    }[tails]()
    planned, right, used = sequential.looks(pairs), 0, []
    for ratios in effect * np.exp(errors):
        for end in planned:
            interval = at_look(ratios[:end], sequential.share(planned, end))
            if end == pairs or sequential.plain(interval, FIVE_PERCENT):
                break
        right += interval.low <= effect <= interval.high
        used.append(end)
    # four standard errors of a share of so many experiments: chance fails one in 30,000
    assert right / EXPERIMENTS > 0.95 - 4 * np.sqrt(0.95 * 0.05 / EXPERIMENTS)
    if effect == 2.0:
        assert np.mean(used) < 1.1 * sequential.FIRST
    if effect == 1.05:  # where a word changes: that is never plain but by error
        assert np.mean(used) > 0.8 * pairs


def at_look(ratios, share):
    """The interval of order statistics, the inner one of the two that `median` combines."""
    low, high = statistics.order_statistics(ratios, 1 - 0.05 * share)
    return statistics.Interval(float(np.median(ratios)), low, high, len(ratios))
