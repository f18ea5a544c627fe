"""How sure a number is: intervals, the noise floor, equivalence, two fitted laws.

Nothing here knows PostgreSQL, a run or a claim: arrays go in, an `Interval` comes out.
`runs` compares two records with these intervals, `claims` turns them into verdicts, `narrate`
into sentences.

Ratios are the currency of the book, since absolute times don't survive forty years. Variants are
measured in pairs (see `experiment`), the ratio is taken inside each pair, and the median of
these ratios is reported, so that one disturbed pair moves nothing.

Why `ratio` widens its bootstrap interval: a resampled median can only be one of the values
measured. With 7 pairs the bootstrap of a median (BCa or percentile, they agree) therefore stops
at the second smallest and the second largest ratio and covers the true ratio in 88 % of
experiments instead of 95 % (simulated: lognormal times, coefficient of variation 3 %), which
would turn one A/A comparison in eight into a false alarm. The interval of Hettmansperger and
Sheather ("Confidence intervals based on interpolated order statistics", 1986) rests on the
binomial distribution alone and covers 94-96 % from 6 pairs on. Each end is the outer one of the
two.

A `Sample` from an experiment that could end early carries the share of the error that belongs to
the look it ended at: its interval gets that share, so that it is right as often as it says wherever
the experiment ended (see `sequential`). Arithmetic with samples keeps the least share of them.

A measured value that can't be (not finite; or zero or negative, where a ratio is taken) stops
nothing: what rests on it is an interval without ends and with `n` 0, whose method is "disturbed",
so that it is never `enough` for a verdict.
"""

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, stats

Array = NDArray[np.float64]

ENOUGH = 5
"""Pairs below which an interval is shown, but no verdict is given."""

CONFIDENCE = 0.95
RESAMPLES = 4999
EXACT = "exact"
SLOWED = "disk slowed"
DISTURBED = "disturbed"
READINGS = "ends of readings"


class TooFew(ValueError):
    """Nothing can be said, as there are no numbers."""


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval.

    `n` counts what was resampled or fitted: pairs, values, or points. It is 0 where values can't
    be, and the estimate, from the others, is NaN if there are none.
    `method` says in words how the interval came about; "exact" for a fact that has no error.
    """

    estimate: float
    low: float
    high: float
    n: int
    confidence: float = CONFIDENCE
    method: str = ""

    def __post_init__(self) -> None:
        if self.n == 0 and np.isnan(self.estimate):
            return
        if not self.low <= self.estimate <= self.high:
            raise ValueError(f"{self.estimate} is outside its interval [{self.low}, {self.high}]")

    @property
    def exact(self) -> bool:
        return self.method == EXACT or self.method.startswith(f"{EXACT}, ")

    @property
    def disk(self) -> str:
        """On which disk it was measured, in words; "" for the machine's own (see `on_disk`)."""
        _, found, rest = self.method.partition(f", {SLOWED}")
        told = rest.replace("/s of base", "/s of relations' pages")  # base is a folder
        return f"{SLOWED}{told}" if found else ""

    @property
    def disturbed(self) -> bool:
        """Whether values that can't be left nothing to judge by."""
        return self.method == DISTURBED

    @property
    def enough(self) -> bool:
        """Whether a verdict may rest on it: what was counted, or at least five pairs."""
        return self.exact or self.method == READINGS or self.n >= ENOUGH

    def inverse(self) -> "Interval":
        """The same comparison read the other way round (b/a for a/b)."""
        if self.low < 0:
            raise ValueError("only a positive interval has an inverse")
        estimate, low, high = (
            np.inf if x == 0 else 1 / x for x in (self.estimate, self.high, self.low)
        )
        return replace(self, estimate=estimate, low=low, high=high)

    def times(self, factor: float) -> "Interval":
        """The same estimate in another unit, or against another base; `factor` is positive."""
        estimate, low, high = (factor * x for x in (self.estimate, self.low, self.high))
        return replace(self, estimate=estimate, low=low, high=high)


@dataclass(frozen=True)
class Sample:
    """Measured values by block, of any unit, with the share of an interval's error they may have.

    `values` is indexed by block. Arithmetic pairs samples by block, leaves out blocks that one of
    them lacks, and keeps the least share and the disks of both.
    """

    values: "pd.Series[float]"
    share: float = 1.0
    disk: str = ""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        return np.asarray(self.values, dtype=float)

    def combined(self, other: "Sample | float", how: Callable[[Any, Any], Any]) -> "Sample":
        """`how` of each block's two values, or of each value and a number."""
        if not isinstance(other, Sample):
            return Sample(how(self.values, float(other)), self.share, self.disk)
        left, right = self.values.align(other.values, join="inner")
        if len(left) == 0:
            raise ValueError("the two samples have no block in common")
        disks = sorted({self.disk, other.disk} - {""})
        return Sample(how(left, right), min(self.share, other.share), " and ".join(disks))


def nothing() -> Interval:
    """What is known where nothing could be measured: no estimate, and never `enough`."""
    return Interval(np.nan, -np.inf, np.inf, 0, method=DISTURBED)


def exact(value: float) -> Interval:
    """A fact as an interval of no width, for predicates that compare intervals."""
    return Interval(float(value), float(value), float(value), 1, 1.0, EXACT)


def read_off(value: float, low: float, high: float) -> Interval:
    """A number that what was counted leaves open between two ends, which lie around `value`."""
    return exact(value) if low == high else Interval(value, low, high, 0, 1.0, READINGS)


def on_disk(found: Interval, words: str) -> Interval:
    """The same interval, marked as measured on the disk of these words ("disk slowed to ...")."""
    if not words or found.disturbed:
        return found
    return replace(found, method=f"{found.method}, {words}")


def _values(x: ArrayLike, name: str) -> Array:
    array = np.asarray(x, dtype=float)
    if array.ndim != 1 or array.size == 0:
        raise TooFew(f"{name}: a non-empty list of numbers is needed")
    return array


def _pairs(a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
    a, b = _values(a, "a"), _values(b, "b")
    if a.size != b.size:
        raise ValueError(f"pairs are needed, not {a.size} values against {b.size}")
    return a, b


def _possible(x: Array) -> NDArray[np.bool_]:
    """Which values a ratio can be made of."""
    return np.isfinite(x) & (x > 0)


def _disturbed(possible: Array, low: float = 0.0) -> Interval:
    """What is left when some values can't be: at most the median of those that can."""
    estimate = float(np.median(possible)) if possible.size else np.nan
    return Interval(estimate, low, np.inf, 0, method=DISTURBED)


def order_statistics(x: Array, confidence: float) -> tuple[float, float]:
    """Interpolated order-statistic interval of a median (Hettmansperger & Sheather 1986).

    Where the whole range of so few values, whose coverage is 1 - 2^(1-n), is no surer than
    `confidence` (up to 5 values at 95 %), it is that range: there scipy fails or reads past it.
    """
    if 1 - 2.0 ** (1 - x.size) < confidence + 1e-9:
        return float(x.min()), float(x.max())
    low, high = stats.mstats.median_cihs(x, alpha=1 - confidence)
    return float(low), float(high)


def _bootstrap(
    samples: tuple[Array, ...], statistic: Callable[..., Any], seed: int, confidence: float
) -> tuple[float, float, str]:
    """Ends and name of a BCa bootstrap, or of a percentile one where BCa has no answer."""
    for method in ("BCa", "percentile"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # degenerate data: seen in the result, and handled
            interval = stats.bootstrap(
                samples,
                statistic,
                n_resamples=RESAMPLES,
                confidence_level=confidence,
                method=method,
                rng=seed,
                vectorized=True,
            ).confidence_interval
        if np.isfinite([interval.low, interval.high]).all():
            return float(interval.low), float(interval.high), f"{method} bootstrap"
    raise ArithmeticError("the bootstrap gave no interval")


def _share(*given: ArrayLike) -> float:
    """The share of the error that an interval of what is given may have."""
    return min((x.share for x in given if isinstance(x, Sample)), default=1.0)


def median(x: ArrayLike, *, seed: int = 0) -> Interval:
    """Median of `x` (same unit as `x`), the wider of a bootstrap and an order-statistic interval.

    A single value has no interval: both ends are infinite. If a value isn't finite, the interval
    is disturbed. ValueError without values.
    """
    values = _values(x, "x")
    finite = np.isfinite(values)
    if not finite.all():
        return _disturbed(values[finite], -np.inf)
    return _median(values, seed, _share(x))


def _median(x: Array, seed: int, share: float) -> Interval:
    """The median of finite values, with that share of the error."""
    centre = float(np.median(x))
    corrected = "" if share == 1 else ", corrected for looks"
    if x.size == 1:
        return Interval(centre, -np.inf, np.inf, 1, method=f"none: a single value{corrected}")
    if np.ptp(x) == 0:
        method = f"none needed: all values equal{corrected}"
        return Interval(centre, centre, centre, x.size, method=method)
    confidence = 1 - (1 - CONFIDENCE) * share
    low, high, method = _bootstrap((x,), np.median, seed, confidence)
    outer_low, outer_high = order_statistics(x, confidence)
    if outer_low < low or outer_high > high:
        method += ", widened to order statistics"
    low, high = min(low, outer_low, centre), max(high, outer_high, centre)
    return Interval(centre, low, high, x.size, method=method + corrected)


def ratio(a: ArrayLike, b: ArrayLike, seed: int = 0) -> Interval:
    """Median of the paired ratios a[i] / b[i], dimensionless.

    `a` and `b` are of one length and in the order of the blocks. Fewer than five pairs still give
    an interval, but one that isn't `enough` for a verdict. If a value isn't finite and positive,
    the interval is disturbed. ValueError on unpaired or no values.
    """
    share = _share(a, b)
    a, b = _pairs(a, b)
    good = _possible(a) & _possible(b)
    if not good.all():
        return _disturbed(a[good] / b[good])
    found = _median(a / b, seed, share)
    if found.n == 1:
        return replace(found, low=0.0, method=found.method.replace("value", "pair"))
    return found


def ratio_of_medians(a: ArrayLike, b: ArrayLike) -> Interval:
    """median(a) / median(b) of two independent samples, such as two runs on two machines.

    `n` is the size of the smaller sample. Disturbed like `ratio`; ValueError without values.
    """
    a, b = _values(a, "a"), _values(b, "b")
    if not (_possible(a).all() and _possible(b).all()):
        return _disturbed(np.array([]))
    centre, n = float(np.median(a) / np.median(b)), min(a.size, b.size)
    if n == 1:
        return Interval(centre, 0.0, np.inf, 1, method="none: a single value")
    if np.ptp(a) == 0 and np.ptp(b) == 0:
        return Interval(centre, centre, centre, n, method="none needed: all values equal")
    quotient = lambda x, y, axis: np.median(x, axis=axis) / np.median(y, axis=axis)
    low, high, method = _bootstrap((a, b), quotient, 0, CONFIDENCE)
    return Interval(centre, min(low, centre), max(high, centre), n, method=method)


def within(interval: Interval, margin: float) -> bool:
    """Whether the whole interval lies in [1/(1+margin), 1+margin], ends included."""
    return 1 / (1 + margin) <= interval.low and interval.high <= 1 + margin


def equivalent(interval: Interval, margin: float) -> bool:
    """Whether a ratio is shown to be no effect worth the name: `enough`, and `within` the margin.

    `margin` is the smallest effect of interest, as a share (0.05 for 5 %). An interval that is
    merely undecided is not equivalent.
    """
    return interval.enough and within(interval, margin)


@dataclass(frozen=True)
class NoiseFloor:
    """What an A/A comparison, which has no effect, looks like on this machine.

    `floor` is a ratio above 1: the farthest end of the A/A interval from 1, in either direction.
    Effects smaller than that shouldn't be believed from this run.
    """

    ratio: Interval

    @property
    def floor(self) -> float:
        lowest = np.inf if self.ratio.low == 0 else 1 / self.ratio.low
        return float(max(lowest, self.ratio.high))

    @property
    def reach(self) -> str:
        """Up to which effect it hides all: "4.2 %", "280 %", or "any size"."""
        if np.isinf(self.floor):
            return "any size"
        return f"{float(f'{100 * (self.floor - 1):.2g}'):g} %"

    def hides(self, effect: float) -> bool:
        """Whether a ratio is too close to 1 to be told from noise."""
        return max(effect, 1 / effect) <= self.floor


@dataclass(frozen=True)
class USL:
    """Gunther's universal scalability law, X(N) = scale N / (1 + sigma (N-1) + kappa N (N-1)).

    `scale` is the throughput of one client (unit of the measured throughput), `sigma` contention,
    `kappa` coherence, `peak` the number of clients of greatest throughput, sqrt((1-sigma)/kappa);
    infinite where no retrograde part was found.
    """

    scale: Interval
    sigma: Interval
    kappa: Interval
    peak: Interval


def usl(n: Array, scale: float, sigma: float, kappa: float) -> Array:
    return scale * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))


def _fit_usl(clients: Array, throughput: Array) -> tuple[float, float, float, float]:
    start = (throughput[clients == clients.min()].mean() / clients.min(), 0.05, 0.001)
    # As logarithms, since throughput varies by a share of itself: to weigh by what was measured
    # would make a single low one outweigh all others. The bounds are the law's own.
    (scale, sigma, kappa), _ = optimize.curve_fit(
        lambda n, *law: np.log(usl(n, *law)),
        clients,
        np.log(throughput),
        p0=start,
        bounds=([np.finfo(float).tiny, 0, 0], [np.inf, 1, np.inf]),
        x_scale=(start[0], 0.1, 0.01),
    )
    # Below a millionth the peak lies beyond a thousand clients: not something a fit can know.
    return scale, sigma, kappa, np.sqrt((1 - sigma) / kappa) if kappa > 1e-6 else np.inf


def scalability(
    clients: ArrayLike, throughput: ArrayLike, *, seed: int = 0, resamples: int = 400
) -> USL:
    """Fit the universal scalability law; intervals from a bootstrap of its relative residuals.

    `clients` and `throughput` are of one length, each repeat a point of its own. At least four
    different numbers of clients are needed for three parameters, else ValueError. If a throughput
    isn't finite and positive, or the law doesn't fit, all four intervals are disturbed. Simulated
    coverage with three repeats of six levels: sigma 94 %, kappa and peak 88 %.
    """
    clients, throughput = _pairs(clients, throughput)
    levels = np.unique(clients)
    if levels.size < 4:
        raise ValueError(
            f"the scalability law needs 4 different numbers of clients, not {levels.size}"
        )
    unknown = USL(*[_disturbed(np.array([]))] * 4)
    if not _possible(throughput).all():
        return unknown
    try:
        best = np.array(_fit_usl(clients, throughput))
    except RuntimeError:  # curve_fit's word for "no convergence"
        return unknown
    found = _resampled_usl(clients, throughput, best, seed, resamples)
    if len(found) < resamples / 2:
        return unknown
    tail = (1 - CONFIDENCE) / 2
    # Order statistics, not interpolation: infinite peaks must not become nan.
    lows, highs = np.quantile(found, (tail, 1 - tail), axis=0, method="inverted_cdf")
    n = levels.size
    return USL(
        *(
            Interval(x, min(x, low), max(x, high), n, method="bootstrap of residuals")
            for x, low, high in np.column_stack([best, lows, highs]).tolist()
        )
    )


def _resampled_usl(
    clients: Array, throughput: Array, best: Array, seed: int, resamples: int
) -> Array:
    """Fits to resampled throughputs, a row each like `best`, where there is a fit."""
    fitted = usl(clients, *best[:3])
    # as logarithms, so that no throughput comes out below nothing
    residuals = np.log(throughput / fitted)
    # The fit eats three degrees of freedom, which makes raw residuals too small.
    stretch = np.sqrt(clients.size / max(clients.size - 3, 1))
    residuals = np.exp((residuals - residuals.mean()) * stretch)
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(resamples):
        with suppress(RuntimeError):
            found.append(_fit_usl(clients, fitted * rng.choice(residuals, clients.size)))
    return np.array(found)


def share(found: int, of: int) -> Interval:
    """The share `found / of` of independent trials, with Wilson's interval.

    ValueError unless 0 <= found <= of and of > 0.
    """
    if not 0 <= found <= of or of < 1:
        raise ValueError(f"{found} of {of} is no share")
    centre = found / of
    ends = stats.binomtest(found, of).proportion_ci(CONFIDENCE, method="wilson")
    low, high = min(float(ends.low), centre), max(float(ends.high), centre)
    return Interval(centre, low, high, of, method="Wilson")


# ---- whether groups differ


@dataclass(frozen=True)
class Difference:
    """Whether groups of values differ in where they lie.

    `h` is Kruskal and Wallis's statistic, chi-squared of `freedom` degrees where they don't; `p`
    follows. `effect` is the share of the ranks' variance that the groups explain, from 0 to 1.
    """

    h: float
    freedom: int
    effect: float

    @property
    def p(self) -> float:
        return float(stats.chi2.sf(self.h, self.freedom))


def difference(groups: Sequence[ArrayLike]) -> Difference | None:
    """Kruskal and Wallis's test, which takes ranks for values and allows for ties.

    Groups of fewer than `ENOUGH` values are left out: the statistic's distribution is known for
    large groups. None where fewer than two are left, or all values are equal.
    """
    large = [x for x in (np.asarray(group, float) for group in groups) if x.size >= ENOUGH]
    values = np.concatenate(large) if large else np.empty(0)
    if len(large) < 2 or values.min() == values.max():
        return None
    # of groups that lie alike it may come out a rounding error below 0, where p would be no number
    h = max(float(stats.kruskal(*large).statistic), 0.0)
    return Difference(h, len(large) - 1, h / (values.size - 1))


def difference_within(strata: Sequence[Sequence[ArrayLike]]) -> Difference | None:
    """Whether groups differ also within strata of what else they may differ in.

    Statistics of independent strata add up, and so do their degrees of freedom.
    """
    found = [one for one in map(difference, strata) if one is not None]
    if not found:
        return None
    h, freedom = sum(one.h for one in found), sum(one.freedom for one in found)
    effect = max(one.effect for one in found)
    return Difference(h, freedom, effect)


def false_discoveries(p: ArrayLike) -> Array:
    """Of each of many tests the share of chance findings among all that are at least as clear.

    Benjamini and Hochberg's: whoever calls those below 0.01 found is wrong about one in a hundred.
    """
    values = np.asarray(p, float)
    return stats.false_discovery_control(values, method="bh") if values.size else values
