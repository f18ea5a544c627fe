"""Writers: throughput over clients, the commit log, the WAL and its writer, COPY."""

import os
import threading
import time
from contextlib import nullcontext
from functools import partial

import pandas as pd

from pgrerun import published, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.scalability.bench import WATCHED, busy, connections, drive, idling, levels, load, processors, second, server, sessions, watched
from pgrerun.chapters.scalability.locks import CROWD
from pgrerun.chapters.scalability.memory import SMALL_POOL
from pgrerun.chapters.scalability.reading import clients
from pgrerun.errors import CannotMeasure
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import flushing, waits
from pgrerun.relations import loading
from pgrerun.server import Server

UNITS = {"throughput": "transactions/s"}
WRITE = """\\set aid random(1, :accounts)
\\set bid random(1, :branches)
\\set tid random(1, 10 * :branches)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE scaling_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM scaling_accounts WHERE aid = :aid;
UPDATE scaling_tellers SET balance = balance + :delta WHERE id = :tid;
UPDATE scaling_branches SET balance = balance + :delta WHERE id = :bid;
INSERT INTO scaling_inserts VALUES (:tid, 'history');
END;
"""


def _branches(chapter: Chapter) -> int:
    return connections(chapter)  # so many that clients seldom meet on one; pgbench's manual asks for it


def prepared(chapter: Chapter) -> Server:
    """The server with relations for pgbench's transaction: accounts, tellers, branches, inserts."""
    on = server(chapter)
    load(chapter, on)
    with on.connect() as connection:
        if not connection.execute("SELECT to_regclass('scaling_branches')").fetchone()[0]:
            for relation, tuples in (("scaling_branches", _branches(chapter)), ("scaling_tellers", 10 * _branches(chapter))):
                with connection.transaction():
                    loading.replace(connection, relation, f"CREATE TABLE {relation} (id int PRIMARY KEY, balance int) WITH (fillfactor = 20)")
                    connection.execute(f"INSERT INTO {relation} SELECT id, 0 FROM generate_series(1, {tuples}) AS id")
                connection.execute(f"VACUUM (FREEZE, ANALYZE) {relation}")
    return on


def _write(chapter: Chapter, on: Server, number: int, seed: int, share: float = 0.25):
    return drive(chapter, on, WRITE, number, chapter.parameters.transactions * share, seed, branches=_branches(chapter))


def steps(chapter: Chapter) -> list[int]:
    """Numbers of clients of the sweep that writes."""
    return sorted({1, busy(chapter), CROWD, levels(chapter)[-1]})


def write(chapter: Chapter) -> None:
    """pgbench's transaction by each number of clients, without waiting for the flush, as in the talk."""
    on = prepared(chapter)

    def measure(number: int, block: Block) -> dict[str, float]:
        return watched(chapter, on, WRITE, number, chapter.parameters.transactions / 4, block.seed, branches=_branches(chapter))

    arms = [Arm(clients(number), partial(measure, number)) for number in steps(chapter)]
    with _asynchronous(on):
        chapter.compare("write", arms, WATCHED, warmup=0)


def _asynchronous(on: Server):
    return sessions(on, synchronous_commit="off")


def short_of_linear(chapter: Chapter) -> statistics.Interval | None:
    """Linear throughput with as many clients as processors over the measured one."""
    frame = chapter.table("write", "throughput")
    if frame.empty:
        return None
    return statistics.ratio(frame[clients(1)] * busy(chapter), frame[clients(busy(chapter))], seed=chapter.parameters.seed)


LOADS = ("asynchronous", "synchronous")


def waiting(chapter: Chapter) -> pd.DataFrame:
    """What writers wait for, with and without waiting for the flush, most clients: load, type, event, backends."""
    on, frames = prepared(chapter), []
    for name, setting in zip(LOADS, ("off", "on")):
        with sessions(on, synchronous_commit=setting), waits.sampled(on) as found:
            _write(chapter, on, levels(chapter)[-1], chapter.parameters.seed, share=0.5)
        frames.append(found.seen().assign(load=name))
    return pd.concat(frames, ignore_index=True)


COMMIT_LOG = ("XactSLRU", "XactBuffer", "XactGroupUpdate", "SLRURead", "SLRUWrite")
PROC_ARRAY = ("ProcArray", "ProcArrayGroupUpdate", "XidGen")


def _of(found: pd.DataFrame, events: tuple[str, ...]) -> float:
    return float(found.loc[found["event"].isin(events), "backends"].sum())


def clog_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether writers wait for the commit log, by the load."""
    if found is None:
        return None
    active = found.groupby("load")["backends"].sum()
    return {
        f"{load} commits: at least one in a hundred active writers waits for the commit log": _of(found[found["load"] == load], COMMIT_LOG) >= 0.01 * active.get(load, 1)
        for load in LOADS
    }


def proc_array_facts(found: pd.DataFrame | None, read: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether the process array is the worst bottleneck among the lightweight locks."""
    if found is None or read is None:
        return None
    frames = {"lookups": read[read["clients"] == read["clients"].max()]} | {f"{load} commits": found[found["load"] == load] for load in LOADS}
    return {f"{name}: no lightweight lock is waited for longer than the process array's": _worst(frame) for name, frame in frames.items()}


def _worst(frame: pd.DataFrame) -> bool:
    light = frame[frame["type"].isin(["LWLock", "IPC"])].groupby("event")["backends"].sum()
    mine = float(light.reindex(PROC_ARRAY).sum())
    return mine > 0 and mine >= max(light.drop(list(PROC_ARRAY), errors="ignore"), default=0.0)


# ---- the commit log

RESPONSIVE, SLUGGISH = "as it comes", "sleeps ten seconds"
WRITERS = {RESPONSIVE: {}, SLUGGISH: {"wal_writer_delay": "10s", "wal_writer_flush_after": "1GB"}}


def wal_writer(chapter: Chapter) -> None:
    """Asynchronous commits with the WAL writer as it comes, and with one that sleeps as long as it may."""
    on = prepared(chapter)

    def measure(name: str, block: Block) -> dict[str, float]:
        with on.reloaded(**WRITERS[name]) if WRITERS[name] else nullcontext():
            before = _lookups(on)
            done = _write(chapter, on, CROWD, block.seed, share=0.15)
            return {"throughput": done.tps, "lookups": (_lookups(on) - before) / done.transactions}

    with _asynchronous(on):
        chapter.compare("wal writer", [Arm(name, partial(measure, name)) for name in WRITERS], UNITS | {"lookups": "per transaction"}, warmup=0)


def _lookups(on: Server) -> float:
    """Pages of the commit log that were asked for so far."""
    with on.connect() as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
        time.sleep(0.02)  # backends that ended have handed in their counts
        return float(connection.execute("SELECT blks_hit + blks_read FROM pg_stat_slru WHERE name IN ('transaction', 'Xact')").fetchone()[0])


def responsive(chapter: Chapter) -> statistics.Interval | None:
    """Throughput with the responsive WAL writer over that with the sluggish one."""
    return chapter.ratio("wal writer", "throughput", RESPONSIVE, SLUGGISH)


LARGE_POOL = "1GB"


def clog_buffers(chapter: Chapter) -> pd.DataFrame:
    """Memory for the commit log, by the size of the buffer pool: shared_buffers, kilobytes."""
    if server(chapter).version < 170000:
        raise CannotMeasure("PostgreSQL 17", "how much memory the commit log has is a setting, and can be asked for, since PostgreSQL 17")
    rows = []
    query = "SELECT current_setting('shared_buffers'), setting::int * 8 FROM pg_settings WHERE name = 'transaction_buffers'"
    for settings in ({"shared_buffers": SMALL_POOL}, None, {"shared_buffers": LARGE_POOL}):
        with (second(chapter, **settings) if settings else server(chapter)).connect() as connection:
            rows.append(connection.execute(query).fetchone())
    return pd.DataFrame(rows, columns=["shared_buffers", "kilobytes"])


def clog_sizes(found: pd.DataFrame | None) -> dict[str, float] | None:
    """The same as evidence: kilobytes by pool."""
    return None if found is None else {f"shared_buffers {row.shared_buffers}": float(row.kilobytes) for row in found.itertuples()}


TUPLES = 2_000


def index_scans(chapter: Chapter) -> pd.DataFrame:
    """How often the commit log is asked for a tuple, by the first and by the second index scan over tuples of so many transactions."""
    on = server(chapter)
    with on.connect() as connection:
        with connection.transaction():
            loading.replace(connection, "scaling_fresh", "CREATE TABLE scaling_fresh (id int PRIMARY KEY)")
        connection.execute("SET synchronous_commit = off")
        connection.execute(f"DO $$ BEGIN FOR i IN 1..{TUPLES} LOOP INSERT INTO scaling_fresh VALUES (i); COMMIT; END LOOP; END $$")
        connection.execute("SET synchronous_commit = on; CREATE TEMP TABLE flushed AS SELECT 1")  # hints need flushed commits
    rows = []
    for scan in ("first", "second"):
        with on.connect() as connection:
            connection.execute("SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; SET max_parallel_workers_per_gather = 0")
            connection.execute("EXPLAIN SELECT count(*) FROM scaling_fresh WHERE id > 0")  # the catalogs' tuples are asked for now
            before = _counted(connection)
            connection.execute("SELECT count(*) FROM scaling_fresh WHERE id > 0")
            rows.append((scan, TUPLES, _counted(connection) - before))
    return pd.DataFrame(rows, columns=["scan", "tuples", "lookups"])


def _counted(connection) -> int:
    connection.execute("SELECT pg_stat_force_next_flush()")
    connection.execute("SELECT 1")
    return int(connection.execute("SELECT blks_hit + blks_read FROM pg_stat_slru WHERE name IN ('transaction', 'Xact')").fetchone()[0])


def lookups_per_tuple(found: pd.DataFrame | None) -> dict[str, float] | None:
    """Lookups per tuple, by scan."""
    return None if found is None else {f"{row.scan} scan": row.lookups / row.tuples for row in found.itertuples()}


PAGE, ON_A_PAGE = 8192, 32_768  # bytes of a page of the commit log, and transactions that it knows of
CACHED, SLOW, OTHER = 16, 17, 18  # so many pages fill the smallest cache; two that aren't among them
DELAY = 0.6  # seconds that the slow page takes to be read
READER, SAME_PAGE, OTHER_PAGE = "reads the slow page", "needs the same page", "needs another page"


def one_slow_page(chapter: Chapter) -> pd.DataFrame:
    """Who waits while a page of the commit log is read into a full cache by somebody else: session, page, waits.

    The page was made slow on purpose. In PostgreSQL 9.1 its place in the cache was still the one to
    be used next, so whoever needed any other page waited there for a reading that was none of his.
    """
    with flushing.slow_page("/pg_xact/0000", SLOW * PAGE, round(DELAY * 1e6)):
        on = second(chapter, shared_buffers=SMALL_POOL)
        if on.version < 130000:
            raise CannotMeasure("PostgreSQL 13", "pages of the commit log are asked for by pg_xact_status, which takes such numbers since PostgreSQL 13")
        _many_transactions(on)
    with on.connect() as filling:
        for page in range(CACHED):
            _ask(filling, page)
    ended = {}
    with on.connect() as reader, on.connect() as same, on.connect() as other, on.connect() as watch:

        def ask(connection, name: str, page: int) -> None:
            _ask(connection, page)
            ended[name] = time.monotonic()

        threads = [threading.Thread(target=ask, args=(*of, SLOW)) for of in ((reader, READER), (same, SAME_PAGE))]
        began = time.monotonic()
        threads[0].start()
        reading = "SELECT wait_event_type = 'IO' FROM pg_stat_activity WHERE pid = %s"
        while threads[0].is_alive() and not watch.execute(reading, [reader.info.backend_pid]).fetchone()[0]:
            time.sleep(0.005)
        threads[1].start()
        ask(other, OTHER_PAGE, OTHER)
        [thread.join() for thread in threads]
    on.stop()  # whoever wants it next starts it without that library
    waited = {name: time_ended >= began + 0.9 * DELAY for name, time_ended in ended.items()}
    if not (waited[READER] and waited[SAME_PAGE]):
        raise CannotMeasure("C compiler", "the page that was to be slow wasn't, not even for those who needed it")
    pages = {READER: SLOW, SAME_PAGE: SLOW, OTHER_PAGE: OTHER}
    return pd.DataFrame([(name, page, waited[name]) for name, page in pages.items()], columns=["session", "page", "waits"])


def _many_transactions(on: Server) -> None:
    """Move the server's transaction counter on, so that its commit log has pages that nobody has read."""
    on.stop()
    on.offline("pg_resetwal", "-x", str(2 * CACHED * ON_A_PAGE))
    os.truncate(on.data_directory / "pg_xact" / "0000", 2 * CACHED * PAGE)
    on.start()


def _ask(connection, page: int) -> None:
    connection.execute("SELECT pg_xact_status(%s::text::xid8)", [page * ON_A_PAGE + 1_000])


def everybody_waits(found: pd.DataFrame | None) -> bool | None:
    """Whether who needs another page waits for the slow one."""
    return None if found is None else bool(found.set_index("session")["waits"][OTHER_PAGE])


# ---- the log

COPIED, INSERTED = "COPY", "one INSERT for each row"
ROWS = 5_000


def copy(chapter: Chapter) -> pd.DataFrame:
    """Bytes of log for the same rows, by COPY and by single INSERTs in one transaction: way, bytes, bytes_per_row."""
    on, rows = server(chapter), []
    with on.connect() as connection, on.connect() as watch:
        for way in (COPIED, INSERTED):
            with connection.transaction():
                loading.replace(connection, "scaling_copied", "CREATE TABLE scaling_copied (id int, words text)")
            before = _position(watch)
            with connection.transaction(), connection.cursor() as cursor:
                if way == COPIED:
                    with cursor.copy("COPY scaling_copied FROM STDIN") as copied:
                        for number in range(ROWS):
                            copied.write_row((number, "some words"))
                else:
                    cursor.execute(f"DO $$ BEGIN FOR i IN 1..{ROWS} LOOP INSERT INTO scaling_copied VALUES (i, 'some words'); END LOOP; END $$")
            rows.append((way, int(_position(watch) - before)))
    frame = pd.DataFrame(rows, columns=["way", "bytes"])
    return frame.assign(bytes_per_row=frame["bytes"] / ROWS)


def _position(connection) -> float:
    return float(connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchone()[0])


def copy_saves(found: pd.DataFrame | None) -> float | None:
    """Log of single INSERTs over that of COPY."""
    if found is None:
        return None
    of = found.set_index("way")["bytes"]
    return of[INSERTED] / of[COPIED]


def insertion(chapter: Chapter) -> None:
    """Records inserted into the log per second, by one session and by as many as there are processors."""
    on = server(chapter)

    def measure(number: int, block: Block) -> dict[str, float]:
        taken, start = [], threading.Barrier(number)

        def emit() -> None:
            with on.connect() as connection:
                connection.execute("SET synchronous_commit = off; SET max_parallel_workers_per_gather = 0")
                start.wait()
                began = time.perf_counter()
                connection.execute(f"SELECT count(pg_logical_emit_message(false, 'x', repeat('x', 200))) FROM generate_series(1, {RECORDS})")
                taken.append(time.perf_counter() - began)

        threads = [threading.Thread(target=emit) for _ in range(number)]
        [thread.start() for thread in threads], [thread.join() for thread in threads]
        return {"records": number * RECORDS / max(taken)}

    arms = [Arm(clients(number), partial(measure, number)) for number in sorted({1, max(2, processors())})]
    chapter.compare("insertion", arms, {"records": "records/s"}, warmup=0)


RECORDS = 20_000


def inserting_scales(chapter: Chapter) -> statistics.Interval | None:
    """Records of several sessions over those of one."""
    return chapter.ratio("insertion", "records", clients(max(2, processors())), clients(1))


# Release notes of 9.4, general performance: "Allow multiple backends to insert into WAL buffers concurrently".
DIVIDED_IN = 9.4


def fixed_facts(chapter: Chapter) -> dict[str, bool] | None:
    """Whether the log's insertion was mended, and as early as the talk thought."""
    scales = inserting_scales(chapter)
    if scales is None:
        return None
    return {
        "here it can't be shown that several sessions insert no more records than one": not scales.high < 1.05,
        "PostgreSQL's release notes have it no later than the talk": DIVIDED_IN <= published.cell("scalability_idle", "wal_fixed_in", "value"),
    }


NOBODY, IDLE = "nobody idle", "many idle connections"


def idle_connections(chapter: Chapter) -> None:
    """Writers while nobody else is connected, and while many connections do nothing.

    Every transaction takes snapshots, and none can be reused since others commit all the time.
    """
    on = prepared(chapter)

    def measure(others, block: Block) -> dict[str, float]:
        with others():
            return {"throughput": _write(chapter, on, 2 * processors(), block.seed).tps}

    arms = [Arm(NOBODY, partial(measure, nullcontext)), Arm(IDLE, partial(measure, partial(idling, on, chapter.parameters.idle_connections)))]
    with _asynchronous(on):
        chapter.compare("idle connections", arms, UNITS, warmup=0)


AFTER, LATER = "right after a checkpoint", "later"


def checkpointed(chapter: Chapter) -> None:
    """Throughput and log per transaction right after a checkpoint, and once all pages have been logged in full since.

    The same transactions each time, drawn with the block's seed: `LATER` they run once before they
    are measured, so that every page they change has been changed since the last checkpoint.
    """
    on = prepared(chapter)

    def prepare(when: str, block: Block) -> None:
        if when == LATER:
            _write(chapter, on, CROWD, block.seed, share=0.15)
            return
        with on.connect() as connection:
            connection.execute("CHECKPOINT")

    def measure(block: Block) -> dict[str, float]:
        with on.connect() as connection:
            before = _position(connection)
            done = _write(chapter, on, CROWD, block.seed, share=0.15)
            return {"throughput": done.tps, "log": (_position(connection) - before) / done.transactions}

    arms = [Arm(when, measure, partial(prepare, when)) for when in (AFTER, LATER)]
    with _asynchronous(on):
        chapter.compare("checkpointed", arms, UNITS | {"log": "bytes/transaction"}, warmup=0)


def insertion_facts(chapter: Chapter, found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Is WAL insertion single-threaded, and worst right after a checkpoint."""
    scales, slower = inserting_scales(chapter), chapter.ratio("checkpointed", "throughput", LATER, AFTER)
    more = chapter.ratio("checkpointed", "log", AFTER, LATER)
    if None in (scales, slower, more) or found is None:
        return None
    asynchronous = found[found["load"] == LOADS[0]]
    return {
        "several sessions insert no more records than one": scales.high < 1.05,
        "writers wait to insert": _of(asynchronous, ("WALInsert",)) >= 0.01 * asynchronous["backends"].sum(),
        "right after a checkpoint a transaction writes more log": more.low > 1.05,
        "right after a checkpoint throughput is lower": slower.low > 1.05,
    }


# ---- flushes, and what comes next


def flushes(chapter: Chapter) -> None:
    """Flushes of a small file, alone and while somebody copies a large one: the longest and the median, in milliseconds."""
    if chapter.borrowed:
        chapter.cluster()  # says why not: where somebody else's server has its files isn't known
    folder = server(chapter).scratch  # beside the server's files

    def measure(busy: bool, block: Block) -> dict[str, float]:
        if busy:
            with flushing.copying(folder, 64):
                taken = flushing.flushes(folder, 0.1)
        else:
            taken = flushing.flushes(folder, 0.05)
        return {"longest": taken.max() * 1e3, "median": float(pd.Series(taken).median()) * 1e3}

    arms = [Arm(name, partial(measure, name == BUSY)) for name in (QUIET, BUSY)]
    chapter.compare("flushes", arms, {"longest": "ms", "median": "ms"}, warmup=0)


QUIET, BUSY = "nobody else writes", "somebody copies a large file"


def longest_flush(chapter: Chapter) -> statistics.Interval | None:
    """Seconds of the longest flush of a small file while somebody copies a large one."""
    found = chapter.median("flushes", "longest", BUSY)
    return found and found.times(1e-3)


def light_lock_facts(read: pd.DataFrame | None, write: pd.DataFrame | None, crowded: pd.DataFrame | None) -> dict[str, bool] | None:
    """Under which loads of this chapter backends still wait for lightweight locks."""
    if read is None or write is None or crowded is None:
        return None
    frames = {"lookups": read[read["clients"] == read["clients"].max()]} | {f"{load} commits": write[write["load"] == load] for load in LOADS}
    frames |= {f"many relations, {arm}": rows for arm, rows in crowded.groupby("arm", sort=False)}
    share = {name: rows.loc[rows["type"] == "LWLock", "backends"].sum() / max(rows["backends"].sum(), 1e-9) for name, rows in frames.items()}
    return {f"{name}: one in a hundred active backends waits for a lightweight lock": bool(value >= 0.01) for name, value in share.items()}
