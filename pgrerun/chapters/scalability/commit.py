"""Commits that wait for the log: together, each alone, over clients, and with a flush that was slowed on purpose."""

import time
from collections.abc import Iterable
from contextlib import nullcontext
from functools import partial

import pandas as pd

from pgrerun import published, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.scalability import reading
from pgrerun.chapters.scalability.bench import TALK_CLIENTS, drive, load, processors, second, server, sessions
from pgrerun.errors import CannotMeasure
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import flushing
from pgrerun.models import group_commit
from pgrerun.server import Server

FEW, MANY = "few", "many"
TOGETHER, ALONE = "flushed together", "each flushed alone"
INSERT, TEN = "single inserts", "ten statements"
UNITS = {"throughput": "transactions/s"}
_SELECT = "SELECT abalance FROM scaling_accounts WHERE aid = :aid;\n"


def script(load: str, way: str) -> str:
    """One insert in a transaction, or nine lookups and an insert.

    The lock is given back when the commit has been flushed. Everybody's is the same where commits
    are to be flushed one by one, and each client's own where they aren't: the statements are the same.
    """
    key = ":client_id" if way == TOGETHER else "0"
    before = "\\set aid random(1, :accounts)\n" if load == TEN else ""
    work = _SELECT * 9 if load == TEN else ""
    return f"{before}BEGIN;\n{work}INSERT INTO scaling_inserts VALUES (:client_id, 'some words');\nSELECT pg_advisory_xact_lock({key});\nEND;\n"


def clients(chapter: Chapter, crowd: str) -> int:
    """How many clients `FEW` and `MANY` are."""
    return {FEW: 4, MANY: chapter.parameters.commit_clients}[crowd]


def arm(load: str, way: str, crowd: str) -> str:
    """The name of an arm of `commits`, the same whatever the number of clients."""
    return f"{load}, {way}, {crowd} clients"


def of_the_talks(chapter: Chapter) -> str:
    """What to remark on a gain with fewer or more clients than the talk had; "" with as many."""
    here = clients(chapter, MANY)
    return "" if here == TALK_CLIENTS else f"with {here} clients, where the talk had {TALK_CLIENTS}"


def commits(chapter: Chapter) -> None:
    """Transactions that wait for the flush, of few clients and of many, flushed together and each alone."""
    on = _ready(chapter, server(chapter))
    kinds = [(INSERT, way, crowd) for crowd in (FEW, MANY) for way in (TOGETHER, ALONE)] + [(TEN, way, MANY) for way in (TOGETHER, ALONE)]
    arms = [Arm(arm(*kind), partial(_commit, chapter, on, *kind)) for kind in kinds]
    chapter.compare("commits", arms, UNITS, warmup=0)


def _ready(chapter: Chapter, on: Server) -> Server:
    """The server with the relations; CannotMeasure on somebody else's."""
    if chapter.borrowed:
        chapter.cluster()  # says why not: so many connections, and a load that stops everybody
    load(chapter, on)
    return on


def _commit(chapter: Chapter, on: Server, kind: str, way: str, crowd: str, block: Block) -> dict[str, float]:
    share = 0.4 if kind == TEN else 1
    return {"throughput": drive(chapter, on, script(kind, way), clients(chapter, crowd), share * chapter.parameters.commits, block.seed).tps}


def together(chapter: Chapter) -> statistics.Interval | None:
    """Throughput of many clients' single inserts, flushed together over each flushed alone."""
    return chapter.ratio("commits", "throughput", arm(INSERT, TOGETHER, MANY), arm(INSERT, ALONE, MANY))


def _gains(chapter: Chapter) -> dict[tuple[str, str], pd.Series] | None:
    frame = chapter.table("commits", "throughput")
    if frame.empty:
        return None
    kinds = ((INSERT, FEW), (INSERT, MANY), (TEN, MANY))
    return {(load, crowd): frame[arm(load, TOGETHER, crowd)] / frame[arm(load, ALONE, crowd)] for load, crowd in kinds}


def many_over_few(chapter: Chapter) -> statistics.Interval | None:
    """The gain of many clients over that of few."""
    gains = _gains(chapter)
    return gains and statistics.ratio(gains[INSERT, MANY], gains[INSERT, FEW], seed=chapter.parameters.seed)


def inserts_over_ten(chapter: Chapter) -> statistics.Interval | None:
    """The gain of single inserts over that of transactions of ten statements."""
    gains = _gains(chapter)
    return gains and statistics.ratio(gains[INSERT, MANY], gains[TEN, MANY], seed=chapter.parameters.seed)


# ---- commits per flush

DELAYED, NOT_WAITED = "commit_delay of half a flush", "synchronous_commit off"
PLAIN = "as it comes"
SWEEP_UNITS = {"throughput": "transactions/s", "per flush": "commits"}
INSERT_ONLY = "INSERT INTO scaling_inserts VALUES (:client_id, 'some words');\n"


def sweep(chapter: Chapter) -> None:
    """Single inserts over clients: throughput and commits per flush; as it comes, delayed, and not waited for."""
    on = _ready(chapter, server(chapter))
    most = sizes(chapter)[-1]
    arms = [(PLAIN, {}, number) for number in sizes(chapter)] + [(NOT_WAITED, {"synchronous_commit": "off"}, most)]
    _swept(chapter, on, "commit sweep", [*arms, (DELAYED, {"commit_delay": _half(chapter)}, most)])


def as_it_comes(chapter: Chapter, numbers: Iterable[int]) -> None:
    """The same by these numbers of clients under the server's own settings only, so on somebody's server as well.

    Flushes are the whole server's, whoever asked for them. CannotMeasure where it doesn't count them.
    """
    on = server(chapter)
    with on.connect() as connection:
        [flushes, way] = connection.execute("SELECT current_setting('fsync'), current_setting('wal_sync_method')").fetchone()
    if on.version < 150000:
        raise CannotMeasure("PostgreSQL 15", f"{on.name} doesn't hand in its counts of flushes in time")
    if flushes == "off" or way.startswith("open"):
        raise CannotMeasure("counted flushes", f"with fsync = {flushes} and wal_sync_method = {way} no flush of the log is counted")
    load(chapter, on)
    _swept(chapter, on, "commit sweep", [(PLAIN, {}, number) for number in numbers])


def slowed(chapter: Chapter) -> None:
    """The same on a server whose flush was made slow on purpose, by a library that waits in front of it."""
    with flushing.slowed(chapter.parameters.flush_delay):
        on = _ready(chapter, second(chapter, wal_sync_method="fdatasync"))
    _swept(chapter, on, "slowed sweep", [(PLAIN, {}, number) for number in (1, sizes(chapter)[-1])])
    on.stop()  # whoever wants it next starts it without that library


def _half(chapter: Chapter) -> int:
    """Half the time of a flush, in microseconds, as the manual advises for commit_delay."""
    flush = chapter.run.environment["machine"]["fdatasync_8k_seconds"] or 1e-4
    return min(100_000, max(1, round(flush * 1e6 / 2)))


def swept(way: str, number: int) -> str:
    """The name of an arm of the commit sweeps."""
    return f"{way}, {reading.clients(number)}"


def sizes(chapter: Chapter) -> list[int]:
    """Numbers of clients of the commit sweeps: one, as many as for `MANY`, and the step halfway between."""
    most = clients(chapter, MANY)
    return [1, round(most**0.5), most]


def _swept(chapter: Chapter, on: Server, name: str, ways: list[tuple[str, dict, int]]) -> None:
    arms = [Arm(swept(way, number), partial(_flushed, chapter, on, setting, number)) for way, setting, number in ways]
    chapter.compare(name, arms, SWEEP_UNITS, warmup=0)


def _flushed(chapter: Chapter, on: Server, setting: dict, number: int, block: Block) -> dict[str, float]:
    with sessions(on, **setting) if setting else nullcontext():
        before = _flushes(on)
        done = drive(chapter, on, INSERT_ONLY, number, min(chapter.parameters.commits, 20 * number), block.seed)
        _handed_in(on)
        return {"throughput": done.tps, "per flush": done.transactions / max(1, _flushes(on) - before)}


def _handed_in(on: Server, patience: float = 2.0) -> None:
    """Wait until pgbench's backends have left, for that is when they hand in their counts."""
    staying = "SELECT count(*) FROM pg_stat_activity WHERE application_name = current_setting('application_name') AND query LIKE 'INSERT INTO scaling_inserts%'"
    deadline = time.monotonic() + patience
    with on.connect() as connection:
        while connection.execute(staying).fetchone()[0] and time.monotonic() < deadline:
            time.sleep(0.002)


def _flushes(on: Server) -> int:
    """Flushes of the log so far, by whomever."""
    with on.connect() as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
        query = "SELECT sum(fsyncs) FROM pg_stat_io WHERE object = 'wal'" if on.version >= 180000 else "SELECT wal_sync FROM pg_stat_wal"
        return int(connection.execute(query).fetchone()[0])


# ---- simulated

FLUSHES = (1e-4, 1e-3, 5e-3, 1e-2)  # seconds: from a good solid-state disk to a rotating one


def simulate(chapter: Chapter) -> pd.DataFrame | None:
    """Single inserts on the talk's commit machine, as 9.1 and as 9.2 flush: flush, clients, way, throughput, per_flush.

    A transaction's processor time and the cost of letting the next go on are this machine's; how
    long the talk's disk took to flush isn't said, so that is varied.
    """
    throughput, handed = chapter.table("commit sweep", "throughput"), chapter.median("handoff", "elapsed", "handoff")
    if throughput.empty or handed is None:
        return None
    work = processors() / throughput[swept(NOT_WAITED, sizes(chapter)[-1])].median()
    cores = int(published.cell("scalability_write", "commit_cores", "value"))
    rows = []
    for flush in FLUSHES:
        for number in (1, 4, 16, 64, TALK_CLIENTS):
            for way in (group_commit.QUEUE, group_commit.TOGETHER):
                played = group_commit.commit(
                    way, number, work=work, flush=flush, switch=handed.estimate * 1e-6, processors=cores,
                    transactions=chapter.parameters.simulated_transactions + 4 * number, seed=chapter.parameters.seed,
                )  # fmt: skip
                rows.append((flush, number, way, played.throughput, played.per_flush))
    return pd.DataFrame(rows, columns=["flush", "clients", "way", "throughput", "per_flush"])
