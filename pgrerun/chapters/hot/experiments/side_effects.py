"""What the thread feared: long transactions, tiny tables, CREATE INDEX, CLUSTER and VACUUM FULL."""

from dataclasses import dataclass

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.hot.variants import (
    ACCOUNTS,
    HOT,
    SQL,
    UNPRUNED,
    create,
    load,
    relations,
    run_in_server,
    run_pgbench,
    updates,
)
from pgrerun.lab.instruments import pages, plans, waits
from pgrerun.lab.instruments.sessions import snapshot
from pgrerun.lab.instruments.sizes import pages_of
from pgrerun.lab.relations.pgbench import Pgbench

# ---- long transactions and long chains

OLD_SNAPSHOT = "HOT, an old snapshot open"
LOOKS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500)  # updates of one tuple


@experiment(claims=["hot-010"])
def long_transaction(chapter: Chapter) -> pd.DataFrame:
    """The only account is updated over and over, alone or beside another session's old snapshot.

    A row per variant and number of updates. Columns: variant, updates, chain (versions on the page
    that the account's line pointer leads to, itself included), pages (that a lookup by primary key
    touches, the index included).
    """
    server, ours, rows = chapter.server, Pgbench(1, 1, prefix=""), []
    server.extension("pageinspect")
    for variant, loaded in ((HOT, HOT), (OLD_SNAPSHOT, HOT), (UNPRUNED, UNPRUNED)):
        load(ours, server, loaded)
        with server.connect() as connection, snapshot(server, variant != HOT):
            connection.execute("SET enable_seqscan = off")
            connection.execute("SET enable_bitmapscan = off")
            done = 0
            for number in LOOKS:
                run_in_server(connection, ours, "update_first", number - done, 0)
                done = number
                chain = pages.longest_chain(pages.linked(connection, "accounts", 0))
                rows.append((variant, number, chain, _pages_of_lookup(connection)))
    return pd.DataFrame(rows, columns=["variant", "updates", "chain", "pages"])


def _pages_of_lookup(connection: psycopg.Connection) -> int:
    """Page accesses of a lookup of the account; the second of two, so that hint bits are set."""
    lookup = "SELECT abalance FROM accounts WHERE aid = 1"
    plans.explain(connection, lookup, execute=True)
    return plans.explain(connection, lookup, execute=True).page_accesses


# ---- a table of one page, read and updated by all

WAITS = {
    "CPU:running": "not waiting",
    "LWLock:BufferContent": "for the page's content lock",
    "BufferPin:BufferPin": "for other backends to leave the page",
    "Lock:transactionid": "for another update of the same tuple",
    "Lock:tuple": "for another update of the same tuple",
}
OTHERWISE = "otherwise (WAL, client)"


@experiment(claims=["hot-011"])
def tiny_table(chapter: Chapter, transactions: int = 3000) -> pd.DataFrame:
    """What backends wait for while all of them update and read ten tuples on one page.

    Columns: waiting, share (of the samples).
    """
    ours = Pgbench(10, 1, prefix="")
    load(ours, chapter.server)
    clients = chapter.parameters.clients
    with waits.sampled(chapter.server, every=0.002) as sampled:
        run_pgbench(
            chapter.server,
            ours,
            "tiny_table",
            transactions,
            seed=chapter.parameters.seed,
            clients=clients,
        )
    seen = sampled.seen()
    kind = (seen["type"] + ":" + seen["event"]).map(WAITS).fillna(OTHERWISE)
    backends = seen["backends"].groupby(kind).sum()
    order = list(dict.fromkeys([*WAITS.values(), OTHERWISE]))
    share = backends.reindex(order, fill_value=0.0) / backends.sum()
    return share.rename_axis("waiting").reset_index(name="share")


# ---- CREATE INDEX over broken chains


@dataclass(frozen=True)
class BrokenChains:
    """CREATE INDEX on a column whose tuples were HOT-updated while an old snapshot was open.

    `warnings`: what the server said meanwhile. `marked`: pg_index.indcheckxmin. `old_uses`,
    `new_uses`: whether the old session's plan and a new session's use the index. `old_finds`,
    `new_finds`: whether each finds its own version by the value that it has there.
    """

    warnings: tuple[str, ...]
    marked: bool
    old_uses: bool
    new_uses: bool
    old_finds: bool
    new_finds: bool
    unmarked_without_snapshot: bool


@experiment(claims=["hot-027", "hot-028"])
def broken_chains(chapter: Chapter) -> BrokenChains:
    """Update a tenth of a table, then index the updated column: beside an old snapshot, alone."""
    warnings: list[str] = []
    with chapter.server.connect() as connection:
        connection.add_notice_handler(lambda notice: warnings.append(notice.message_primary))
        create(connection, "versions", "snapshots.versions")
        with snapshot(chapter.server) as old:
            marked = _marked_index(connection)
            old_uses, old_finds = _finds(old, 7)
            new_uses, new_finds = _finds(connection, -7)
        create(connection, "versions", "snapshots.versions")
        unmarked = not _marked_index(connection)
    return BrokenChains(tuple(warnings), marked, old_uses, new_uses, old_finds, new_finds, unmarked)


def _marked_index(connection: psycopg.Connection) -> bool:
    """Whether an index made after updates is marked as not for old snapshots."""
    SQL.run(connection, "snapshots.update")
    SQL.run(connection, "snapshots.index")
    [marked] = SQL.run(connection, "snapshots.is_marked").fetchone()
    return marked


def _finds(session: psycopg.Connection, value: int) -> tuple[bool, bool]:
    """Whether a session's plan for a value of v uses the new index, and whether it finds row 7."""
    session.execute("SET enable_seqscan = off")
    query = SQL.text("snapshots.find", value=value)
    uses = any(node.index == "versions_v" for node in plans.explain(session, query).walk())
    return uses, session.execute(query).fetchall() == [(7,)]


# ---- rewriting a table beside an old snapshot

CLUSTERED, FULL_VACUUM = "CLUSTER", "VACUUM FULL"
REWRITES = {
    CLUSTERED: "cluster",
    FULL_VACUUM: "vacuum_full",
    "ALTER TABLE, another type": "alter_type",
    "TRUNCATE": "truncate",
}


@experiment(claims=["hot-029"])
def rewrites(chapter: Chapter) -> pd.DataFrame:
    """Change all of a table, rewrite it, and read it by a snapshot from before all that.

    A row per command: command, committed (rows before), old_sees (rows that the old snapshot sees
    after it), new_sees, heap_only (heap-only tuples left on the first page).
    """
    server, rows = chapter.server, []
    server.extension("pageinspect")
    for name, command in REWRITES.items():
        with server.connect() as connection:
            create(connection, "versions", "snapshots.versions")
            [before] = SQL.run(connection, "snapshots.count").fetchone()
            with snapshot(server) as old:
                SQL.run(connection, "snapshots.change")
                SQL.run(connection, f"snapshots.{command}")
                [old_sees] = SQL.run(old, "snapshots.count").fetchone()
                [new_sees] = SQL.run(connection, "snapshots.count").fetchone()
            heap_only = 0
            if pages_of(connection, ["versions"])["versions"]:
                heap_only = pages.linked(connection, "versions", 0)["heap_only"].sum()
            rows.append((name, before, old_sees, new_sees, heap_only))
    return pd.DataFrame(rows, columns=["command", "committed", "old_sees", "new_sees", "heap_only"])


@experiment(claims=["hot-030", "hot-031"])
def compaction(chapter: Chapter) -> pd.DataFrame:
    """Pages after CLUSTER and VACUUM FULL of accounts, grown by the thread's updates.

    Columns: command, accounts, accounts_pkey.
    """
    server, ours, rows = chapter.server, relations(chapter), []
    for name in (CLUSTERED, FULL_VACUUM):
        load(ours, server, UNPRUNED)
        with server.connect() as connection:
            with snapshot(server):
                seed = chapter.parameters.seed
                run_in_server(connection, ours, "update_account", updates(ours), seed)
            SQL.run(connection, f"compaction.{REWRITES[name]}")
            rows.append({"command": name} | pages_of(connection, ACCOUNTS))
    return pd.DataFrame(rows)
