"""The visibility map: its size, when its bits are set, whether it survives crashes, what VACUUM
skips by it.
"""

import re
import threading
from dataclasses import dataclass

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.access_paths.accounts import (
    KERNEL,
    KEYED,
    SQL,
    allow_only,
    build,
    load,
    place,
)
from pgrerun.errors import ServerError
from pgrerun.lab.instruments import PAGE, sizes, wal
from pgrerun.lab.models import visibility as model
from pgrerun.lab.server import Cluster, seed_random
from pgrerun.record.printed import access_paths as in_print

PROBED = 64  # heap pages whose bits are looked for, one after the other


@dataclass(frozen=True)
class MapSize:
    """The map of a table of one tuple per page, around the size at which it needs a second page.

    bits     of the map per page of the table, from those set on the map's first page
    covered  bytes of table per map page that follow from it and from the page's header
    sizes    columns pages (of the table), map_pages
    """

    bits: float
    covered: float
    sizes: pd.DataFrame


@experiment(claims=["haas-029"])
def map_size(chapter: Chapter, pages: int = PROBED) -> MapSize:
    """Grow an unlogged table to just below and just above what one page of the map covers."""
    chapter.server.extension("pageinspect")
    with chapter.server.connect() as connection:
        build(connection, "wide", "visibility.wide")
        rows = [_lengthen(connection, pages)]
        [(page,)] = SQL.run(connection, "visibility.first_map_page").fetchall()
        # behind the page's header; all of the table is frozen, so every bit it has is set
        bits = sum(byte.bit_count() for byte in page[24:]) / pages
        covered = in_print.map_coverage(bits)
        rows += [_lengthen(connection, int(covered) // PAGE + more) for more in (0, 1)]
        SQL.run(connection, "visibility.drop_wide")
    return MapSize(bits, covered, pd.DataFrame(rows, columns=["pages", "map_pages"]))


def _lengthen(connection: psycopg.Connection, pages: int) -> tuple[int, int]:
    """Bring the table to so many pages, all visible to everybody; pages of table and map."""
    lacking = pages - sizes.pages(connection, "wide")
    SQL.run(connection, "visibility.lengthen", pages=lacking)
    return sizes.pages(connection, "wide"), sizes.pages(connection, "wide", "vm")


# ---- when a bit is set

# Step, the statement that makes it, and which pages are then all-visible by the talk's rule.
_BEFORE = (
    ("loaded", "", "none"),
    ("vacuumed", "vacuum_small", "all"),
    ("one row locked", "lock_row", "all"),
    ("one row updated", "update_row", "one less"),
    ("read", "read_all", "one less"),
)


@experiment(claims=["haas-030"])
def bits(chapter: Chapter) -> pd.DataFrame:
    """The map of a small table step by step.

    Columns: step, pages, all_visible, all_frozen (pages marked so), expected (all_visible, by the
    talk's rule).
    """
    server = chapter.server
    server.extension("pg_visibility")
    with server.connect() as connection, server.connect(autocommit=False) as old:
        build(connection, "small", "visibility.small")
        steps = [_step(connection, *step) for step in _BEFORE]
        with connection.transaction(force_rollback=True):
            SQL.run(connection, "visibility.delete_row")
        rolled_back = "one row of another page deleted, rolled back"
        steps.append(_step(connection, rolled_back, "", "two less"))
        steps.append(_step(connection, "vacuumed", "vacuum_small", "all"))
        SQL.run(old, "visibility.take_snapshot")
        beside = "one row updated, vacuumed beside an old snapshot"
        steps.append(_step(connection, beside, "update_and_vacuum", "one less"))
        old.rollback()
        steps.append(_step(connection, "the snapshot gone, vacuumed", "vacuum_small", "all"))
    return pd.DataFrame(steps, columns=["step", "pages", "all_visible", "all_frozen", "expected"])


def _step(connection: psycopg.Connection, step: str, statement: str, expected: str) -> tuple:
    if statement:
        SQL.run(connection, f"visibility.{statement}")
    [marked] = SQL.run(connection, "visibility.small_marked").fetchall()
    return step, sizes.pages(connection, "small"), *marked, expected


# ---- crashes

CHURN_SECONDS = 0.3


@experiment(claims=["haas-031"])
def crashes(chapter: Chapter) -> pd.DataFrame:
    """Kill a server that updates, vacuums and checkpoints, let it recover, and check the map.

    Its pool is small, so that it writes pages early. Whether a checkpoint falls between update
    and crash is left to chance, as in life.

    A row per crash: crash, updated (rows with new versions so far), marked (pages all-visible
    afterwards), wrong_visible, wrong_frozen (tuples on marked pages that the marks are wrong
    about), differing (by how much an index-only scan's answer differs from a sequential one's).
    """
    cluster, rows = place(chapter, KERNEL), []
    cluster.extension("pg_visibility")
    with cluster.connect() as connection:
        build(connection, "crashed", "visibility.crashed")
    for crash in range(chapter.parameters.crashes):
        _churn_and_kill(cluster, chapter.parameters.seed + crash)
        with cluster.connect() as connection:
            rows.append((crash + 1, *_checked(connection)))
    return pd.DataFrame(
        rows, columns=["crash", "updated", "marked", "wrong_visible", "wrong_frozen", "differing"]
    )


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


def _checked(connection: psycopg.Connection) -> tuple[int, ...]:
    [marks] = SQL.run(connection, "visibility.crashed_marked").fetchall()
    answers = []
    for scan in ("indexonlyscan", "seqscan"):
        allow_only(connection, scan)
        answers += SQL.run(connection, "visibility.crashed_sums").fetchall()
    (count, total), (true_count, true_total) = answers
    return *marks, abs(count - true_count) + abs(total - true_total)


@experiment(claims=["haas-031"])
def logged(chapter: Chapter) -> pd.DataFrame:
    """What recovery knows of the map: change, bits (of so many pages), records (in the WAL).

    A vacuum sets the bits of a table, and an update clears one.
    """
    for extension in ("pg_visibility", "pg_walinspect"):
        chapter.server.extension(extension)
    rows = []
    with chapter.server.connect() as connection:
        build(connection, "small", "visibility.small")
        for change, statement in (("set", "vacuum_small"), ("cleared", "update_row")):
            before, start = _step(connection, change, "", "")[2], wal.position(connection)
            after, end = _step(connection, change, statement, "")[2], wal.position(connection)
            records = wal.marks(connection, "small", start, end)[change]
            rows.append((change, abs(after - before), records))
    return pd.DataFrame(rows, columns=["change", "bits", "records"])


# ---- VACUUM

SKIPPING, WITHOUT = "VACUUM", "VACUUM without the map"
VACUUMS = {SKIPPING: "visibility.vacuum", WITHOUT: "visibility.vacuum_without_map"}
EVERY = (1000, 100, 50, 40, 33, 32, 31, 24, 16)  # of so many pages one has changed


@experiment(claims=["haas-032"])
def skipping(chapter: Chapter) -> pd.DataFrame:
    """Pages that VACUUM scans of a static table with the map and with DISABLE_PAGE_SKIPPING.

    Columns: vacuum, scanned.
    """
    load(chapter.server, chapter.parameters.accounts, KEYED)
    with chapter.server.connect() as connection:
        found = [(name, _scanned(connection, statement)) for name, statement in VACUUMS.items()]
    return pd.DataFrame(found, columns=["vacuum", "scanned"])


@experiment()
def skipped(chapter: Chapter, every: tuple[int, ...] = EVERY) -> pd.DataFrame:
    """Pages that VACUUM scans when every nth page of a table has changed.

    Columns: every (n), changed and scanned (pages), computed (pages scanned by the rule that only
    runs of at least 32 pages are skipped).
    """
    rows = []
    with chapter.server.connect() as connection:
        build(connection, "sparse", "visibility.sparse")
        pages = sizes.pages(connection, "sparse")
        for number in every:
            SQL.run(connection, "visibility.change_every", every=number)
            computed = model.pages_scanned(pages, number)
            scanned = _scanned(connection, "visibility.vacuum_sparse")
            rows.append((number, -(-pages // number), scanned, computed))
    return pd.DataFrame(rows, columns=["every", "changed", "scanned", "computed"])


def _scanned(connection: psycopg.Connection, vacuum: str) -> int:
    """Pages that a VACUUM (VERBOSE) says it has scanned."""
    said: list[str] = []

    def listen(notice: psycopg.errors.Diagnostic) -> None:
        said.append(notice.message_primary or "")

    connection.add_notice_handler(listen)
    SQL.run(connection, vacuum)
    connection.remove_notice_handler(listen)
    # until 14 "found ... row versions in 5 out of 10 pages"
    found = re.search(r"(\d+) scanned|in (\d+) out of \d+ pages", " ".join(said))
    if found is None:
        raise ServerError("VACUUM (VERBOSE) doesn't say how many pages it has scanned.")
    return int(found[1] or found[2])
