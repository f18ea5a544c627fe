"""How many repeats show that one run is off: runs drawn from the recorded ones, one of them spoilt."""

import numpy as np
import pandas as pd

from pgrerun import published
from pgrerun.chapter import Chapter
from pgrerun.chapters.measuring.twins import ONE, OTHER

REPEATS = (2, 3, 4, 5, 7)
SPOILT = (1.1, 1.25, 1.5)  # how far off the spoilt run is
ENOUGH = 0.8  # the share of spoilt runs that should be noticed
# Dixon's test at 95 %: the gap beside the outermost value as a share of the range; by the number of values.
# Rorabacher, Analytical Chemistry 63 (1991), table 1; of two values it has nothing to say.
_DIXON = {3: 0.970, 4: 0.829, 5: 0.710, 6: 0.625, 7: 0.568}
BY_ITSELF, BY_NOISE = "by Dixon's test", "by the known noise"


def noise(chapter: Chapter) -> np.ndarray:
    """Times of all runs that don't differ, each as a multiple of its block's median: slow drift is taken out."""
    time = chapter.table("twins", "time")[[ONE, OTHER]]
    centred = time / time.stack().rolling(6, min_periods=1, center=True).median().unstack()
    return centred.to_numpy().ravel()


def noticed(runs: np.ndarray, repeats: int, factor: float, experiments: int, seed: int) -> dict[str, float]:
    """Share of drawn experiments in which the spoilt run is named: `BY_ITSELF` and `BY_NOISE`.

    One of the repeats is multiplied by `factor`. Dixon's test names the outermost value if its gap is a large
    enough part of the range. Who knows the noise names the one run that lies farther from the median than
    nineteen of twenty pairs of recorded runs lie apart.
    """
    rng = np.random.default_rng([seed, repeats, round(1000 * factor)])
    drawn = rng.choice(runs, (experiments, repeats))
    drawn[:, 0] *= factor  # which one is spoilt makes no difference to the tests
    return {BY_ITSELF: float(_dixon(drawn).mean()), BY_NOISE: float(_by_noise(drawn, runs).mean())}


def _dixon(drawn: np.ndarray) -> np.ndarray:
    """Whether Dixon's test names the first value."""
    repeats = drawn.shape[1]
    if repeats not in _DIXON:
        return np.zeros(len(drawn), bool)
    ordered = np.sort(drawn, axis=1)
    spread = ordered[:, -1] - ordered[:, 0]
    gaps = {0: ordered[:, 1] - ordered[:, 0], repeats - 1: ordered[:, -1] - ordered[:, -2]}
    place = (drawn < drawn[:, :1]).sum(axis=1)
    with np.errstate(invalid="ignore"):
        return sum(((place == end) & (gap / spread > _DIXON[repeats]) for end, gap in gaps.items()), np.zeros(len(drawn), bool))


def _by_noise(drawn: np.ndarray, runs: np.ndarray) -> np.ndarray:
    """Whether the first value, and no other, lies farther from the median than the noise allows."""
    apart = np.abs(runs[:, None] / runs[None, :] - 1)
    allowed = np.quantile(apart[~np.eye(len(runs), dtype=bool)], 0.95)
    off = np.abs(drawn / np.median(drawn, axis=1, keepdims=True) - 1) > allowed
    return off[:, 0] & ~off[:, 1:].any(axis=1)


def table(chapter: Chapter) -> pd.DataFrame:
    """Shares of spoilt runs that are noticed. Columns: spoilt, repeats, rule, share, low, high."""
    runs, experiments, rows = noise(chapter), 20 * chapter.parameters.resamples, []
    for factor in SPOILT:
        for repeats in REPEATS:
            for rule, share in noticed(runs, repeats, factor, experiments, chapter.parameters.seed).items():
                rows.append((f"{100 * (factor - 1):.0f} % off", repeats, rule, share))
    return pd.DataFrame(rows, columns=["spoilt", "repeats", "rule", "share"])


def facts(found: pd.DataFrame) -> dict[str, bool]:
    """The advice to repeat about three times, so that a run that is off shows."""
    said = int(published.cell("measuring_said", "repeats", "value"))
    middle = found[found["spoilt"] == f"{100 * (SPOILT[1] - 1):.0f} % off"].set_index(["rule", "repeats"])["share"]
    return {
        "one repeat fewer can't say which run is off": bool(middle[BY_NOISE, said - 1] < ENOUGH),
        "so many repeats can, once the noise is known": bool(middle[BY_NOISE, said] >= ENOUGH),
        "so many repeats can by themselves": bool(middle[BY_ITSELF, said] >= ENOUGH),
    }
