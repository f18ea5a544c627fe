"""Throughput over time: reads and writes, checkpoints, and how long a run has to be.

A write test swings with the checkpoints: after each one every page goes into the log whole when it is first
changed. At PostgreSQL's defaults a cycle takes five minutes; here the log's size limit is set so low that
a cycle takes about a second, and lengths are compared, not minutes.
"""

import re
import threading
import time
from datetime import datetime
from functools import partial

import numpy as np
import pandas as pd

from pgrerun import statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.measuring.load import READ, WRITE, bank, drive, lasting
from pgrerun.experiment import Arm, Block

SLOT = 0.05  # seconds: throughput is counted in slots of this length
AFTER = 0.3  # seconds after a checkpoint began that are compared with all others
WITHIN = 0.01  # the precision that a run should give its mean throughput, as a share of it
UNITS = {"throughput": "transactions/s", "swing": "share of the mean", "length": "s", "checkpoints": ""}
SETTINGS = {"max_wal_size": "48MB"}
LOADS = {"reads": READ, "writes": WRITE}


def over_time(chapter: Chapter) -> pd.DataFrame:
    """Reads and writes in turn, each run watched over time.

    Returns the runs of each, one after the other, a row per slot: load, run (number), time (s from the first run's
    start, what lies between runs left out), throughput (transactions/s), log (bytes of log per transaction),
    checkpoint (one began in this slot).
    """
    cluster, given = chapter.cluster(), chapter.parameters
    shown: dict[str, list[pd.DataFrame]] = {load: [] for load in LOADS}
    with cluster.reloaded(**SETTINGS):
        bank(cluster, given.clients)
        many = {load: lasting(chapter, cluster, builtin=builtin, milliseconds=1000 * given.seconds, clients=given.clients, variables={"scale": given.clients}) for load, builtin in LOADS.items()}
        arms = [Arm(load, partial(_watched, chapter, cluster, load, many[load], shown)) for load in LOADS]
        chapter.compare("over time", arms, UNITS, warmup=0)
        for load in LOADS:
            if not shown[load]:  # all of the experiment was taken up from a killed run
                _watched(chapter, cluster, load, many[load], shown, Block(0, given.seed, 0))
    return pd.concat([_end_to_end(frames).assign(load=load) for load, frames in shown.items()], ignore_index=True)


def _end_to_end(frames: list[pd.DataFrame]) -> pd.DataFrame:
    together = pd.concat([frame.assign(run=run) for run, frame in enumerate(frames)], ignore_index=True)
    return together.assign(time=SLOT * together.index)


def _watched(chapter: Chapter, cluster, load: str, transactions: int, shown: dict, block: Block) -> dict[str, float]:
    seen = len(cluster.log())
    written = _Written(cluster)
    written.start()
    clients = chapter.parameters.clients
    done = drive(chapter, cluster, builtin=LOADS[load], transactions=transactions, clients=clients, seed=block.seed, variables={"scale": clients}, log=True)
    written.end()
    start = float(done.log["time_s"].iloc[0])
    series = slots(done.log["time_s"].to_numpy())
    series["checkpoint"] = _marked(series, checkpoints(cluster.log()[seen:]), start)
    series["log"] = written.between(start + series["time"], start + series["time"] + SLOT) / (series["throughput"] * SLOT).clip(lower=1)
    shown[load].append(series)
    rate = series["throughput"].to_numpy()
    return {"throughput": done.tps, "swing": swing(rate), "length": length(rate), "checkpoints": int(series["checkpoint"].sum())}


class _Written(threading.Thread):
    """How far the server's log has got, looked up every few hundredths of a second."""

    def __init__(self, cluster):
        super().__init__(daemon=True)
        self._connection, self._over = cluster.connect(), threading.Event()
        self._times: list[float] = []
        self._positions: list[int] = []

    def run(self) -> None:
        while not self._over.wait(0.03):
            position, = self._connection.execute("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").fetchone()
            self._times.append(time.time())
            self._positions.append(position)

    def end(self) -> None:
        self._over.set()
        self.join()
        self._connection.close()

    def between(self, starts: pd.Series, ends: pd.Series) -> np.ndarray:
        """Bytes of log written in each stretch of time, by interpolation."""
        at = lambda times: np.interp(times, self._times, self._positions)
        return at(ends) - at(starts)


def slots(ends: np.ndarray) -> pd.DataFrame:
    """Transactions per second in each slot of a run, by the times at which its transactions ended (s, sorted)."""
    edges = ends[0] + SLOT * np.arange(int((ends[-1] - ends[0]) / SLOT) + 1)  # a slot that the run's end cuts short is no slot
    counts, _ = np.histogram(ends, edges)
    return pd.DataFrame({"time": edges[:-1] - ends[0], "throughput": counts / SLOT})


def checkpoints(log: str) -> list[float]:
    """When the checkpoints in a server's log began, in seconds since the epoch."""
    stamps = re.findall(r"^(\S+ \S+) UTC \[\d+\] LOG:  checkpoint starting", log, re.MULTILINE)
    return [datetime.fromisoformat(f"{stamp}+00:00").timestamp() for stamp in stamps]


def _marked(series: pd.DataFrame, began: list[float], start: float) -> np.ndarray:
    times = series["time"].to_numpy()
    return np.array([any(t <= at - start < t + SLOT for at in began) for t in times])


def swing(rate: np.ndarray) -> float:
    """Standard deviation of the throughput in slots, as a share of its mean."""
    return float(rate.std(ddof=1) / rate.mean())


def length(rate: np.ndarray) -> float:
    """Seconds that a run needs for its mean throughput to be within `WITHIN` of the truth, at 95 %.

    From the variance of means over longer and longer stretches: what one slot tells about the next
    makes it larger than that of independent slots (batch means; the stretch is the square root of
    the run's length, in slots).
    """
    stretch = max(1, int(np.sqrt(len(rate))))
    whole = len(rate) // stretch * stretch
    means = rate[:whole].reshape(-1, stretch).mean(axis=1)
    relative = means.std(ddof=1) / rate.mean()
    return float(max((1.96 * relative / WITHIN) ** 2 * stretch, 1) * SLOT)


def spread_by_length(shown: pd.DataFrame) -> pd.DataFrame:
    """How far the means of stretches of the runs scatter, by the stretch's length: load, length (s), spread (share), random.

    `random` is the spread that slots without memory would have: that of single slots over the root of their number.
    """
    rows = []
    for load, frame in shown.groupby("load", sort=False):
        rate = frame["throughput"].to_numpy()
        for many in (1, 2, 4, 8, 16, 32, 64):
            stretch = frame.groupby("run").cumcount() // many
            means = frame.groupby(["run", stretch])["throughput"].agg(["mean", "size"]).query("size == @many")["mean"]
            if len(means) < 4:
                break
            rows.append((load, many * SLOT, means.std(ddof=1) / rate.mean(), swing(rate) / np.sqrt(many)))
    return pd.DataFrame(rows, columns=["load", "length", "spread", "random"])


def over(chapter: Chapter, metric: str) -> statistics.Interval | None:
    """A metric of the writes over that of the reads."""
    return chapter.ratio("over time", metric, "writes", "reads")


def after_checkpoints(shown: pd.DataFrame | None) -> dict[str, float] | None:
    """Throughput and log per transaction of the writes in the `AFTER` seconds after a checkpoint began, over all other slots."""
    if shown is None:
        return None
    writes = shown[shown["load"] == "writes"].reset_index(drop=True)
    following = writes.groupby("run")["checkpoint"].transform(lambda began: began.rolling(round(AFTER / SLOT), min_periods=1).max())
    near = following.to_numpy(bool)
    if not near.any() or near.all():
        return None
    over = {name: float(writes.loc[near, name].mean() / writes.loc[~near, name].mean()) for name in ("throughput", "log")}
    return {"checkpoints": int(writes["checkpoint"].sum())} | over
