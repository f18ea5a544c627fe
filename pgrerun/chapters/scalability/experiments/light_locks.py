"""Lightweight locks of 2012: how often they are taken, and waited for.

Counted by builds of 9.1 and 9.2, and of the commit by which several sessions insert into the WAL,
whose processes print, when they end, what they did with each lock.
"""

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from pgrerun.chapters.scalability.experiments import commit_log
from pgrerun.chapters.scalability.experiments.builds import (
    complete,
    load_counted,
    pages_read,
    programs,
)
from pgrerun.chapters.scalability.load import (
    SMALL_POOL,
    SQL,
    Load,
    client_counts,
    crowd_size,
    in_memory,
    loaded,
    ours,
    processors,
    relations,
    roomy_pool,
)
from pgrerun.lab.instruments import server_log, sessions, wal
from pgrerun.lab.relations import loading
from pgrerun.lab.relations.pgbench import ACCOUNTS
from pgrerun.lab.server import Cluster
from pgrerun.lab.testbed import ENOUGH_PAIRS, Block, Row, Testbed, experiment, side_by_side

COUNTING = ("9.1-lwlock-stats", "9.2-lwlock-stats")
FREELIST, INSERT, OTHER = "BufFreelistLock", "WALInsertLock", "any other"
# What the talk names, by number in src/include/storage/lwlock.h, where both releases are alike.
NAMES = {
    0: FREELIST,
    4: "ProcArrayLock",
    5: "SInvalReadLock",
    7: INSERT,
    8: "WALWriteLock",
    11: "CLogControlLock",
} | dict.fromkeys(range(49, 65), "a partition of the lock table")
COUNTS = {"exclusively": "times", "waits": "times"}
Numbered = dict[int, dict[str, int | None]]  # counts by a lock's number
POOLS = {"fit": "64MB", "don't fit": SMALL_POOL}


@experiment(units={"reads": "pages"} | COUNTS, needs=["restart"])
def page_replacement(bed: Testbed, rows: int = 100_000, lookups: int = 10_000) -> Iterator[Row]:
    """How often lookups take the lock under which a page to give up is looked for.

    By several sessions, in a pool that holds all rows and in a small one, where each page that is
    read takes the place of another; they look all rows up once before they are counted.
    """
    look_up = SQL.text("builds.look_up", rows=rows, first=1, last=lookups)
    for name in complete([COUNTING]):
        server = bed.release(programs(name))
        load_counted(server, rows)
        for data, pool in POOLS.items():
            with server.restarted({"shared_buffers": pool}):
                with server.connect() as connection:
                    SQL.run(connection, "builds.look_up", rows=rows, first=1, last=rows)
                read = pages_read(server)
                with _counted(server) as locks:
                    sessions.at_once(server, [look_up] * crowd_size())
                yield {
                    "build": name,
                    "data": data,
                    "lookups": lookups * crowd_size(),
                    "reads": pages_read(server) - read,
                    **{count: locks[FREELIST][count] for count in COUNTS},
                }


@experiment(units={"records": "records"} | COUNTS, needs=["restart"])
def insertion_lock(bed: Testbed, rows: int = 20_000) -> Iterator[Row]:
    """How often one session and several take the lock under which WAL is inserted.

    Each inserts so many rows, which are a record each, as their relation has no index.
    """
    for name in complete([COUNTING]):
        server = bed.release(programs(name))
        for number in (1, max(2, processors())):
            with server.connect() as connection:
                loading.replace(connection, "inserted", SQL.text("builds.inserted"))
            with _counted(server) as locks:
                sessions.at_once(server, [SQL.text("builds.insert", rows=rows)] * number)
            yield {
                "build": name,
                "sessions": number,
                "records": rows * number,
                **{count: locks[INSERT][count] for count in COUNTS},
            }


AFTER, LATER = "right after a checkpoint", "later"


@experiment(
    units={"wal": "bytes/transaction"} | dict.fromkeys(COUNTS, "per transaction"),
    needs=["restart"],
)
def insertion_after_checkpoint(bed: Testbed) -> Iterator[Row]:
    """How often writers of 9.2 take that lock, after a checkpoint and later, and what they insert.

    `wal` is what they insert into the WAL, all of it while they have the lock.
    The same transactions each time, drawn with the block's seed: later they have run once before
    they are counted, so that every page they change has been logged in full since the checkpoint.
    """
    name = COUNTING[1]
    with Cluster(programs(name), in_memory(bed)) as tested:
        load = Load(bed, loaded(bed, tested), "tpcb", crowd_size())

        def measure(block: Block, moment: str) -> dict[str, float]:
            with (
                _counted(tested) as locks,
                tested.connect() as connection,
                wal.written(connection) as log,
            ):
                done = load.run(block.seed)
            return {
                "wal": log.bytes / done.transactions,
                **{count: locks[INSERT][count] / done.transactions for count in COUNTS},
            }

        def prepare(block: Block, moment: str) -> None:
            load.lasting()  # tried out before the checkpoint
            with tested.connect() as connection:
                connection.execute("CHECKPOINT")
            if moment == LATER:
                load.run(block.seed)

        yield from bed.compare(
            measure,
            {"moment": [AFTER, LATER]},
            prepare=prepare,
            pairs=ENOUGH_PAIRS,  # at profile ci, too: what is counted decides
            warmup=0,
            fixed=True,
            build=name,
            processors=processors(),
        )


BY_LOCK = {"transactions": "transactions", "blocked": "samples"} | COUNTS


@experiment(units=BY_LOCK, needs=["restart"])
def lookup_locks(bed: Testbed) -> Iterator[Row]:
    """What the most clients wait for that look rows of a table up by its key, by lightweight lock.

    All is in the pool. A row for each lock that the talk names, and one for that of all others
    which is waited for most. `blocked` is how many clients were seen to wait for a lock that
    another holds: by a view of then, which says nothing of lightweight locks.
    """
    for name in complete([COUNTING]):
        with Cluster(programs(name), ours(bed) | roomy_pool(bed)) as server:
            load = Load(bed, loaded(bed, server), "lookup", client_counts(bed)[-1])
            load.lasting()  # tried out before it is counted
            with _counted(server) as locks:
                done, blocked = sessions.count_meanwhile(
                    server,
                    SQL.text("builds.waiting"),
                    0.01,
                    partial(load.run, bed.parameters.seed),
                )
        for lock in dict.fromkeys([*NAMES.values(), OTHER]):
            yield {
                "build": name,
                "lock": lock,
                "transactions": done.transactions,
                "blocked": blocked,
                **{count: locks[lock][count] for count in COUNTS},
            }


# ---- writers

RECENT, LONG = "as loaded", "by half an hour of transactions"  # where accounts come from
LOG_PAGES = 512  # of the commit log, by some ten thousand transactions a second
DIVIDED = ("walslots-before-lwlock-stats", "walslots-lwlock-stats")
WAITS = "waits per 1,000 transactions"
# By number, where all four builds are alike. Insertion's is that of the mapping of the WAL's
# buffers once it is divided, and its slots' waits are counted with it.
WAITED_FOR: Mapping[str, Sequence[int]] = {
    "process_array": [4],
    "invalidations": [5],
    "wal_insertion": [7],
    "wal_write": [8],
    "lock_table": range(49, 65),
}
LOG_CONTROL, FIRST_LOG_BUFFER = 11, 81
BY_WRITERS = dict.fromkeys([*WAITED_FOR, "commit_log", "any_other"], WAITS)


@experiment(units=BY_WRITERS, needs=["restart"])
def writer_contention(bed: Testbed) -> Iterator[Row]:
    """What the most writers wait for, without waiting for the flush, on 9.1 and 9.2.

    In 9.1 with accounts as they were loaded, and in both with accounts that seem to be updated by
    half an hour of transactions before: then whoever reads one asks the commit log for any of
    `LOG_PAGES` pages, of which 9.1 keeps eight. Of the commit log its lock counts and the locks of
    its buffers, of the lock table the partition, and of what the talk doesn't name the lock that is
    waited for most. The lock of the list of buffers is left out, which each process takes to tell
    what it counted. No page is logged in full, which each would be after the restart that ages
    rows.
    """
    old, new = complete([COUNTING])
    yield from _waited_for(bed, [(old, RECENT), (old, LONG), (new, LONG)])


@experiment(units=BY_WRITERS, needs=["restart"])
def divided_insertion(bed: Testbed) -> Iterator[Row]:
    """The same on the commits before and after the one that divided the WAL's insertion.

    With accounts of half an hour of transactions.
    """
    yield from _waited_for(bed, [(name, LONG) for name in complete([DIVIDED])])


def _waited_for(bed: Testbed, cases: Sequence[tuple[str, str]]) -> Iterator[Row]:
    settings = in_memory(bed) | {"full_page_writes": "off"}
    with side_by_side((case, Cluster(programs(case[0]), settings)) for case in cases) as servers:
        loads = {}
        for case, server in servers.items():
            loaded(bed, server)
            if case[1] == LONG:
                name = relations(bed).relations[ACCOUNTS]
                commit_log.age_rows(server, name, LOG_PAGES, bed.parameters.seed)
            # counted, so that brief runs do
            loads[case] = Load(bed, server, "tpcb", client_counts(bed)[-1], told=True)
        buffers = {case: commit_log.kept(server) for case, server in servers.items()}

        def measure(block: Block, build: str, accounts: str) -> dict[str, float]:
            load = loads[build, accounts]
            load.lasting()  # tried out before it is counted
            with _numbered(load.server) as found:
                done = load.run(block.seed)
            waits = {number: counts["waits"] or 0 for number, counts in found.items()}
            each = waited_for(waits, buffers[build, accounts])
            return {lock: 1000 * times / done.transactions for lock, times in each.items()}

        yield from bed.compare(
            measure,
            [{"build": build, "accounts": accounts} for build, accounts in cases],
            pairs=ENOUGH_PAIRS,  # at profile ci, too: what is counted decides
            warmup=0,
            fixed=True,
            processors=processors(),
        )


def waited_for(waits: Mapping[int, int], log_buffers: int) -> dict[str, int]:
    """Waits by what is waited for, from those by lock's number (`BY_WRITERS`)."""
    log = [LOG_CONTROL, *range(FIRST_LOG_BUFFER, FIRST_LOG_BUFFER + log_buffers)]
    named = {0, *log, *(number for numbers in WAITED_FOR.values() for number in numbers)}
    return {
        **{name: max(waits.get(one, 0) for one in each) for name, each in WAITED_FOR.items()},
        "commit_log": sum(waits.get(one, 0) for one in log),
        "any_other": max((many for one, many in waits.items() if one not in named), default=0),
    }


@contextmanager
def _counted(server: Cluster) -> Iterator[dict[str, dict[str, int | None]]]:
    """What sessions count that begin in the block and end in it, by the lock; read afterwards.

    Of locks with one name in `NAMES`, or with none, the one that is waited for most.
    """
    found: dict[str, dict[str, int | None]] = defaultdict(lambda: dict.fromkeys(COUNTS, 0))
    with _numbered(server) as by_number:
        yield found
    for number, counts in by_number.items():
        name = NAMES.get(number, OTHER)
        found[name] = max(counts, found[name], key=lambda one: one["waits"] or 0)


@contextmanager
def _numbered(server: Cluster) -> Iterator[Numbered]:
    """The same by the lock's number."""
    _await_end_of_sessions(server)
    before, found = len(server.log()), Numbered()
    yield found
    _await_end_of_sessions(server)
    found.update(server_log.lightweight_locks(server.log()[before:]))


def _await_end_of_sessions(server: Cluster) -> None:
    while "client backend" in server.pids().values():
        time.sleep(0.01)
