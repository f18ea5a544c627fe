"""Commits that wait for the flush: over clients, with a slowed flush, and simulated."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import pandas as pd

from pgrerun.chapters.scalability.load import (
    TPS,
    Load,
    allowed,
    loaded,
    ours,
    processors,
    server,
)
from pgrerun.errors import CannotMeasure
from pgrerun.lab import disk
from pgrerun.lab.instruments import counters, sessions
from pgrerun.lab.models import group_commit as model
from pgrerun.lab.server import Server, releases
from pgrerun.lab.testbed import Block, Row, Testbed, experiment
from pgrerun.record import printed

TALK_CLIENTS = int(printed.cell("scalability_write", "commit_clients", "value"))
UNITS = TPS | {"per_flush": "commits", "flushing": "share of the time"}
Around = Callable[[], AbstractContextManager[Any]]


def sizes(bed: Testbed) -> list[int]:
    """Numbers of clients of the commit sweeps: one, two, most, and the step halfway to them."""
    most = allowed(bed, bed.parameters.commit_clients)
    return sorted({1, 2, round(most**0.5), most})


@experiment(units=UNITS)
def commits(bed: Testbed) -> Iterator[Row]:
    """Single inserts over clients; those of most clients also without waiting for the flush.

    On somebody's server under its own settings only. Flushes are the whole server's, whoever asked
    for them; CannotMeasure where it doesn't count them.
    """
    tested, most = server(bed), sizes(bed)[-1]
    query = "SELECT current_setting('fsync'), current_setting('wal_sync_method')"
    fsync, method = tested.fetch(query) or ("", "")
    releases.require(tested.version, "pg_stat_force_next_flush")  # else the counts come late
    if fsync == "off" or method.startswith("open"):
        raise CannotMeasure(
            "counted flushes",
            f"with fsync = {fsync} and wal_sync_method = {method} no flush of the log is counted",
        )
    inserts: dict[tuple[int, bool], Around] = {(n, True): nullcontext for n in sizes(bed)}
    if not bed.borrowed:
        inserts[most, False] = partial(sessions.configured, tested, synchronous_commit="off")
    yield from _sweep(bed, tested, inserts)


@experiment(units=UNITS, needs=["restart"])
def slowed_commits(bed: Testbed) -> Iterator[Row]:
    """The same on a disk that takes its time for a flush.

    The server says how long it was flushing.
    """
    tested, slow = bed.cluster_on_slow_disk(
        **ours(bed), wal_sync_method="fdatasync", track_wal_io_timing="on"
    )
    loaded(bed, tested)
    with slow.serving(disk.Disk(flush=bed.parameters.flush_delay * 1e-6)):
        yield from _sweep(bed, tested, {(n, True): nullcontext for n in sizes(bed)})


def _sweep(
    bed: Testbed, tested: Server, inserts: Mapping[tuple[int, bool], Around]
) -> Iterator[Row]:
    """Throughput, commits per flush, and of a server that times its flushes their share of time.

    `inserts` are contexts of the runs, by clients and whether they wait for their commits.
    """
    loaded(bed, tested)
    loads = {run: Load(bed, tested, "insert", run[0], told=True) for run in inserts}
    with counters.Counters(tested, settle=0) as counter:

        def measure(block: Block, clients: int, waits: bool) -> dict[str, float]:
            # outside of the count, for changing a setting flushes as well
            with inserts[clients, waits]():
                loads[clients, waits].lasting()
                with counter.measured() as counted:
                    done = loads[clients, waits].run(block.seed)
            flushes, seconds = counted.wal_flushes
            return {
                "tps": done.tps,
                "per_flush": done.transactions / max(1, flushes),
                "flushing": seconds * done.tps / done.transactions,
            }

        yield from bed.compare(
            measure,
            [{"clients": number, "waits": waits} for number, waits in inserts],
            pairs=bed.timed_pairs(),
            warmup=0,
            positive=["tps"],
        )


# ---- simulated

FLUSHES = (0.1, 1.0, 5.0, 10.0)  # milliseconds: from a good solid-state disk to a rotating one
RELEASES = {model.QUEUE: "9.1", model.TOGETHER: "9.2"}


@experiment(units=TPS | {"per_flush": "commits"})
def simulated_commits(bed: Testbed) -> Iterator[Row]:
    """Single inserts on the talk's commit machine, as PostgreSQL 9.1 and as 9.2 flush.

    A transaction's processor time and the cost of letting the next go on are this machine's
    (`commits`, `handoffs`); how long the talk's disk took to flush isn't said, so it is varied.
    """
    most = [row for row in bed.rows_of("commits") if not (row["waits"] or row["disturbed"])]
    handed = [row["elapsed"] for row in bed.rows_of("handoffs") if not row["disturbed"]]
    if not (most and handed):
        raise CannotMeasure("a run of the whole chapter", "it plays what others have measured")
    for flush in FLUSHES:
        for number in (1, 4, 16, 64, TALK_CLIENTS):
            for way, release in RELEASES.items():
                played = model.commit(
                    way,
                    number,
                    work=processors() / float(pd.Series([row["tps"] for row in most]).median()),
                    flush=flush * 1e-3,
                    switch=float(pd.Series(handed).median()) * 1e-6,
                    processors=int(printed.cell("scalability_write", "commit_cores", "value")),
                    transactions=bed.parameters.simulated_transactions + 4 * number,
                    seed=bed.parameters.seed,
                )
                yield {
                    "flush_ms": flush,
                    "clients": number,
                    "release": release,
                    "tps": played.throughput,
                    "per_flush": played.per_flush,
                }
