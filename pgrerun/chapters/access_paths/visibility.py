"""The visibility map: its size, when its bits are set, whether it survives crashes and upgrades, what vacuum skips by it."""

import re
import threading
from dataclasses import dataclass
from functools import partial

import pandas as pd
import psycopg

from pgrerun import published, statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.access_paths.accounts import KEYED, PAGE, accounts, blocks
from pgrerun.chapters.access_paths.lookups import KERNEL, place
from pgrerun.errors import ServerError
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import clock
from pgrerun.published import access_paths as printed
from pgrerun.relations import loading
from pgrerun.server import Cluster

# ---- size

_WIDE = 8100  # bytes of a tuple that has a page to itself
PROBED = 64  # heap pages whose bits are looked for, one after the other


@dataclass(frozen=True)
class MapSize:
    """The map of a table of one tuple per page, built up around the size where a second map page is needed.

    `bits`: map bits per page of the table, from the bits that appear on the map's first page. `covered`: bytes of table
    per map page that follow from it and from the page's header. `sizes`: columns pages (of the table), map_pages.
    """

    bits: float
    covered: float
    sizes: pd.DataFrame


def map_size(chapter: Chapter) -> MapSize:
    """Grow an unlogged table to just below and just above what one page of the map covers."""
    server = chapter.server
    server.extension("pageinspect")
    with server.connect() as connection:
        with connection.transaction():
            loading.replace(connection, "wide", "CREATE UNLOGGED TABLE wide (filler text) WITH (autovacuum_enabled = off)")
            connection.execute("ALTER TABLE wide ALTER filler SET STORAGE PLAIN")
        _lengthen(connection, PROBED)
        bits = _bits_set(connection) / PROBED
        covered = printed.map_coverage(bits)
        sizes = [(PROBED, blocks(connection, "wide", "vm"))]
        for pages in (int(covered) // PAGE, int(covered) // PAGE + 1):
            _lengthen(connection, pages)
            sizes.append((blocks(connection, "wide"), blocks(connection, "wide", "vm")))
        connection.execute("DROP TABLE wide")
    return MapSize(bits, covered, pd.DataFrame(sizes, columns=["pages", "map_pages"]))


def _lengthen(connection: psycopg.Connection, pages: int) -> None:
    """Bring the table to so many pages, all visible to everybody."""
    missing = pages - blocks(connection, "wide")
    connection.execute(f"INSERT INTO wide SELECT repeat('x', {_WIDE}) FROM generate_series(1, {missing})")
    connection.execute("VACUUM (FREEZE) wide")


def _bits_set(connection: psycopg.Connection) -> int:
    """How many bits of the map's first page are set, behind the page header; every page of the table is frozen, so all it has are."""
    [(page,)] = connection.execute("SELECT get_raw_page('wide', 'vm', 0)").fetchall()
    return sum(byte.bit_count() for byte in page[24:])


def seen_of_size(found: MapSize | None) -> pd.DataFrame | None:
    """Bits and coverage beside the print, then the sizes."""
    if found is None:
        return None
    said = published.table("access_paths_said")["value"]
    mib = 2**20
    rows = [("bits of the map per page of the table", said["bits"], found.bits), ("MB of table that a page of the map covers", said["covered"] * 1024, found.covered / mib)]
    rows += [(f"pages of the map at {row.pages:,} pages of table ({row.pages * PAGE / mib:,.0f} MB)", None, row.map_pages) for row in found.sizes.itertuples()]
    return pd.DataFrame(rows, columns=["what", "in print", "here"])


# ---- when a bit is set

_SMALL = 2000  # rows, ten on each page


def bits(chapter: Chapter) -> pd.DataFrame:
    """The map of a small table step by step: columns step, pages, all_visible, all_frozen (pages marked so), expected (all_visible, by the talk's rule)."""
    server, steps = chapter.server, []
    server.extension("pg_visibility")
    with server.connect() as connection:

        def note(step: str, expected: str) -> None:
            visible, frozen = connection.execute("SELECT all_visible, all_frozen FROM pg_visibility_map_summary('small')").fetchone()
            steps.append((step, blocks(connection, "small"), visible, frozen, expected))

        with connection.transaction():
            loading.replace(connection, "small", "CREATE TABLE small (id int PRIMARY KEY, v int, filler char(780)) WITH (autovacuum_enabled = off, fillfactor = 80)")
            connection.execute(f"INSERT INTO small SELECT n, 0, '' FROM generate_series(1, {_SMALL}) AS n")
        note("loaded", "none")
        connection.execute("VACUUM small")
        note("vacuumed", "all")
        connection.execute("SELECT * FROM small WHERE id = 1 FOR UPDATE")
        note("one row locked", "all")
        connection.execute("UPDATE small SET v = 1 WHERE id = 1")
        note("one row updated", "one less")
        connection.execute("SELECT count(*) FROM small")
        note("read", "one less")
        with connection.transaction(force_rollback=True):
            connection.execute(f"DELETE FROM small WHERE id = {_SMALL}")
        note("one row of another page deleted, rolled back", "two less")
        connection.execute("VACUUM small")
        note("vacuumed", "all")
        with server.connect(autocommit=False) as old:
            old.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            old.execute("SELECT 1")
            connection.execute("UPDATE small SET v = 2 WHERE id = 1")
            connection.execute("VACUUM small")
            note("one row updated, vacuumed beside an old snapshot", "one less")
            old.rollback()
        connection.execute("VACUUM small")
        note("the snapshot gone, vacuumed", "all")
    return pd.DataFrame(steps, columns=["step", "pages", "all_visible", "all_frozen", "expected"])


_MISSING = {"none": None, "all": 0, "one less": 1, "two less": 2}


def bit_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether each step leaves the bits that the talk's rule says."""
    if found is None:
        return None
    right = [row.all_visible == (0 if row.expected == "none" else row.pages - _MISSING[row.expected]) for row in found.itertuples()]
    at = dict(zip(found["step"], right))
    return {
        "vacuum sets the bit of every page that all can see": bool(right[0] and right[1] and right[-1]),
        "changing a tuple clears its page's bit, even if it is rolled back": bool(at["one row updated"] and at["one row of another page deleted, rolled back"]),
        "no bit is set while somebody may still need an older version": bool(at["one row updated, vacuumed beside an old snapshot"]),
        "reading and locking leave the bits alone": bool(at["one row locked"] and at["read"]),
    }


# ---- crashes

_CHURN_SECONDS = 0.3


def crashes(chapter: Chapter) -> pd.DataFrame:
    """Kill a server that updates, vacuums and checkpoints at the same time, let it recover, and check the map against the table.

    Its pool is small, so that it writes pages early.

    A row per crash: crash, updated (rows with new versions so far), marked (pages all-visible afterwards), wrong_visible,
    wrong_frozen (tuples on marked pages that the marks are wrong about), differing (rows whose sum by an index-only scan
    isn't that by a sequential one). Whether a checkpoint falls between update and crash is left to chance, as in life.
    """
    cluster, rows = place(chapter, KERNEL), []
    cluster.extension("pg_visibility")
    with cluster.connect() as connection, connection.transaction():
        loading.replace(connection, "crashed", "CREATE TABLE crashed (id int PRIMARY KEY, v int NOT NULL, filler char(100)) WITH (autovacuum_enabled = off, fillfactor = 90)")
        connection.execute("INSERT INTO crashed SELECT n, 0, '' FROM generate_series(1, 20000) AS n")
        connection.execute("CREATE INDEX crashed_covering ON crashed (id, v)")
    for crash in range(chapter.parameters.crashes):
        _churn_and_kill(cluster, chapter.parameters.seed + crash)
        with cluster.connect() as connection:
            rows.append((crash + 1, *_checked(connection)))
    return pd.DataFrame(rows, columns=["crash", "updated", "marked", "wrong_visible", "wrong_frozen", "differing"])


def _churn_and_kill(cluster: Cluster, seed: int) -> None:
    """Two sessions update and vacuum until the server is killed under them; it is started again."""
    update = "UPDATE crashed SET v = v + 1 WHERE id = ANY (ARRAY(SELECT (random() * 19999)::int + 1 FROM generate_series(1, 200)))"
    jobs = [
        threading.Thread(target=partial(_until_killed, cluster, statement, seed), daemon=True)
        for statement in (update, "VACUUM (FREEZE) crashed", "CHECKPOINT")
    ]
    for job in jobs:
        job.start()
    threading.Event().wait(_CHURN_SECONDS)
    cluster.crash()
    for job in jobs:
        job.join()
    cluster.start()


def _until_killed(cluster: Cluster, statement: str, seed: int) -> None:
    try:
        with cluster.connect() as connection:
            connection.execute("SELECT setseed(%s::float8 / 2147483648)", [seed])
            while True:
                connection.execute(statement)
    except (psycopg.Error, ServerError):
        return  # the crash that it was waiting for


def _checked(connection: psycopg.Connection) -> tuple[int, ...]:
    [(updated,)] = connection.execute("SELECT count(*) FROM crashed WHERE v > 0").fetchall()
    marked, visible, frozen = connection.execute(
        "SELECT (pg_visibility_map_summary('crashed')).all_visible, (SELECT count(*) FROM pg_check_visible('crashed')), (SELECT count(*) FROM pg_check_frozen('crashed'))"
    ).fetchone()
    query, found = "SELECT count(*), sum(v) FROM crashed WHERE id > 0", []
    for scan in ("indexonlyscan", "seqscan"):
        for name in ("seqscan", "bitmapscan", "indexonlyscan"):
            connection.execute(f"SET enable_{name} = {'on' if name == scan else 'off'}")
        found.append(connection.execute(query).fetchone())
    return updated, marked, visible, frozen, abs(found[0][0] - found[1][0]) + abs(found[0][1] - found[1][1])


def wrong_after_crash(found: pd.DataFrame | None) -> bool | None:
    """Whether the map was wrong anywhere."""
    return None if found is None else bool(found[["wrong_visible", "wrong_frozen", "differing"]].to_numpy().any())


# ---- vacuum

SKIPPING, WITHOUT = "VACUUM", "VACUUM without the map"
EVERY = (1000, 100, 50, 40, 33, 32, 31, 24, 16)  # of so many pages one has changed
_SKIPS = 32  # pages in a row that must be skippable, SKIP_PAGES_THRESHOLD of vacuumlazy.c


def skipping(chapter: Chapter) -> None:
    """Vacuum a static table with the map and with DISABLE_PAGE_SKIPPING."""
    server = chapter.server
    accounts(chapter).load(server, KEYED)
    with server.connect() as connection:
        arms = [Arm(name, partial(_vacuumed, connection, option)) for name, option in ((SKIPPING, ""), (WITHOUT, "(DISABLE_PAGE_SKIPPING)"))]
        chapter.compare("vacuum", arms, {"seconds": "s"})


def _vacuumed(connection: psycopg.Connection, option: str, block: Block) -> dict[str, float]:
    with clock.stopwatch() as watch:
        connection.execute(f"VACUUM {option} {KEYED}")
    return {"seconds": watch.seconds}


def skipped(chapter: Chapter) -> pd.DataFrame:
    """Pages that VACUUM scans when every nth page of a table has changed.

    Columns: every (n), changed and scanned (pages), computed (pages scanned if only runs of at least 32 pages are skipped).
    """
    server, rows = chapter.server, []
    with server.connect() as connection:
        with connection.transaction():
            loading.replace(connection, "sparse", "CREATE TABLE sparse (id int, filler char(2500)) WITH (autovacuum_enabled = off, fillfactor = 40)")
            connection.execute("ALTER TABLE sparse ALTER filler SET STORAGE PLAIN")  # compressed, many rows would fit on a page
            connection.execute("INSERT INTO sparse SELECT n, '' FROM generate_series(1, 2000) AS n")  # one row a page, with room for its next version
        connection.execute("VACUUM (FREEZE) sparse")
        pages = blocks(connection, "sparse")
        for every in EVERY:
            connection.execute("UPDATE sparse SET id = id WHERE (ctid::text::point)[0]::int %% %s = 0", [every])
            rows.append((every, -(-pages // every), scanned(connection, "sparse"), _computed(pages, every)))
    return pd.DataFrame(rows, columns=["every", "changed", "scanned", "computed"])


def scanned(connection: psycopg.Connection, relation: str) -> int:
    """Pages that a VACUUM (VERBOSE) says it has scanned."""
    said: list[str] = []
    handler = lambda notice: said.append(notice.message_primary)
    connection.add_notice_handler(handler)
    connection.execute(f"VACUUM (VERBOSE) {relation}")
    connection.remove_notice_handler(handler)
    return int(re.search(r"(\d+) scanned", " ".join(said))[1])


def _computed(pages: int, every: int) -> int:
    """Every nth page must be read, runs shorter than the threshold are read along, and the last page always is."""
    must = sorted({*range(0, pages, every), pages - 1})
    gaps = [after - before - 1 for before, after in zip(must, must[1:])]
    return len(must) + sum(gap for gap in gaps if gap < _SKIPS)


def vacuum_gain(chapter: Chapter) -> statistics.Interval | None:
    """Time of VACUUM without the map over that with it."""
    return chapter.ratio("vacuum", "seconds", WITHOUT, SKIPPING)


# ---- pg_upgrade


def upgraded(chapter: Chapter) -> dict[str, object]:
    """pg_upgrade a small cluster to a new one of the same release: what becomes of the map.

    Keys: all-visible pages before and after, relallvisible before and after, and whether the answers are right. To PostgreSQL 9.2
    itself nothing can be upgraded here; the rule that discards the map belongs to old clusters of before 9.2 only.
    """
    old = place(chapter, KERNEL)
    old.extension("pg_visibility")
    with old.connect() as connection:
        with connection.transaction():
            loading.replace(connection, "kept", "CREATE TABLE kept (id int, v int) WITH (autovacuum_enabled = off)")
            connection.execute("INSERT INTO kept SELECT n, 0 FROM generate_series(1, 20000) AS n")
            connection.execute("CREATE INDEX ON kept (id, v)")
        connection.execute("VACUUM (ANALYZE) kept")
        before = _kept(connection)
    with Cluster(chapter.programs) as new:
        new.stop()
        old.stop()
        try:
            _pg_upgrade(chapter, old, new)
        finally:
            old.start()
        new.start()
        with new.connect() as connection:
            after = _kept(connection)
    return {"pages": before[0], "marked before": before[1], "marked after": after[1], "relallvisible after": after[2], "wrongly marked": after[3]}


def _kept(connection: psycopg.Connection) -> tuple:
    summary = "(SELECT all_visible FROM pg_visibility_map_summary('kept'))"
    wrong = "(SELECT count(*) FROM pg_check_visible('kept'))"
    return connection.execute(f"SELECT relpages, {summary}, relallvisible, {wrong} FROM pg_class WHERE relname = 'kept'").fetchone()


def _pg_upgrade(chapter: Chapter, old: Cluster, new: Cluster) -> None:
    """Run it on two stopped clusters; a third one that runs lends its account and its folder."""
    programs = chapter.programs.path("postgres").parent
    chapter.cluster().tool(
        "pg_upgrade", "--old-bindir", programs, "--new-bindir", programs, "--old-datadir", old.data_directory,
        "--new-datadir", new.data_directory, "--username", "postgres", "--no-sync", "--jobs", 2,
    )  # fmt: skip


def upgrade_facts(found: dict[str, object] | None) -> dict[str, bool] | None:
    """Whether an upgrade leaves the map behind, so that everything has to be vacuumed again."""
    if found is None:
        return None
    return {"pg_upgrade discards the map": found["marked after"] == 0, "the planner forgets which share of the pages is all-visible": found["relallvisible after"] == 0}
