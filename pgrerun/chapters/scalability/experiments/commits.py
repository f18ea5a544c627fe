"""Commits that wait for the flush: over clients, with a slowed flush, and simulated."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.scalability.experiments.load import (
    SQL,
    THROUGHPUT,
    Load,
    by_clients,
    loaded,
    processors,
    require_own,
    second_server,
    server,
)
from pgrerun.errors import CannotMeasure
from pgrerun.lab import disk
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import sessions
from pgrerun.lab.instruments.counters import Counters
from pgrerun.lab.models import group_commit as model
from pgrerun.lab.server import Server, releases
from pgrerun.record import printed

TALK_CLIENTS = int(printed.cell("scalability_write", "commit_clients", "value"))

PLAIN, NOT_WAITED = "as it comes", "synchronous_commit off"
UNITS = THROUGHPUT | {"per flush": "commits", "flushing": "share of the time"}


def swept(name: str, number: int) -> str:
    """The name of a variant of the commit sweeps."""
    return f"{name}, {by_clients(number)}"


def sizes(chapter: Chapter) -> list[int]:
    """Numbers of clients of the commit sweeps: one, two, most, and the step halfway to them."""
    most = chapter.parameters.commit_clients
    return sorted({1, 2, round(most**0.5), most})


@experiment()
def sweep(chapter: Chapter) -> None:
    """Single inserts over clients; those of most clients also without waiting for the flush."""
    require_own(chapter)
    tested, most = server(chapter), sizes(chapter)[-1]
    not_waited = partial(sessions.configured, tested, synchronous_commit="off")
    inserts = {swept(PLAIN, number): (number, nullcontext) for number in sizes(chapter)}
    inserts[swept(NOT_WAITED, most)] = most, not_waited
    _sweep(chapter, tested, "commit sweep", inserts)


def as_it_comes(chapter: Chapter, numbers: Iterable[int]) -> None:
    """The same by these numbers of clients under the server's own settings only.

    So on somebody's server as well. Flushes are the whole server's, whoever asked for them.
    CannotMeasure where it doesn't count them.
    """
    tested = server(chapter)
    with tested.connect() as connection:
        query = "SELECT current_setting('fsync'), current_setting('wal_sync_method')"
        fsync, method = connection.execute(query).fetchone()
    releases.require(tested.version, "pg_stat_force_next_flush")  # else the counts come late
    if fsync == "off" or method.startswith("open"):
        raise CannotMeasure(
            "counted flushes",
            f"with fsync = {fsync} and wal_sync_method = {method} no flush of the log is counted",
        )
    inserts = {swept(PLAIN, number): (number, nullcontext) for number in numbers}
    _sweep(chapter, tested, "commit sweep", inserts)


@experiment()
def slowed_sweep(chapter: Chapter) -> None:
    """The same on a disk that takes its time for a flush.

    The server says how long it was flushing.
    """
    require_own(chapter)
    with disk.Slowed() as slow:
        tested = second_server(chapter, slow, wal_sync_method="fdatasync", track_wal_io_timing="on")
        loaded(chapter, tested)
        inserts = {swept(PLAIN, number): (number, nullcontext) for number in sizes(chapter)}
        with slow.serving(disk.Disk(flush=chapter.parameters.flush_delay * 1e-6)):
            _sweep(chapter, tested, "slowed sweep", inserts)


def _sweep(
    chapter: Chapter,
    server: Server,
    name: str,
    inserts: Mapping[str, tuple[int, Callable[[], AbstractContextManager[None]]]],
) -> None:
    """Compare `inserts`: by variant its clients, and the context of each run.

    Measures throughput, commits per flush, and of a server that times its flushes how much of the
    time it was flushing.
    """
    loaded(chapter, server)
    with Counters(server, settle=0) as counters:

        def measure(
            single: Load, around: Callable[[], AbstractContextManager[None]], block: Block
        ) -> dict[str, float]:
            # outside of the count, for changing a setting flushes as well
            with around(), counters.measured() as counted:
                done = single.run(block.seed)
            flushes, seconds = counted.wal_flushes
            return {
                "throughput": done.tps,
                "per flush": done.transactions / max(1, flushes),
                "flushing": seconds * done.tps / done.transactions,
            }

        variants = []
        for variant, (number, around) in inserts.items():
            single = Load(chapter, server, SQL.script("insert"), number, chapter.parameters.commits)
            variants.append(Variant(variant, partial(measure, single, around)))
        chapter.compare(name, variants, UNITS, warmup=0)


# ---- simulated

FLUSHES = (1e-4, 1e-3, 5e-3, 1e-2)  # seconds: from a good solid-state disk to a rotating one


@experiment(after=["commits.sweep", "large_machines.handoffs"])
def simulate(chapter: Chapter) -> pd.DataFrame:
    """Single inserts on the talk's commit machine, as PostgreSQL 9.1 and as 9.2 flush.

    A transaction's processor time and the cost of letting the next go on are this machine's; how
    long the talk's disk took to flush isn't said, so that is varied. Columns: flush (seconds),
    clients, way (`models.group_commit`), throughput, per_flush.
    """
    throughput = chapter.median("commit sweep", "throughput", swept(NOT_WAITED, sizes(chapter)[-1]))
    handoff = chapter.median("handoff", "elapsed", "handoff")
    given, rows = chapter.parameters, []
    points = [
        (flush, number, way)
        for flush in FLUSHES
        for number in (1, 4, 16, 64, TALK_CLIENTS)
        for way in (model.QUEUE, model.TOGETHER)
    ]
    for flush, number, way in points:
        played = model.commit(
            way,
            number,
            work=processors() / throughput.estimate,
            flush=flush,
            switch=handoff.estimate * 1e-6,
            processors=int(printed.cell("scalability_write", "commit_cores", "value")),
            transactions=given.simulated_transactions + 4 * number,
            seed=given.seed,
        )
        rows.append((flush, number, way, played.throughput, played.per_flush))
    return pd.DataFrame(rows, columns=["flush", "clients", "way", "throughput", "per_flush"])
