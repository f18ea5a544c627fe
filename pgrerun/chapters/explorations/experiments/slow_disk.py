"""Experiment 1 where a page that is read or written costs time, as a disk takes it."""

from functools import partial

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.explorations import relations
from pgrerun.chapters.explorations.experiments.buffer_pool import (
    ABOVE,
    BELOW,
    CLEAN,
    DIRTY,
    EQUAL,
    QUIET,
    READ,
    UPDATED,
    buffers,
    prepare,
    printed_pool,
)
from pgrerun.chapters.explorations.relations import ONE_PROCESS, SQL
from pgrerun.lab.disk import Disk, Slowed
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import clock
from pgrerun.lab.relations import loading
from pgrerun.lab.server import Cluster, releases, set_session
from pgrerun.record import statistics

RATE = 8000  # pages per second, read or written
NAME = "pools, slowed disk"
UNITS = {"time": "ms", "reads": "requests", "writes": "requests", "reading": "share of the time"}


def pools() -> tuple[str, ...]:
    """The slides' ends, the relation's own size, and a pool that holds everything."""
    return BELOW, EQUAL, printed_pool("mb500"), ABOVE


@experiment(needs=["restart"])
def readers(chapter: Chapter) -> None:
    """Time to read miltup1 after reading miltup2 and after updating it, each page for itself.

    Only what the reader asks the disk for takes time: the update before it runs at full speed.
    """
    variants = []
    for pool in pools():
        server, disk = _cluster(chapter, pool)
        for variant in (CLEAN, DIRTY):
            read = partial(_read, server, disk)
            variants.append(
                Variant(f"{pool}: {variant}", read, partial(_prepared, server, variant))
            )
    chapter.compare(NAME, variants, UNITS, pairs=statistics.ENOUGH, warmup=0)


def _cluster(chapter: Chapter, pool: str) -> tuple[Cluster, Slowed]:
    tuples = chapter.parameters.slowed_tuples
    settings = {"shared_buffers": f"{8 * buffers(tuples, pool)}kB", "fsync": "off"} | QUIET
    server, disk = chapter.on_slow_disk(**settings)
    with server.connect() as connection:
        for order, relation in enumerate((READ, UPDATED), 1):
            if not loading.is_ours(connection, relation):
                relations.keyed(connection, relation, tuples, order)
    return server, disk


def _prepared(server: Cluster, variant: str, block: Block) -> None:
    with server.connect() as connection:
        prepare(connection, variant)


def _read(server: Cluster, disk: Slowed, block: Block) -> dict[str, float]:
    """Read miltup1 once in a session of its own, page by page as release 11 did."""
    scan = SQL.text("buffer_pool.scan", relation=READ).encode()
    with server.connect() as connection:
        set_session(connection, ONE_PROCESS)
        if releases.knows(server.version, "io_combine_limit"):
            connection.execute("SET io_combine_limit = 1")
        connection.execute(b"EXPLAIN " + scan)  # a new session's catalog lookups aren't timed
        with disk.serving(Disk(1 / RATE, 1 / RATE)) as stretch, clock.stopwatch() as watch:
            connection.execute(scan).fetchone()
    asked = stretch.counts()
    return {
        "time": 1000 * watch.seconds,
        "reads": asked.reads.requests,
        "writes": asked.writes.requests,
        "reading": asked.reads.busy / watch.seconds,
    }
