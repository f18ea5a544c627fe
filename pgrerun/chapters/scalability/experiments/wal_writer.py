"""The WAL writer of 2011, before and after the commit by which a full page of WAL wakes it.

A commit that waits for no flush is on the disk when the WAL writer has come. Only then a hint may
say on a row that its transaction has committed; until then whoever reads it asks the commit log.
"""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np

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
from pgrerun.lab.instruments import pgbench, wal
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
            timed = _side_by_side(bed, servers[build], seconds, block.seed)
            with ThreadPoolExecutor(1) as pool:
                over = threading.Event()
                watching = pool.submit(_watched, servers[build], over)
                try:
                    _side_by_side(bed, servers[build], LOOKED_AT, block.seed)
                finally:
                    over.set()
                return timed | watching.result()

        yield from bed.compare(
            measure,
            {"build": names},
            pairs=pairs(bed),
            warmup=0,
            positive=["scans", "updates"],
        )


def _side_by_side(bed: Testbed, server: Cluster, seconds: int, seed: int) -> dict[str, float]:
    """Scans and updates a second, by a client for each."""

    def run(script: str) -> float:
        return pgbench.run(
            server,
            SQL.script(script),
            seconds=seconds,
            protocol="prepared",
            seed=seed,
            variables=relations(bed).variables,
        ).tps

    with ThreadPoolExecutor(1) as pool:
        updating = pool.submit(run, "update")
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
    writing = [k for k in range(1, len(looks)) if looks[k][1] > looks[k - 1][1]]
    unknown = [shares[k] for k in writing]
    return {
        "unflushed": 1e3 * waited(looks, writing),
        "unknown": float(np.mean(unknown)) if unknown else float("nan"),
    }


def waited(looks: list[tuple[float, int, int]], writing: list[int]) -> float:
    """Seconds, on average, until what was inserted at a look is seen on the disk.

    Looks in turn are a time and two positions, of what was inserted by then and of what was on the
    disk; `writing` are those that count. What wasn't on the disk by the last look is left out.
    """
    found = []
    for one in writing:
        began, inserted, _ = looks[one]
        ends = (at for at, _, flushed in looks[one:] if flushed >= inserted)
        found += [end - began for end in [next(ends, None)] if end is not None]
    return float(np.mean(found)) if found else float("nan")


@experiment(units={"tps": "transactions/s"}, needs=["restart"])
def woken_wal_writer(bed: Testbed) -> Iterator[Row]:
    """pgbench's own transaction before and after that commit, by as many clients as processors."""
    many = [(name, "writers", processors()) for name in complete(patched(PATCH))]
    yield from over_clients(bed, many, told=True)
