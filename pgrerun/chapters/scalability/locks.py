"""The lock manager: who is on its fast path, what the lock table costs, and what that calibrates."""

import threading
import time
from functools import partial

import pandas as pd
import psycopg

from pgrerun import statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.scalability.bench import drive, processors, second, server
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import waits
from pgrerun.relations import loading
from pgrerun.server import Server

PARTITIONS = 100  # relations that one statement locks beside their parent; PostgreSQL 9.2 to 17 had sixteen slots
FEW_SLOTS = {"max_locks_per_transaction": 10}
FAST, TABLE, HELD = "fast path", "lock table", "strong lock elsewhere"
UNITS = {"throughput": "transactions/s", "fastpath": "share of relation locks"}
# the locks that a statement over all partitions takes, without the rest of that statement
QUERY = "BEGIN;\nLOCK TABLE scaling_parts IN ACCESS SHARE MODE;\nEND;\n"


# ---- what pg_locks shows


def weak_and_strong(chapter: Chapter) -> pd.DataFrame:
    """One session reads a relation, others want stronger locks on it: state, lock, granted, fastpath of each lock on it."""
    on = server(chapter)
    with on.connect() as maker:
        with maker.transaction():
            loading.replace(maker, "scaling_guarded", "CREATE TABLE scaling_guarded (id int)")
    rows = []
    with on.connect(autocommit=False) as reader, on.connect(autocommit=False) as second, on.connect() as watch:
        reader.execute("SELECT * FROM scaling_guarded")
        rows += _locks(watch, "one reader")
        second.execute("SELECT * FROM scaling_guarded")
        rows += _locks(watch, "two readers")
        second.execute("INSERT INTO scaling_guarded VALUES (1)")
        rows += _locks(watch, "a reader and a writer")
        second.rollback()
        with _asked(on, "DROP TABLE scaling_guarded", watch):
            rows += _locks(watch, "a reader and a DROP")
            reader.rollback()
    return pd.DataFrame(rows, columns=["state", "lock", "granted", "fastpath"])


def _locks(watch: psycopg.Connection, state: str) -> list[tuple]:
    found = watch.execute(
        "SELECT mode, granted, fastpath FROM pg_locks WHERE relation = to_regclass('scaling_guarded') AND pid <> pg_backend_pid() ORDER BY mode, granted"
    )
    return [(state, *row) for row in found]


class _asked:
    """A statement in a session of its own, asked when the block begins and let go when it ends."""

    def __init__(self, on: Server, statement: str, watch: psycopg.Connection):
        self._connection, self._statement, self._watch = on.connect(), statement, watch

    def __enter__(self):
        self._thread = threading.Thread(target=self._connection.execute, args=(self._statement,), daemon=True)
        self._thread.start()
        pid, until = self._connection.info.backend_pid, time.monotonic() + 30
        while time.monotonic() < until:
            if self._watch.execute("SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = %s", [pid]).fetchone()[0]:
                return
            time.sleep(0.005)

    def __exit__(self, *exception):
        self._thread.join(30)
        self._connection.close()


def weak_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """What the talk says of weak and strong locks, checked on pg_locks."""
    if found is None:
        return None
    of = {state: rows for state, rows in found.groupby("state", sort=False)}
    drop = of["a reader and a DROP"]
    return {
        "readers don't wait for each other": bool(of["two readers"]["granted"].all()),
        "a reader and a writer don't wait for each other": bool(of["a reader and a writer"]["granted"].all()),
        "their locks are on the fast path": bool(pd.concat([of["two readers"], of["a reader and a writer"]])["fastpath"].all()),
        "a DROP waits for a reader": bool((~drop["granted"]).any()),
        "the DROP has moved the reader's lock into the lock table": not drop["fastpath"].any(),
    }


def virtual_transactions(chapter: Chapter) -> pd.DataFrame:
    """The virtual transaction lock of a session before and while CREATE INDEX CONCURRENTLY waits for it: state, fastpath."""
    on = server(chapter)
    with on.connect() as maker:
        with maker.transaction():
            loading.replace(maker, "scaling_indexed", "CREATE TABLE scaling_indexed (id int)")
    with on.connect(autocommit=False) as writer, on.connect() as watch:
        writer.execute("INSERT INTO scaling_indexed VALUES (1)")
        pid = writer.info.backend_pid
        query = "SELECT %s::text, fastpath FROM pg_locks WHERE locktype = 'virtualxid' AND pid = %s AND granted"
        rows = [watch.execute(query, ("nobody waits for the transaction", pid)).fetchone()]
        with _asked(on, "CREATE INDEX CONCURRENTLY ON scaling_indexed (id)", watch):
            rows.append(watch.execute(query, ("CREATE INDEX CONCURRENTLY waits for it", pid)).fetchone())
            writer.rollback()
    return pd.DataFrame(rows, columns=["state", "fastpath"])


def virtual_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether a virtual transaction's lock is on the fast path until somebody waits for it."""
    if found is None:
        return None
    return {
        "a virtual transaction's lock is on the fast path": bool(found["fastpath"].iloc[0]),
        "who waits for it moves it into the lock table": not found["fastpath"].iloc[1],
    }


# ---- what the lock table costs


def overflow(chapter: Chapter) -> None:
    """A statement that locks many relations: all on the fast path, most beyond its slots, all pushed off by a strong lock elsewhere.

    The server with few slots differs in max_locks_per_transaction alone. The strong locks are
    SHARE locks, held by another session on the same relations: no reader has to wait for them.
    """
    few = second(chapter, **FEW_SLOTS)
    servers = {FAST: server(chapter), TABLE: few, HELD: server(chapter)}
    for on in (server(chapter), few):
        _partitioned(on)
    arms = [Arm(name, partial(_locked, chapter, on, name)) for name, on in servers.items()]
    chapter.compare("locks", arms, UNITS, warmup=0)


CROWD = 4 * processors()


def _partitioned(on: Server) -> None:
    with on.connect() as connection, connection.transaction():
        if not connection.execute("SELECT to_regclass('scaling_parts')").fetchone()[0]:
            loading.replace(connection, "scaling_parts", "CREATE TABLE scaling_parts (id int) PARTITION BY RANGE (id)")
            for part in range(PARTITIONS):
                connection.execute(f"CREATE TABLE scaling_part_{part} PARTITION OF scaling_parts FOR VALUES FROM ({part}) TO ({part + 1})")


def _locked(chapter: Chapter, on: Server, name: str, block: Block) -> dict[str, float]:
    with on.connect() as strong, strong.transaction():
        if name == HELD:
            strong.execute("LOCK TABLE scaling_parts IN SHARE MODE")
        with on.connect() as reader, reader.transaction():
            reader.execute("LOCK TABLE scaling_parts IN ACCESS SHARE MODE")
            query = "SELECT avg(fastpath::int)::float8 FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation' AND relation <> 'pg_locks'::regclass"
            [fast] = reader.execute(query).fetchone()
        done = drive(chapter, on, QUERY, CROWD, chapter.parameters.transactions / 4, block.seed)
    return {"throughput": done.tps, "fastpath": fast}


def gained(chapter: Chapter, slow: str = TABLE) -> statistics.Interval | None:
    """Throughput with all locks on the fast path over that with most in the lock table."""
    return chapter.ratio("locks", "throughput", FAST, slow)


def crowded(chapter: Chapter) -> pd.DataFrame:
    """What backends wait for with many clients, on the fast path and beyond it: arm, type, event, backends."""
    few = second(chapter, **FEW_SLOTS)
    frames = []
    for name, on in {FAST: server(chapter), TABLE: few}.items():
        with waits.sampled(on, every=0.002) as found:
            drive(chapter, on, QUERY, CROWD, chapter.parameters.transactions / 2, chapter.parameters.seed)
        frames.append(found.seen().assign(arm=name))
    return pd.concat(frames, ignore_index=True)


# ---- what the model needs to know

ALONE, SAME, OTHER, EMPTY = "alone", "both the same lock", "each its own lock", "no lock"
COST_UNITS = {"time": "ns"}
_LOOP = "SELECT count({}) FROM generate_series(1, {})"
_LOCK = "CASE WHEN pg_try_advisory_lock_shared({0}) THEN pg_advisory_unlock_shared({0}) END"
_NOTHING = "CASE WHEN pg_backend_pid() > 0 THEN pg_backend_pid() END"


def costs(chapter: Chapter) -> None:
    """Nanoseconds to take and release a lock through the lock table, in a loop inside the server: alone, and with a second session.

    Advisory locks in shared mode never wait for each other and have no fast path, as relation
    locks had none in PostgreSQL 9.1.
    """
    arms = [
        Arm(EMPTY, partial(_loops, server(chapter), [_NOTHING])),
        Arm(ALONE, partial(_loops, server(chapter), [_LOCK.format(1)])),
        Arm(SAME, partial(_loops, server(chapter), [_LOCK.format(1)] * 2)),
        Arm(OTHER, partial(_loops, server(chapter), [_LOCK.format(1), _LOCK.format(2)])),
    ]
    chapter.compare("lock costs", arms, COST_UNITS, warmup=0)


LOOPS = 50_000


def contended(chapter: Chapter) -> statistics.Interval | None:
    """Time of two sessions that take the same lock, for which neither has to wait, over that of two that take one each."""
    return chapter.ratio("lock costs", "time", SAME, OTHER)



def _loops(on: Server, expressions: list[str], block: Block) -> dict[str, float]:
    taken, start = [], threading.Barrier(len(expressions))

    def loop(expression: str) -> None:
        with on.connect() as connection:
            connection.execute("SET jit = off; SET max_parallel_workers_per_gather = 0")
            start.wait()
            began = time.perf_counter_ns()
            connection.execute(_LOOP.format(expression, LOOPS))
            taken.append((time.perf_counter_ns() - began) / LOOPS)

    threads = [threading.Thread(target=loop, args=(expression,)) for expression in expressions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(taken) < len(expressions):
        raise RuntimeError("a session of the lock loop failed")
    return {"time": sum(taken) / len(taken)}
