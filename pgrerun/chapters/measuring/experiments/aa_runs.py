"""Runs that don't differ, planted differences of known size, and experiments drawn from them.

Live: one scan, its length set to the tuple, in variants that count the same tuples twice and two,
five and ten per cent more. By resampling: experiments of any number of pairs, drawn from the
recorded pairs of the two equal variants. Whether a variant is called the one or the other is
chance, so each drawn ratio is turned over with probability one half: no difference is left in them
but noise. A planted effect multiplies the ratios, and with them both ends of the interval, so one
interval tells about every effect.
"""

import subprocess
import sys
from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.measuring.experiments.load import TIME, TUPLES, scan
from pgrerun.errors import CannotMeasure
from pgrerun.lab import statements
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.models import repeated_runs
from pgrerun.lab.server import value
from pgrerun.record import statistics

EFFECTS = (1.02, 1.05, 1.10)
ONE, OTHER = "a scan", "the same scan"
PAIRS = (5, 7, 11, 21, 41)
POWER = 0.8  # Cohen's convention: the share of real effects that an experiment should find
MARGIN = 0.05  # the smallest effect of interest of most claims in the book


# What the scan of each variant reads.
VARIANTS = {ONE: TUPLES, OTHER: TUPLES} | {
    f"{100 * (effect - 1):.0f} % more tuples": round(TUPLES * effect) for effect in EFFECTS
}


def planted(chapter: Chapter) -> pd.DataFrame:
    """What the scan of each variant counts.

    Columns: variant, tuples counted, times the first.
    """
    script = scan(chapter.server).script
    with chapter.server.connect() as connection:
        counted = {
            name: value(connection, int, statements.filled(script, {"tuples": tuples}))
            for name, tuples in VARIANTS.items()
        }
    frame = pd.DataFrame(counted.items(), columns=["variant", "tuples counted"])
    return frame.assign(**{"times the first": frame["tuples counted"] / counted[ONE]})


@experiment(claims=["haas-071"])
def planted_differences(chapter: Chapter) -> None:
    """Every variant once in each block, in rotated order."""
    given, server = chapter.parameters, chapter.server
    many = scan(server).lasting(given.milliseconds, given.seed)
    variants = [
        Variant(name, partial(scan(server, tuples).times, many))
        for name, tuples in VARIANTS.items()
    ]
    # no warm-up: the load was tried out just now
    chapter.compare("twins", variants, TIME, pairs=given.blocks, warmup=0, fixed=True)


def equal_runs(chapter: Chapter) -> pd.DataFrame:
    """Times of the two equal variants (ms), a row per block; CannotMeasure if one can't be."""
    time = chapter.table("twins", "time")[[ONE, OTHER]]
    if not (np.isfinite(time) & (time > 0)).all(axis=None):
        raise CannotMeasure(
            "undisturbed measurements",
            "a time among the runs that don't differ can't be, so nothing is drawn from them",
        )
    return time


def equal_ratios(chapter: Chapter) -> pd.Series:
    """Time of one of the equal variants over the other's, a ratio per block."""
    time = equal_runs(chapter)
    return time[OTHER] / time[ONE]


# ---- experiments drawn from the recorded pairs


def drawn_intervals(ratios: Sequence[float], pairs: int, experiments: int, seed: int) -> np.ndarray:
    """Intervals of experiments of so many pairs without any effect: (low, high) a row."""
    rng = np.random.default_rng([seed, pairs])
    logs = np.log(np.asarray(ratios, float))
    drawn = rng.choice(logs, (experiments, pairs)) * rng.choice((-1, 1), (experiments, pairs))
    found = [statistics.median(np.exp(row), seed=number) for number, row in enumerate(drawn)]
    return np.array([(x.low, x.high) for x in found])


@experiment(after=["aa_runs.planted_differences"])
def power(chapter: Chapter, sizes: Sequence[int] = PAIRS) -> pd.DataFrame:
    """How often an experiment of so many pairs finds an effect, by effect and pairs.

    Columns: effect (1 is none: what is found is then a false alarm), pairs, found (share of the
    drawn experiments whose interval excludes 1 on the right side, for no effect on either), low,
    high (95 % interval of that share), verdict (share that would get a verdict for a difference of
    interest).
    """
    ratios, given, rows = equal_ratios(chapter), chapter.parameters, []
    for pairs in sizes:
        low, high = drawn_intervals(ratios, pairs, given.resamples, given.seed).T
        for effect in (1.0, *EFFECTS):
            told = low * effect > 1
            if effect == 1:
                told |= high < 1
            verdict = (low * effect > 1 + MARGIN) | (high * effect < 1 / (1 + MARGIN))
            share = statistics.share(int(told.sum()), given.resamples)
            found = (share.estimate, share.low, share.high, verdict.mean())
            rows.append((effect, pairs, *found))
    columns = ["effect", "pairs", "found", "low", "high", "verdict"]
    return pd.DataFrame(rows, columns=columns)


def smallest(ratios: Sequence[float], pairs: int, experiments: int, seed: int) -> float:
    """The effect, as a ratio, that experiments of so many pairs find with `POWER`."""
    low = drawn_intervals(ratios, pairs, experiments, seed)[:, 0]
    return float(1 / np.quantile(low, 1 - POWER))


REPEATS = (2, 3, 4, 5, 7)
SPOILT = (1.1, 1.25, 1.5)  # how far off the spoilt run is


def drawn(chapter: Chapter) -> int:
    """How many experiments with a spoilt run are drawn."""
    return 20 * chapter.parameters.resamples


def spoilt(factor: float) -> str:
    """What a run that is so far off is called."""
    return f"{100 * (factor - 1):.0f} % off"


@experiment(claims=["haas-071"], after=["aa_runs.planted_differences"])
def spoilt_runs(chapter: Chapter) -> pd.DataFrame:
    """Shares of spoilt runs that are noticed among so many repeats drawn from the equal runs.

    Columns: spoilt (see `spoilt`), repeats, rule (of `repeated_runs`), share. Slow drift is taken
    out of the runs first: each is a multiple of the median of those around it.
    """
    time, rows = equal_runs(chapter), []
    around = time.stack().rolling(6, min_periods=1, center=True).median().unstack()
    runs = (time / around).to_numpy().ravel()
    for factor in SPOILT:
        for repeats in REPEATS:
            shares = repeated_runs.noticed(
                runs, repeats, factor, drawn(chapter), chapter.parameters.seed
            )
            rows += [(spoilt(factor), repeats, rule, share) for rule, share in shares.items()]
    return pd.DataFrame(rows, columns=["spoilt", "repeats", "rule", "share"])


# ---- a neighbour who wakes up halfway

NEIGHBOUR_BLOCKS = 8
FIRST, SECOND = "the first", "the second"


@experiment()
def neighbour(chapter: Chapter) -> pd.DataFrame:
    """Two equal variants; from the middle on a program beside them keeps every processor busy.

    Times in ms, a row per block, a column per variant. CannotMeasure if no block of a half was
    undisturbed.
    """
    given, load = chapter.parameters, scan(chapter.server)
    many = load.lasting(given.milliseconds, given.seed)
    awake: list[subprocess.Popen] = []

    def before(block: Block) -> None:
        if block.index >= NEIGHBOUR_BLOCKS / 2 and not awake:
            busy = [sys.executable, "-c", "while True: pass"]
            processors = chapter.run.environment["machine"]["cpus_usable"]
            awake.extend(subprocess.Popen(busy) for _ in range(processors))

    variants = [
        Variant(name, partial(load.times, many), prepare=before) for name in (FIRST, SECOND)
    ]
    try:
        chapter.compare("neighbour", variants, TIME, pairs=NEIGHBOUR_BLOCKS, warmup=0, fixed=True)
    finally:
        for process in awake:
            process.kill()
            process.wait()
    time = chapter.table("neighbour", "time")
    if len(set(time.index >= NEIGHBOUR_BLOCKS / 2)) < 2:
        raise CannotMeasure(
            "undisturbed measurements",
            "every block before the neighbour woke up was disturbed, or every one after",
        )
    return time
