"""Throughput, in interleaved blocks: the thread's two set-ups.

All of it in a pool smaller than the data, of the thread's share where that is enough for all
backends, on a disk that makes them wait; and with the share of its time that the work waits for
pages, which says whether a run is in the thread's regime. Then what reading costs of relations that
have grown.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import psycopg

from pgrerun.chapters.hot.variants import (
    ACCOUNTS,
    FULL,
    HOT,
    NO_HOT,
    REDUCED,
    SMALL_TABLES,
    SQL,
    UNPRUNED,
    load,
    loaded,
    relations,
    run_in_server,
    run_pgbench,
    updates,
)
from pgrerun.errors import CannotMeasure
from pgrerun.lab.disk import Disk
from pgrerun.lab.instruments import counters, sessions, sizes
from pgrerun.lab.models.heap_growth import PAGE
from pgrerun.lab.relations.pgbench import Pgbench
from pgrerun.lab.server import Cluster, Server, value
from pgrerun.lab.testbed import Block, Row, Testbed, experiment
from pgrerun.record import printed, statistics

SHARE = "share of the time"
LOAD = {"tps": "transactions/s", "waiting": SHARE, "writing": SHARE, "reads": "pages"}
POOL = {"data_over_pool": "times", "pool_over_small_tables": "times"}
UNITS = LOAD | POOL
AGAIN = "HOT, again"
REDUCED_CLIENTS = 4  # each needs pages of the pool, more would but queue for them
VACUUMED_IN_TIME = 20_000  # accounts of a branch: fewer, and a run is over before autovacuum comes
PINS = 4  # pages that a backend may hold at once
SMALLEST_POOL = 16  # pages
# A disk of pages that come one at a time. WAL passes it by, as on a disk of its own.
RATE = 12000  # requests per second
SLOW = Disk(1 / RATE, 1 / RATE, only="base/")
VACUUMED = {"autovacuum": "on", "autovacuum_naptime": "1s"}  # as often as PostgreSQL can
TIMED = {"track_io_timing": "on"}


def pages_of_pool() -> float:
    """Pages of the thread's pool."""
    return printed.cell("hot_setup", "shared_buffers", "value") * 2**20 / PAGE


def of_loaded(pages: float) -> float:
    """So many of the thread's pages as a share of its accounts and their index as loaded."""
    then = printed.derived("hot_growth")["initial_hot"][[f"reduced_{name}" for name in ACCOUNTS]]
    return pages / then.sum()


def loaded_pages(server: Server) -> int:
    """Pages of accounts and its index."""
    with server.connect() as connection:
        return sum(sizes.pages_of(connection, ACCOUNTS).values())


@contextmanager
def small_pool_cluster(
    cluster: Cluster, ours: Pgbench, at_least: int, settings: Mapping[str, str | int]
) -> Iterator[Cluster]:
    """A cluster with a pool of the thread's share of accounts and their index before the runs, but
    `at_least` so many pages.
    """
    load(ours, cluster)
    as_there = round(of_loaded(pages_of_pool()) * loaded_pages(cluster))
    pages = max(SMALLEST_POOL, at_least, as_there)
    with cluster.restarted({"shared_buffers": f"{PAGE // 1024 * pages}kB", **settings}):
        yield cluster


@experiment(units=UNITS, needs=["restart"])
def throughput(bed: Testbed) -> Iterator[Row]:
    """The reduced script, with as many updates per account as in the thread; one variant twice."""
    variants = [{"script": REDUCED, "variant": one} for one in (HOT, AGAIN, NO_HOT, UNPRUNED)]
    yield from _compare(bed, REDUCED_CLIENTS, variants)


@experiment(units=UNITS, needs=["restart"])
def full_script(bed: Testbed) -> Iterator[Row]:
    """The full script as well, by as many clients as the chapter has.

    CannotMeasure where the small tables would outgrow the pool before they are vacuumed.
    """
    if (accounts := bed.parameters.timed_accounts) < VACUUMED_IN_TIME:
        raise CannotMeasure(
            f"timed_accounts = {VACUUMED_IN_TIME}",
            "in the thread the pool holds tellers and branches, which are vacuumed often;"
            f" with {accounts:,} accounts of each branch a pool of the thread's share is too small"
            " for them, and a run is over before autovacuum comes",
        )
    compared = ((REDUCED, NO_HOT), (FULL, HOT), (FULL, NO_HOT))
    variants = [{"script": script, "variant": variant} for script, variant in compared]
    yield from _compare(bed, bed.parameters.clients, variants)


def _compare(bed: Testbed, branches: int, variants: list[dict[str, str]]) -> Iterator[Row]:
    """Each in every block on the slowed disk, by as many clients as there are branches."""
    ours = Pgbench(branches, bed.parameters.timed_accounts, prefix="")
    cluster, disk = bed.cluster_on_slow_disk(fsync="off")  # the slowed disk's time stands for it
    with small_pool_cluster(cluster, ours, PINS * branches, VACUUMED | TIMED) as server:

        def measure(block: Block, script: str, variant: str) -> dict[str, float]:
            with sessions.snapshot(server, variant == UNPRUNED), disk.serving(SLOW):
                found = _run(server, ours, branches, script, block.seed)
            return found | pool_of(server)

        # no warming up: every run loads its relations
        yield from bed.compare(
            measure,
            variants,
            pairs=bed.fewest_pairs,
            warmup=0,
            prepare=lambda block, script, variant: load(
                ours, server, HOT if variant == AGAIN else variant
            ),
        )


def pool_of(server: Cluster) -> dict[str, float]:
    """`POOL`: what the buffer pool is to the relations as they are now."""
    with server.connect() as connection:
        pool = value(connection, int, SQL.text("reading.pool"))
        small, data = (
            sum(sizes.pages_of(connection, of).values()) for of in (SMALL_TABLES, ACCOUNTS)
        )
    return {"data_over_pool": data / pool, "pool_over_small_tables": pool / small}


def _run(server: Cluster, ours: Pgbench, clients: int, script: str, seed: int) -> dict[str, float]:
    """`LOAD` of as many updates per account as in the thread."""
    with server.connect() as probe:
        before = _waited(probe)
        done = run_pgbench(server, ours, script, updates(ours), seed=seed, clients=clients)
        reading, writing, reads = _waited(probe) - before
    work = 1000 * clients * done.transactions / done.tps  # milliseconds of all clients
    return {
        "tps": done.tps,
        "waiting": reading / work,
        "writing": writing / work,
        "reads": reads / done.transactions,
    }


def _waited(probe: psycopg.Connection) -> np.ndarray:
    """Milliseconds that backends of the database have waited for reads and writes; pages read."""
    return np.array(SQL.run(probe, "reading.waited").fetchone())


# ---- reading


@experiment(units=LOAD, needs=["restart"])
def pools(bed: Testbed) -> Iterator[Row]:
    """The reduced script by one client on the machine's own disk, in a pool of the thread's share.

    CannotMeasure where PostgreSQL's smallest pool holds most of the data.
    """
    ours = relations(bed)
    load(ours, bed.server)
    data = loaded_pages(bed.server)
    if data < 2 * SMALLEST_POOL:
        raise CannotMeasure(
            "larger relations",
            f"accounts and its index have {data} pages, and PostgreSQL's smallest buffer pool holds"
            " most of them; set accounts higher",
        )
    # waiting for the flush of WAL is none of the pool's
    lax = TIMED | {"synchronous_commit": "off"}
    with small_pool_cluster(bed.cluster(), ours, SMALLEST_POOL, lax) as server:
        yield from bed.compare(
            lambda block: _run(server, ours, 1, REDUCED, block.seed),
            [{}],
            pairs=statistics.ENOUGH,
            warmup=0,
        )


@experiment(units=dict.fromkeys(("lookup", "scan"), "page accesses"))
def reading(bed: Testbed) -> Iterator[Row]:
    """Page accesses of a lookup of each account by key and of a scan, after the thread's updates.

    A lookup's are those of accounts and its index, on average.
    """
    server, ours = bed.server, relations(bed)
    for variant in (HOT, UNPRUNED):
        with loaded(ours, server, variant) as (connection, _):
            connection.execute("SET enable_seqscan = off")
            connection.execute("SET enable_bitmapscan = off")
            run_in_server(connection, ours, "update_account", updates(ours), bed.parameters.seed)
            before = counters.counts(connection, *ACCOUNTS)["fetched"]
            SQL.run(connection, "reading.lookups", accounts=ours.accounts)
            fetched = counters.counts(connection, *ACCOUNTS)["fetched"] - before
            scan = sizes.pages(connection, "accounts")
            yield {"variant": variant, "lookup": fetched / ours.accounts, "scan": scan}
