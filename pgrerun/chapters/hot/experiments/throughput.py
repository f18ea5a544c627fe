"""Throughput, in interleaved blocks: the thread's two set-ups, and Merlin's runs.

All of it in a pool smaller than the data, of the thread's share where that is enough for all
backends, on a disk that makes them wait; and with the share of its time that the work waits for
reads, which says whether a run is in the thread's regime. Then what reading costs of relations that
have grown.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import numpy as np
import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.hot.variants import (
    ACCOUNTS,
    FILLFACTOR,
    FULL,
    HOT,
    NO_HOT,
    PAVANS,
    REDUCED,
    SCRIPTS,
    SQL,
    UNPRUNED,
    VARIANTS,
    load,
    relations,
    run_in_server,
    run_pgbench,
    timed,
    updates,
)
from pgrerun.errors import CannotMeasure
from pgrerun.lab.disk import Disk, Slowed
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import counters
from pgrerun.lab.instruments.sessions import snapshot
from pgrerun.lab.instruments.sizes import pages_of
from pgrerun.lab.models.heap_growth import PAGE
from pgrerun.lab.relations.pgbench import Pgbench
from pgrerun.lab.server import Cluster, value
from pgrerun.record import printed, statistics

SHARE = "share of the time"
UNITS = {"throughput": "transactions/s", "waiting": SHARE, "writing": SHARE, "reads": "pages"}
DATA, FITS = "data over pool", "pool over small tables"
SMALL_TABLES = ("tellers", "tellers_pkey", "branches", "branches_pkey")
AGAIN = "HOT, again"
PAVAN = ((REDUCED, HOT), (REDUCED, AGAIN), (REDUCED, NO_HOT), (REDUCED, UNPRUNED))
SMALL_IN_POOL = ((REDUCED, NO_HOT), (FULL, HOT), (FULL, NO_HOT))
VACUUMED_IN_TIME = 20_000  # accounts of a branch: fewer, and a run is over before autovacuum comes
PINS = 4  # pages that a backend may hold at once
# A disk of pages that come one at a time. WAL passes it by, as on a disk of its own.
RATE = 12000  # requests per second
VACUUMED = {"autovacuum": "on", "autovacuum_naptime": "1s"}  # as often as PostgreSQL can
SLOW = Disk(1 / RATE, 1 / RATE, only="base/")


def pavans(script: str, variant: str) -> str:
    """The variant's name in the run record."""
    return f"{script}: {variant}"


def pavans_share() -> float:
    """The thread's buffer pool as a share of accounts and its index before the runs."""
    then = printed.derived("hot_growth")["initial_hot"]
    pool = printed.cell("hot_setup", "shared_buffers", "value") * 2**20 / PAGE
    return pool / then[[f"reduced_{name}" for name in ACCOUNTS]].sum()


@contextmanager
def pavans_pool(
    cluster: Cluster, ours: Pgbench, at_least: int, settings: Mapping[str, str] | None = None
) -> Iterator[Cluster]:
    """A cluster with a pool of the thread's share of the data, but `at_least` so many pages.

    It times its reads.
    """
    load(ours, cluster)
    with cluster.connect() as connection:
        data = sum(pages_of(connection, ACCOUNTS).values())
    pages = max(SMALLEST_POOL, at_least, round(pavans_share() * data))
    pool = {"shared_buffers": f"{PAGE // 1024 * pages}kB", "track_io_timing": "on"}
    with cluster.restarted(pool | dict(settings or {})):
        yield cluster


@experiment(claims=["hot-001", "hot-004"], needs=["restart"])
def throughput(chapter: Chapter) -> None:
    """The reduced script, with as many updates per account as in the thread.

    The relations have the parameter `timed_accounts` for each branch.
    """
    _compare(chapter, "throughput", timed(chapter, PAVANS), PAVAN, FILLFACTOR)


@experiment(claims=["hot-012", "hot-035"], needs=["restart"])
def full(chapter: Chapter) -> None:
    """The same with the full script, and Merlin's runs of it at the stock fillfactor.

    CannotMeasure where the small tables would outgrow the pool before they are vacuumed.
    """
    clients, accounts = chapter.parameters.clients, chapter.parameters.timed_accounts
    if accounts < VACUUMED_IN_TIME:
        raise CannotMeasure(
            f"timed_accounts = {VACUUMED_IN_TIME}",
            "in the thread the pool holds tellers and branches, which are vacuumed often;"
            f" with {accounts:,} accounts of each branch a pool of the thread's share is too small"
            " for them, and a run is over before autovacuum comes",
        )
    _compare(chapter, "full", timed(chapter, clients), SMALL_IN_POOL, FILLFACTOR)
    _compare(chapter, "merlin", timed(chapter, clients), ((FULL, HOT), (FULL, NO_HOT)), 100)


def _compare(
    chapter: Chapter,
    name: str,
    ours: Pgbench,
    compared: Iterable[tuple[str, str]],
    fillfactor: int,
) -> None:
    """Each in every block on the slowed disk, by as many clients as there are branches."""
    cluster, disk = chapter.on_slow_disk(fsync="off")  # the slowed disk's time stands for it
    with pavans_pool(cluster, ours, PINS * ours.branches, VACUUMED) as server:
        variants = [
            Variant(pavans(*one), partial(_run, server, disk, ours, *one, fillfactor))
            for one in compared
        ]
        # no warming up: every run loads its relations
        units = UNITS | {DATA: "times", FITS: "times"}
        chapter.compare(name, variants, units, pairs=chapter.fewer_pairs, warmup=0)


def _run(
    server: Cluster,
    disk: Slowed,
    ours: Pgbench,
    script: str,
    variant: str,
    fillfactor: int,
    block: Block,
) -> dict[str, float]:
    variant = HOT if variant == AGAIN else variant
    load(ours, server, variant, fillfactor)
    with snapshot(server, VARIANTS[variant].old_snapshot), disk.serving(SLOW):
        found = _timed(server, ours, script, ours.branches, block)
    with server.connect() as connection:
        pool = value(connection, int, SQL.text("reading.pool"))
        small, data = (sum(pages_of(connection, of).values()) for of in (SMALL_TABLES, ACCOUNTS))
    return found | {DATA: data / pool, FITS: pool / small}


def _timed(
    server: Cluster, ours: Pgbench, script: str, clients: int, block: Block
) -> dict[str, float]:
    """`UNITS` of as many updates per account as in the thread."""
    with server.connect() as probe:
        before = _waited(probe)
        done = run_pgbench(
            server, ours, SCRIPTS[script], updates(ours), seed=block.seed, clients=clients
        )
        reading, writing, reads = _waited(probe) - before
    work = 1000 * clients * done.transactions / done.tps  # milliseconds of all clients
    return {
        "throughput": done.tps,
        "waiting": reading / work,
        "writing": writing / work,
        "reads": reads / done.transactions,
    }


def _waited(probe: psycopg.Connection) -> np.ndarray:
    """Milliseconds that backends of the database have waited for reads and writes; pages read."""
    return np.array(SQL.run(probe, "reading.waited").fetchone())


# ---- reading

SMALLEST_POOL = 16  # pages
POOLED = "a pool of the thread's share"


@experiment(claims=["hot-005"], needs=["restart"])
def pools(chapter: Chapter) -> None:
    """The reduced script by one client, in a pool of the thread's share of the data.

    CannotMeasure where PostgreSQL's smallest pool holds most of the data.
    """
    ours = relations(chapter)
    load(ours, chapter.server)
    with chapter.server.connect() as connection:
        data = sum(pages_of(connection, ACCOUNTS).values())
    if data < 2 * SMALLEST_POOL:
        raise CannotMeasure(
            "larger relations",
            f"accounts and its index have {data} pages, and PostgreSQL's smallest buffer pool holds"
            " most of them; set accounts higher",
        )
    # waiting for the flush of WAL is none of the pool's
    lax = {"synchronous_commit": "off"}
    with pavans_pool(chapter.cluster(), ours, SMALLEST_POOL, lax) as server:
        pools = [Variant(POOLED, partial(_timed, server, ours, REDUCED, 1))]
        chapter.compare("pools", pools, UNITS, pairs=statistics.ENOUGH, warmup=0)


@experiment(claims=["hot-017"])
def reading(chapter: Chapter) -> pd.DataFrame:
    """Page accesses of a lookup of each account by key and of a scan, after the thread's updates.

    With HOT, and with neither HOT nor pruning. Columns: variant, lookup (of accounts and its index,
    on average), scan (of accounts).
    """
    server, ours, rows = chapter.server, relations(chapter), []
    for variant in (HOT, UNPRUNED):
        load(ours, server, variant)
        with server.connect() as connection, snapshot(server, VARIANTS[variant].old_snapshot):
            connection.execute("SET enable_seqscan = off")
            connection.execute("SET enable_bitmapscan = off")
            run_in_server(
                connection, ours, "update_account", updates(ours), chapter.parameters.seed
            )
            before = _accesses(connection)
            SQL.run(connection, "reading.lookups", accounts=ours.accounts)
            lookup = (_accesses(connection) - before) / ours.accounts
            rows.append((variant, lookup, pages_of(connection, ["accounts"])["accounts"]))
    return pd.DataFrame(rows, columns=["variant", "lookup", "scan"])


def _accesses(connection: psycopg.Connection) -> int:
    return counters.counts(connection, *ACCOUNTS)["fetched"]
