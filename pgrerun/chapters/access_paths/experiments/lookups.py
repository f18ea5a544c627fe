"""The talk's experiment: lookups by key with the primary key alone and with a covering index."""

import time
from collections.abc import Iterator

import psycopg

from pgrerun.chapters.access_paths.accounts import (
    AMPLE,
    COVERED,
    DIRECT,
    KEYED,
    PLACES,
    SQL,
    allow_only,
    filled,
    in_print,
    load,
    pool_pages,
    repeated,
)
from pgrerun.lab.instruments import PAGE, counters, pgbench
from pgrerun.lab.server import Server, seed_random
from pgrerun.lab.testbed import Block, Row, Testbed, experiment
from pgrerun.record import printed

KEY, COVERING, AGAIN = "primary key", "covering index", "covering index, again"
# The relation that a variant looks up; its script is lookup_RELATION.pgbench.
RELATIONS = {KEY: KEYED, COVERING: COVERED, AGAIN: COVERED}
READS = {"table_reads": "pages/lookup", "index_reads": "pages/lookup"}


@experiment(
    units={"throughput": "transactions/s", **READS, "waiting": "share of the time"},
    needs=["restart"],
)
def lookups(bed: Testbed) -> Iterator[Row]:
    """pgbench's SELECT by key from as many sessions as in print, in every place; one twice.

    A small pool is filled with the variant's own pages first, by lookups for other keys than those
    that are timed; an ample one holds all that lookups need. Past the kernel's cache the load is
    run again, with other keys, until a time that decides a word is over.
    """
    given = bed.parameters
    servers = {memory: filled(bed, memory, given.accounts, KEYED, COVERED) for memory in PLACES}
    with servers[AMPLE].connect() as connection:
        allow_only(connection, "indexonlyscan")
        for relation in (KEYED, COVERED):
            SQL.run(connection, "scans.bring_in", relation=relation)

    def prepare(block: Block, memory: str, index: str) -> None:
        if memory != AMPLE:
            with servers[memory].connect() as connection:
                enough = min(2 * pool_pages(given.accounts), given.lookups)
                _look_up(connection, RELATIONS[index], given.accounts, enough, block.seed)

    def measure(block: Block, memory: str, index: str) -> dict[str, float]:
        relation, done = RELATIONS[index], list[pgbench.PgbenchResult]()

        def once() -> float:
            done.append(_run(bed, servers[memory], relation, block.seed + len(done)))
            return 1 / done[-1].tps

        with servers[memory].connect() as connection:
            before = _read(connection, relation)
            mean = repeated(once, given.milliseconds if memory == DIRECT else 0)
            # until pgbench's sessions have left, and so have reported what they read
            while SQL.run(connection, "scans.lookups_under_way").fetchone() != (0,):
                time.sleep(0.001)
            after = _read(connection, relation)
        heap, index_, waited = (now - earlier for now, earlier in zip(after, before))
        transactions = sum(run.transactions for run in done)
        return {
            "throughput": 1 / mean,
            "table_reads": heap / transactions,
            "index_reads": index_ / transactions,
            "waiting": waited / (given.clients * transactions * mean),
        }

    once_each = [(memory, index) for memory in PLACES for index in (KEY, COVERING)]
    yield from bed.compare(
        measure,
        [{"memory": memory, "index": index} for memory, index in [*once_each, (AMPLE, AGAIN)]],
        pairs=bed.fewer_pairs,
        warmup=0,
        prepare=prepare,
        fixed=True,
    )


def _run(bed: Testbed, server: Server, relation: str, seed: int) -> pgbench.PgbenchResult:
    given = bed.parameters
    return pgbench.run(
        server,
        SQL.script(f"lookup_{relation}"),
        clients=given.clients,
        jobs=min(2, given.clients),
        transactions=max(1, given.lookups // given.clients),
        variables={"rows": given.accounts},
        seed=seed,
        protocol="prepared",
    )


def _look_up(
    connection: psycopg.Connection, relation: str, rows: int, lookups: int, seed: int
) -> None:
    """So many lookups of keys drawn at random, by one statement."""
    seed_random(connection, seed)
    allow_only(connection, "indexonlyscan")
    SQL.run(connection, "scans.look_up", relation=relation, rows=rows, lookups=lookups)


def _read(connection: psycopg.Connection, relation: str) -> tuple[int, int, float]:
    """Pages of a table and of its indexes read into the pool, and how long all sessions waited for
    reads (s; 0 where track_io_timing is off).
    """
    counters.force_flush(connection)
    return SQL.run(connection, "scans.pages_read", relation=relation).fetchone()


_CATALOGS = 256  # pages of them that a session reads, in small pools a large part
SHARES = (0, 50, 100)


@experiment(units={"lookups": "lookups", **READS}, needs=["restart"])
def first_lookups(bed: Testbed) -> Iterator[Row]:
    """Pages that the talk's lookups read of a pool of its memory's share, by how many per cent of
    the index that they use are in memory when they begin: nothing, half, and all, as when it was
    just built.

    As in the talk the covering index is made beside the primary key, after the lookups by that.
    There are as many lookups for each leaf of an index as its five minutes had. Pages are those
    that the server reads into its pool, which stands for all of the memory.
    """
    rows = bed.parameters.joined
    pool = pool_pages(rows) + _CATALOGS
    server = bed.cluster(shared_buffers=f"{pool * PAGE // 1024}kB")
    load(server, rows, KEYED)
    then = printed.derived("access_paths_lookups")["lookups"]
    share = printed.value("tree_leaves(?)", rows) / printed.value("tree_leaves(?)", in_print())
    for index, key, column in ((KEY, "primary_key", "aid"), (COVERING, "covering", "abalance")):
        lookups = max(20, round(then[key] * share))
        if index == COVERING:
            with server.connect() as connection:
                SQL.run(connection, "scans.cover")
        for in_memory in SHARES:
            server.restart()
            with server.connect() as connection:
                allow_only(connection, "indexonlyscan")
                last = rows * in_memory // 100
                SQL.run(connection, "scans.bring_in_part", column=column, last=last)
                before = _read(connection, KEYED)
                _look_up(connection, KEYED, rows, lookups, bed.parameters.seed)
                heap, index_, _ = (a - b for a, b in zip(_read(connection, KEYED), before))
            yield {
                "index": index,
                "in_memory": in_memory,
                "lookups": lookups,
                "table_reads": heap / lookups,
                "index_reads": index_ / lookups,
            }
    with server.connect() as connection:
        SQL.run(connection, "scans.uncover")
