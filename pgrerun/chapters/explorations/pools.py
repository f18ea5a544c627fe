"""Experiment 1: the time to read one relation right after another was updated, over the size of the buffer pool.

What makes the difference is counted in `dirt.py`.
"""

import time
from functools import partial

import pandas as pd

from pgrerun import published, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.explorations import relations
from pgrerun.experiment import Arm, Block
from pgrerun.instruments.clock import stopwatch
from pgrerun.published.explorations import POOLS, heap_pages, shares
from pgrerun.server import Cluster

READ, UPDATED = "miltup1", "miltup2"

def scan(relation: str) -> str:
    """A query that reads the heap from end to end: counting tuples could be answered from the key's index alone."""
    return f"SELECT sum(unique1) FROM {relation}"


SCAN = scan(READ)
UPDATE = f"UPDATE {UPDATED} SET string4 = 'data overwritten exp1 round 1'"
CLEAN, DIRTY, CHECKPOINTED, WAITED = "after a read", "after an update", "update, checkpoint", "update, wait"
BELOW, EQUAL, ABOVE = "0.54 (128 MB)", "1.00", "4.00"
LABELS = {pool: f"{quantity} MB" for pool, quantity in zip(POOLS, (128, 208, 500))}
SWEEP_CLAIMS = ("expl-002", "expl-003", "expl-004", "expl-007", "expl-009")


def pools() -> dict[str, float]:
    """Sizes of the pool as multiples of the relation that is read, by label: the slides' three, exactly the relation's size, and four times that."""
    printed = {f"{share:.2f} ({LABELS[pool]})": share for pool, share in shares().items()}
    return dict(sorted(({EQUAL: 1.0, ABOVE: 4.0} | printed).items(), key=lambda pair: pair[1]))


def timed(chapter: Chapter) -> list[str]:
    """The pools in which the read is timed: the slides' smallest and largest and the relation's size at the least."""
    return _weightiest(chapter.parameters.timed_pools)


def counted(chapter: Chapter) -> list[str]:
    """The pools in which pages are counted: those, and four times the relation."""
    return _weightiest(max(4, chapter.parameters.timed_pools))


def _weightiest(number: int) -> list[str]:
    by_weight = [BELOW, EQUAL, printed_pool("mb500"), ABOVE, printed_pool("mb208")]
    return [pool for pool in pools() if pool in by_weight[:number]]


def printed_pool(pool: str) -> str:
    """The label of one of the slides' pools ("mb128", "mb208", "mb500")."""
    return f"{shares()[pool]:.2f} ({LABELS[pool]})"


def buffers(chapter: Chapter, pool: str) -> int:
    """Pages of a pool; the largest a little above four times the relation, from where on a scan has no ring."""
    share = pools()[pool]
    return round(share * heap_pages(chapter.parameters.tuples)) + (64 if share >= 4 else 0)


def cluster(chapter: Chapter, pool: str) -> Cluster:
    """A server whose pool has this multiple of the relation's pages, both relations loaded."""
    found = chapter.cluster(shared_buffers=f"{8 * buffers(chapter, pool)}kB")
    with found.connect() as connection:
        if not connection.execute("SELECT to_regclass(%s)", [UPDATED]).fetchone()[0]:
            for order, relation in enumerate((READ, UPDATED), 1):
                relations.keyed(connection, relation, chapter.parameters.tuples, order)
    return found


def settle(connection) -> None:
    """Free the space of the last update and write every dirty page."""
    connection.execute(f"VACUUM {UPDATED}")
    connection.execute("CHECKPOINT")
    connection.execute("SET max_parallel_workers_per_gather = 0")


def before(connection, arm: str, wait: float = 0) -> None:
    """What comes before the read in each arm."""
    settle(connection)
    connection.execute(scan(UPDATED) if arm == CLEAN else UPDATE)
    if arm == CHECKPOINTED:
        connection.execute("CHECKPOINT")
    if arm == WAITED:
        time.sleep(wait)


def sweep(chapter: Chapter) -> None:
    """Time to read miltup1 after reading miltup2 and after updating it, in pools of several sizes."""
    arms = [
        Arm(f"{pool}: {arm}", partial(read, found, READ), partial(_prepare, found, arm))
        for pool in timed(chapter) for found in [cluster(chapter, pool)] for arm in (CLEAN, DIRTY)
    ]  # fmt: skip
    chapter.compare("pools", arms, {"time": "ms"}, warmup=0)  # every arm begins with a vacuum and a checkpoint


def _prepare(found: Cluster, arm: str, block: Block) -> None:
    with found.connect() as connection:
        before(connection, arm)


def read(found: Cluster, relation: str, block: Block) -> dict[str, float]:
    """Time one read of a relation in a session of its own."""
    with found.connect() as connection:
        connection.execute("SET max_parallel_workers_per_gather = 0")
        connection.execute(f"EXPLAIN {scan(relation)}")  # a new session's catalog lookups are not what is timed
        with stopwatch() as watch:
            connection.execute(scan(relation)).fetchone()
    return {"time": 1000 * watch.seconds}


def slowdown(chapter: Chapter, pool: str) -> statistics.Interval | None:
    """Time to read after an update over that after a read, in one pool."""
    return chapter.ratio("pools", "time", f"{pool}: {DIRTY}", f"{pool}: {CLEAN}")


def peak(chapter: Chapter) -> dict[str, statistics.Interval] | None:
    """The slow-down in a pool of the relation's size over that in each other pool."""
    times = chapter.table("pools", "time")
    if times.empty:
        return None
    slow = {pool: times[f"{pool}: {DIRTY}"] / times[f"{pool}: {CLEAN}"] for pool in timed(chapter)}
    return {pool: statistics.ratio(slow[EQUAL], slow[pool], seed=chapter.parameters.seed) for pool in slow if pool != EQUAL}


def beyond_twice(chapter: Chapter) -> dict[str, statistics.Interval] | None:
    """The slow-downs in pools above twice the relation."""
    found = {pool: slowdown(chapter, pool) for pool in timed(chapter) if pools()[pool] > 2}
    return None if None in found.values() else found


def printed_slowdowns() -> pd.DataFrame:
    """Of the slides' rounds: the paired ratio of the experimental to the control reading of the same number, with its interval, by pool."""
    rounds = published.table("explorations_pool_rounds")
    groups = {group: frame.set_index("number") for group, frame in rounds.groupby("group")}
    rows = []
    for pool in POOLS:
        ratio = statistics.ratio(groups["dirty"][pool], groups["clean"][pool])
        averages = published.table("explorations_pool_averages")[pool]
        rows.append((pool, averages["dirty"] / averages["clean"], ratio.estimate, ratio.low, ratio.high))
    return pd.DataFrame(rows, columns=["pool", "of averages", "median", "low", "high"]).set_index("pool")


def spread(values: pd.Series) -> float:
    """The slowest reading over the fastest."""
    return float(values.max() / values.min())


def suspect_facts(chapter: Chapter) -> dict[str, bool] | None:
    """What speaks for and against throwing the slides' 500 MB readings away."""
    times = chapter.table("pools", "time")
    if times.empty:
        return None
    rounds = published.table("explorations_pool_rounds")
    control = rounds[rounds["group"] == "clean"]
    large, others = spread(control["mb500"]), max(spread(control[p]) for p in ("mb128", "mb208"))
    interval = printed_slowdowns().loc["mb500"]
    here = spread(times[f"{printed_pool('mb500')}: {CLEAN}"])
    return {
        "in print the control readings at 500 MB spread more than at the other pools": large > others,
        "in print the readings at 500 MB can't tell a slow-down from none": bool(interval["low"] <= 1 <= interval["high"]),
        "here the control readings in such a pool spread less than in print": here < large,
    }
