"""Catalogs: what a connection's first transaction reads, and how catalogs are reached."""

import random
from functools import partial

import pandas as pd
import psycopg

from pgrerun import statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.tp1.ladder import POOL_1990, POOL_ENLARGED, POOL_TODAY, relations
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import counters, pages
from pgrerun.server import Cluster


def first_transaction(chapter: Chapter) -> None:
    """Pages that a new connection's first and second transaction need, from an empty pool.

    Arms: pools of 16 and 48 pages and PostgreSQL's default. Metrics, each for both
    transactions: catalog pages fetched (found in the pool or not) and pages read.
    """
    sizes = (POOL_1990, POOL_ENLARGED, POOL_TODAY)
    arms = [Arm(_pages_words(size), partial(_connection, chapter, _stocked(chapter, size))) for size in sizes]
    chapter.compare("first transaction", arms, CATALOG_UNITS, pairs=5, warmup=0)


def catalog_access(chapter: Chapter) -> None:
    """The same first transaction with the catalogs' indexes used, ignored, and unwanted by the planner.

    In a database as it comes, and in one with 1 000 relations more.
    """
    planner_off = {"enable_indexscan": "off", "enable_indexonlyscan": "off", "enable_bitmapscan": "off"}
    ways = {BY_INDEX: {}, BY_SCAN: {"ignore_system_indexes": "on"}, NOT_PLANNED: planner_off}
    arms = [
        Arm(f"{words}, {size}", partial(_connection, chapter, _stocked(chapter, POOL_TODAY, more), options=options))
        for size, more in ((SMALL, 0), (GROWN, 1000))
        for words, options in ways.items()
    ]
    chapter.compare("catalog access", arms, CATALOG_UNITS, pairs=5, warmup=0)


BY_INDEX, BY_SCAN, NOT_PLANNED = "by index", "by sequential scan", "planner's index scans off"
CATALOG_UNITS = {
    f"{which}: {what}": unit
    for which in ("first", "second")
    for what, unit in (
        ("pages read", "pages"),
        ("catalog pages read", "pages"),
        ("catalog pages fetched", "pages"),
        ("scans of catalog tables", "scans"),
    )
}
SMALL, GROWN = "fresh database", "1 000 relations more"


def _pages_words(pages: int) -> str:
    return f"pool of {pages} pages"


def _stocked(chapter: Chapter, buffers: int, more: int = 0) -> Cluster:
    """A cluster that holds the report's relations and `more` small tables beside them."""
    cluster = chapter.cluster(shared_buffers=f"{buffers * 8}kB", **({"cluster_name": "grown"} if more else {}))
    with cluster.connect() as connection:
        if not connection.execute("SELECT to_regclass('account')").fetchone()[0]:
            relations(chapter).load(cluster)
            connection.execute(
                f"DO $$ BEGIN FOR i IN 1..{more} LOOP "
                "EXECUTE format('CREATE TABLE t%s (a int4, b float8, c text)', i); END LOOP; END $$"
            )
            connection.execute("VACUUM ANALYZE")
    return cluster


def _connection(chapter: Chapter, cluster: Cluster, block: Block, options: dict[str, str] | None = None) -> dict[str, float]:
    """Account for a new connection's first and second transaction, each from an empty pool."""
    tp1, draws = relations(chapter), random.Random(block.seed)
    flags = " ".join(f"-c {name}={value}" for name, value in (options or {}).items())
    cluster.extension("pg_buffercache")
    with counters.Counters(cluster, settle=0.02) as counter, cluster.connect() as janitor:
        pages.evict_all(janitor)
        with counter.measured() as first:
            worker = psycopg.connect(cluster.conninfo(), options=flags, autocommit=True)
            tp1.run_once(worker, draws)
            worker.execute("SELECT pg_stat_force_next_flush()")
        pages.evict_all(janitor)
        with worker, counter.measured(worker) as second:
            tp1.run_once(worker, draws)
    return _catalog_metrics("first", first) | _catalog_metrics("second", second)


def _catalog_metrics(which: str, delta: counters.Delta) -> dict[str, float]:
    catalogs = delta.relations[delta.relations["kind"].str.startswith("catalog")]
    tables = catalogs[catalogs["kind"] == "catalog table"]
    return {
        f"{which}: pages read": delta.reads.sum(),
        f"{which}: catalog pages read": catalogs["read"].sum(),
        f"{which}: catalog pages fetched": (catalogs["read"] + catalogs["hit"]).sum(),
        f"{which}: scans of catalog tables": tables["scans"].sum(),
    }


def sizes(chapter: Chapter) -> pd.DataFrame:
    """Pages of every catalog table (without indexes and TOAST) and its tuples, largest first."""
    query = """
        SELECT relname AS catalog, pg_relation_size(oid) / 8192 AS pages, reltuples::bigint AS tuples
        FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r' ORDER BY pages DESC, relname"""
    with chapter.server.connect() as connection:
        return pd.DataFrame(connection.execute(query).fetchall(), columns=["catalog", "pages", "tuples"])


def attribute_lookup(chapter: Chapter) -> pd.DataFrame:
    """Pages fetched to find one pg_attribute tuple by relation and number: by hash, by B-tree, by cache.

    Section 4 of the report proposes the hash. It is built here on a copy of the catalog,
    next to a B-tree like the catalog's own; the third row is what PostgreSQL does in a
    connection that has seen the tuple before. Columns: access, index pages, heap pages; indexed by access.
    """
    server = chapter.server
    with server.connect() as connection, counters.Counters(server, settle=0.02) as counter:
        connection.execute("DROP TABLE IF EXISTS attribute_copy")
        connection.execute("CREATE TABLE attribute_copy AS SELECT attrelid::int8 * 65536 + attnum AS key, attname FROM pg_attribute WHERE attnum > 0")
        rows = []
        for method in ("hash", "btree"):
            connection.execute(f"CREATE INDEX attribute_copy_key ON attribute_copy USING {method} (key)")
            connection.execute("VACUUM ANALYZE attribute_copy")
            keys = [key for (key,) in connection.execute("SELECT key FROM attribute_copy ORDER BY key LIMIT 500")]
            lookup = partial(connection.execute, "SELECT attname FROM attribute_copy WHERE key = %s", prepare=True)
            lookup([keys[0]])
            with counter.measured(connection) as delta:
                for key in keys:
                    lookup([key])
            connection.execute("DROP INDEX attribute_copy_key")
            fetched = delta.relations.set_index("relation").eval("read + hit") / len(keys)
            rows.append((method, fetched["attribute_copy_key"], fetched["attribute_copy"]))
        connection.execute("DROP TABLE attribute_copy")
    return pd.DataFrame(rows, columns=["access", "index pages", "heap pages"]).set_index("access", drop=False)


def reads_of_first(chapter: Chapter) -> statistics.Interval | None:
    """Pages that a connection's first transaction reads with the pool of 1990."""
    return chapter.median("first transaction", "first: pages read", _pages_words(POOL_1990))


def scan_over_index(chapter: Chapter) -> statistics.Interval | None:
    """Catalog pages fetched without the catalogs' indexes over those with them, catalogs grown."""
    return chapter.ratio("catalog access", "first: catalog pages fetched", f"{BY_SCAN}, {GROWN}", f"{BY_INDEX}, {GROWN}")


def hard_wired(chapter: Chapter) -> dict[str, bool] | None:
    """Whether access to catalogs is still planned by nobody, and whether it still passes indexes by."""
    fetched = chapter.table("catalog access", "first: catalog pages fetched")
    scans = chapter.table("catalog access", "first: scans of catalog tables")
    if fetched.empty:
        return None
    usual, unwanted, ignored = (f"{way}, {SMALL}" for way in (BY_INDEX, NOT_PLANNED, BY_SCAN))
    return {
        "the planner's settings don't change how catalogs are reached": bool((fetched[usual] == fetched[unwanted]).all()),
        "useful indexes are passed by": bool((scans[usual] >= scans[ignored]).all()),
    }


def accesses_by_hash(chapter: Chapter, lookup: pd.DataFrame) -> dict[str, float]:
    """Page accesses that lead to one attribute: through a hash index, through a backend's hashed cache.

    The second is what PostgreSQL made of the proposal: each backend keeps catalog tuples it
    has seen in memory, hashed on relation and attribute number.
    """
    found = {"pages of a hash index": lookup.at["hash", "index pages"]}
    again = chapter.table("first transaction", "second: catalog pages fetched")
    if not again.empty:
        found["catalog pages of a whole transaction, from the backend's hashed caches"] = again.to_numpy().max()
    return found
