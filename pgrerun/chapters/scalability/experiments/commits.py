"""Commits that wait for the flush: together, each alone, over clients, and with a slowed flush."""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.scalability.experiments.load import (
    LEAST,
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
from pgrerun.lab.instruments import counters, sessions
from pgrerun.lab.models import group_commit as model
from pgrerun.lab.server import Server
from pgrerun.record import printed

TALK_CLIENTS = int(printed.cell("scalability_write", "commit_clients", "value"))

FEW, MANY = "few", "many"
TOGETHER, ALONE = "flushed together", "each flushed alone"
INSERT, TEN = "single inserts", "ten statements"
COMMITS = [(INSERT, FEW), (INSERT, MANY), (TEN, MANY)]  # script, and how many clients
# script, and share of the parameter `commits` that is run
LOADS = {INSERT: ("single_insert", 1.0), TEN: ("ten_statements", 0.4)}


def clients(chapter: Chapter, crowd: str) -> int:
    """How many clients `FEW` and `MANY` are."""
    return {FEW: 4, MANY: chapter.parameters.commit_clients}[crowd]


def pair(load: str, crowd: str) -> tuple[str, str]:
    """The variants of `group_commit`: flushed together, and each flushed alone.

    Their names are the same whatever the number of clients.
    """
    return f"{load}, {TOGETHER}, {crowd} clients", f"{load}, {ALONE}, {crowd} clients"


@experiment(claims=["haas-022", "haas-026", "haas-027", "haas-028"])
def group_commit(chapter: Chapter) -> None:
    """Transactions of few clients and of many, flushed together and each alone.

    Each takes an advisory lock before it commits, which is given back when the commit has been
    flushed. Everybody's is the same where commits are to be flushed one by one, and each client's
    own where they aren't: the statements are the same.
    """
    require_own(chapter)  # so many connections, and a load that stops everybody
    tested = loaded(chapter)
    variants = []
    for kind, crowd in COMMITS:
        script, share = LOADS[kind]
        for name, own_lock in zip(pair(kind, crowd), (1, 0), strict=True):
            commits = Load(
                chapter,
                tested,
                SQL.script(script),
                clients(chapter, crowd),
                share * chapter.parameters.commits,
                variables={"own_lock": own_lock},
            )
            variants.append(Variant(name, commits.throughput))
    chapter.compare("commits", variants, THROUGHPUT, warmup=0)


# ---- commits per flush

PLAIN = "as it comes"
DELAYED, NOT_WAITED = "commit_delay of half a flush", "synchronous_commit off"


def swept(name: str, number: int) -> str:
    """The name of a variant of the commit sweeps."""
    return f"{name}, {by_clients(number)}"


def sizes(chapter: Chapter) -> list[int]:
    """Numbers of clients of the commit sweeps: one, `MANY`, and the step halfway between."""
    most = clients(chapter, MANY)
    return [1, round(most**0.5), most]


@experiment()
def sweep(chapter: Chapter) -> None:
    """Single inserts over clients: throughput and commits per flush.

    As it comes, and with the most clients delayed, and not waited for. Half the time of a flush
    is what the manual advises for commit_delay.
    """
    require_own(chapter)
    most = sizes(chapter)[-1]
    flush = chapter.run.environment["machine"]["fdatasync_8k_seconds"] or 1e-4
    delay = min(100_000, max(1, round(flush * 1e6 / 2)))
    tested = server(chapter)
    not_waited = partial(sessions.configured, tested, synchronous_commit="off")
    delayed = partial(sessions.configured, tested, commit_delay=delay)
    inserts = {swept(PLAIN, number): (number, nullcontext) for number in sizes(chapter)}
    inserts[swept(NOT_WAITED, most)] = most, not_waited
    inserts[swept(DELAYED, most)] = most, delayed
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
    if tested.version < 150000:
        raise CannotMeasure(
            "PostgreSQL 15", f"{tested.name} doesn't hand in its counts of flushes in time"
        )
    if fsync == "off" or method.startswith("open"):
        raise CannotMeasure(
            "counted flushes",
            f"with fsync = {fsync} and wal_sync_method = {method} no flush of the log is counted",
        )
    inserts = {swept(PLAIN, number): (number, nullcontext) for number in numbers}
    _sweep(chapter, tested, "commit sweep", inserts)


@experiment()
def slowed_sweep(chapter: Chapter) -> None:
    """The same on a disk that takes its time for a flush."""
    require_own(chapter)
    inserts = {swept(PLAIN, number): (number, nullcontext) for number in (1, sizes(chapter)[-1])}
    with disk.Slowed() as slow:
        tested = second_server(chapter, slow, wal_sync_method="fdatasync")
        loaded(chapter, tested)
        with slow.serving(disk.Disk(flush=chapter.parameters.flush_delay * 1e-6)):
            _sweep(chapter, tested, "slowed sweep", inserts)


def _sweep(
    chapter: Chapter,
    server: Server,
    name: str,
    inserts: Mapping[str, tuple[int, Callable[[], AbstractContextManager[None]]]],
) -> None:
    """Compare `inserts`: by variant its clients, and the context of each run."""
    loaded(chapter, server)
    variants = []
    for variant_name, (number, around) in inserts.items():
        single = Load(chapter, server, SQL.script("insert"), number, LEAST * number)
        variants.append(Variant(variant_name, partial(_per_flush, single, around)))
    chapter.compare(name, variants, THROUGHPUT | {"per flush": "commits"}, warmup=0)


def _per_flush(
    inserts: Load, around: Callable[[], AbstractContextManager[None]], block: Block
) -> dict[str, float]:
    with around():  # outside of the count, for changing a setting flushes as well
        before = _flushes(inserts.server)
        done = inserts.run(block.seed)
        _await_leaving(inserts.server)
        flushes = max(1, _flushes(inserts.server) - before)
    return {"throughput": done.tps, "per flush": done.transactions / flushes}


def _await_leaving(server: Server, patience: float = 2.0) -> None:
    """Wait until pgbench's backends have left, for that is when they hand in their counts."""
    staying = (
        "SELECT count(*) FROM pg_stat_activity WHERE application_name ="
        " current_setting('application_name') AND query LIKE 'INSERT INTO scaling_history%'"
    )
    deadline = time.monotonic() + patience
    with server.connect() as connection:
        while connection.execute(staying).fetchone()[0] and time.monotonic() < deadline:
            time.sleep(0.002)


def _flushes(server: Server) -> int:
    """Flushes of the WAL so far, by whomever."""
    with server.connect() as connection:
        counters.force_flush(connection)
        counted = "wal.flushes_18" if server.version >= 180000 else "wal.flushes"
        return int(SQL.run(connection, counted).fetchone()[0])


# ---- simulated

FLUSHES = (1e-4, 1e-3, 5e-3, 1e-2)  # seconds: from a good solid-state disk to a rotating one


@experiment()
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
