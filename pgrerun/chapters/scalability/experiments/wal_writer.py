"""The WAL writer of 2011, which a full page of WAL wakes, and the one that slept its time.

A commit that waits for no flush is on the disk when the WAL writer has come. Only then a hint may
say on a row that its transaction has committed; until then whoever reads it asks the commit log.
"""

import itertools
import math
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from pgrerun.chapters.scalability.experiments.builds import (
    RELEASES,
    complete,
    over_clients,
    patched,
    programs,
)
from pgrerun.chapters.scalability.load import SQL, TPS, UNFLUSHED, ours, processors
from pgrerun.lab.instruments import pgbench, sessions
from pgrerun.lab.relations import loading
from pgrerun.lab.server import Cluster, releases
from pgrerun.lab.testbed import Block, Row, Testbed, experiment, shortened, side_by_side

PATCH = ["walwriter"]
ROWS = 300
UPDATES = 2_000  # a second, so that all builds commit as often
SCANS = 50  # of one statement
EVERY = 0.005  # seconds
NOBODY, WRITER = "nobody", "a client that updates"
SOONER = "9.1, looking more often"
# by name the build and what is set otherwise, of servers that aren't named as their build
CHANGED = {SOONER: (RELEASES[0], {"wal_writer_delay": "10ms"})}


@experiment(units={"unflushed": "ms", "unknown": "share of the versions"}, needs=["restart"])
def commits_reach_disk(bed: Testbed) -> Iterator[Row]:
    """How long commits that wait for no flush take to be on the disk, and what scans miss by it.

    One client updates rows of a small table, so many a second, and another scans it. `unflushed` is
    how long what was inserted into the WAL takes to be on the disk, `unknown` the share of the row
    versions about which a scan asks the commit log, as they lack a hint: both on average. On 9.1
    and 9.2, and before and after the commit that has the WAL writer woken.
    """
    seconds = max(1, round(shortened(2 * bed.parameters.seconds)))
    with _servers(bed, complete([RELEASES, *patched(PATCH)])) as servers:

        def measure(block: Block, build: str) -> dict[str, float]:
            found: dict[str, float] = {}
            with sessions.meanwhile(lambda over: found.update(_watched(servers[build], over))):
                _side_by_side(servers[build], WRITER, seconds, block.seed)
            return found

        yield from bed.compare(measure, {"build": list(servers)}, pairs=bed.timed_pairs(), warmup=0)


@experiment(units={"scans": "scans/s"}, needs=["restart"])
def scans_beside_a_writer(bed: Testbed) -> Iterator[Row]:
    """The same scans, timed, beside that client and beside nobody, on 9.1 and 9.2.

    Beside nobody every row has its hint, so that the releases scan at their own speeds. And beside
    the client on 9.1 whose WAL writer looks every 10 ms instead of every 200, which differs in
    nothing else.
    """
    seconds = max(1, round(bed.parameters.seconds))
    names = complete([RELEASES])
    cases = [*itertools.product(names, (NOBODY, WRITER)), (SOONER, WRITER)]
    with _servers(bed, [*names, SOONER]) as servers:
        yield from bed.compare(
            lambda block, build, beside: {
                "scans": _side_by_side(servers[build], beside, seconds, block.seed)
            },
            [{"build": build, "beside": beside} for build, beside in cases],
            pairs=bed.timed_pairs(bed.parameters.pairs),
            warmup=0,
            positive=["scans"],
        )


@contextmanager
def _servers(bed: Testbed, names: Sequence[str]) -> Iterator[dict[str, Cluster]]:
    def start(name: str) -> Cluster:
        build, changed = CHANGED.get(name, (name, {}))
        return Cluster(programs(build), ours(bed) | UNFLUSHED | changed)

    with side_by_side((name, start(name)) for name in names) as servers:
        for server in servers.values():
            server.extension("pageinspect")
            with server.connect() as connection:
                loading.replace(connection, "updated", SQL.text("wal_writer.updated"))
                SQL.run(connection, "wal_writer.fill_updated", rows=ROWS)
        yield servers


def _side_by_side(server: Cluster, beside: str, seconds: int, seed: int) -> float:
    """Scans a second by one client, for so many seconds."""

    def run(script: str, *more: str) -> float:
        return pgbench.run(
            server,
            SQL.script(script),
            seconds=seconds,
            protocol="prepared",
            seed=seed,
            variables={"rows": ROWS, "scans": SCANS},
            more=more,
        ).tps

    with ThreadPoolExecutor(1) as pool:
        updating = pool.submit(run, "update", f"--rate={UPDATES}") if beside == WRITER else None
        scans = SCANS * run("scan")
        if updating:
            updating.result()
    return scans


def _watched(server: Cluster, over: threading.Event) -> dict[str, float]:
    """How long WAL waits for the disk, and which share of the versions has no hint."""
    looks, shares = [], []
    with server.connect() as connection:
        version = connection.info.server_version
        positions, hints = SQL.text("wal_writer.positions"), SQL.text("wal_writer.hints")
        while not over.wait(EVERY):
            [found] = connection.execute(positions).fetchall()
            inserted, flushed = (releases.wal_bytes(version, str(one)) for one in found)
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


@experiment(units=TPS, needs=["restart"])
def woken_wal_writer(bed: Testbed) -> Iterator[Row]:
    """pgbench's own transaction before and after that commit, by as many clients as processors."""
    many = [(name, "writers", processors()) for name in complete(patched(PATCH))]
    yield from over_clients(bed, many, told=True)
