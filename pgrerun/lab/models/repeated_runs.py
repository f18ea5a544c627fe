"""How many repeats of a run show that one of them is off: drawn from recorded runs, one spoilt."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Truths = NDArray[np.bool_]

BY_DIXON, BY_NOISE = "by Dixon's test", "by the known noise"

# Dixon's test at 95 %: the gap beside the outermost value as a share of the range, by the number of
# values. Rorabacher, Analytical Chemistry 63 (1991), table 1; of two values it has nothing to say.
CRITICAL = {3: 0.970, 4: 0.829, 5: 0.710, 6: 0.625, 7: 0.568}


def noticed(
    runs: Array, repeats: int, factor: float, experiments: int, seed: int
) -> dict[str, float]:
    """Share of drawn experiments in which the spoilt run is named: `BY_DIXON` and `BY_NOISE`.

    Each draws so many repeats from `runs` (all positive) and multiplies one by `factor`. Dixon's
    test names the outermost value if its gap is a large enough part of the range. Who knows the
    noise names the one run that lies farther from the median than nineteen of twenty pairs of
    recorded runs lie apart.
    """
    rng = np.random.default_rng([seed, repeats, round(1000 * factor)])
    drawn = rng.choice(runs, (experiments, repeats))
    drawn[:, 0] *= factor  # which one is spoilt makes no difference to the tests
    return {
        BY_DIXON: float(names_first(drawn).mean()),
        BY_NOISE: float(_farther_than_noise(drawn, runs).mean()),
    }


def names_first(drawn: Array) -> Truths:
    """Whether Dixon's test names the first value of each row; CRITICAL has the lengths it knows."""
    repeats = drawn.shape[1]
    if repeats not in CRITICAL:
        return np.zeros(len(drawn), bool)
    ordered, first = np.sort(drawn, axis=1), drawn[:, 0]
    least = CRITICAL[repeats] * (ordered[:, -1] - ordered[:, 0])
    lowest = (first == ordered[:, 0]) & (ordered[:, 1] - first > least)
    highest = (first == ordered[:, -1]) & (first - ordered[:, -2] > least)
    found: Truths = lowest | highest
    return found


def _farther_than_noise(drawn: Array, runs: Array) -> Truths:
    """Whether the first value, and no other, is farther from the median than the noise allows."""
    apart = np.abs(runs[:, None] / runs[None, :] - 1)
    allowed = np.quantile(apart[~np.eye(len(runs), dtype=bool)], 0.95)
    off = np.abs(drawn / np.median(drawn, axis=1, keepdims=True) - 1) > allowed
    found: Truths = off[:, 0] & ~off[:, 1:].any(axis=1)
    return found
