"""The way of a disk's head: the mean over places that are drawn."""

import numpy as np
import pytest

from pgrerun.lab.models.head_travel import travelled

TRACE = [("catalog", 0), ("data", 0), ("data", 3), ("other", 0), ("tree", 1), ("catalog", 0)]


@pytest.mark.parametrize("place", [0, 200, 500, None])
def test_the_way_is_the_mean_over_all_places(place):
    drawn, rng = [], np.random.default_rng(1)
    for _ in range(20_000):
        at = dict(zip(("data", "other", "together"), rng.uniform(0, 1000, 3)))
        if place is not None:
            at["together"] = place
        stops = [at.get(file, at["together"]) for file, _ in TRACE]
        drawn.append(sum(abs(x - y) for x, y in zip(stops, stops[1:] + stops[:1])))
    expected = np.mean(drawn) + 3  # within a file, which is small beside the disk
    assert travelled(TRACE, {"catalog", "tree"}, place, 1000) == pytest.approx(expected, rel=0.02)
