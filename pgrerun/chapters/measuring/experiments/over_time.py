"""Throughput over time: reads and writes, checkpoints, and how long a run has to be.

A write test swings with the checkpoints: after each one every page goes into the WAL whole when it
is first changed. With a hundred branches those pages fill PostgreSQL's own max_wal_size within
seconds, so that a cycle ends by its size and not by checkpoint_timeout's five minutes. Runs too
short for that get a limit so low that a cycle takes about a second, which shows what a cycle looks
like and isn't the talk's regime.
"""

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from pgrerun.chapters.measuring import loads
from pgrerun.lab.instruments import server_log, wal
from pgrerun.lab.testbed import ENOUGH_PAIRS, Block, Row, Testbed, experiment

LONG = 60.0  # seconds from which on a run sees whole checkpoint cycles of PostgreSQL's own
BRANCHES = 100  # of a long run: 1.5 GB, which are more than max_wal_size
WITHIN = 0.01  # the precision that a run should give its mean throughput, as a share of it
SHORT_CYCLES, OWN_CYCLES = {"max_wal_size": "48MB"}, {"max_wal_size": "1GB"}
READS, WRITES = "reads", "writes"
LOADS = {READS: loads.READ, WRITES: loads.WRITE}
SLOTS = {"in_slot": "transactions/s", "wal": "bytes/transaction", "checkpoint": "yes or no"}
RUNS = ENOUGH_PAIRS  # of each load: a run shows several cycles by itself


def hurried(bed: Testbed) -> bool:
    """Whether runs are too short for PostgreSQL's own cycles."""
    return bool(bed.parameters.seconds < LONG)


@experiment(
    units={
        "throughput": "transactions/s",
        "swing": "share of the mean",
        "length": "s",
        "cycles": "whole cycles",
        **SLOTS,
    },
    needs=["restart"],
)
def over_time(bed: Testbed) -> Iterator[Row]:
    """Reads and writes in turn, each run watched over time.

    A row for each run, and after it a row without a block for each of its slots: `time` in seconds
    from the run's start, throughput in the slot, WAL, and whether a checkpoint began. `cycles` are
    PostgreSQL's own that a run saw from checkpoint to checkpoint; those made short don't count.
    """
    cluster, given = bed.cluster(), bed.parameters
    slot, seen = 0.05 if hurried(bed) else 1.0, {}
    with cluster.reloaded(**(SHORT_CYCLES if hurried(bed) else OWN_CYCLES)):
        branches = given.clients if hurried(bed) else BRANCHES
        options = {"variables": loads.bank(cluster, branches).variables, "log": True}
        running = {
            load: loads.Load(cluster, "", builtin, given.clients, options)
            for load, builtin in LOADS.items()
        }
        many = {
            load: one.lasting(1000 * given.seconds, given.seed) for load, one in running.items()
        }

        def measure(block: Block, load: str) -> dict[str, float]:
            series, throughput = _watched(running[load], many[load], slot, block)
            seen[block.index, load] = series
            rates, began = series["in_slot"].to_numpy(), int(series["checkpoint"].sum())
            return {
                "throughput": throughput,
                "swing": swing(rates),
                "length": length(rates, slot),
                "cycles": 0 if hurried(bed) else max(0, began - 1),
                "checkpoints": began,
            }

        positive = ["throughput", "swing", "length"]
        for row in bed.compare(
            measure, {"load": [*LOADS]}, pairs=RUNS, warmup=0, positive=positive, fixed=True
        ):
            yield row
            if not row["disturbed"]:
                for one in seen.pop((row["block"], row["load"])).to_dict("records"):
                    yield {"load": row["load"], "run": row["block"], "slot": slot, **one}


def _watched(
    running: loads.Load, transactions: int, slot: float, block: Block
) -> tuple[pd.DataFrame, float]:
    """One run: its `slots`, with WAL and checkpoints, and its throughput."""
    cluster = running.server
    before = len(cluster.log())
    with wal.positions(cluster) as positions:
        done = running.run(transactions, block.seed)
    ends = of_all_clients(done.log)
    series = slots(ends, slot)
    edges = ends[0] + slot * np.arange(len(series) + 1)
    began, _ = np.histogram(server_log.checkpoints(cluster.log()[before:]), edges)
    series["checkpoint"] = began > 0
    written = np.diff(np.interp(edges, *zip(*positions, strict=True)))
    series["wal"] = written / (series["in_slot"] * slot).clip(lower=1)
    return series, loads.rate(done)


def of_all_clients(log: pd.DataFrame) -> np.ndarray:
    """Times at which transactions ended until the first client had done all of its own.

    pgbench gives each client as many. The quickest of four that only read were done half a minute
    before the last, which had a sixth of the throughput: reads seemed to swing more than writes.
    """
    over = log.groupby("client")["time_s"].max().min()
    return log.loc[log["time_s"] <= over, "time_s"].to_numpy()


def slots(ends: np.ndarray, slot: float) -> pd.DataFrame:
    """Throughput of a run in slots (s), by the times at which its transactions ended (s, sorted).

    Columns: time (s from the first end), in_slot (transactions/s). What the run's end cuts short is
    no slot.
    """
    edges = ends[0] + slot * np.arange(int((ends[-1] - ends[0]) / slot) + 1)
    counts, _ = np.histogram(ends, edges)
    return pd.DataFrame({"time": edges[:-1] - ends[0], "in_slot": counts / slot})


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
