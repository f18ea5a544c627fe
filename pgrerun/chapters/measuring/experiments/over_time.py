"""Throughput over time: reads and writes, checkpoints, and how long a run has to be.

A write test swings with the checkpoints: after each one every page goes into the WAL whole when it
is first changed. At PostgreSQL's defaults a cycle takes five minutes; here the WAL's size limit is
set so low that a cycle takes about a second, and lengths are compared, not minutes.
"""

import math
from functools import partial

import numpy as np
import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.measuring.experiments import load
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import server_log, wal

SLOT = 0.05  # seconds: throughput is counted in slots of this length
WITHIN = 0.01  # the precision that a run should give its mean throughput, as a share of it
UNITS = {
    "throughput": "transactions/s",
    "swing": "share of the mean",
    "length": "s",
    "checkpoints": "",
}
SETTINGS = {"max_wal_size": "48MB"}
READS, WRITES = "reads", "writes"
LOADS = {READS: load.READ, WRITES: load.WRITE}


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
    with cluster.reloaded(**SETTINGS):
        options = {"variables": load.bank(cluster, given.clients).variables, "log": True}
        for name, builtin in LOADS.items():
            running = load.Load(cluster, "", builtin, given.clients, options)
            many = running.lasting(1000 * given.seconds, given.seed)
            variants.append(Variant(name, partial(_watched, running, many, watched[name])))
        chapter.compare("over time", variants, UNITS, warmup=0, positive=UNITS)
        for variant in variants:
            if not watched[variant.name]:  # all of it was taken up from a killed run
                variant.measure(Block(0, given.seed, 0))
    return pd.concat(
        [end_to_end(runs).assign(load=name) for name, runs in watched.items()], ignore_index=True
    )


def end_to_end(runs: list[pd.DataFrame]) -> pd.DataFrame:
    """Runs one after the other: their columns, run (from 0), and time as if nothing lay between."""
    numbered = [frame.assign(run=run) for run, frame in enumerate(runs)]
    together = pd.concat([pd.DataFrame(columns=["time", "run"]), *numbered], ignore_index=True)
    return together.assign(time=SLOT * together.index)


def _watched(
    running: load.Load, transactions: int, watched: list[pd.DataFrame], block: Block
) -> dict[str, float]:
    """One run; what it looks like over time is added to `watched` unless it was disturbed."""
    cluster = running.server
    before = len(cluster.log())
    with wal.positions(cluster) as positions:
        done = running.run(transactions, block.seed)
    ends = done.log["time_s"].to_numpy()
    series = slots(ends)
    edges = ends[0] + SLOT * np.arange(len(series) + 1)
    began, _ = np.histogram(server_log.checkpoints(cluster.log()[before:]), edges)
    series["checkpoint"] = began > 0
    written = np.diff(np.interp(edges, *zip(*positions, strict=True)))
    series["wal"] = written / (series["throughput"] * SLOT).clip(lower=1)
    throughput = series["throughput"].to_numpy()
    found = {
        "throughput": load.rate(done),
        "swing": swing(throughput),
        "length": length(throughput),
    }
    if np.isfinite(list(found.values())).all():
        watched.append(series)
    return found | {"checkpoints": int(series["checkpoint"].sum())}


def slots(ends: np.ndarray) -> pd.DataFrame:
    """Throughput of a run in slots, by the times at which its transactions ended (s, sorted).

    Columns: time (s from the first end), throughput (transactions/s). What the run's end cuts short
    is no slot.
    """
    edges = ends[0] + SLOT * np.arange(int((ends[-1] - ends[0]) / SLOT) + 1)
    counts, _ = np.histogram(ends, edges)
    return pd.DataFrame({"time": edges[:-1] - ends[0], "throughput": counts / SLOT})


def swing(throughput: np.ndarray) -> float:
    """Standard deviation of the throughput in slots over its mean; NaN of fewer than two."""
    if len(throughput) < 2:
        return math.nan
    return float(throughput.std(ddof=1) / throughput.mean())


def length(throughput: np.ndarray) -> float:
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
    return float(max((1.96 * relative / WITHIN) ** 2 * stretch, 1) * SLOT)
