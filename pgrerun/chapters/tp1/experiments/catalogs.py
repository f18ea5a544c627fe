"""Catalogs: what a connection's first transaction reads, and how catalogs are reached."""

import random
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.tp1 import variants
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import counters, pages, sizes
from pgrerun.lab.relations import loading
from pgrerun.lab.server import Cluster, releases

SQL = variants.SQL
POOLS = {
    f"pool of {size} pages": size
    for size in (variants.POOL_1990, variants.POOL_ENLARGED, variants.POOL_TODAY)
}
# The catalogs that the report saw scanned; its pg_relation is pg_class.
SCANNED = ("pg_attribute", "pg_operator", "pg_class")
UNITS = {
    f"{which}: {what}": unit
    for which in ("first", "second")
    for what, unit in (
        ("pages read", "pages"),
        ("catalog pages read", "pages"),
        ("catalog pages fetched", "pages"),
        ("scans of named catalogs", "scans"),
    )
}
BY_INDEX, BY_SCAN, NOT_PLANNED = "by index", "by sequential scan", "planner's index scans off"
ACCESS = {
    BY_INDEX: {},
    BY_SCAN: {"ignore_system_indexes": "on"},
    NOT_PLANNED: {
        "enable_indexscan": "off",
        "enable_indexonlyscan": "off",
        "enable_bitmapscan": "off",
    },
}
SMALL, GROWN = "fresh database", "1 000 relations more"
MORE = {SMALL: 0, GROWN: 1000}  # relations beside the report's


@dataclass(frozen=True)
class Watched:
    """A cluster with counters that are warm, and a connection that can empty its pool."""

    cluster: Cluster
    counter: counters.Counters
    janitor: psycopg.Connection


@contextmanager
def watched(cluster: Cluster) -> Iterator[Watched]:
    """Watch a cluster; what its background processes do isn't asked for."""
    cluster.extension("pg_buffercache")
    with counters.Counters(cluster, settle=0) as counter, cluster.connect() as janitor:
        yield Watched(cluster, counter, janitor)


@experiment(claims=["lai-050"])
def first_transaction(chapter: Chapter) -> None:
    """Pages that a new connection's first and second transaction need, from an empty pool.

    Variants: `POOLS`; metrics as in `UNITS`.
    """

    def both(on: Watched, block: Block) -> dict[str, float]:
        return first(chapter, on, {}, block) | second(chapter, on, block)

    with ExitStack() as stack:
        compared = []
        for name, size in POOLS.items():
            on = stack.enter_context(watched(stocked(chapter, size)))
            compared.append(Variant(name, partial(both, on)))
        # counts: only the drawn keys vary
        chapter.compare("first transaction", compared, UNITS, pairs=3, warmup=0)


@experiment(claims=["lai-084", "lai-086"])
def catalog_access(chapter: Chapter) -> None:
    """The first transaction with the catalogs' indexes used, ignored, and unwanted by the planner.

    In a database as it comes, and in one with 1 000 relations more.
    """
    with ExitStack() as stack:
        compared = []
        for size, more in MORE.items():
            cluster = stocked(chapter, variants.POOL_TODAY, more)
            on = stack.enter_context(watched(cluster))
            for access, settings in ACCESS.items():
                if (access, size) != (NOT_PLANNED, GROWN):
                    count = partial(first, chapter, on, settings)
                    compared.append(Variant(f"{access}, {size}", count))
        # the second block shows that the first repeats
        chapter.compare("catalog access", compared, UNITS, pairs=2, warmup=0)


def stocked(chapter: Chapter, buffers: int, more: int = 0) -> Cluster:
    """A cluster that holds the report's relations and `more` small tables beside them.

    Nothing else is on one with PostgreSQL's own pool: the catalogs tell of whatever a database
    has held.
    """
    own_pool = buffers == variants.POOL_TODAY
    if own_pool:
        cluster = chapter.cluster(cluster_name="grown" if more else "fresh")
    else:
        cluster = variants.pooled(chapter, buffers)
    with cluster.connect() as connection:
        if own_pool and loading.is_ours(connection, "account"):
            return cluster  # stocked by an earlier experiment
        variants.relations(chapter).load(connection)
        SQL.run(connection, "catalogs.more_relations", more=more)
        # of the catalogs alone: each of the tables would be a transaction of its own
        [catalogs] = SQL.run(connection, "catalogs.all").fetchone()
        together = releases.has(cluster.version, "VACUUM of several tables")
        for some in [catalogs] if together else catalogs.split(", "):
            connection.execute(f"VACUUM (ANALYZE) {some}")
    return cluster


def first(
    chapter: Chapter, on: Watched, settings: Mapping[str, str], block: Block
) -> dict[str, float]:
    """Account for the start and the first transaction of a connection with these settings."""
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    script, draws = SQL.script(variants.TRANSACTION), random.Random(block.seed)
    pages.evict_all(on.janitor)
    with on.counter.measured() as delta, on.cluster.connect(options=options) as worker:
        variants.relations(chapter).run_once(worker, draws, script)
    return _metrics("first", delta)


def second(chapter: Chapter, on: Watched, block: Block) -> dict[str, float]:
    """Account for the second transaction of a connection."""
    bank, draws = variants.relations(chapter), random.Random(block.seed)
    script = SQL.script(variants.TRANSACTION)
    with on.cluster.connect() as worker:
        bank.run_once(worker, draws, script)
        pages.evict_all(on.janitor)
        with on.counter.measured(worker) as delta:
            bank.run_once(worker, draws, script)
    return _metrics("second", delta)


def _metrics(which: str, delta: counters.Delta) -> dict[str, float]:
    catalogs = delta.relations[delta.relations["kind"].str.startswith("catalog")]
    scanned = catalogs[catalogs["relation"].isin(SCANNED)]
    return {
        f"{which}: pages read": delta.reads.sum(),
        f"{which}: catalog pages read": catalogs["read"].sum(),
        f"{which}: catalog pages fetched": (catalogs["read"] + catalogs["hit"]).sum(),
        f"{which}: scans of named catalogs": scanned["scans"].sum(),
    }


def catalog_sizes(chapter: Chapter) -> pd.DataFrame:
    """Pages of every catalog table (without indexes and TOAST) and its tuples, largest first.

    Of a database that nothing was created in yet; of a borrowed server's database as it is.
    Columns: catalog, pages, tuples.
    """
    untouched = {} if chapter.borrowed else {"dbname": "template1"}
    with chapter.server.connect(**untouched) as connection:
        found = sizes.in_schema(connection, "pg_catalog")
    found = found[found["kind"] == "table"].rename(columns={"relation": "catalog"})
    return found[["catalog", "pages", "tuples"]].reset_index(drop=True)


@experiment(claims=["lai-085"])
def attribute_lookup(chapter: Chapter) -> pd.DataFrame:
    """Pages fetched to find one pg_attribute tuple by relation and number: by hash, by B-tree.

    Section 4 of the report proposes the hash. It is built here on a copy of the catalog,
    next to a B-tree like the catalog's own.
    Columns: access, index pages, heap pages; indexed by access.
    """
    server, rows = chapter.server, []
    with server.connect() as connection, counters.Counters(server, settle=0.02) as counter:
        connection.execute("DROP TABLE IF EXISTS attribute_copy")
        SQL.run(connection, "catalogs.copy")
        keys = [key for (key,) in SQL.run(connection, "catalogs.keys")]
        for method in ("hash", "btree"):
            SQL.run(connection, f"catalogs.{method}")
            SQL.run(connection, "catalogs.prepare")
            SQL.run(connection, "catalogs.lookup", key=keys[0])
            with counter.measured(connection) as delta:
                for key in keys:
                    SQL.run(connection, "catalogs.lookup", key=key)
            SQL.run(connection, "catalogs.drop_index")
            fetched = delta.relations.set_index("relation").eval("read + hit") / len(keys)
            rows.append((method, fetched["attribute_copy_key"], fetched["attribute_copy"]))
        connection.execute("DROP TABLE attribute_copy")
    columns = ["access", "index pages", "heap pages"]
    return pd.DataFrame(rows, columns=columns).set_index("access", drop=False)
