"""Runs that don't differ, and planted differences of known size: what a comparison sees, and how often it is wrong.

Live: one scan, its length set to the tuple, in arms that count the same tuples twice and two, five and ten
per cent more. By resampling: experiments of any number of pairs, drawn from the recorded pairs of the two
equal arms. Whether an arm is called the one or the other is chance, so each drawn ratio is turned over with
probability one half: no difference is left in them but noise. A planted effect multiplies the ratios, and
with them both ends of the interval, so one interval tells about every effect.
"""

import subprocess
import sys
from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd

from pgrerun import statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.measuring.load import SCAN, TUPLES, drive, lasting, scanned
from pgrerun.experiment import Arm, Block

UNITS = {"time": "ms per transaction"}
EFFECTS = (1.02, 1.05, 1.10)
ONE, OTHER = "a scan", "the same scan"
PAIRS = (5, 7, 11, 21, 41)
POWER = 0.8  # Cohen's convention: the share of real effects that an experiment should find
MARGIN = 0.05  # the smallest effect of interest of most claims in the book


def named(effect: float) -> str:
    """The arm with a planted effect."""
    return f"{100 * (effect - 1):.0f} % more tuples"


ARMS = {ONE: 1.0, OTHER: 1.0} | {named(effect): effect for effect in EFFECTS}


def tuples(effect: float) -> int:
    """What the scan of an arm reads."""
    return round(TUPLES * effect)


def planted(chapter: Chapter) -> pd.DataFrame:
    """The witness: what the scan of each arm counts, and the instrument-free size of the effect."""
    scanned(chapter.server)
    rows = []
    with chapter.server.connect() as connection:
        for name, effect in ARMS.items():
            found, = connection.execute(SCAN.rstrip(";\n").replace(":tuples", str(tuples(effect)))).fetchone()
            rows.append((name, found, found / rows[0][1] if rows else 1.0))
    return pd.DataFrame(rows, columns=["arm", "tuples counted", "times the first"])


def twins(chapter: Chapter) -> None:
    """Every arm once in each block, in rotated order."""
    server = chapter.server
    scanned(server)
    many = lasting(chapter, server, SCAN, variables={"tuples": TUPLES})
    arms = [Arm(name, partial(_scan, chapter, server, many, tuples(effect))) for name, effect in ARMS.items()]
    chapter.compare("twins", arms, UNITS, pairs=chapter.parameters.blocks, warmup=0)  # that was tried out just now


def _scan(chapter: Chapter, server, transactions: int, length: int, block: Block) -> dict[str, float]:
    done = drive(chapter, server, SCAN, transactions=transactions, seed=block.seed, variables={"tuples": length})
    return {"time": 1000 / done.tps}


def equal_ratios(chapter: Chapter) -> np.ndarray:
    """Time of one of the equal arms over the other's, a ratio per block."""
    time = chapter.table("twins", "time")
    return (time[OTHER] / time[ONE]).to_numpy()


def seen(chapter: Chapter) -> pd.DataFrame:
    """What the live experiment makes of each arm: planted, estimate, low, high, told (1 is outside the interval)."""
    rows = []
    for name, effect in list(ARMS.items())[1:]:
        found = chapter.ratio("twins", "time", name, ONE)
        rows.append((name, tuples(effect) / TUPLES, found.estimate, found.low, found.high, not found.low <= 1 <= found.high))
    return pd.DataFrame(rows, columns=["arm", "planted", "found", "low", "high", "told"])


# ---- experiments drawn from the recorded pairs


def drawn_intervals(ratios: Sequence[float], pairs: int, experiments: int, seed: int) -> np.ndarray:
    """Intervals of `experiments` experiments of so many pairs without any effect: (low, high) a row."""
    rng = np.random.default_rng([seed, pairs])
    logs = np.log(np.asarray(ratios, float))
    drawn = rng.choice(logs, (experiments, pairs)) * rng.choice((-1, 1), (experiments, pairs))
    found = [statistics.median(np.exp(row), seed=number) for number, row in enumerate(drawn)]
    return np.array([(x.low, x.high) for x in found])


def power(chapter: Chapter, sizes: Sequence[int] = PAIRS) -> pd.DataFrame:
    """How often an experiment of so many pairs finds an effect, by effect and pairs.

    Columns: effect (1 is none: what is found is then a false alarm), pairs, found (share of the drawn
    experiments whose interval excludes 1 on the right side, for no effect on either), low, high (95 %
    interval of that share), verdict (share that would get a verdict for a difference of interest).
    """
    ratios, experiments = equal_ratios(chapter), chapter.parameters.resamples
    rows = []
    for pairs in sizes:
        low, high = drawn_intervals(ratios, pairs, experiments, chapter.parameters.seed).T
        for effect in (1.0, *EFFECTS):
            above = low * effect > 1
            wrong = high * effect < 1
            told = above | wrong if effect == 1 else above
            verdict = (low * effect > 1 + MARGIN) | (high * effect < 1 / (1 + MARGIN))
            share = statistics.share(int(told.sum()), experiments)
            rows.append((effect, pairs, share.estimate, share.low, share.high, float(verdict.mean())))
    return pd.DataFrame(rows, columns=["effect", "pairs", "found", "low", "high", "verdict"])


def smallest(ratios: Sequence[float], pairs: int, experiments: int, seed: int) -> float:
    """The effect, as a ratio, that experiments of so many pairs find with `POWER`."""
    low = drawn_intervals(ratios, pairs, experiments, seed)[:, 0]
    return float(1 / np.quantile(low, 1 - POWER))


def pairs_needed(found: pd.DataFrame) -> pd.DataFrame:
    """For each effect the least number of pairs tried that finds it with `POWER`; missing if none does."""
    reached = found[(found["found"] >= POWER) & (found["effect"] > 1)]
    least = reached.groupby("effect")["pairs"].min().reindex(EFFECTS)
    return least.rename("pairs").reset_index()


def unavoidable(pairs: int) -> float:
    """False alarms of an interval that is the whole range of so many values: all on one side of 1."""
    return 2.0 ** (1 - pairs)


# ---- a neighbour who wakes up halfway

NEIGHBOUR_BLOCKS = 8
FIRST, SECOND = "the first", "the second"


def neighbour(chapter: Chapter) -> None:
    """Two equal arms, and from the middle on a program beside them that keeps every processor busy."""
    server = chapter.server
    scanned(server)
    many = lasting(chapter, server, SCAN, variables={"tuples": TUPLES})
    awake: list[subprocess.Popen] = []

    def before(block: Block) -> None:
        if block.index >= NEIGHBOUR_BLOCKS / 2 and not awake:
            awake.extend(subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(chapter.run.environment["machine"]["cpus_usable"]))

    arms = [Arm(name, partial(_scan, chapter, server, many, TUPLES), prepare=before) for name in (FIRST, SECOND)]
    try:
        chapter.compare("neighbour", arms, UNITS, pairs=NEIGHBOUR_BLOCKS, warmup=0)
    finally:
        for process in awake:
            process.kill()
            process.wait()


def pairs_and_series(chapter: Chapter) -> dict[str, statistics.Interval]:
    """The same runs compared in pairs, and as if all of one arm had run first and then all of the other."""
    time = chapter.table("neighbour", "time")
    half = len(time) // 2
    before, after = time.iloc[:half].to_numpy().ravel(), time.iloc[half:].to_numpy().ravel()
    seed = chapter.parameters.seed
    return {
        "in pairs": statistics.ratio(time[SECOND], time[FIRST], seed=seed),
        "one after the other": statistics.ratio_of_medians(after, before, seed=seed),
    }
