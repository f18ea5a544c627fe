"""Throughput over time: reads and writes, checkpoints, and how long a run has to be.

A write test swings with the checkpoints: after each one every page goes into the WAL whole when it
is first changed. At PostgreSQL's defaults a cycle takes five minutes. Runs too short for that get a
limit of the WAL's size so low that a cycle takes about a second, which shows what a cycle looks
like and isn't the talk's regime.
"""

import math
from functools import partial

import numpy as np
import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.measuring.experiments import load
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import server_log, wal

LONG = 60.0  # seconds from which on a run sees PostgreSQL's own checkpoint cycles
WITHIN = 0.01  # the precision that a run should give its mean throughput, as a share of it
UNITS = {
    "throughput": "transactions/s",
    "swing": "share of the mean",
    "length": "s",
    "checkpoints": "",
}
SHORT_CYCLES, OWN_CYCLES = {"max_wal_size": "48MB"}, {"checkpoint_timeout": "5min"}
READS, WRITES = "reads", "writes"
LOADS = {READS: load.READ, WRITES: load.WRITE}


def hurried(chapter: Chapter) -> bool:
    """Whether runs are too short for PostgreSQL's own cycles."""
    return chapter.parameters.seconds < LONG


def slot(chapter: Chapter) -> float:
    """Seconds of the slots in which throughput is counted."""
    return 0.05 if hurried(chapter) else 1.0


@experiment(claims=["haas-070", "haas-072"])
def over_time(chapter: Chapter) -> pd.DataFrame:
    """Reads and writes in turn, each run watched over time.

    The runs of each, one after the other, a row per slot: load, run (number), time (s from the
    first run's start, what lies between runs left out), throughput (transactions/s), wal (bytes per
    transaction), checkpoint (one began in this slot). Disturbed runs aren't among them.
    """
    cluster, given = chapter.cluster(), chapter.parameters
    watched: dict[str, list[pd.DataFrame]] = {name: [] for name in LOADS}
    variants = []
    with cluster.reloaded(**(SHORT_CYCLES if hurried(chapter) else OWN_CYCLES)):
        options = {"variables": load.bank(cluster, given.clients).variables, "log": True}
        for name, builtin in LOADS.items():
            running = load.Load(cluster, "", builtin, given.clients, options)
            many = running.lasting(1000 * given.seconds, given.seed)
            measure = partial(_watched, running, many, slot(chapter), watched[name])
            variants.append(Variant(name, measure))
        chapter.compare("over time", variants, UNITS, warmup=0, positive=UNITS)
        for variant in variants:
            if not watched[variant.name]:  # all of it was taken up from a killed run
                variant.measure(Block(0, given.seed, 0))
    return pd.concat(
        [end_to_end(runs, slot(chapter)).assign(load=name) for name, runs in watched.items()],
        ignore_index=True,
    )


def end_to_end(runs: list[pd.DataFrame], slot: float) -> pd.DataFrame:
    """Runs one after the other: their columns, run (from 0), and time as if nothing lay between."""
    numbered = [frame.assign(run=run) for run, frame in enumerate(runs)]
    together = pd.concat([pd.DataFrame(columns=["time", "run"]), *numbered], ignore_index=True)
    return together.assign(time=slot * together.index)


def _watched(
    running: load.Load, transactions: int, slot: float, watched: list[pd.DataFrame], block: Block
) -> dict[str, float]:
    """One run; what it looks like over time is added to `watched` unless it was disturbed."""
    cluster = running.server
    before = len(cluster.log())
    with wal.positions(cluster) as positions:
        done = running.run(transactions, block.seed)
    ends = done.log["time_s"].to_numpy()
    series = slots(ends, slot)
    edges = ends[0] + slot * np.arange(len(series) + 1)
    began, _ = np.histogram(server_log.checkpoints(cluster.log()[before:]), edges)
    series["checkpoint"] = began > 0
    written = np.diff(np.interp(edges, *zip(*positions, strict=True)))
    series["wal"] = written / (series["throughput"] * slot).clip(lower=1)
    throughput = series["throughput"].to_numpy()
    found = {
        "throughput": load.rate(done),
        "swing": swing(throughput),
        "length": length(throughput, slot),
    }
    if np.isfinite(list(found.values())).all():
        watched.append(series)
    return found | {"checkpoints": int(series["checkpoint"].sum())}


def slots(ends: np.ndarray, slot: float) -> pd.DataFrame:
    """Throughput of a run in slots (s), by the times at which its transactions ended (s, sorted).

    Columns: time (s from the first end), throughput (transactions/s). What the run's end cuts short
    is no slot.
    """
    edges = ends[0] + slot * np.arange(int((ends[-1] - ends[0]) / slot) + 1)
    counts, _ = np.histogram(ends, edges)
    return pd.DataFrame({"time": edges[:-1] - ends[0], "throughput": counts / slot})


def swing(throughput: np.ndarray) -> float:
    """Standard deviation of the throughput in slots over its mean; NaN of fewer than two."""
    if len(throughput) < 2:
        return math.nan
    return float(throughput.std(ddof=1) / throughput.mean())


def length(throughput: np.ndarray, slot: float) -> float:
    """Seconds until a run's mean throughput is within `WITHIN` of the truth, at 95 %.

    From the variance of means over stretches: what one slot tells about the next makes it larger
    than that of independent slots (batch means; the stretch is the square root of the run's length,
    in slots). NaN of fewer than two slots.
    """
    if len(throughput) < 2:
        return math.nan
    stretch = int(np.sqrt(len(throughput)))
    whole = len(throughput) // stretch * stretch
    means = throughput[:whole].reshape(-1, stretch).mean(axis=1)
    relative = means.std(ddof=1) / throughput.mean()
    return float(max((1.96 * relative / WITHIN) ** 2 * stretch, 1) * slot)
