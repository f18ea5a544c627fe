"""Throughput, in interleaved blocks: the thread's two set-ups, and Merlin's runs.

Then what reading costs: with a pool as small as the thread's, and of relations that have grown.
"""

import math
from functools import partial

import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.hot.variants import (
    ACCOUNTS,
    FILLFACTOR,
    FULL,
    HOT,
    INDEXED,
    NO_HOT,
    REDUCED,
    SCRIPTS,
    SQL,
    UNPRUNED,
    VARIANTS,
    load,
    relations,
    run_in_server,
    run_pgbench,
    snapshot,
    updates,
)
from pgrerun.errors import CannotMeasure
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import clock, counters
from pgrerun.lab.instruments.sizes import pages_of
from pgrerun.lab.models.heap_growth import PAGE
from pgrerun.lab.relations.pgbench import Pgbench
from pgrerun.page import narrate
from pgrerun.record import printed

UNITS = {"throughput": "transactions/s"}
AGAIN = "HOT, again"
PAVAN = (
    (REDUCED, HOT),
    (REDUCED, AGAIN),
    (REDUCED, NO_HOT),
    (REDUCED, UNPRUNED),
    (FULL, HOT),
    (FULL, NO_HOT),
)
TEN = 10  # clients of Merlin's runs that aren't of one


def pavans(script: str, variant: str) -> str:
    """The variant's name in the run record."""
    return f"{script}: {variant}"


def merlins(clients: int, variant: str) -> str:
    """The same for Merlin's runs."""
    return f"{variant}, {narrate.count(clients, 'client')}"


@experiment(claims=["hot-001", "hot-004", "hot-012", "hot-026", "hot-035"])
def throughput(chapter: Chapter) -> None:
    """Both scripts, as many clients as branches, as many updates per account as in the thread.

    The relations have the parameter `timed_accounts` for each branch; fsync is on.
    """
    variants = [
        Variant(
            pavans(script, variant),
            partial(_run, chapter, script, variant, chapter.parameters.clients, FILLFACTOR),
        )
        for script, variant in PAVAN
    ]
    chapter.compare("throughput", variants, UNITS, warmup=0)  # every run loads its relations


@experiment(claims=["hot-021", "hot-024"])
def merlin(chapter: Chapter) -> None:
    """pgbench's own transaction without fsync and at the stock fillfactor.

    With HOT, without, and without and with the index on abalance.
    """
    clients = chapter.parameters.clients
    variants = [
        Variant(merlins(number, variant), partial(_run, chapter, FULL, variant, number, 100))
        for number in (1, clients)
        for variant in (HOT, NO_HOT, INDEXED)
    ]
    with chapter.server.reloaded(fsync="off"):
        chapter.compare("merlin", variants, UNITS, warmup=0)
    if clients != TEN:
        reason = f"the print ran ten clients, and this run {clients}"
        chapter.set_aside(CannotMeasure(f"clients = {TEN}", reason), ["hot-024"])


def _run(
    chapter: Chapter, script: str, variant: str, clients: int, fillfactor: int, block: Block
) -> dict[str, float]:
    server, variant = chapter.server, HOT if variant == AGAIN else variant
    ours = Pgbench(chapter.parameters.clients, chapter.parameters.timed_accounts, prefix="")
    load(ours, server, variant, fillfactor)
    with snapshot(server, VARIANTS[variant].old_snapshot):
        done = run_pgbench(
            server, ours, SCRIPTS[script], updates(ours), seed=block.seed, clients=clients
        )
    return {"throughput": done.tps}


# ---- reading

SMALLEST_POOL = 16  # pages
SMALL, LARGE = "as in 2007", "holds everything"


@experiment(claims=["hot-005"])
def pools(chapter: Chapter) -> pd.DataFrame:
    """A buffer pool of the thread's share of the data, and one that holds everything.

    Columns: pool (`SMALL`, `LARGE`), pages (its size), data (pages of accounts and index), reads
    (of their pages, per transaction of the reduced script), waiting (share of the backends' active
    time that reading takes). The pool is empty at first. CannotMeasure where PostgreSQL's smallest
    pool holds most of the data.
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
    then = printed.derived("hot_growth")["initial_hot"]
    pool = printed.cell("hot_setup", "shared_buffers", "value") * 2**20 / PAGE
    share = pool / then[[f"reduced_{name}" for name in ACCOUNTS]].sum()
    sizes = {SMALL: max(SMALLEST_POOL, round(share * data)), LARGE: max(1024, 4 * data)}
    rows = []
    for name, pages in sizes.items():
        reads, waiting = _read_through(chapter, pages)
        rows.append((name, pages, data, reads, waiting))
    return pd.DataFrame(rows, columns=["pool", "pages", "data", "reads", "waiting"])


def _read_through(chapter: Chapter, pages: int) -> tuple[float, float]:
    """Reads per transaction with so large a pool, and the share of active time they take."""
    cluster, ours = chapter.cluster(), relations(chapter)
    load(ours, cluster)
    settings = {
        "shared_buffers": f"{PAGE // 1024 * pages}kB",
        "synchronous_commit": "off",
        "track_io_timing": "on",
    }
    with (
        cluster.restarted(settings),
        cluster.connect() as probe,
        counters.Counters(cluster, settle=0.05) as counter,
    ):
        waited, active = SQL.run(probe, "reading.waiting").fetchone()
        with counter.measured() as delta:
            seed = chapter.parameters.seed
            done = run_pgbench(cluster, ours, SCRIPTS[REDUCED], updates(ours), seed=seed)
        waited_until, active_until = SQL.run(probe, "reading.waiting").fetchone()
    own = delta.relations[delta.relations["relation"].isin(ACCOUNTS)]
    reads = own["read"].sum() / done.transactions
    busy = active_until - active
    return reads, (waited_until - waited) / busy if busy > 0 else math.nan


SCANS, LOOKUPS = "scans", "lookups"


@experiment(claims=["hot-017"])
def reading(chapter: Chapter) -> None:
    """Time to scan accounts and to look up one, after the thread's updates.

    With HOT, and with neither HOT nor pruning. The reads run in the server, one after another, so
    that no message's way counts.
    """
    variants = [Variant(name, partial(_read, chapter, name)) for name in (HOT, UNPRUNED)]
    chapter.compare("reading", variants, {SCANS: "ms", LOOKUPS: "ms"}, warmup=0)


def _read(chapter: Chapter, variant: str, block: Block) -> dict[str, float]:
    server, ours = chapter.server, relations(chapter)
    load(ours, server, variant)
    scans, lookups = 50, 3 * ours.accounts
    with server.connect() as connection, snapshot(server, VARIANTS[variant].old_snapshot):
        run_in_server(connection, ours, "update_account", updates(ours), block.seed)
        with clock.stopwatch() as scanning:
            SQL.run(connection, "reading.scans", times=scans)
        with clock.stopwatch() as looking_up:
            SQL.run(connection, "reading.lookups", times=lookups, accounts=ours.accounts)
    return {
        SCANS: 1000 * scanning.seconds / scans,
        LOOKUPS: 1000 * looking_up.seconds / lookups,
    }
