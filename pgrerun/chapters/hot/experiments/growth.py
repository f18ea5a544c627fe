"""Sizes after many updates: the thread's two set-ups, the steady state and its model, a queue.

Time is counted in updates per account, so that growth compares across machines. One session and
fixed seeds: the sizes are the same in every run.
"""

from dataclasses import dataclass

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.hot.variants import (
    ACCOUNTS,
    FILLFACTOR,
    HOT,
    NO_HOT,
    REDUCED,
    SCALE_FACTOR,
    SCRIPTS,
    SQL,
    UNPRUNED,
    UPDATES,
    VARIANTS,
    create,
    load,
    relations,
    run_in_server,
    run_pgbench,
    updates,
    vacuum,
)
from pgrerun.lab.instruments import counters
from pgrerun.lab.instruments.sessions import snapshot
from pgrerun.lab.instruments.sizes import pages_of
from pgrerun.lab.models import heap_growth
from pgrerun.lab.relations.pgbench import Pgbench
from pgrerun.record import printed


@experiment(claims=["hot-002", "hot-003", "hot-033"])
def sizes(chapter: Chapter) -> pd.DataFrame:
    """The reduced script, as many updates per account as in the thread.

    A row per variant (HOT, NO_HOT, UNPRUNED) and relation or index. Columns: variant, relation,
    before, after (pages), updated, hot_updated (of the table; 0 of an index), transactions (in the
    first run, which is pgbench's, as it reported; the others run in the server), history (tuples
    inserted).
    """
    server, ours = chapter.server, relations(chapter)
    rows = []
    for variant in (HOT, NO_HOT, UNPRUNED):
        load(ours, server, variant)
        with server.connect() as connection, snapshot(server, VARIANTS[variant].old_snapshot):
            before = pages_of(connection, ACCOUNTS)
            transactions, seed = updates(ours), chapter.parameters.seed
            if variant == HOT:
                done = run_pgbench(server, ours, SCRIPTS[REDUCED], transactions, seed=seed)
                transactions = done.transactions
            else:
                run_in_server(connection, ours, SCRIPTS[REDUCED], transactions, seed)
            [history] = connection.execute("SELECT count(*) FROM history").fetchone()
            row = {"variant": variant, "transactions": transactions, "history": history}
            rows += [row | found for found in _sizes(connection, before)]
    return pd.DataFrame(rows)


def _sizes(connection: psycopg.Connection, before: dict[str, int]) -> list[dict]:
    """For each relation: before, after (pages), updated, hot_updated."""
    rows, counted = [], counters.counts_each(connection, *before)
    for relation, after in pages_of(connection, list(before)).items():
        row = {"relation": relation, "before": before[relation], "after": after}
        rows.append(row | {name: counted[relation][name] for name in ("updated", "hot_updated")})
    return rows


# ---- small tables

SMALL = ("tellers", "tellers_pkey", "branches", "branches_pkey")
TOGETHER = 30  # updates of either table that commit at once
NAPTIME = printed.cell("hot_setup", "autovacuum_naptime", "value")


# Transactions of the thread's full script without HOT in a nap of autovacuum.
BETWEEN_VACUUMS = TOGETHER * round(
    NAPTIME * printed.cell("hot_throughput", "full_head", "tps_including") / TOGETHER
)


@experiment(claims=["hot-013", "hot-014"])
def small_tables(chapter: Chapter, transactions: int = BETWEEN_VACUUMS) -> pd.DataFrame:
    """Pages of branches and tellers, as many as in the thread, after the updates of a naptime.

    A row per variant (HOT, NO_HOT, UNPRUNED) and relation or index. Columns: variant, relation,
    before, after, updated, hot_updated (0 of an index).
    """
    ours = Pgbench(int(printed.cell("hot_setup", "scale", "value")), 1, prefix="")
    rows = []
    for variant in (HOT, NO_HOT, UNPRUNED):
        load(ours, chapter.server, variant)
        held = VARIANTS[variant].old_snapshot
        with chapter.server.connect() as connection, snapshot(chapter.server, held):
            connection.execute("SET enable_seqscan = off")
            before = pages_of(connection, SMALL)
            run_in_server(
                connection,
                ours,
                "small_tables",
                transactions // TOGETHER,
                chapter.parameters.seed,
                together=TOGETHER,
            )
            rows += [{"variant": variant} | found for found in _sizes(connection, before)]
    return pd.DataFrame(rows)


# ---- the steady state, measured and computed

VACUUMED, UNPRUNED_VACUUMED = "no HOT, vacuumed", "neither, vacuumed"
# What is observed over time, and the variant that is loaded for it.
STEADY = {
    HOT: HOT,
    VACUUMED: NO_HOT,
    NO_HOT: NO_HOT,
    UNPRUNED_VACUUMED: UNPRUNED,
    UNPRUNED: UNPRUNED,
}
LONGEST_SNAPSHOT = 2.0  # updates per account: every lookup passes all versions that it keeps


@dataclass(frozen=True)
class Stop:
    """Where updates stop: after `until` updates per account the size is `seen`, then vacuum run."""

    until: float
    seen: bool
    vacuum: bool


def stops(chapter: Chapter, name: str) -> list[Stop]:
    """After each half update per account, and where vacuum is due by the thread's scale factor."""
    longest = chapter.parameters.rounds
    if name == UNPRUNED:
        longest = min(LONGEST_SNAPSHOT, longest)
    vacuumed = name in (VACUUMED, UNPRUNED_VACUUMED)
    found = []
    # The thread's half and fifth of an update are whole tenths.
    for tenths in range(1, round(10 * longest) + 1):
        seen = tenths % round(10 * UPDATES) == 0
        due = vacuumed and tenths % round(10 * SCALE_FACTOR) == 0
        if seen or due:
            found.append(Stop(tenths / 10, seen, due))
    return found


@experiment(claims=["hot-015"])
def steady(chapter: Chapter) -> pd.DataFrame:
    """Sizes over the number of updates: columns variant, updates (per account), accounts,
    accounts_pkey (pages).

    Accounts are drawn at random by one session. What is "vacuumed" is so whenever the updates since
    the last time reach the thread's scale factor: when autovacuum would be if it came at once.
    """
    ours, rows = relations(chapter), []
    for name, variant in STEADY.items():
        load(ours, chapter.server, variant)
        held = VARIANTS[variant].old_snapshot
        with chapter.server.connect() as connection, snapshot(chapter.server, held) as old:
            rows.append({"variant": name, "updates": 0.0} | pages_of(connection, ACCOUNTS))
            done = 0
            for number, stop in enumerate(stops(chapter, name)):
                more = updates(ours, stop.until) - done
                done += more
                seed = chapter.parameters.seed + number
                run_in_server(connection, ours, "update_account", more, seed)
                if stop.seen:
                    row = {"variant": name, "updates": stop.until}
                    rows.append(row | pages_of(connection, ACCOUNTS))
                if stop.vacuum:
                    vacuum(connection, "accounts", old)
    return pd.DataFrame(rows)


def model(chapter: Chapter, width: int = 121) -> pd.DataFrame:
    """The same sizes from the layout of pages alone: the columns of `steady`; simulated.

    `width` is that of pgbench's account. With HOT a dead version leaves nothing behind, so nothing
    is computed.
    """
    ours, rows = relations(chapter), []
    for name, variant in STEADY.items():
        at, steps, done = [Stop(0.0, True, False), *stops(chapter, name)], [], 0
        for stop in at[1:]:
            more = 0 if variant == HOT else updates(ours, stop.until) - done
            done += more
            steps.append(heap_growth.Step(more, stop.vacuum))
        computed = heap_growth.grow(
            ours.accounts,
            steps,
            width=width,
            fillfactor=FILLFACTOR,
            pruning=variant != UNPRUNED,
            seed=chapter.parameters.seed,
        )
        for stop, size in zip(at, computed, strict=True):
            if stop.seen:
                rows.append((name, stop.until, size.heap, size.index))
    return pd.DataFrame(rows, columns=["variant", "updates", *ACCOUNTS])


@experiment()
def scattered(chapter: Chapter, rounds: int = 6) -> pd.DataFrame:
    """Without HOT and vacuum, where the entries of a leaf lead: a row per number of updates.

    Columns: updates (per account), accounts, accounts_pkey (pages), per_leaf (pages of accounts to
    which the entries of a leaf lead, the median leaf).
    """
    server, ours, rows = chapter.server, relations(chapter), []
    server.extension("pageinspect")
    load(ours, server, NO_HOT)
    with server.connect() as connection:
        for number in range(rounds + 1):
            if number:
                seed = chapter.parameters.seed + number
                run_in_server(connection, ours, "update_account", ours.accounts, seed)
            [per_leaf] = SQL.run(connection, "index_leaves").fetchone()
            row = {"updates": number} | pages_of(connection, ACCOUNTS)
            rows.append(row | {"per_leaf": per_leaf})
    return pd.DataFrame(rows)


# ---- a queue

BESIDE_OLD = "HOT, a transaction left open"
QUEUES = (HOT, NO_HOT, UNPRUNED_VACUUMED, BESIDE_OLD)


@experiment(claims=["hot-032"])
def queue(chapter: Chapter, jobs: int = 1000, batches: int = 40) -> pd.DataFrame:
    """A queue that is inserted into, updated twice per job, emptied and vacuumed.

    One batch is a tenth of the queue; as many jobs are deleted as come in. Vacuum runs after every
    second batch, which is when autovacuum would by the thread's scale factor. A row per variant
    (`QUEUES`; BESIDE_OLD has a transaction open from the first batch to the last); columns:
    variant, table_halfway, table_end, table_clustered (pages at half the batches, at the end, and
    after CLUSTER, when nothing is open), and the same of its index.
    """
    rows = []
    for variant in QUEUES:
        held = variant in (UNPRUNED_VACUUMED, BESIDE_OLD)
        with chapter.server.connect() as connection, snapshot(chapter.server, held) as old:
            connection.execute("SET synchronous_commit = off")
            create(connection, "jobs", "queue.jobs", False, jobs=jobs, fillfactor=FILLFACTOR)
            if variant not in (HOT, BESIDE_OLD):
                SQL.run(connection, "queue.no_hot")
            pages = []
            for number in range(1, batches + 1):
                last = number * jobs // 10
                first = last - jobs // 10 + 1
                SQL.run(connection, "queue.batch", first=first, last=last, jobs=jobs)
                if number % 2 == 0:
                    vacuum(connection, "jobs", None if variant == BESIDE_OLD else old)
                pages.append(pages_of(connection, ["jobs", "jobs_pkey"]))
            if old:
                old.rollback()
            SQL.run(connection, "queue.cluster")
            pages.append(pages_of(connection, ["jobs", "jobs_pkey"]))
        row = {"variant": variant}
        moments = {"halfway": batches // 2 - 1, "end": batches - 1, "clustered": batches}
        for what, relation in (("table", "jobs"), ("index", "jobs_pkey")):
            row |= {f"{what}_{name}": pages[at][relation] for name, at in moments.items()}
        rows.append(row)
    return pd.DataFrame(rows)
