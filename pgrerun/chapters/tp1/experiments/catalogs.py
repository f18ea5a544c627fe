"""Catalogs: what a connection's first transaction reads, and how catalogs are reached."""

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pandas as pd
import psycopg

from pgrerun.chapters.tp1 import variants
from pgrerun.chapters.tp1.experiments import postgres95
from pgrerun.lab.instruments import counters, pages, sizes
from pgrerun.lab.relations import loading
from pgrerun.lab.server import Cluster, releases
from pgrerun.lab.testbed import Block, Row, Testbed, experiment, side_by_side
from pgrerun.lab.university_ingres import UniversityIngres

SQL = variants.SQL
POOLS = (variants.POOL_1990, variants.POOL_ENLARGED, variants.POOL_TODAY)
# The catalogs that the report saw scanned; its pg_relation is pg_class.
SCANNED = ("pg_attribute", "pg_operator", "pg_class")
UNITS = {
    f"{which}_{what}": unit
    for which in ("first", "second")
    for what, unit in (
        ("reads", "pages"),
        ("catalog_reads", "pages"),
        ("catalog_fetches", "pages"),
        ("catalog_scans", "scans"),
    )
}
ACCESS = {"by index": {}, "by sequential scan": {"ignore_system_indexes": "on"}}
GROWN = 1000  # relations beside the report's


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


@experiment(units=UNITS)
def first_transaction(bed: Testbed) -> Iterator[Row]:
    """Pages that a new connection's first and second transaction need, from an empty pool.

    Reads of all pages and of catalogs', catalog pages fetched from pool or disk, and scans of the
    catalogs that the report names.
    """
    with side_by_side((size, watched(stocked(bed, size))) for size in POOLS) as on:

        def both(block: Block, pool_pages: int) -> dict[str, float]:
            watching = on[pool_pages]
            return first(bed, watching, {}, block) | second(bed, watching, block)

        # counts: only the drawn keys vary
        yield from bed.compare(both, {"pool_pages": POOLS}, pairs=3, warmup=0)


@experiment(units={name: unit for name, unit in UNITS.items() if name.startswith("first")})
def catalog_access(bed: Testbed) -> Iterator[Row]:
    """The first transaction with the catalogs' indexes used, and ignored.

    In a database as it comes, and in one with 1,000 relations more.
    """
    with side_by_side(
        (more, watched(stocked(bed, variants.POOL_TODAY, more))) for more in (0, GROWN)
    ) as on:

        def count(block: Block, access: str, more_relations: int) -> dict[str, float]:
            return first(bed, on[more_relations], ACCESS[access], block)

        # the second block shows that the first repeats
        compared = {"access": tuple(ACCESS), "more_relations": tuple(on)}
        yield from bed.compare(count, compared, pairs=2, warmup=0)


# as Postgres95's, by names of today
LOOKED_UP = postgres95.LOOKED_UP | {"pg_amop": "amopfamily", "pg_amproc": "amprocfamily"}
BUILT_IN, OWN = "built in", "one's own as well"


@experiment(units={"own_fetches": "pages", "catalog_fetches": "pages"})
def own_catalog_index(bed: Testbed) -> Iterator[Row]:
    """Pages that a first transaction fetches of catalogs, and of indexes that one defined on them.

    From an empty pool, before they are defined and then.
    """
    cluster = bed.cluster(cluster_name="own index", allow_system_table_mods="on")
    variants.relations(bed).load(cluster)
    for indexes in (BUILT_IN, OWN):
        if indexes == OWN:
            with cluster.connect() as connection:
                for catalog, field in LOOKED_UP.items():
                    names = {"index": f"own_{catalog}", "catalog": catalog, "field": field}
                    SQL.run(connection, "catalogs.own_index", **names)
        with watched(cluster) as on:
            fetched = _of_catalogs(_first(bed, on, {}, Block(0, 1, 0))).eval("read + hit")
        own = fetched.index.str.startswith("own_")
        yield {
            "indexes": indexes,
            "own_fetches": int(fetched[own].sum()),
            "catalog_fetches": int(fetched.sum()),
        }


def stocked(bed: Testbed, buffers: int, more: int = 0) -> Cluster:
    """A cluster that holds the report's relations and `more` small tables beside them.

    Nothing else is on one with PostgreSQL's own pool: the catalogs tell of whatever a database
    has held.
    """
    own_pool = buffers == variants.POOL_TODAY
    if own_pool:
        cluster = bed.cluster(cluster_name="grown" if more else "fresh")
    else:
        cluster = variants.pooled(bed, buffers)
    with cluster.connect() as connection:
        if own_pool and loading.is_ours(connection, "account"):
            return cluster  # stocked by an earlier experiment
        variants.relations(bed).load(connection)
        SQL.run(connection, "catalogs.more_relations", more=more)
        # of the catalogs alone: each of the tables would be a transaction of its own
        [catalogs] = SQL.run(connection, "catalogs.all").fetchone()
        together = releases.has(cluster.version, "VACUUM of several tables")
        for some in [catalogs] if together else catalogs.split(", "):
            connection.execute(f"VACUUM (ANALYZE) {some}")
    return cluster


def first(bed: Testbed, on: Watched, settings: Mapping[str, str], block: Block) -> dict[str, float]:
    """Account for the start and the first transaction of a connection with these settings."""
    return _metrics("first", _first(bed, on, settings, block))


def _first(bed: Testbed, on: Watched, settings: Mapping[str, str], block: Block) -> counters.Delta:
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    script, draws = SQL.script(variants.TRANSACTION), random.Random(block.seed)
    pages.evict_all(on.janitor)
    with on.counter.measured() as delta, on.cluster.connect(options=options) as worker:
        variants.relations(bed).run_once(worker, draws, script)
    return delta


def second(bed: Testbed, on: Watched, block: Block) -> dict[str, float]:
    """Account for the second transaction of a connection."""
    bank, draws = variants.relations(bed), random.Random(block.seed)
    script = SQL.script(variants.TRANSACTION)
    with on.cluster.connect() as worker:
        bank.run_once(worker, draws, script)
        pages.evict_all(on.janitor)
        with on.counter.measured(worker) as delta:
            bank.run_once(worker, draws, script)
    return _metrics("second", delta)


def _metrics(which: str, delta: counters.Delta) -> dict[str, float]:
    catalogs = _of_catalogs(delta)
    scanned = catalogs[catalogs.index.isin(SCANNED)]
    return {
        f"{which}_reads": float(delta.reads.sum()),
        f"{which}_catalog_reads": float(catalogs["read"].sum()),
        f"{which}_catalog_fetches": float((catalogs["read"] + catalogs["hit"]).sum()),
        f"{which}_catalog_scans": float(scanned["scans"].sum()),
    }


def _of_catalogs(delta: counters.Delta) -> pd.DataFrame:
    """What was counted of catalogs and their indexes, by name."""
    found = delta.relations.set_index("relation")
    return found[found["kind"].str.startswith("catalog")]


@experiment(units={"pages": "pages", "tuples": "rows"})
def catalog_sizes(bed: Testbed) -> Iterator[Row]:
    """Pages of every catalog table (without indexes and TOAST) and its tuples, largest first.

    Of a database that nothing was created in yet; of a borrowed server's database as it is.
    """
    untouched = {} if bed.borrowed else {"dbname": "template1"}
    with bed.server.connect(**untouched) as connection:
        found = sizes.in_schema(connection, "pg_catalog")
    tables = found[found["kind"] == "table"].rename(columns={"relation": "catalog"})
    yield from tables[["catalog", "pages", "tuples"]].to_dict("records")


@experiment(units={"index_pages": "pages/lookup", "heap_pages": "pages/lookup"})
def attribute_lookup(bed: Testbed) -> Iterator[Row]:
    """Pages fetched to find one pg_attribute tuple by relation and number: by hash, by B-tree.

    Section 4 of the report proposes the hash. It is built here on a copy of the catalog,
    next to a B-tree like the catalog's own.
    """
    server = bed.server
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
            yield {
                "access": method,
                "index_pages": float(fetched["attribute_copy_key"]),
                "heap_pages": float(fetched["attribute_copy"]),
            }
        connection.execute("DROP TABLE attribute_copy")


# By which access a copy of INGRES's attribute relation is reached, and how it is made so.
ORGANIZED = {
    "heap": (),
    "isam": ("modify attributes to isam on attrelid, attid",),
    "hash": ("modify attributes to hash on attrelid, attid",),
}
# Relations and attributes of each: their entries take nine pages of 8 kB, as the report's do.
CREATED, ATTRIBUTES = 276, 13


@experiment(units={"reads": "pages", "found": "tuples"})
def ingres_lookup(bed: Testbed) -> Iterator[Row]:
    """Pages of a copy of its attribute relation that INGRES reads to fetch an entry of it.

    By relation and attribute number, of every sixth relation one. INGRES keeps no page from one
    command to the next. CannotMeasure without a build of it.
    """
    listed = ", ".join(f"a{number} = i4" for number in range(1, ATTRIBUTES + 1))
    keys = [(f"r{number}", number % ATTRIBUTES + 1) for number in range(0, CREATED, 6)]
    fetches = [
        f'retrieve (a.attname) where a.attrelid = "{relation}" and a.attid = {number}'
        for relation, number in keys
    ]
    with UniversityIngres() as ingres:
        ingres.run(*(f"create r{number} ({listed})" for number in range(CREATED)))
        ingres.run("range of a is attribute", "retrieve into attributes (a.all)")
        for access, made in ORGANIZED.items():
            ingres.run(*made)
            _, *fetched = ingres.run("range of a is attributes", *fetches)
            for (relation, number), command in zip(keys, fetched, strict=True):
                yield {
                    "access": access,
                    "relation": relation,
                    "attribute": number,
                    "reads": command.reads("attributes"),
                    "found": len(command.rows),
                }
