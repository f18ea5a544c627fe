"""Catalogs: what a connection's first transaction reads, and how catalogs are reached."""

import random
from contextlib import ExitStack
from functools import partial

import pandas as pd

from pgrerun import published
from pgrerun.chapter import Chapter
from pgrerun.chapters.tp1.ladder import POOL_1990, POOL_ENLARGED, POOL_TODAY, pooled, relations
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import counters, pages
from pgrerun.relations import loading
from pgrerun.server import Cluster


def first_transaction(chapter: Chapter) -> None:
    """Pages that a new connection's first and second transaction need, from an empty pool.

    Arms: pools of 16 and 48 pages and PostgreSQL's default; metrics as in `CATALOG_UNITS`.
    """

    def both(watched: Watched, block: Block) -> dict[str, float]:
        return _first(chapter, watched, block) | _second(chapter, watched, block)

    sizes = (POOL_1990, POOL_ENLARGED, POOL_TODAY)
    with ExitStack() as stack:
        arms = [Arm(_pages_words(size), partial(both, stack.enter_context(Watched(_stocked(chapter, size))))) for size in sizes]
        chapter.compare("first transaction", arms, CATALOG_UNITS, pairs=3, warmup=0)  # counts: only the drawn keys vary


def catalog_access(chapter: Chapter) -> None:
    """The first transaction with the catalogs' indexes used, ignored, and unwanted by the planner.

    In a database as it comes, and in one with 1 000 relations more.
    """
    planner_off = {"enable_indexscan": "off", "enable_indexonlyscan": "off", "enable_bitmapscan": "off"}
    ignored = {"ignore_system_indexes": "on"}
    with Watched(_stocked(chapter, POOL_TODAY)) as fresh, Watched(_stocked(chapter, POOL_TODAY, 1000)) as grown:
        arms = [
            Arm(f"{BY_INDEX}, {SMALL}", partial(_first, chapter, fresh)),
            Arm(f"{BY_SCAN}, {SMALL}", partial(_first, chapter, fresh, options=ignored)),
            Arm(f"{NOT_PLANNED}, {SMALL}", partial(_first, chapter, fresh, options=planner_off)),
            Arm(f"{BY_INDEX}, {GROWN}", partial(_first, chapter, grown)),
            Arm(f"{BY_SCAN}, {GROWN}", partial(_first, chapter, grown, options=ignored)),
        ]
        chapter.compare("catalog access", arms, CATALOG_UNITS, pairs=2, warmup=0)  # the second shows that the first repeats


BY_INDEX, BY_SCAN, NOT_PLANNED = "by index", "by sequential scan", "planner's index scans off"
SCANNED = ("pg_attribute", "pg_operator", "pg_class")  # the catalogs that the report saw scanned; pg_relation is pg_class
CATALOG_UNITS = {
    f"{which}: {what}": unit
    for which in ("first", "second")
    for what, unit in (
        ("pages read", "pages"),
        ("catalog pages read", "pages"),
        ("catalog pages fetched", "pages"),
        ("scans of named catalogs", "scans"),
    )
}
SMALL, GROWN = "fresh database", "1 000 relations more"


def _pages_words(pages: int) -> str:
    return f"pool of {pages} pages"


def _stocked(chapter: Chapter, buffers: int, more: int = 0) -> Cluster:
    """A cluster that holds the report's relations and `more` small tables beside them.

    Each of those has a TOAST table with its index: catalogs are not always read to their end, but pg_index is. Nothing else is on one with PostgreSQL's own pool: the catalogs tell of whatever a database has held.
    """
    cluster = pooled(chapter, buffers) if buffers != POOL_TODAY else chapter.cluster(cluster_name="grown" if more else "fresh")
    with cluster.connect() as connection:
        if buffers == POOL_TODAY and loading.is_ours(connection, "account"):
            return cluster  # stocked by an earlier experiment
        relations(chapter).load(connection)
        connection.execute(
            f"DO $$ BEGIN FOR i IN 1..{more} LOOP "
            "EXECUTE format('CREATE TABLE t%s (a int4, b float8, c text)', i); END LOOP; END $$"
        )
        # of the catalogs alone: each of the tables would be a transaction of its own
        catalogs = "SELECT string_agg(oid::regclass::text, ', ') FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r'"
        connection.execute(f"VACUUM (ANALYZE) {connection.execute(catalogs).fetchone()[0]}")
    return cluster


class Watched:
    """A cluster with counters that are warm, over a pool that can be emptied; used in a `with` block."""

    def __init__(self, cluster: Cluster):
        self.cluster = cluster

    def __enter__(self) -> "Watched":
        self.cluster.extension("pg_buffercache")
        self.counter = counters.Counters(self.cluster, settle=0)  # what background processes do isn't asked for
        self._janitor = self.cluster.connect()
        return self

    def __exit__(self, *exception: object) -> None:
        self._janitor.close()
        self.counter.close()

    def emptied(self) -> counters.Counters:
        """The counters, with nothing left in the pool."""
        pages.evict_all(self._janitor)
        return self.counter


def _first(chapter: Chapter, watched: Watched, block: Block, options: dict[str, str] | None = None) -> dict[str, float]:
    """Account for the start and the first transaction of a connection with these settings."""
    flags = " ".join(f"-c {name}={value}" for name, value in (options or {}).items())
    with watched.emptied().measured() as delta:
        with watched.cluster.connect(options=flags) as worker:
            relations(chapter).run_once(worker, random.Random(block.seed))
    return _catalog_metrics("first", delta)


def _second(chapter: Chapter, watched: Watched, block: Block) -> dict[str, float]:
    """Account for the second transaction of a connection."""
    draws = random.Random(block.seed)
    with watched.cluster.connect() as worker:
        relations(chapter).run_once(worker, draws)
        with watched.emptied().measured(worker) as delta:
            relations(chapter).run_once(worker, draws)
    return _catalog_metrics("second", delta)


def _catalog_metrics(which: str, delta: counters.Delta) -> dict[str, float]:
    catalogs = delta.relations[delta.relations["kind"].str.startswith("catalog")]
    named = catalogs[catalogs["relation"].isin(SCANNED)]
    return {
        f"{which}: pages read": delta.reads.sum(),
        f"{which}: catalog pages read": catalogs["read"].sum(),
        f"{which}: catalog pages fetched": (catalogs["read"] + catalogs["hit"]).sum(),
        f"{which}: scans of named catalogs": named["scans"].sum(),
    }


def sizes(chapter: Chapter) -> pd.DataFrame:
    """Pages of every catalog table (without indexes and TOAST) and its tuples, largest first.

    Of a database that nothing was created in yet; of a borrowed server's database as it is.
    """
    query = """
        SELECT relname AS catalog, pg_relation_size(oid) / 8192 AS pages, reltuples::bigint AS tuples
        FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r' ORDER BY pages DESC, relname"""
    untouched = {} if chapter.borrowed else {"dbname": "template1"}
    with chapter.server.connect(**untouched) as connection:
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


def first_facts(chapter: Chapter) -> dict[str, bool] | None:
    """Whether a first transaction still reads as much with the pool of 1990, and for the same reason."""
    pool = _pages_words(POOL_1990)
    reads = chapter.table("first transaction", "first: pages read")
    scans = chapter.table("first transaction", "first: scans of named catalogs")
    if reads.empty:
        return None
    many = published.cell("tp1_catalogs", "first_transaction_reads", "value")
    return {
        "a first transaction reads more than eighty pages": bool((reads[pool] > many).all()),
        f"because {', '.join(SCANNED)} are scanned from end to end": bool((scans[pool] > 0).all()),
    }


def scan_over_index(chapter: Chapter) -> float | None:
    """Catalog pages fetched without the catalogs' indexes over those with them, catalogs grown: the least of the blocks.

    A count and no sample: the keys that a transaction draws don't change which catalogs it reads.
    """
    fetched = chapter.table("catalog access", "first: catalog pages fetched")
    return None if fetched.empty else float((fetched[f"{BY_SCAN}, {GROWN}"] / fetched[f"{BY_INDEX}, {GROWN}"]).min())


def hard_wired(chapter: Chapter) -> dict[str, bool] | None:
    """Whether access to catalogs is still planned by nobody, and whether it still passes indexes by."""
    fetched = chapter.table("catalog access", "first: catalog pages fetched")
    scans = chapter.table("catalog access", "first: scans of named catalogs")
    if fetched.empty:
        return None
    usual, unwanted = f"{BY_INDEX}, {SMALL}", f"{NOT_PLANNED}, {SMALL}"
    return {
        "the planner's settings don't change how catalogs are reached": bool((fetched[usual] == fetched[unwanted]).all()),
        "useful indexes are passed by": bool((scans[usual] > 0).all()),
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
