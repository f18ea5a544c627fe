"""What more processors and larger relations do to a query's time: two laws, and where lines cross.

Times go in as (blocks, cases) and an `Interval` comes out. The serial fraction f of a query is what
of it no further executor shortens. By Amdahl's law p executors make it p / (1 + f (p - 1)) times as
fast on the same relation; by Gustafson's they do p - f (p - 1) times the work in the same time on a
relation that grows with them. f is solved for in each block (Karp and Flatt, CACM 33(5), 1990), by
least squares where there are several p, and the median over blocks has the interval. Below 0 it is
more than linear.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pgrerun.record import statistics
from pgrerun.record.statistics import Interval

NEVER = np.inf
_RESAMPLES = 1999


def amdahl(executors: Sequence[int], speed_up: ArrayLike) -> Interval:
    """Serial fraction by Amdahl's law, from speed-ups of shape (blocks, len(executors)).

    `executors` are more than one each; ValueError else.
    """
    p, s = _given(executors, speed_up)
    return statistics.median(_slope(p - 1, p / s - 1))


def gustafson(executors: Sequence[int], scale_up: ArrayLike) -> Interval:
    """Serial fraction by Gustafson's law, from scale-ups of the same shape.

    A scale-up is the time of one executor on its relation over that of p on one p times as large.
    """
    p, s = _given(executors, scale_up)
    return statistics.median(_slope(p - 1, p - p * s))


def lines(sizes: ArrayLike, times: ArrayLike) -> NDArray[np.float64]:
    """(intercept, slope) of time over size by least squares, of the medians of (blocks, sizes).

    Each deviation counts relative to its time, which is what varies alike from size to size.
    """
    middle = np.median(np.asarray(times, float), axis=0)
    slope, intercept = np.polyfit(np.asarray(sizes, float), middle, 1, w=1 / middle)
    return np.array([intercept, slope])


def reckoned(sizes: ArrayLike, times: ArrayLike, size: float) -> float:
    """Seconds at another size, if the medians of (blocks, sizes) follow a straight line."""
    start, each = lines(sizes, times)
    return float(start + each * size)


def crossing(sizes: ArrayLike, ours: ArrayLike, theirs: ArrayLike, seed: int = 0) -> Interval:
    """The size from which ours takes less time than theirs, if both follow straight lines.

    Times have the shape (blocks, sizes), at least two sizes. 0 if ours takes less at any size,
    `NEVER` if its line is nowhere lower. The interval is of resampled blocks.
    """
    a, b = np.asarray(ours, float), np.asarray(theirs, float)
    estimate = _cross(lines(sizes, a), lines(sizes, b))
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(_RESAMPLES):
        drawn = rng.integers(len(a), size=len(a))
        found.append(_cross(lines(sizes, a[drawn]), lines(sizes, b[drawn])))
    # order statistics, not interpolation: infinite sizes must not become nan
    low, high = np.quantile(found, (0.025, 0.975), method="inverted_cdf")
    ends = float(min(low, estimate)), float(max(high, estimate))
    return Interval(estimate, *ends, len(a), method="straight lines, bootstrap of blocks")


def _cross(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> float:
    later, steeper = ours[0] - theirs[0], theirs[1] - ours[1]
    if steeper <= 0:
        return NEVER
    return float(max(later / steeper, 0.0))


def _given(
    executors: Sequence[int], values: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    p, found = np.asarray(executors, float), np.asarray(values, float)
    if found.ndim != 2 or found.shape[1] != len(p) or not (p > 1).all():
        raise ValueError("a column of values for each number of executors above one is needed")
    return p, found


def _slope(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the line through the origin, for each row of y."""
    slope: NDArray[np.float64] = y @ x / (x @ x)
    return slope
