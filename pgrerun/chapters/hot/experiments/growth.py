"""Sizes after many updates: the thread's two set-ups, the steady state and its model, a queue.

Time is counted in updates per account, so that growth compares across machines. One session and
fixed seeds: the sizes are the same in every run, but for those that many clients leave.
"""

from collections.abc import Iterator
from typing import NamedTuple

import psycopg

from pgrerun.chapters.hot.experiments.builds import BESIDE, both_commits
from pgrerun.chapters.hot.variants import (
    ACCOUNTS,
    FILLFACTOR,
    FULL,
    HOT,
    NO_HOT,
    REDUCED,
    SCALE_FACTOR,
    SMALL_TABLES,
    SQL,
    UNPRUNED,
    UPDATES,
    create,
    load,
    loaded,
    relations,
    run_in_server,
    run_pgbench,
    updates,
    vacuum,
)
from pgrerun.lab.instruments import counters, pgbench, sessions
from pgrerun.lab.instruments.sizes import pages_of
from pgrerun.lab.models import heap_growth
from pgrerun.lab.relations.pgbench import Pgbench
from pgrerun.lab.server import Server
from pgrerun.lab.testbed import Block, Row, Testbed, experiment
from pgrerun.record import printed

COMPARED = (HOT, NO_HOT, UNPRUNED)
SIZES = {"before": "pages", "after": "pages", "updated": "tuples", "hot_updated": "tuples"}


@experiment(units=SIZES)
def sizes(bed: Testbed) -> Iterator[Row]:
    """The reduced script by one session, as many updates per account as in the thread."""
    ours = relations(bed)
    for variant in COMPARED:
        with loaded(ours, bed.server, variant) as (connection, _):
            before = pages_of(connection, ACCOUNTS)
            run_in_server(connection, ours, REDUCED, updates(ours), bed.parameters.seed)
            for row in _sizes(connection, before):
                yield {"variant": variant} | row


@experiment(units={"transactions": "transactions", "updated": "tuples", "inserted": "tuples"})
def stock_pgbench(bed: Testbed, transactions: int = 200) -> Iterator[Row]:
    """pgbench as it is runs the reduced script from a file: what it says, and what was counted."""
    server, ours = bed.server, relations(bed)
    load(ours, server)
    done = run_pgbench(server, ours, REDUCED, transactions, seed=bed.parameters.seed)
    with server.connect() as connection:
        counted = counters.counts_each(connection, "accounts", "history")
    yield {
        "transactions": done.transactions,
        "updated": counted["accounts"]["updated"],
        "inserted": counted["history"]["inserted"],
    }


def _sizes(connection: psycopg.Connection, before: dict[str, int]) -> Iterator[Row]:
    """`SIZES` of each relation."""
    counted = counters.counts_each(connection, *before)
    for relation, after in pages_of(connection, list(before)).items():
        yield {
            "relation": relation,
            "before": before[relation],
            "after": after,
            **{name: counted[relation][name] for name in ("updated", "hot_updated")},
        }


# ---- small tables

TOGETHER = 30  # updates of either table that commit at once
# Transactions of the thread's full script without HOT in a nap of autovacuum.
BETWEEN_VACUUMS = TOGETHER * round(
    printed.cell("hot_setup", "autovacuum_naptime", "value")
    * printed.cell("hot_throughput", "full_head", "tps_including")
    / TOGETHER
)


@experiment(units=SIZES)
def small_tables(bed: Testbed, transactions: int = BETWEEN_VACUUMS) -> Iterator[Row]:
    """Pages of branches and tellers, as many as in the thread, after the updates of a naptime."""
    ours = Pgbench(int(printed.cell("hot_setup", "scale", "value")), 1, prefix="")
    for variant in COMPARED:
        with loaded(ours, bed.server, variant) as (connection, _):
            connection.execute("SET enable_seqscan = off")
            before = pages_of(connection, SMALL_TABLES)
            run_in_server(
                connection,
                ours,
                "small_tables",
                transactions // TOGETHER,
                bed.parameters.seed,
                together=TOGETHER,
            )
            for row in _sizes(connection, before):
                yield {"variant": variant} | row


@experiment(
    units=dict.fromkeys(SMALL_TABLES, "pages") | {"updated": "tuples", "hot_updated": "tuples"},
    needs=["restart"],
)
def small_tables_by_clients(bed: Testbed, transactions: int = BETWEEN_VACUUMS) -> Iterator[Row]:
    """Growth of branches and tellers by whole transactions of as many clients as the thread had.

    On the commit before HOT and on the one with it, in blocks from tables loaded anew. How many
    transactions are under way beside one decides which versions can't be pruned yet; the number of
    clients decides that, however fast they are, and chance, so that no two runs are the same.
    Accounts, which aren't looked at, are few. CannotMeasure unless both commits are registered.
    """
    scale, clients = (int(printed.cell("hot_setup", of, "value")) for of in ("scale", "clients"))
    ours = Pgbench(scale, 1000, prefix="")
    with both_commits({"fsync": "off", "max_connections": clients + BESIDE}) as servers:

        def measure(block: Block, server: str) -> dict[str, float]:
            with servers[server].connect() as connection:
                before = pages_of(connection, SMALL_TABLES)
                # planned for each transaction, as then: what is small to begin with grows
                pgbench.run(
                    servers[server],
                    SQL.script(FULL),
                    clients=clients,
                    transactions=max(1, transactions // clients),
                    variables=ours.variables,
                    seed=block.seed,
                )
                each = list(_sizes(connection, before))
            grown = {row["relation"]: row["after"] - row["before"] for row in each}
            return grown | {
                name: sum(row[name] for row in each) for name in ("updated", "hot_updated")
            }

        yield from bed.compare(
            measure,
            {"server": list(servers)},
            pairs=bed.fewest_pairs,
            warmup=0,
            prepare=lambda block, server: ours.load(
                servers[server], fillfactor={"accounts": FILLFACTOR}
            ),
            fixed=True,
        )


# ---- the steady state, measured and computed

STEADY = ((HOT, False), (NO_HOT, True), (NO_HOT, False), (UNPRUNED, True), (UNPRUNED, False))
LONGEST_SNAPSHOT = 2.0  # updates per account: every lookup passes all versions that it keeps


class Stop(NamedTuple):
    """Where updates stop: after `until` updates per account the size is `seen`, then vacuum run."""

    until: float
    seen: bool
    vacuum: bool


def stops(longest: float, variant: str, vacuumed: bool) -> list[Stop]:
    """After each half update per account, and where vacuum is due by the thread's scale factor."""
    if variant == UNPRUNED and not vacuumed:
        longest = min(LONGEST_SNAPSHOT, longest)
    found = []
    # the thread's half and fifth of an update are whole tenths
    for tenths in range(1, round(10 * longest) + 1):
        seen = tenths % round(10 * UPDATES) == 0
        due = vacuumed and tenths % round(10 * SCALE_FACTOR) == 0
        if seen or due:
            found.append(Stop(tenths / 10, seen, due))
    return found


@experiment(units=dict.fromkeys(ACCOUNTS, "pages"))
def steady(bed: Testbed) -> Iterator[Row]:
    """Sizes over the number of updates per account, which one session draws at random.

    What is vacuumed is so whenever the updates since the last time reach the thread's scale factor:
    when autovacuum would be if it came at once.
    """
    ours = relations(bed)
    for variant, vacuumed in STEADY:
        place = {"variant": variant, "vacuumed": vacuumed}
        with loaded(ours, bed.server, variant) as (connection, old):
            yield place | {"updates": 0.0} | pages_of(connection, ACCOUNTS)
            done = 0
            for number, stop in enumerate(stops(bed.parameters.rounds, variant, vacuumed)):
                more = updates(ours, stop.until) - done
                done += more
                run_in_server(
                    connection, ours, "update_account", more, bed.parameters.seed + number
                )
                if stop.seen:
                    yield place | {"updates": stop.until} | pages_of(connection, ACCOUNTS)
                if stop.vacuum:
                    vacuum(connection, "accounts", old)


@experiment(units=dict.fromkeys(ACCOUNTS, "pages"))
def computed(bed: Testbed, width: int = 121) -> Iterator[Row]:
    """The sizes of `steady` from the layout of pages alone; `width` is that of pgbench's account.

    With HOT a dead version leaves nothing behind, so nothing is computed.
    """
    ours = relations(bed)
    for variant, vacuumed in STEADY:
        at = [Stop(0.0, True, False), *stops(bed.parameters.rounds, variant, vacuumed)]
        steps, done = [], 0
        for stop in at[1:]:
            more = 0 if variant == HOT else updates(ours, stop.until) - done
            done += more
            steps.append(heap_growth.Step(more, stop.vacuum))
        grown = heap_growth.grow(
            ours.accounts,
            steps,
            width=width,
            fillfactor=FILLFACTOR,
            pruning=variant != UNPRUNED,
            seed=bed.parameters.seed,
        )
        for stop, size in zip(at, grown, strict=True):
            if stop.seen:
                yield {
                    "variant": variant,
                    "vacuumed": vacuumed,
                    "updates": stop.until,
                    "accounts": size.heap,
                    "accounts_pkey": size.index,
                }


@experiment(units=dict.fromkeys((*ACCOUNTS, "per_leaf"), "pages"))
def scattered(bed: Testbed, rounds: int = 6) -> Iterator[Row]:
    """Without HOT and vacuum: sizes, and the pages of accounts to which the entries of a leaf lead.

    It is the median leaf's.
    """
    server, ours = bed.server, relations(bed)
    server.extension("pageinspect")
    load(ours, server, NO_HOT)
    with server.connect() as connection:
        for number in range(rounds + 1):
            if number:
                run_in_server(
                    connection,
                    ours,
                    "update_account",
                    ours.accounts,
                    bed.parameters.seed + number,
                )
            [per_leaf] = SQL.run(connection, "index_leaves").fetchone()
            yield {"updates": number} | pages_of(connection, ACCOUNTS) | {"per_leaf": per_leaf}


# ---- a queue

QUEUES = ((HOT, False), (NO_HOT, False), (HOT, True))
JOBS = ("jobs", "jobs_pkey")
# When vacuum runs. The thread's autovacuum wakes once a minute: a queue of a thousand jobs may be
# worked off several times until then.
IN_TIME, LATE = "after each batch", "after the last batch"
QUEUES_THEN = ((IN_TIME, False), (LATE, False), (IN_TIME, True))


@experiment(units=dict.fromkeys(JOBS, "pages"))
def queue(bed: Testbed, jobs: int = 1000, batches: int = 40) -> Iterator[Row]:
    """The queue of `queue_then` on today's server, with HOT and with pruning alone."""
    for variant, left_open in QUEUES:
        for row in _worked_off(bed.server, variant, IN_TIME, left_open, jobs, batches):
            yield {"variant": variant, "transaction_left_open": left_open} | row


@experiment(units=dict.fromkeys(JOBS, "pages"), needs=["restart"])
def queue_then(bed: Testbed, jobs: int = 1000, batches: int = 40) -> Iterator[Row]:
    """A queue on the commit before HOT and on the one with it, alone and beside a transaction.

    It keeps its length: for each job that comes in one is updated twice and deleted, each in a
    transaction of its own. One batch is a tenth of the queue, and leaves more dead versions than
    the thread's scale factor allows, so that vacuum runs after each, or late, when all are over.
    The transaction, where there is one, is open from the first batch to the last. Sizes at half the
    batches, at the end, and after CLUSTER, when nothing is open: from April 2007 on CLUSTER, too,
    keeps what a transaction may still read. CannotMeasure unless both commits are registered.
    """
    with both_commits({"fsync": "off"}) as servers:
        for name, server in servers.items():
            for vacuumed, left_open in QUEUES_THEN:
                case = {"server": name, "vacuumed": vacuumed, "transaction_left_open": left_open}
                for row in _worked_off(server, HOT, vacuumed, left_open, jobs, batches):
                    yield case | row


def _worked_off(
    server: Server, variant: str, vacuumed: str, left_open: bool, jobs: int, batches: int
) -> Iterator[Row]:
    """Pages of the queue's table and index at the moments at which they are looked at."""
    moments = {batches // 2: "halfway", batches: "at the end"}
    with server.connect() as connection, sessions.snapshot(server, left_open) as old:
        connection.execute("SET synchronous_commit = off")
        create(connection, "jobs", "queue.jobs", False, jobs=jobs, fillfactor=FILLFACTOR)
        if variant != HOT:
            SQL.run(connection, "queue.no_hot")
        for batch in range(1, batches + 1):
            last = batch * jobs // 10
            for n in range(last - jobs // 10 + 1, last + 1):
                # a message a job, as to split it into statements takes longer than to run it
                connection.execute(SQL.text("queue.job", n=n, jobs=jobs))
            if vacuumed == IN_TIME or batch == batches:
                vacuum(connection, "jobs")
            if batch in moments:
                yield {"moment": moments[batch]} | pages_of(connection, JOBS)
        if old:
            old.rollback()
        SQL.run(connection, "queue.cluster")
        yield {"moment": "after CLUSTER"} | pages_of(connection, JOBS)
