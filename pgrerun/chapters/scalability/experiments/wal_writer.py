"""The WAL writer of 2011, before and after the commit by which a full page of WAL wakes it.

A commit that waits for no flush is on the disk when the WAL writer has come. Only then a hint may
say on a row that its transaction has committed; until then whoever reads it asks the commit log.
"""

import itertools
import math
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from pgrerun.chapters.scalability.experiments.builds import (
    complete,
    over_clients,
    patched,
    programs,
)
from pgrerun.chapters.scalability.load import (
    SQL,
    UNFLUSHED,
    loaded,
    ours,
    pairs,
    processors,
    relations,
    roomy_pool,
)
from pgrerun.lab.instruments import pgbench, sessions, wal
from pgrerun.lab.server import Cluster
from pgrerun.lab.testbed import Block, Row, Testbed, experiment

PATCH = ["walwriter"]
UNITS = {
    "scans": "scans/s",
    "updates": "transactions/s",
    "unflushed": "ms",
    "unknown": "share of the versions",
}
LOOKED_AT = 2  # seconds
EVERY = 0.005  # seconds
UPDATES = 2_000  # a second, so that a scan of either build meets as many


@experiment(units=UNITS, needs=["restart"])
def scans_beside_a_writer(bed: Testbed) -> Iterator[Row]:
    """Scans of pgbench's branches by one client, while another updates one after the other.

    No commit waits for the flush, all is in the pool, and no checkpoint comes. What both do alone
    is timed; then they run once more, watched. `unflushed` is how long what was inserted into the
    WAL takes to be on the disk, `unknown` the share of the row versions about which a scan asks the
    commit log, as no hint of theirs is set: both on average.
    """
    settings = ours(bed) | UNFLUSHED | roomy_pool(bed)
    seconds = max(1, round(bed.parameters.seconds))
    names = complete(patched(PATCH))
    with ExitStack() as stack:
        servers = {name: stack.enter_context(Cluster(programs(name), settings)) for name in names}
        for server in servers.values():
            loaded(bed, server)
            server.extension("pageinspect")

        def measure(block: Block, build: str) -> dict[str, float]:
            found = _side_by_side(bed, servers[build], seconds, block.seed)
            with sessions.meanwhile(lambda over: found.update(_watched(servers[build], over))):
                _side_by_side(bed, servers[build], LOOKED_AT, block.seed)
            return found

        many, positive = pairs(bed, bed.parameters.pairs), ["scans", "updates"]
        yield from bed.compare(measure, {"build": names}, pairs=many, warmup=0, positive=positive)


def _side_by_side(bed: Testbed, server: Cluster, seconds: int, seed: int) -> dict[str, float]:
    """Scans and updates a second, by a client for each."""

    def run(script: str, *more: str) -> float:
        return pgbench.run(
            server,
            SQL.script(script),
            seconds=seconds,
            protocol="prepared",
            seed=seed,
            variables=relations(bed).variables,
            more=more,
        ).tps

    with ThreadPoolExecutor(1) as pool:
        updating = pool.submit(run, "update", f"--rate={UPDATES}")
        return {"scans": run("scan"), "updates": updating.result()}


def _watched(server: Cluster, over: threading.Event) -> dict[str, float]:
    """How long WAL waits for the disk, and which share of the versions has no hint."""
    looks, shares = [], []
    with server.connect() as connection:
        version = connection.info.server_version
        positions, hints = SQL.text("wal_writer.positions"), SQL.text("wal_writer.hints")
        while not over.wait(EVERY):
            [found] = connection.execute(positions).fetchall()
            inserted, flushed = (wal.Position.parse(str(one), version).bytes for one in found)
            looks.append((time.perf_counter(), inserted, flushed))
            [[versions, unknown]] = connection.execute(hints).fetchall()
            shares.append(unknown / versions)
    # while nothing was inserted, nothing waits
    writing = [k for k in range(1, len(looks)) if looks[k][1] > looks[k - 1][1]]
    return {
        "unflushed": 1e3 * mean([one for k in writing for one in waited(looks[k:])]),
        "unknown": mean([float(shares[k]) for k in writing]),
    }


def waited(looks: Sequence[tuple[float, int, int]]) -> Iterator[float]:
    """Seconds until what was inserted at the first look is seen on the disk; none if it isn't.

    Looks in turn are a time and two positions: up to where the WAL was inserted by then, and up to
    where it was on the disk.
    """
    began, inserted, _ = looks[0]
    yield from itertools.islice((at - began for at, _, end in looks if end >= inserted), 1)


def mean(values: Sequence[float]) -> float:
    """Their mean; of none NaN, which is measured again."""
    return sum(values) / len(values) if values else math.nan


@experiment(units={"tps": "transactions/s"}, needs=["restart"])
def woken_wal_writer(bed: Testbed) -> Iterator[Row]:
    """pgbench's own transaction before and after that commit, by as many clients as processors."""
    many = [(name, "writers", processors()) for name in complete(patched(PATCH))]
    yield from over_clients(bed, many, told=True)
