"""How sure a number is: intervals, the noise floor, equivalence, two fitted laws.

Nothing here knows PostgreSQL, a run or a claim: arrays go in, an `Interval` comes out.
`runs` compares two records with these intervals, `claims` turns them into verdicts, `narrate`
into sentences.

Ratios are the currency of the book, since absolute times don't survive forty years. Arms are
measured in pairs (see `experiment`), the ratio is taken inside each pair, and the median of
these ratios is reported, so that one disturbed pair moves nothing.

Why `ratio` widens its bootstrap interval: a resampled median can only be one of the values
measured. With 7 pairs the bootstrap of a median (BCa or percentile, they agree) therefore stops
at the second smallest and the second largest ratio and covers the true ratio in 88 % of
experiments instead of 95 % (simulated: lognormal times, coefficient of variation 3 %), which
would turn one A/A comparison in eight into a false alarm. The interval of Hettmansperger and
Sheather ("Confidence intervals based on interpolated order statistics", 1986) rests on the
binomial distribution alone and covers 94-96 % from 6 pairs on. Each end is the outer one of the two.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, stats

ENOUGH = 5
"""Pairs below which an interval is shown, but no verdict is given."""

RESAMPLES = 4999
EXACT = "exact"
SIMULATED = "simulated"


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval.

    `n` counts what was resampled or fitted: pairs, values, or points.
    `method` says in words how the interval came about; "exact" for a fact that has no error.
    """

    estimate: float
    low: float
    high: float
    n: int
    confidence: float = 0.95
    method: str = ""

    def __post_init__(self):
        if not self.low <= self.estimate <= self.high:
            raise ValueError(f"{self.estimate} is outside its interval [{self.low}, {self.high}]")

    @property
    def exact(self) -> bool:
        return self.method == EXACT

    @property
    def simulated(self) -> bool:
        """Whether a model's number, not a measured one (see `simulated`)."""
        return self.method.startswith(SIMULATED)

    @property
    def enough(self) -> bool:
        """Whether a verdict may rest on it: an exact fact, or at least five pairs."""
        return self.exact or self.n >= ENOUGH

    def inverse(self) -> "Interval":
        """The same comparison read the other way round (b/a for a/b)."""
        if self.low < 0:
            raise ValueError("only a positive interval has an inverse")
        ends = [np.inf if x == 0 else 1 / x for x in (self.estimate, self.high, self.low)]
        return Interval(*ends, self.n, self.confidence, self.method)

    def times(self, factor: float) -> "Interval":
        """The same estimate in another unit, or against another base; `factor` is positive and known."""
        if factor <= 0:
            raise ValueError("an interval is scaled by a positive factor")
        ends = (factor * self.estimate, factor * self.low, factor * self.high)
        return Interval(*ends, self.n, self.confidence, self.method)


def exact(value: float) -> Interval:
    """A fact as an interval of no width, for predicates that compare intervals."""
    return Interval(float(value), float(value), float(value), 1, 1.0, EXACT)


def simulated(found: Interval) -> Interval:
    """The same interval, marked as a model's: its spread is that of the costs and draws put into the model."""
    return Interval(found.estimate, found.low, found.high, found.n, found.confidence, f"{SIMULATED}, {found.method}")


def _values(x: ArrayLike, name: str, positive: bool = False) -> np.ndarray:
    array = np.asarray(x, dtype=float)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name}: a non-empty list of numbers is needed")
    if not np.isfinite(array).all() or (positive and (array <= 0).any()):
        raise ValueError(f"{name}: every value must be finite{' and positive' if positive else ''}")
    return array


def _pairs(a: ArrayLike, b: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    a, b = _values(a, "a", positive=True), _values(b, "b", positive=True)
    if a.size != b.size:
        raise ValueError(f"pairs are needed, not {a.size} values against {b.size}")
    return a, b


def _order_statistics(x: np.ndarray, confidence: float) -> tuple[float, float]:
    """Interpolated order-statistic interval of a median (Hettmansperger & Sheather 1986).

    With 5 values or fewer it is the whole range, whose coverage is 1 - 2^(1-n).
    """
    x, n = np.sort(x), x.size
    coverage = lambda k: 1 - 2 * stats.binom.cdf(k - 1, n, 0.5)  # of [x_k, x_(n+1-k)]
    k = max((k for k in range(1, n // 2 + 1) if coverage(k) >= confidence), default=0)
    if k == 0:
        return x[0], x[-1]
    inner = (coverage(k) - confidence) / (coverage(k) - coverage(k + 1))
    weight = (n - k) * inner / (k + (n - 2 * k) * inner)
    return ((1 - weight) * x[k - 1] + weight * x[k], (1 - weight) * x[n - k] + weight * x[n - k - 1])


def _bootstrap(samples, statistic, seed: int, confidence: float) -> tuple[float, float, str]:
    """Ends and name of a BCa bootstrap, or of a percentile one where BCa has no answer."""
    for method in ("BCa", "percentile"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # degenerate data: seen in the result, and handled
            interval = stats.bootstrap(
                samples, statistic, n_resamples=RESAMPLES, confidence_level=confidence,
                method=method, rng=seed, vectorized=True,
            ).confidence_interval
        if np.isfinite([interval.low, interval.high]).all():
            return float(interval.low), float(interval.high), f"{method} bootstrap"
    raise ArithmeticError("the bootstrap gave no interval")


def median(x: ArrayLike, *, seed: int = 0, confidence: float = 0.95) -> Interval:
    """Median of `x` (same unit as `x`), the wider of a bootstrap and an order-statistic interval.

    A single value has no interval: both ends are infinite. Raises ValueError on values that
    are missing or not finite.
    """
    x = _values(x, "x")
    centre = float(np.median(x))
    if x.size == 1:
        return Interval(centre, -np.inf, np.inf, 1, confidence, "none: a single value")
    if np.ptp(x) == 0:
        return Interval(centre, centre, centre, x.size, confidence, "none needed: all values equal")
    low, high, method = _bootstrap((x,), np.median, seed, confidence)
    outer_low, outer_high = _order_statistics(x, confidence)
    if outer_low < low or outer_high > high:
        method += ", widened to order statistics"
    return Interval(
        centre, min(low, outer_low, centre), max(high, outer_high, centre), x.size, confidence, method
    )


def mean(x: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Mean of `x` with a t interval: the bootstrap of a mean is too narrow for few values."""
    x = _values(x, "x")
    centre = float(x.mean())
    if x.size == 1:
        return Interval(centre, -np.inf, np.inf, 1, confidence, "none: a single value")
    half = float(stats.t.ppf((1 + confidence) / 2, x.size - 1) * stats.sem(x))
    return Interval(centre, centre - half, centre + half, x.size, confidence, "t")


def ratio(a: ArrayLike, b: ArrayLike, seed: int = 0, *, confidence: float = 0.95) -> Interval:
    """Median of the paired ratios a[i] / b[i], dimensionless.

    `a` and `b` are positive, of one length and in the order of the blocks. Fewer than five pairs
    still give an interval, but one that isn't `enough` for a verdict. Raises ValueError on
    unpaired, missing or non-positive values.
    """
    a, b = _pairs(a, b)
    found = median(a / b, seed=seed, confidence=confidence)
    if found.n == 1:
        return Interval(found.estimate, 0.0, np.inf, 1, confidence, "none: a single pair")
    return found


def ratio_of_medians(a: ArrayLike, b: ArrayLike, seed: int = 0, *, confidence: float = 0.95) -> Interval:
    """median(a) / median(b) of two independent samples, such as two runs on two machines.

    `n` is the size of the smaller sample. Raises ValueError like `ratio`.
    """
    a, b = _values(a, "a", positive=True), _values(b, "b", positive=True)
    centre, n = float(np.median(a) / np.median(b)), min(a.size, b.size)
    if n == 1:
        return Interval(centre, 0.0, np.inf, 1, confidence, "none: a single value")
    if np.ptp(a) == 0 and np.ptp(b) == 0:
        return Interval(centre, centre, centre, n, confidence, "none needed: all values equal")
    quotient = lambda x, y, axis: np.median(x, axis=axis) / np.median(y, axis=axis)
    low, high, method = _bootstrap((a, b), quotient, seed, confidence)
    return Interval(centre, min(low, centre), max(high, centre), n, confidence, method)


def log_t_ratio(a: ArrayLike, b: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Geometric mean of the paired ratios with a t interval of their logarithms.

    The cross-check of `ratio`: it covers well at every n, but one outlier pulls it. Where the
    two disagree about a verdict, look at the pairs.
    """
    a, b = _pairs(a, b)
    if a.size == 1:
        return Interval(float(a[0] / b[0]), 0.0, np.inf, 1, confidence, "none: a single pair")
    logs = mean(np.log(a / b), confidence=confidence)
    ends = np.exp([logs.estimate, logs.low, logs.high])
    return Interval(*map(float, ends), a.size, confidence, "t of logarithms")


@dataclass(frozen=True)
class Outliers:
    """Values outside Tukey's fences: counted and shown, never dropped.

    `positions` are indexes into the sample; `severe` of them lie beyond three quartile distances.
    """

    n: int
    positions: tuple[int, ...]
    severe: int
    low_fence: float
    high_fence: float

    @property
    def count(self) -> int:
        return len(self.positions)


def outliers(x: ArrayLike) -> Outliers:
    """Values more than 1.5 interquartile ranges outside the quartiles (Tukey 1977)."""
    x = _values(x, "x")
    lower, upper = np.quantile(x, (0.25, 0.75))
    reach = upper - lower
    outside = lambda times: (x < lower - times * reach) | (x > upper + times * reach)
    return Outliers(
        n=x.size,
        positions=tuple(int(i) for i in np.flatnonzero(outside(1.5))),
        severe=int(outside(3.0).sum()),
        low_fence=float(lower - 1.5 * reach),
        high_fence=float(upper + 1.5 * reach),
    )


def within(interval: Interval, margin: float) -> bool:
    """Whether the whole interval lies in [1/(1+margin), 1+margin], ends included."""
    return 1 / (1 + margin) <= interval.low and interval.high <= 1 + margin


def equivalent(interval: Interval, margin: float) -> bool:
    """Whether a ratio is shown to be no effect worth the name: `enough`, and `within` the margin.

    `margin` is the smallest effect of interest, as a share (0.05 for 5 %). An interval that is
    merely undecided is not equivalent.
    """
    if margin <= 0:
        raise ValueError("the margin must be positive")
    return interval.enough and within(interval, margin)


@dataclass(frozen=True)
class NoiseFloor:
    """What an A/A comparison, which has no effect, looks like on this machine.

    `floor` is a ratio above 1: the farthest end of the A/A interval from 1, in either direction.
    Effects smaller than that shouldn't be believed from this run.
    """

    ratio: Interval
    floor: float

    @property
    def false_alarm(self) -> bool:
        """Whether the A/A interval excludes 1, as one in twenty does by chance."""
        return not self.ratio.low <= 1 <= self.ratio.high

    def hides(self, effect: float) -> bool:
        """Whether a ratio is too close to 1 to be told from noise."""
        return max(effect, 1 / effect) <= self.floor


def noise_floor(a: ArrayLike, b: ArrayLike, seed: int = 0) -> NoiseFloor:
    """The noise floor from the paired values of two arms that do the same."""
    found = ratio(a, b, seed)
    lowest = np.inf if found.low == 0 else 1 / found.low
    return NoiseFloor(found, float(max(lowest, found.high)))


@dataclass(frozen=True)
class USL:
    """Gunther's universal scalability law, X(N) = scale N / (1 + sigma (N-1) + kappa N (N-1)).

    `scale` is the throughput of one client (unit of the measured throughput), `sigma` contention,
    `kappa` coherence, `peak` the number of clients of greatest throughput, sqrt((1-sigma)/kappa);
    infinite where no retrograde part was found. `failed_fits` of the resamples had no fit.
    """

    scale: Interval
    sigma: Interval
    kappa: Interval
    peak: Interval
    failed_fits: int = 0

    def predict(self, clients: ArrayLike) -> np.ndarray:
        """Throughput at these numbers of clients, from the point estimates."""
        return _usl(np.asarray(clients, float), self.scale.estimate, self.sigma.estimate, self.kappa.estimate)


def _usl(n, scale, sigma, kappa):
    return scale * n / (1 + sigma * (n - 1) + kappa * n * (n - 1))


def _fit_usl(clients: np.ndarray, throughput: np.ndarray) -> tuple[float, float, float, float]:
    start = (throughput[clients == clients.min()].mean() / clients.min(), 0.05, 0.001)
    # As logarithms, since throughput varies by a share of itself: to weigh by what was measured would make
    # a single low one outweigh all others. The bounds are the law's own.
    (scale, sigma, kappa), _ = optimize.curve_fit(
        lambda *law: np.log(_usl(*law)), clients, np.log(throughput), p0=start,
        bounds=([np.finfo(float).tiny, 0, 0], [np.inf, 1, np.inf]), x_scale=(start[0], 0.1, 0.01),
    )
    # Below a millionth the peak lies beyond a thousand clients: not something a fit can know.
    return scale, sigma, kappa, np.sqrt((1 - sigma) / kappa) if kappa > 1e-6 else np.inf


def scalability(
    clients: ArrayLike, throughput: ArrayLike, *, seed: int = 0, resamples: int = 400, confidence: float = 0.95
) -> USL:
    """Fit the universal scalability law; intervals from a bootstrap of its relative residuals.

    `clients` and `throughput` are of one length, each repeat a point of its own. At least four
    different numbers of clients are needed for three parameters, else ValueError. Simulated
    coverage with three repeats of six levels: sigma 94 %, kappa and peak 88 %.
    """
    clients, throughput = _pairs(clients, throughput)
    levels = np.unique(clients)
    if levels.size < 4:
        raise ValueError(f"the scalability law needs 4 different numbers of clients, not {levels.size}")
    best = np.array(_fit_usl(clients, throughput))
    fitted = _usl(clients, *best[:3])
    residuals = np.log(throughput / fitted)  # as logarithms, so that no throughput comes out below nothing
    # The fit eats three degrees of freedom, which makes raw residuals too small.
    residuals = np.exp((residuals - residuals.mean()) * np.sqrt(clients.size / max(clients.size - 3, 1)))
    rng = np.random.default_rng(seed)
    found, failed = [], 0
    for _ in range(resamples):
        try:
            found.append(_fit_usl(clients, fitted * rng.choice(residuals, clients.size)))
        except RuntimeError:  # curve_fit's word for "no convergence"
            failed += 1
    if len(found) < resamples / 2:
        raise ValueError("the scalability law does not fit these throughputs")
    tail = (1 - confidence) / 2
    # Order statistics, not interpolation: infinite peaks must not become nan.
    ends = np.quantile(np.array(found), (tail, 1 - tail), axis=0, method="inverted_cdf")
    intervals = [
        Interval(float(x), float(min(x, low)), float(max(x, high)), levels.size, confidence, "bootstrap of residuals")
        for x, low, high in zip(best, *ends)
    ]
    return USL(*intervals, failed_fits=failed)


def exponent(sizes: ArrayLike, times: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Growth exponent p of time ~ size^p: the slope of a least-squares line in logarithms.

    At least three different sizes are needed, else ValueError. `n` counts points.
    """
    sizes, times = _pairs(sizes, times)
    if np.unique(sizes).size < 3:
        raise ValueError("a growth exponent needs at least three different sizes")
    line = stats.linregress(np.log(sizes), np.log(times))
    half = float(stats.t.ppf((1 + confidence) / 2, sizes.size - 2) * line.stderr)
    slope = float(line.slope)
    return Interval(slope, slope - half, slope + half, sizes.size, confidence, "least squares of logarithms, t")


def share(found: int, of: int, *, confidence: float = 0.95) -> Interval:
    """The share `found / of` of independent trials, with Wilson's interval. ValueError unless 0 <= found <= of, of > 0."""
    if not 0 <= found <= of or of < 1:
        raise ValueError(f"{found} of {of} is no share")
    ends = stats.binomtest(found, of).proportion_ci(confidence, method="wilson")
    return Interval(found / of, min(float(ends.low), found / of), max(float(ends.high), found / of), of, confidence, "Wilson")
