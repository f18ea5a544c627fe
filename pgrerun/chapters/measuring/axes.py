"""The same updates in two ways, one row a transaction or many, on several axes: throughput, latency, lock stalls."""

import re
from functools import partial

import pandas as pd

from pgrerun import statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.measuring.load import drive, lasting
from pgrerun.experiment import Arm, Block
from pgrerun.relations import loading

ROWS = 30
MANY = 20  # rows of one transaction in the second way
SINGLY, TOGETHER = "a row at a time", f"{MANY} rows at a time"
WAYS = {SINGLY: 1, TOGETHER: MANY}
# pg_sleep would be a sleep; holding a lock while the log is flushed is what a transaction does anyway.
SCRIPT = "\\set first random(1, {last})\nUPDATE stock SET n = n + 1 WHERE id BETWEEN :first AND :first + {more};\n"
# The server logs a wait for a lock once it takes longer than this, and how long it took in the end.
SETTINGS = {"log_lock_waits": "on", "deadlock_timeout": "1ms"}
AXES = {
    "throughput": "rows/s", "median latency": "ms", "99th percentile of latency": "ms",
    "lock stalls": "per thousand rows", "length of a stall": "ms",
}  # fmt: skip
BETTER = {name: (1 if name == "throughput" else -1) for name in AXES}


def ways(chapter: Chapter) -> None:
    """Both ways in turn, as many rows in each run."""
    cluster, clients = chapter.cluster(), max(2, chapter.parameters.clients)
    with loading.session(cluster) as connection, connection.transaction():
        loading.replace(connection, "stock", "CREATE TABLE stock (id int PRIMARY KEY, n int) WITH (autovacuum_enabled = off, fillfactor = 20)")
        connection.execute(f"INSERT INTO stock SELECT n, 0 FROM generate_series(1, {ROWS}) AS n")
    with cluster.reloaded(**SETTINGS):
        many = lasting(chapter, cluster, script(SINGLY), clients=clients)
        arms = [Arm(way, partial(_run, chapter, cluster, way, many, clients)) for way in WAYS]
        chapter.compare("axes", arms, AXES, warmup=0)  # that was tried out just now


def script(way: str) -> str:
    """The transaction; the rows of one are neighbours and locked in the order of their keys, so none deadlocks."""
    return SCRIPT.format(last=ROWS - WAYS[way] + 1, more=WAYS[way] - 1)


def _run(chapter: Chapter, cluster, way: str, rows: int, clients: int, block: Block) -> dict[str, float]:
    seen = len(cluster.log())
    transactions = max(rows // WAYS[way], 10 * clients)
    done = drive(chapter, cluster, script(way), transactions=transactions, clients=clients, seed=block.seed, log=True)
    updated, stalls = done.transactions * WAYS[way], lock_stalls(cluster.log()[seen:])
    return {
        "throughput": done.tps * WAYS[way], "median latency": done.percentile(50), "99th percentile of latency": done.percentile(99),
        "lock stalls": 1000 * len(stalls) / updated, "length of a stall": float(sum(stalls) / len(stalls)) if stalls else 0.0,
    }  # fmt: skip


def lock_stalls(log: str) -> list[float]:
    """How long each wait for a lock took that a server's log tells the end of, in ms."""
    return [float(ms) for ms in re.findall(r"LOG:  process \d+ acquired \w+ on .* after ([\d.]+) ms", log)]


def table(chapter: Chapter) -> pd.DataFrame | None:
    """Median of each axis for both ways, and which way is better on it. Empty axes stay empty."""
    rows = []
    for axis, unit in AXES.items():
        values = chapter.table("axes", axis)
        if values.empty:
            return None
        rows.append((axis, unit, values[SINGLY].median(), values[TOGETHER].median(), better(chapter, axis)))
    return pd.DataFrame(rows, columns=["axis", "unit", SINGLY, TOGETHER, "better"])


def better(chapter: Chapter, axis: str) -> str:
    """The way that is surely better on an axis; "" if that can't be told."""
    values = chapter.table("axes", axis)
    if (values <= 0).any(axis=None):  # an axis of counts may be at zero: only a difference in every block counts
        gain = BETTER[axis] * (values[TOGETHER] - values[SINGLY])
        return TOGETHER if (gain > 0).all() else SINGLY if (gain < 0).all() else ""
    found = statistics.ratio(values[TOGETHER], values[SINGLY], seed=chapter.parameters.seed)
    if found.low <= 1 <= found.high:
        return ""
    return TOGETHER if (found.low > 1) == (BETTER[axis] > 0) else SINGLY


def turned_over(chapter: Chapter) -> statistics.Interval | None:
    """In each block the lesser of two ratios, many rows at a time over one: of throughput, and of median latency.

    Above 1 the axes contradict each other: what is better on the one is worse on the other.
    """
    throughput, latency = (chapter.table("axes", axis) for axis in ("throughput", "median latency"))
    if throughput.empty:
        return None
    ratios = pd.concat([values[TOGETHER] / values[SINGLY] for values in (throughput, latency)], axis=1)
    return statistics.median(ratios.min(axis=1), seed=chapter.parameters.seed)
