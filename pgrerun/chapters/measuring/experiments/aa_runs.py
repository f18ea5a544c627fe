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
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from pgrerun.chapters.measuring.loads import TIME, TUPLES, scan
from pgrerun.errors import CannotMeasure
from pgrerun.lab import statements
from pgrerun.lab.instruments import machine
from pgrerun.lab.models import repeated_runs
from pgrerun.lab.server import value
from pgrerun.lab.testbed import Block, Row, Testbed, experiment
from pgrerun.record import statistics

EFFECTS = (1.02, 1.05, 1.10)
ONE, OTHER = "a scan", "the same scan"
PAIRS = (5, 7, 11, 21, 41)
POWER = 0.8  # Cohen's convention: the share of real effects that an experiment should find
MARGIN = 0.05  # the smallest effect of interest of most claims in the book
SHORT = 1250  # ms of a run at most, as no word rests on these

# What the scan of each variant reads.
VARIANTS = {ONE: TUPLES, OTHER: TUPLES} | {
    f"{100 * (effect - 1):.0f} % more tuples": round(TUPLES * effect) for effect in EFFECTS
}


@experiment(units={"counted": "tuples"})
def planted(bed: Testbed) -> Iterator[Row]:
    """What the scan of each variant counts."""
    script = scan(bed.server).script
    with bed.server.connect() as connection:
        for variant, tuples in VARIANTS.items():
            text = statements.fill(script, {"tuples": tuples})
            yield {"variant": variant, "counted": value(connection, int, text)}


@experiment(units=TIME)
def twins(bed: Testbed) -> Iterator[Row]:
    """Every variant once in each block, in rotated order."""
    given, server = bed.parameters, bed.server
    loads = {variant: scan(server, tuples) for variant, tuples in VARIANTS.items()}
    many = loads[ONE].lasting(min(SHORT, given.milliseconds), given.seed)

    def measure(block: Block, variant: str) -> dict[str, float]:
        return loads[variant].times(many, block)

    # no warm-up: the load was tried out just now
    yield from bed.compare(
        measure, {"variant": [*VARIANTS]}, pairs=given.blocks, warmup=0, fixed=True
    )


def equal_runs(bed: Testbed) -> pd.DataFrame:
    """Times of the two equal variants (ms), a row per block, a column per variant.

    CannotMeasure if there are none, or one can't be.
    """
    kept = [row for row in bed.rows_of("twins") if not row["disturbed"] and not row["left_out"]]
    found = pd.DataFrame(kept, columns=["block", "variant", "time"])
    time = found.pivot(index="block", columns="variant", values="time")
    time = time.reindex(columns=[ONE, OTHER]).dropna().astype(float)
    if time.empty or not (np.isfinite(time) & (time > 0)).all(axis=None):
        raise CannotMeasure(
            "undisturbed measurements",
            "the runs that don't differ were not measured, or a time among them can't be, so"
            " nothing is drawn from them",
        )
    return time


# ---- experiments drawn from the recorded pairs


def drawn_intervals(ratios: Sequence[float], pairs: int, experiments: int, seed: int) -> np.ndarray:
    """Intervals of experiments of so many pairs without any effect: (low, high) a row."""
    rng = np.random.default_rng([seed, pairs])
    logs = np.log(np.asarray(ratios, float))
    drawn = rng.choice(logs, (experiments, pairs)) * rng.choice((-1, 1), (experiments, pairs))
    found = [statistics.median(np.exp(row), seed=number) for number, row in enumerate(drawn)]
    return np.array([(x.low, x.high) for x in found])


@experiment(
    units={
        "found": "share of the experiments",
        "low": "share of the experiments",
        "high": "share of the experiments",
        "verdict": "share of the experiments",
        "least": "times",
    }
)
def power(bed: Testbed) -> Iterator[Row]:
    """How often an experiment of so many pairs finds an effect, by effect and pairs.

    An effect of 1 is none: what is found is then a false alarm. `found` is the share of the drawn
    experiments whose interval excludes 1 on the right side (for no effect on either), with the 95 %
    interval of that share; `verdict` the share that would get a word for a difference of interest;
    `least` the smallest effect that experiments of so many pairs find with `POWER`.
    """
    time, given = equal_runs(bed), bed.parameters
    for pairs in PAIRS:
        drawn = drawn_intervals(time[OTHER] / time[ONE], pairs, given.resamples, given.seed)
        low, high = drawn.T
        for effect in (1.0, *EFFECTS):
            told = low * effect > 1
            if effect == 1:
                told |= high < 1
            verdict = (low * effect > 1 + MARGIN) | (high * effect < 1 / (1 + MARGIN))
            share = statistics.share(int(told.sum()), given.resamples)
            yield {
                "effect": effect,
                "pairs": pairs,
                "found": share.estimate,
                "low": share.low,
                "high": share.high,
                "verdict": float(verdict.mean()),
                "least": float(1 / np.quantile(low, 1 - POWER)),
            }


REPEATS = (2, 3, 4, 5, 7)
SPOILT = (10, 25, 50)  # per cent that the spoilt run is off


@experiment(
    units=dict.fromkeys(("share", "low", "high"), "share of the experiments"),
)
def spoilt_runs(bed: Testbed) -> Iterator[Row]:
    """Shares of spoilt runs that are noticed among so many repeats drawn from the equal runs.

    By how many per cent the run is off, repeats, and rule (of `repeated_runs`). Slow drift is taken
    out of the runs first: each is a multiple of the median of those around it.
    """
    time, given = equal_runs(bed), bed.parameters
    around = time.stack().rolling(6, min_periods=1, center=True).median().unstack()
    runs, drawn = (time / around).to_numpy().ravel(), 20 * given.resamples
    for off in SPOILT:
        for repeats in REPEATS:
            shares = repeated_runs.noticed(runs, repeats, 1 + off / 100, drawn, given.seed)
            for rule, share in shares.items():
                found = statistics.share(round(share * drawn), drawn)
                yield {
                    "off": off,
                    "repeats": repeats,
                    "rule": rule,
                    "share": found.estimate,
                    "low": found.low,
                    "high": found.high,
                }


# ---- a neighbour who wakes up halfway

HALF = 6  # blocks before the neighbour wakes up, and as many after
CROWD = 4  # programs for each processor
FIRST, SECOND = "the first", "the second"


@experiment(units={**TIME, "after_over_before": "times"})
def neighbour(bed: Testbed) -> Iterator[Row]:
    """Two equal scans; from the middle on programs beside them crowd every processor.

    Of the second's runs after that, `after_over_before` is its time over that of the first in a
    block before: what one would compare who had measured one variant after the other.
    """
    given, load = bed.parameters, scan(bed.server)
    many = load.lasting(min(SHORT, given.milliseconds), given.seed)
    awake: list[subprocess.Popen[bytes]] = []
    before = {
        row["block"]: row["time"] for row in bed.rows_of("neighbour") if row["variant"] == FIRST
    }

    def wake(block: Block, variant: str) -> None:
        if block.index >= HALF and not awake:
            busy = [sys.executable, "-c", "while True: pass"]
            processors = machine.describe()["cpus_usable"]
            assert isinstance(processors, int)
            awake.extend(subprocess.Popen(busy) for _ in range(CROWD * processors))

    def measure(block: Block, variant: str) -> dict[str, float]:
        found = load.times(many, block)
        if variant == FIRST:
            before[block.index] = found["time"]
        elif block.index - HALF in before:
            found["after_over_before"] = found["time"] / before[block.index - HALF]
        return found

    try:
        yield from bed.compare(
            measure,
            {"variant": [FIRST, SECOND]},
            pairs=2 * HALF,
            warmup=0,
            fixed=True,
            prepare=wake,
        )
    finally:
        for process in awake:
            process.kill()
            process.wait()
