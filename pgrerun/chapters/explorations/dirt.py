"""Experiment 1, the mechanism: which pages are dirty, who writes them, which stay, what a delay and a checkpoint change.

Counted, not timed: pages in the pool from pg_buffercache, writes from pg_stat_io (before
PostgreSQL 16 from EXPLAIN's buffers and pg_stat_bgwriter), log from EXPLAIN.
"""

import re
import time
from collections.abc import Sequence
from functools import partial

import pandas as pd
import psycopg

from pgrerun import statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.explorations import relations
from pgrerun.chapters.explorations.pools import (
    ABOVE, BELOW, CHECKPOINTED, CLEAN, DIRTY, EQUAL, READ, SCAN, UPDATE, UPDATED, WAITED, before, cluster, counted, pools, read, scan, settle, slowdown, timed,
)  # fmt: skip
from pgrerun.errors import CannotMeasure
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import counters, plans
from pgrerun.server import Cluster

RING_OF_11 = 256 // 8
"""Pages: 256 kB for every bulk read (src/backend/storage/buffer/README and freelist.c of release 11); from release 18 on it goes with the pool."""
QUIET = {"bgwriter_lru_maxpages": 0}  # no background writer: every write has one of two authors


# ---- who writes


def written(chapter: Chapter, sizes: Sequence[str] | None = None) -> pd.DataFrame:
    """Pages that a reader of miltup1 has to write, in pools of several sizes (or of these), after each kind of preparation.

    Columns: pool, arm, read, hit and written (pages, of the reader's own), dirty_before and dirty_after (pages of
    miltup2 in the pool), left (pages of miltup1 in the pool afterwards: those of its ring, if it had one and found none).
    There is no background writer, so that the counts are the same every time.
    """
    rows = []
    for pool in sizes or counted(chapter):
        found = cluster(chapter, pool)
        found.extension("pg_buffercache")
        with found.reloaded(**QUIET), found.connect() as connection, found.connect() as probe:
            dirty_of(probe), left_of(probe)  # planned before they count
            for arm in (CLEAN, DIRTY, CHECKPOINTED):
                before(connection, arm)
                start = dirty_of(probe)
                own = plans.explain(connection, SCAN, execute=True).buffers
                rows.append((pool, arm, own["shared_read"], own["shared_hit"], own["shared_written"], start, dirty_of(probe), left_of(probe)))
    return pd.DataFrame(rows, columns=["pool", "arm", "read", "hit", "written", "dirty_before", "dirty_after", "left"])


def dirty_of(connection: psycopg.Connection, relation: str = UPDATED) -> int:
    """Dirty pages of one relation and its key in the pool."""
    query = "SELECT count(*) FROM pg_buffercache WHERE isdirty AND relfilenode IN (pg_relation_filenode(%s), pg_relation_filenode(%s))"
    return connection.execute(query, [relation, f"{relation}_pkey"], prepare=True).fetchone()[0]


def left_of(connection: psycopg.Connection, relation: str = READ) -> int:
    """Pages of one relation's heap in the pool."""
    query = "SELECT count(*) FROM pg_buffercache WHERE relfilenode = pg_relation_filenode(%s) AND relforknumber = 0"
    return connection.execute(query, [relation], prepare=True).fetchone()[0]


def beside_the_ring(chapter: Chapter) -> pd.DataFrame:
    """What the slides expected, where it can happen: a reader whose relation is too small for a ring, after the same update.

    Its relation has a fifth of the pool's pages and isn't in the pool; miltup1 is as large as the pool. Columns: reader
    ("through a ring", "without a ring"), arm, read, written (pages).
    """
    found = cluster(chapter, EQUAL)
    rows = []
    with found.reloaded(**QUIET), found.connect() as connection:
        _small_reader(chapter, connection)
        for relation, words in ((READ, THROUGH), (SMALL_READ, WITHOUT)):
            for arm in (CLEAN, DIRTY, CHECKPOINTED):
                _cold(connection, relation)
                before(connection, arm)
                own = plans.explain(connection, scan(relation), execute=True).buffers
                rows.append((words, arm, own["shared_read"], own["shared_written"]))
    return pd.DataFrame(rows, columns=["reader", "arm", "read", "written"])


THROUGH, WITHOUT, SMALL_READ = "through a ring", "without a ring", "miltup0"


def _small_reader(chapter: Chapter, connection: psycopg.Connection) -> None:
    """A relation of a fifth of the pool, below the quarter from which on a scan gets a ring."""
    if not connection.execute("SELECT to_regclass(%s)", [SMALL_READ]).fetchone()[0]:
        relations.keyed(connection, SMALL_READ, round(chapter.parameters.tuples / 5))
        for number in range(7):
            connection.execute(f"CREATE TABLE other{number} AS SELECT * FROM {SMALL_READ}")


def _cold(connection: psycopg.Connection, relation: str) -> None:
    """Let other relations, small enough for no ring, take the place of this one in the pool."""
    if relation == SMALL_READ:
        for _ in range(2):
            for number in range(7):
                connection.execute(scan(f"other{number}"))


def pair(chapter: Chapter) -> None:
    """Time of the reader without a ring, after a read and after an update, in a pool as large as miltup1. The other reader is the sweep's."""
    found = cluster(chapter, EQUAL)
    with found.connect() as connection:
        _small_reader(chapter, connection)

    def prepare(arm: str, block: Block) -> None:
        with found.connect() as connection:
            _cold(connection, SMALL_READ)
            before(connection, arm)

    arms = [Arm(f"{WITHOUT}: {arm}", partial(read, found, SMALL_READ), partial(prepare, arm)) for arm in (CLEAN, DIRTY)]
    chapter.compare("ring", arms, {"time": "ms"}, warmup=0)


def ring_slowdown(chapter: Chapter) -> statistics.Interval | None:
    """Time of the reader without a ring, after an update over that after a read."""
    return chapter.ratio("ring", "time", f"{WITHOUT}: {DIRTY}", f"{WITHOUT}: {CLEAN}")


def pick(found: pd.DataFrame, pool: str, arm: str) -> pd.Series:
    """One row of `written`."""
    return found[(found["pool"] == pool) & (found["arm"] == arm)].iloc[0]


def reader_writes(chapter: Chapter, found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether the reader is slower because it writes: the mechanism, checked where pool and relation are as large."""
    if found is None:
        return None
    clean, dirty, checkpointed = (pick(found, EQUAL, arm) for arm in (CLEAN, DIRTY, CHECKPOINTED))
    slow = slowdown(chapter, EQUAL)
    return {
        "after the update dirty pages lie in the pool": bool(dirty["dirty_before"] > 0),
        "the reader writes some of them": bool(dirty["written"] > clean["written"] and dirty["dirty_after"] < dirty["dirty_before"]),
        "after a checkpoint it writes none": bool(checkpointed["written"] == 0),
        "its read is slower": slow.low > 1,
    }


def other_relation(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether what the reader of one relation writes are pages of the other."""
    if found is None:
        return None
    dirty = pick(found, EQUAL, DIRTY)
    return {
        "a reader of miltup1 finds dirty pages of miltup2": bool(dirty["dirty_before"] > 0),
        "as many as it writes are no longer dirty": bool(0 < dirty["written"] == dirty["dirty_before"] - dirty["dirty_after"]),
    }


def avoided(chapter: Chapter, found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether a pool above twice the relation spares the reader the consequences of the update."""
    if found is None:
        return None
    facts = {}
    for pool in [pool for pool in counted(chapter) if pools()[pool] > 2]:
        facts[f"{pool} times: the reader writes no page"] = bool(pick(found, pool, DIRTY)["written"] == 0)
        if pool in timed(chapter):
            facts[f"{pool} times: it isn't surely slower"] = not slowdown(chapter, pool).low > 1
    return facts


def by_pool(found: pd.DataFrame | None) -> pd.DataFrame | None:
    """`written` for the page: one row per pool."""
    if found is None:
        return None
    wide = found.pivot(index="pool", columns="arm", values="written").reindex(found["pool"].unique())
    dirty = found[found["arm"] == DIRTY].set_index("pool")
    frame = wide.rename(columns={CHECKPOINTED: f"after {CHECKPOINTED}"})[[CLEAN, DIRTY, f"after {CHECKPOINTED}"]].add_prefix("written ")
    frame.insert(0, "dirty pages met", dirty["dirty_before"])
    return frame.assign(**{"its own pages left after the update": dirty["left"]}).rename_axis("pool / relation").reset_index()


# ---- every writer


WRITERS = ("client backend", "background writer", "checkpointer")


def writers(chapter: Chapter) -> pd.DataFrame:
    """Pages written by each kind of process while a relation is updated in a small pool and then a checkpoint is asked for.

    Columns: background_writer ("as by default", "off"), and one for each of `WRITERS`.
    """
    found, rows = cluster(chapter, BELOW), []
    with counters.Counters(found) as counter:
        for words, settings in (("as by default", {}), ("off", QUIET)):
            with found.reloaded(**settings), found.connect() as connection:
                settle(connection)
                with counter.measured(connection) as delta:
                    started = time.perf_counter()
                    while time.perf_counter() - started < 0.7:  # three rounds of the background writer
                        connection.execute(UPDATE)
                        connection.execute(f"VACUUM {UPDATED}")
                    connection.execute("CHECKPOINT")  # nobody else asks for one, and none is due
                rows.append((words, *_by_writer(delta)))
    return pd.DataFrame(rows, columns=["background_writer", *WRITERS])


def _by_writer(delta: counters.Delta) -> list[int]:
    return [int(delta.writes.get(writer, 0)) for writer in WRITERS]


def only_two_authors(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether pages are written at replacement and at checkpoints, and at no other time."""
    if found is None:
        return None
    default = found.set_index("background_writer").loc["as by default"]
    return {
        "a backend that needs a buffer writes the page in it": bool(default["client backend"] > 0),
        "a checkpoint writes what is dirty": bool(default["checkpointer"] > 0),
        "nobody writes a page at another time": bool(default["background writer"] == 0),
    }


# ---- waiting


def waiting(chapter: Chapter) -> pd.DataFrame:
    """Dirty pages of the updated relation after an update, while nothing happens and after a checkpoint.

    With PostgreSQL's own checkpoint_timeout, in a pool as large as the relation. Columns: seconds (since the update),
    event, dirty (pages when the reader comes), unused (those of them with a usage count of zero), checkpointer and
    background_writer (pages written from the update on), reader (pages that the reader of miltup1 writes). The experiment
    begins anew for each event; the delay has rows of `MEANWHILE` besides, which only look into the pool.
    """
    wait, found = chapter.parameters.wait, cluster(chapter, EQUAL)
    found.extension("pg_buffercache")
    rows = []
    with found.reloaded(checkpoint_timeout="5min"), counters.Counters(found) as counter, found.connect() as connection, found.connect() as probe:
        _dirty(probe)  # planned before it counts
        for arm in (DIRTY, WAITED, CHECKPOINTED):
            settle(connection)
            with counter.measured(connection, probe) as delta:
                connection.execute(UPDATE)
                if arm == CHECKPOINTED:
                    connection.execute("CHECKPOINT")
                if arm == WAITED:
                    for moment in range(LOOKS):
                        rows.append((wait * moment / LOOKS, MEANWHILE, *_dirty(probe), None, None, None))
                        time.sleep(wait / LOOKS)
                left = _dirty(probe)
                written = plans.explain(connection, SCAN, execute=True).buffers["shared_written"]
            _, background, checkpointer = _by_writer(delta)
            rows.append((wait if arm == WAITED else 0, arm, *left, checkpointer, background, written))
    return pd.DataFrame(rows, columns=["seconds", "event", "dirty", "unused", "checkpointer", "background_writer", "reader"])


MEANWHILE, LOOKS = "while waiting", 10


def _dirty(connection: psycopg.Connection) -> tuple[int, int]:
    """Dirty pages of miltup2 and its key in the pool, and those of them that the hand could take at once."""
    query = (
        "SELECT count(*), count(*) FILTER (WHERE usagecount = 0) FROM pg_buffercache"
        " WHERE isdirty AND relfilenode IN (pg_relation_filenode(%s), pg_relation_filenode(%s))"
    )
    return connection.execute(query, [UPDATED, f"{UPDATED}_pkey"], prepare=True).fetchone()


def delay_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether a delay helps, and whether the checkpointer is why."""
    if found is None:
        return None
    at_once, waited = (found[found["event"] == event].iloc[0] for event in (DIRTY, WAITED))
    return {
        "after the delay fewer pages are dirty": bool(waited["dirty"] < at_once["dirty"]),
        "the checkpointer has written pages by then": bool(waited["checkpointer"] > 0),
        "the reader then writes fewer pages than at once": bool(waited["reader"] < at_once["reader"]),
    }


# ---- the updated relation's own first reader


def first_reader(chapter: Chapter) -> pd.DataFrame:
    """Three reads of the updated relation after an update and a checkpoint: pages, pages made dirty, and log.

    Columns: read (number), pages, dirtied, wal_records, wal_fpi (full page images), wal_bytes.
    """
    found = cluster(chapter, ABOVE)
    if found.version < 130000:
        raise CannotMeasure("PostgreSQL 13", f"EXPLAIN counts log from PostgreSQL 13 on, and this is {found.version_text}")
    rows = []
    with found.connect() as connection:
        settle(connection)
        connection.execute(UPDATE)
        connection.execute("CHECKPOINT")
        for number in (1, 2, 3):
            plan = plans.explain(connection, scan(UPDATED), execute=True, wal=True)
            log = [int(plan.properties.get(f"WAL {what}", 0)) for what in ("Records", "FPI", "Bytes")]
            rows.append((number, plan.buffers["shared_hit"] + plan.buffers["shared_read"], plan.buffers["shared_dirtied"], *log))
    return pd.DataFrame(rows, columns=["read", "pages", "dirtied", "wal_records", "wal_fpi", "wal_bytes"])


def log_of_an_update(chapter: Chapter) -> pd.DataFrame:
    """Log of one update of every tuple: bytes per tuple, right after a checkpoint and without one before."""
    found = cluster(chapter, ABOVE)
    rows = []
    with found.connect() as connection:
        settle(connection)
        for when in ("right after a checkpoint", "later"):
            start = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()[0]
            connection.execute(UPDATE)
            log = connection.execute("SELECT pg_current_wal_insert_lsn() - %s::pg_lsn", [start]).fetchone()[0]
            rows.append((when, float(log) / chapter.parameters.tuples))
            connection.execute(f"VACUUM {UPDATED}")
    return pd.DataFrame(rows, columns=["update", "bytes per tuple"])


# ---- what starts a checkpoint


def triggers(chapter: Chapter) -> pd.DataFrame:
    """Every kind of event that can be made to happen here and may start a checkpoint: columns event, checkpoints, reason (as the server's log gives it)."""
    found = cluster(chapter, EQUAL)
    rows = []
    for event, run in _EVENTS.items():
        start = len(found.log())
        try:
            run(found)
        except psycopg.errors.SyntaxError:  # a release that doesn't know the option
            continue
        time.sleep(0.03)  # the log's last line
        reasons = re.findall(r"(?:checkpoint|restartpoint) starting: (.*)", found.log()[start:])
        rows.append((event, len(reasons), ", ".join(dict.fromkeys(reasons)) or "none"))
    return pd.DataFrame(rows, columns=["event", "checkpoints", "reason"])


def _sql(*statements: str):
    def run(found: Cluster) -> None:
        with found.connect() as connection:
            for statement in statements:
                connection.execute(statement)

    return run


def _write_log(found: Cluster) -> None:
    """More log than max_wal_size allows between two checkpoints."""
    with found.reloaded(max_wal_size="32MB"), found.connect() as connection:
        connection.execute("CREATE TABLE logged AS SELECT i, repeat('x', 1000) FROM generate_series(1, 40000) AS i")
        deadline = time.monotonic() + 10
        while "checkpoint starting: wal" not in found.log() and time.monotonic() < deadline:
            time.sleep(0.05)


def _backup(found: Cluster) -> None:
    new = found.version >= 150000
    start, stop = ("pg_backup_start('b', true)", "pg_backup_stop(false)") if new else ("pg_start_backup('b', true, false)", "pg_stop_backup(false, false)")
    with found.connect() as connection:
        connection.execute(f"SELECT {start}")
        connection.execute(f"SELECT {stop}")


def _crash(found: Cluster) -> None:
    found.crash()
    found.start()


_EVENTS = {
    "CHECKPOINT": _sql("CHECKPOINT"),
    "CREATE DATABASE, copying files": _sql("CREATE DATABASE copied STRATEGY file_copy"),
    "CREATE DATABASE, as by default": _sql("CREATE DATABASE logged_copy"),
    "DROP DATABASE": _sql("DROP DATABASE IF EXISTS logged_copy"),
    "the start of a base backup": _backup,
    "more log than max_wal_size": _write_log,
    "shutdown": lambda found: found.restart(),
    "the end of a recovery": _crash,
    "DROP TABLE of many pages": _sql("DROP TABLE logged"),
}


def trigger_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Which of the events that the source has start a checkpoint when they happen."""
    if found is None:
        return None
    return {row.event: row.checkpoints > 0 for row in found.itertuples() if row.event not in NEVER}


NEVER = ("DROP TABLE of many pages", "CREATE DATABASE, as by default")
"""Events without a checkpoint, for comparison."""
