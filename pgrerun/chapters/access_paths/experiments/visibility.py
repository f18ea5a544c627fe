"""The visibility map: its size, when its bits are set, whether it survives crashes, what VACUUM
skips by it, what the planner knows of it, and what autovacuum does for it.
"""

import threading
from collections.abc import Iterator

import psycopg

from pgrerun.chapters.access_paths.accounts import (
    KERNEL,
    KEYED,
    SCATTERED,
    SQL,
    allow_only,
    build,
    load,
    place,
    ready,
)
from pgrerun.errors import ServerError
from pgrerun.lab.instruments import PAGE, clock, counters, plans, sizes, wal
from pgrerun.lab.models import visibility as model
from pgrerun.lab.server import Cluster, Server, releases, seed_random, value
from pgrerun.lab.testbed import Row, Testbed, experiment
from pgrerun.record import printed


@experiment(units={"map_pages": "pages", "bits": "bits", "covered": "bytes"})
def map_size(bed: Testbed, pages: int = 64) -> Iterator[Row]:
    """Grow an unlogged table of one tuple per page around the size at which its map needs a second.

    The bits of the map for a page of the table are those set on its first page when it has so many
    `pages`; from them and the page's header follows how much of the table a page of the map covers.
    """
    bed.server.extension("pageinspect")
    with bed.server.connect() as connection:
        build(connection, "wide", "visibility.wide")
        _lengthen(connection, pages)
        # all of the table is frozen, so every bit it has is set
        bits = bits_set(connection) / pages
        covered = float(printed.value("map_coverage(?)", bits))
        for wanted in (pages, int(covered) // PAGE, int(covered) // PAGE + 1):
            _lengthen(connection, wanted)
            yield {
                "pages": sizes.pages(connection, "wide"),
                "map_pages": sizes.pages(connection, "wide", "vm"),
                "bits": bits,
                "covered": covered,
            }
        SQL.run(connection, "visibility.drop_wide")


def bits_set(connection: psycopg.Connection) -> int:
    """Bits that are set on the first page of the table's map."""
    [(page,)] = SQL.run(connection, "visibility.first_map_page").fetchall()
    return sum(byte.bit_count() for byte in page[24:])  # behind the page's header


def _lengthen(connection: psycopg.Connection, pages: int) -> None:
    """Bring the table to so many pages, all visible to everybody."""
    SQL.run(connection, "visibility.lengthen", pages=pages - sizes.pages(connection, "wide"))


# ---- when a bit is set

ROLLED_BACK = "one row of another page deleted, rolled back"
BESIDE = "one row updated, vacuumed beside an old snapshot"
# Step, the statement that makes it, and how many pages then lack their bit by the talk's rule.
_BEFORE = (
    ("loaded", "", None),
    ("vacuumed", "vacuum_small", 0),
    ("one row locked", "lock_row", 0),
    ("one row updated", "update_row", 1),
    ("read", "read_all", 1),
)


@experiment(
    units={"pages": "pages", "all_visible": "pages", "all_frozen": "pages", "expected": "pages"}
)
def bits(bed: Testbed) -> Iterator[Row]:
    """The map of a small table step by step, and how many pages the talk's rule would mark."""
    server = bed.server
    server.extension("pg_visibility")
    with server.connect() as connection, server.connect(autocommit=False) as old:
        build(connection, "small", "visibility.small")
        for number, step in enumerate(_BEFORE, start=1):
            yield _step(connection, number, *step)
        with connection.transaction(force_rollback=True):
            SQL.run(connection, "visibility.delete_row")
        yield _step(connection, 6, ROLLED_BACK, "", 2)
        yield _step(connection, 7, "vacuumed again", "vacuum_small", 0)
        SQL.run(old, "visibility.take_snapshot")
        yield _step(connection, 8, BESIDE, "update_and_vacuum", 1)
        old.rollback()
        yield _step(connection, 9, "the snapshot gone, vacuumed", "vacuum_small", 0)


def _step(
    connection: psycopg.Connection, number: int, step: str, statement: str, lacking: int | None
) -> Row:
    if statement:
        SQL.run(connection, f"visibility.{statement}")
    [(visible, frozen)] = SQL.run(connection, "visibility.small_marked").fetchall()
    pages = sizes.pages(connection, "small")
    return {
        "number": number,
        "step": step,
        "pages": pages,
        "all_visible": visible,
        "all_frozen": frozen,
        "expected": 0 if lacking is None else pages - lacking,
    }


# ---- crashes

CHURN_SECONDS = 0.3


@experiment(
    units={
        "updated": "rows",
        "marked": "pages",
        "wrong_visible": "tuples",
        "wrong_frozen": "tuples",
        "differing": "",
    },
    needs=["restart"],
)
def crashes(bed: Testbed) -> Iterator[Row]:
    """Kill a server that updates, vacuums and checkpoints, let it recover, and check the map.

    Its pool is small, so that it writes pages early. Whether a checkpoint falls between update
    and crash is left to chance, as in life. Counted after each crash are rows with new versions so
    far, pages that are marked, tuples on them that the marks are wrong about, and by how much an
    index-only scan's answer differs from a sequential one's.
    """
    cluster = place(bed, KERNEL, bed.parameters.accounts)
    cluster.extension("pg_visibility")
    with cluster.connect() as connection:
        build(connection, "crashed", "visibility.crashed")
    for crash in range(bed.parameters.crashes):
        _churn_and_kill(cluster, bed.parameters.seed + crash)
        with cluster.connect() as connection:
            yield {"crash": crash + 1, **_checked(connection)}


def _churn_and_kill(cluster: Cluster, seed: int) -> None:
    """Sessions update, vacuum and checkpoint until the server is killed; it is started again."""
    jobs = [
        threading.Thread(target=_until_killed, args=(cluster, statement, seed), daemon=True)
        for statement in ("churn_update", "churn_vacuum", "churn_checkpoint")
    ]
    for job in jobs:
        job.start()
    threading.Event().wait(CHURN_SECONDS)
    cluster.crash()
    for job in jobs:
        job.join()
    cluster.start()


def _until_killed(cluster: Cluster, statement: str, seed: int) -> None:
    try:
        with cluster.connect() as connection:
            seed_random(connection, seed)
            while True:
                SQL.run(connection, f"visibility.{statement}")
    except (psycopg.Error, ServerError):
        return  # the crash that it was waiting for


def _checked(connection: psycopg.Connection) -> dict[str, int]:
    [marks] = SQL.run(connection, "visibility.crashed_marked").fetchall()
    answers = []
    for scan in ("indexonlyscan", "seqscan"):
        allow_only(connection, scan)
        answers += SQL.run(connection, "visibility.crashed_sums").fetchall()
    (count, total), (true_count, true_total) = answers
    found = dict(zip(("updated", "marked", "wrong_visible", "wrong_frozen"), marks))
    return found | {"differing": abs(count - true_count) + abs(total - true_total)}


@experiment(units={"bits": "bits", "records": "records"})
def logged(bed: Testbed) -> Iterator[Row]:
    """Bits that a vacuum sets and an update clears, and the WAL's records of that."""
    for extension in ("pg_visibility", "pg_walinspect"):
        bed.server.extension(extension)
    with bed.server.connect() as connection:
        build(connection, "small", "visibility.small")
        for change, statement in (("set", "vacuum_small"), ("cleared", "update_row")):
            before, start = _step(connection, 0, change, "", None), wal.position(connection)
            after, end = _step(connection, 0, change, statement, None), wal.position(connection)
            yield {
                "change": change,
                "bits": abs(after["all_visible"] - before["all_visible"]),
                "records": wal.marks(connection, "small", start, end)[change],
            }


# ---- VACUUM

SKIPPING, WITHOUT = "VACUUM", "VACUUM without the map"
EVERY = (1000, 100, 50, 40, 33, 32, 31, 24, 16)  # of so many pages one has changed


@experiment(units={"scanned": "pages"})
def vacuums(bed: Testbed) -> Iterator[Row]:
    """Pages that VACUUM scans of a static table with the map and with DISABLE_PAGE_SKIPPING."""
    load(bed.server, bed.parameters.accounts, KEYED)
    with bed.server.connect() as connection:
        for vacuum, name in ((SKIPPING, "vacuum"), (WITHOUT, "vacuum_without_map")):
            yield {"vacuum": vacuum, "scanned": _scanned(connection, KEYED, f"visibility.{name}")}


@experiment(units={"pages": "pages", "changed": "pages", "scanned": "pages", "computed": "pages"})
def skipped(bed: Testbed, every: tuple[int, ...] = EVERY) -> Iterator[Row]:
    """Pages that VACUUM scans when every nth page of a table has changed.

    Computed by the rule that only runs of at least 32 pages are skipped. It takes the view in
    which scanned pages are counted by themselves.
    """
    releases.require(bed.server.version, "pg_stat_io")
    with bed.server.connect() as connection:
        build(connection, "sparse", "visibility.sparse")
        pages = sizes.pages(connection, "sparse")
        for number in every:
            SQL.run(connection, "visibility.change_every", every=number)
            yield {
                "every": number,
                "pages": pages,
                "changed": -(-pages // number),
                "scanned": _scanned(connection, "sparse", "visibility.vacuum_sparse"),
                "computed": model.pages_scanned(pages, number),
            }


def _scanned(connection: psycopg.Connection, relation: str, vacuum: str) -> int:
    """Pages of a table without dead index entries that a VACUUM accesses.

    Before PostgreSQL 16 accesses to the table's maps are among them.
    """
    view = releases.has(connection.info.server_version, "pg_stat_io")
    count = SQL.text(
        f"visibility.{'accessed_by_vacuum' if view else 'accessed'}", relation=relation
    )
    counters.force_flush(connection)
    before = value(connection, int, count)
    SQL.run(connection, vacuum)
    counters.force_flush(connection)
    return value(connection, int, count) - before


# ---- the planner

SHARES = (0, 25, 50, 75, 90, 100)  # per cent of the pages that pg_class claims to be all-visible
PATHS = {"index_only": "indexonlyscan", "plain": "indexscan", "sequential": "seqscan"}
COSTS = {**dict.fromkeys(PATHS, "cost units"), "chosen": "text"}


@experiment(units=COSTS)
def costs(bed: Testbed) -> Iterator[Row]:
    """Estimated cost of three paths, and the planner's choice, while relallvisible is falsified.

    The table and its map stay as they are. The statistics of a relation can be set by a function
    from PostgreSQL 18 on.
    """
    releases.require(bed.server.version, "pg_restore_relation_stats")
    yield from costs_of(bed.server, bed.parameters.accounts, "planner.claim_visible")


def costs_of(server: Server, rows: int, claim: str) -> Iterator[Row]:
    """The same on any server, by a statement that it knows to falsify with."""
    query = SQL.text("planner.tenth", last=rows // 10)
    ready(server, rows, SCATTERED)
    with server.connect() as connection:
        pages = sizes.pages(connection, SCATTERED)
        for percent in SHARES:
            SQL.run(connection, claim, pages=pages * percent // 100)
            row: Row = {"percent": percent}
            for path, allowed in PATHS.items():
                allow_only(connection, allowed)
                row[path] = float(plans.explain(connection, query).total_cost)
            allow_only(connection, *PATHS.values(), "bitmapscan")
            yield row | {"chosen": plans.explain(connection, query).scan_of(SCATTERED).node_type}
        SQL.run(connection, claim, pages=pages)


# ---- autovacuum

WITNESS = "half of the rows are updated"  # by any release's rule it is vacuumed
TABLES = {
    "rows are only inserted": "growing",
    "the same, by the rule before PostgreSQL 13": "growing_before",
    "a row in twenty is updated": "changed",
    WITNESS: "half_changed",
}
_PATIENCE = 40  # seconds


@experiment(units={"pages": "pages", "marked": "pages", "vacuumed": "times"}, needs=["restart"])
def autovacuum(bed: Testbed) -> Iterator[Row]:
    """Wait until autovacuum has come by, and see which tables it vacuumed and what is marked.

    Waiting ends when the worker that vacuumed the table with most dead rows is gone: all tables
    were as they are before any worker started, so it had the choice of all.
    """
    server = bed.cluster()
    server.extension("pg_visibility")
    with server.connect() as connection:
        for name in TABLES.values():
            build(connection, name, f"planner.{name}")
        with server.reloaded(autovacuum_naptime="1s", autovacuum="on"):
            _await_round(connection)
            for table, name in TABLES.items():
                marked, times = _state(connection, name)
                yield {
                    "table": table,
                    "pages": sizes.pages(connection, name),
                    "marked": marked,
                    "vacuumed": times,
                }


def _await_round(connection: psycopg.Connection) -> None:
    def over() -> bool:
        _, vacuumed = _state(connection, TABLES[WITNESS])
        return vacuumed > 0 and SQL.run(connection, "planner.workers").fetchone() == (0,)

    clock.until(over, _PATIENCE, 0.05)


def _state(connection: psycopg.Connection, name: str) -> tuple[int, int]:
    """Pages that the map marks, and how often autovacuum came."""
    [state] = SQL.run(connection, "planner.state", relation=name).fetchall()
    return state
