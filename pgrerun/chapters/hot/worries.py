"""What the thread was afraid of: long transactions, tiny tables, CREATE INDEX, CLUSTER and VACUUM FULL."""

import json
import threading
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter
from pgrerun.chapters.hot.bank import AS_BEFORE, HOT, Bank, bank, blocks, churn, printed_updates, snapshot
from pgrerun.chapters.hot.chain import linked, longest_chain
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import clock, pgbench
from pgrerun.relations import loading

# ---- long transactions and long chains

BESIDE = "HOT, an old snapshot open"
LOOKS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500)  # updates of one tuple
ACCOUNTS = 100


def long_transaction(chapter: Chapter) -> pd.DataFrame:
    """One account is updated over and over, alone or while another session's snapshot is old.

    A row per arm and number of updates. Columns: arm, updates, chain (versions on the page that the account's line
    pointer leads to, itself included), pages (that a lookup by primary key touches, the index included).
    """
    server, here, rows = chapter.server, Bank(1, ACCOUNTS), []
    server.extension("pageinspect")
    for arm in (HOT, BESIDE, AS_BEFORE):
        here.load(server, arm)
        with server.connect() as connection, snapshot(server, arm != HOT):
            connection.execute("SET synchronous_commit = off")
            connection.execute("SET enable_seqscan = off")
            connection.execute("SET enable_bitmapscan = off")
            done = 0
            for updates in LOOKS:
                connection.execute(
                    f"DO $$ BEGIN FOR n IN 1..{updates - done} LOOP UPDATE accounts SET abalance = abalance + 1 WHERE aid = 1; COMMIT; END LOOP; END $$"
                )
                done = updates
                page = linked(connection, "accounts", 0)
                rows.append((arm, updates, longest_chain(page), _touched(connection)))
    return pd.DataFrame(rows, columns=["arm", "updates", "chain", "pages"])


def _touched(connection: psycopg.Connection) -> int:
    """Page accesses of a lookup of the account; the second of two, so that hint bits are set."""
    explain = "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) SELECT abalance FROM accounts WHERE aid = 1"
    for _ in range(2):
        [(found,)] = connection.execute(explain).fetchall()
    plan = (json.loads(found) if isinstance(found, str) else found)[0]["Plan"]
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


def chain_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether an old snapshot makes chains as long as there are updates, and lookups worse than without HOT."""
    if found is None:
        return None
    last = found[found["updates"] == max(LOOKS)].set_index("arm")
    return {
        "beside an old snapshot a chain grows": bool(last.at[BESIDE, "chain"] > last.at[HOT, "chain"]),
        "it grows with every update": bool(last.at[BESIDE, "chain"] == max(LOOKS) + 1),
        "a lookup touches no more pages than without HOT": bool(last.at[BESIDE, "pages"] <= last.at[AS_BEFORE, "pages"]),
    }


# ---- a table of one page, read and updated by all

_TINY = r"""\set bid random(1, 10)
UPDATE branches SET bbalance = bbalance + 1 WHERE bid = :bid;
SELECT bbalance FROM branches WHERE bid = :bid;
"""
WAITS = {
    "LWLock:BufferContent": "for the page's content lock", "BufferPin:BufferPin": "for other backends to leave the page",
    "Lock:transactionid": "for another update of the same tuple", "Lock:tuple": "for another update of the same tuple",
}  # fmt: skip
RUNNING, OTHERWISE = "not waiting", "otherwise (log, client)"


def tiny_table(chapter: Chapter, transactions: int = 3000) -> pd.DataFrame:
    """What backends wait for while all of them update and read ten tuples on one page: columns waiting, share (of the samples)."""
    server, clients = chapter.server, chapter.parameters.clients
    Bank(10, 1).load(server)
    seen: Counter[str] = Counter()
    load = threading.Thread(
        target=partial(pgbench.run, server, _TINY, clients=clients, transactions=transactions // clients, seed=chapter.parameters.seed, protocol="prepared")
    )
    query = (
        "SELECT coalesce(wait_event_type || ':' || wait_event, '') FROM pg_stat_activity"
        " WHERE state <> 'idle' AND pid <> pg_backend_pid() AND query LIKE '%%branches%%' AND datname = current_database()"
    )
    with server.connect() as connection:
        load.start()
        while load.is_alive():
            seen.update(WAITS.get(event, OTHERWISE if event else RUNNING) for (event,) in connection.execute(query))
            time.sleep(0.002)
        load.join()
    order = [RUNNING, OTHERWISE, *dict.fromkeys(WAITS.values())]
    return pd.DataFrame({"waiting": order, "share": [seen[word] / max(seen.total(), 1) for word in order]})


def contention_facts(found: pd.DataFrame | None, waited: bool | None, pinned: bool | None) -> dict[str, bool] | None:
    """Whether pruning takes the page for itself, and whether anybody is seen to wait for that.

    `waited`, `pinned`: of a SELECT beside another session's pin (`chain.Repair`).
    """
    if found is None or waited is None:
        return None
    share = found.set_index("waiting")["share"]
    return {
        "pruning needs the page for itself": not pinned,
        "a SELECT that can't have it waits": waited,
        "backends wait until others have left the page": bool(share[WAITS["BufferPin:BufferPin"]] > 0),
    }


# ---- CREATE INDEX over broken chains


@dataclass(frozen=True)
class BrokenChains:
    """CREATE INDEX on a column whose tuples have been HOT-updated while an old snapshot was open.

    `warnings`: what the server said meanwhile. `marked`: pg_index.indcheckxmin. `old_uses`, `new_uses`:
    whether the old session's plan and a new session's use the index. `old_finds`, `new_finds`: whether each
    finds its own version by the value that it has there.
    """

    warnings: tuple[str, ...]
    marked: bool
    old_uses: bool
    new_uses: bool
    old_finds: bool
    new_finds: bool
    unmarked_without_snapshot: bool


def broken_chains(chapter: Chapter) -> BrokenChains:
    """Update a tenth of a relation, then index the updated column, with an old snapshot open and without."""
    server, warnings = chapter.server, []
    with server.connect() as connection:
        connection.add_notice_handler(lambda notice: warnings.append(notice.message_primary))
        _versions(connection)
        with snapshot(server) as old:
            connection.execute("UPDATE versions SET v = -v WHERE id <= 10")
            connection.execute("CREATE INDEX versions_v ON versions (v)")
            marked = _marked(connection)
            uses, finds = zip(*(_finds(session, value) for session, value in ((old, 7), (connection, -7))))
        _versions(connection)
        connection.execute("UPDATE versions SET v = -v WHERE id <= 10")
        connection.execute("CREATE INDEX versions_v ON versions (v)")
        return BrokenChains(tuple(warnings), marked, *uses, *finds, not _marked(connection))


def _versions(connection: psycopg.Connection) -> None:
    """A hundred rows on a page with room."""
    with connection.transaction():
        loading.replace(connection, "versions", "CREATE TABLE versions (id int PRIMARY KEY, v int) WITH (autovacuum_enabled = off)")
        connection.execute("INSERT INTO versions SELECT n, n FROM generate_series(1, 100) AS n")
    connection.execute("VACUUM (FREEZE, ANALYZE) versions")


def _marked(connection: psycopg.Connection) -> bool:
    return connection.execute("SELECT indcheckxmin FROM pg_index WHERE indexrelid = 'versions_v'::regclass").fetchone()[0]


def _finds(session: psycopg.Connection, value: int) -> tuple[bool, bool]:
    """Whether a session's plan for a value of v uses the new index, and whether it finds row 7 by it."""
    session.execute("SET enable_seqscan = off")
    query = f"SELECT id FROM versions WHERE v = {value}"
    plan = " ".join(line for (line,) in session.execute(f"EXPLAIN {query}"))
    return "versions_v" in plan, session.execute(query).fetchall() == [(7,)]


def seen_of_broken_chains(found: BrokenChains | None) -> pd.DataFrame | None:
    """The same, a row per finding."""
    if found is None:
        return None
    rows = {
        "warnings of CREATE INDEX": ", ".join(found.warnings) or "none",
        "is the index marked as not for old snapshots (indcheckxmin)?": found.marked,
        "does the old session's plan use it?": found.old_uses,
        "does the old session find the old version by its value?": found.old_finds,
        "does a new session's plan use it?": found.new_uses,
        "does the new session find the new version by its value?": found.new_finds,
        "is an index marked when nobody has an old snapshot?": not found.unmarked_without_snapshot,
    }
    return pd.DataFrame({"finding": rows.keys(), "value": list(rows.values())}, dtype=object)


def index_bug(found: BrokenChains | None) -> bool | None:
    """Whether CREATE INDEX on HOT-updated tuples warns or gives wrong answers."""
    return None if found is None else bool(found.warnings) or not (found.old_finds and found.new_finds)


def change_facts(found: BrokenChains | None, rewritten: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether CREATE INDEX and VACUUM FULL treat HOT chains in a way of their own."""
    if found is None or rewritten is None:
        return None
    return {
        "CREATE INDEX marks an index over broken chains": found.marked,
        "old snapshots are kept from it": not found.old_uses and found.old_finds,
        "VACUUM FULL dissolves the chains": bool(rewritten.set_index("command").at[FULL_VACUUM, "heap_only"] == 0),
    }


# ---- rewriting a table beside an old snapshot

CLUSTERED, FULL_VACUUM = "CLUSTER", "VACUUM FULL"
REWRITES = {
    CLUSTERED: "CLUSTER versions USING versions_pkey", FULL_VACUUM: "VACUUM FULL versions",
    "ALTER TABLE, another type": "ALTER TABLE versions ALTER v TYPE bigint", "TRUNCATE": "TRUNCATE versions",
}  # fmt: skip


def rewrites(chapter: Chapter) -> pd.DataFrame:
    """Delete and update half of a relation each, rewrite it, and read it by a snapshot from before all that.

    A row per command: command, committed (rows before), old_sees (rows that the old snapshot sees after it), new_sees,
    heap_only (heap-only tuples left on the first page).
    """
    server, rows = chapter.server, []
    server.extension("pageinspect")
    for name, command in REWRITES.items():
        with server.connect() as connection:
            _versions(connection)
            with snapshot(server) as old:
                connection.execute("DELETE FROM versions WHERE id <= 50")
                connection.execute("UPDATE versions SET v = -v WHERE id > 50")
                connection.execute(command)
                count = "SELECT count(*) FROM versions"
                seen, left = (session.execute(count).fetchone()[0] for session in (old, connection))
            empty = blocks(connection, "versions") == [0]
            heap_only = 0 if empty else int(linked(connection, "versions", 0)["heap_only"].sum())
            rows.append((name, 100, seen, left, heap_only))
    return pd.DataFrame(rows, columns=["command", "committed", "old_sees", "new_sees", "heap_only"])


def loses_rows(found: pd.DataFrame | None, command: str = CLUSTERED) -> bool | None:
    """Whether an old snapshot misses rows after the command."""
    if found is None:
        return None
    row = found.set_index("command").loc[command]
    return bool(row["old_sees"] < row["committed"])


def compaction(chapter: Chapter) -> None:
    """CLUSTER and VACUUM FULL on accounts, grown by as many updates as in print with neither HOT nor pruning: time and pages."""
    arms = [Arm(name, partial(_compact, chapter, command)) for name, command in ((CLUSTERED, "CLUSTER accounts USING accounts_pkey"), (FULL_VACUUM, "VACUUM FULL accounts"))]
    chapter.compare("compaction", arms, {"seconds": "s", "table": "pages", "index": "pages"}, warmup=0)


def _compact(chapter: Chapter, command: str, block: Block) -> dict[str, float]:
    server, here = chapter.server, bank(chapter)
    here.load(server, AS_BEFORE)
    with server.connect() as connection:
        with snapshot(server):
            churn(connection, here, here.updates(printed_updates()), seed=block.seed)
        with clock.stopwatch() as watch:
            connection.execute(command)
        table, index = blocks(connection, "accounts", "accounts_pkey")
    return {"seconds": watch.seconds, "table": table, "index": index}


def compaction_facts(chapter: Chapter, rewritten: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether CLUSTER compacts better, and whether it still is the back door: it gave up versions that others needed."""
    table = chapter.table("compaction", "table")
    if table.empty or rewritten is None:
        return None
    return {
        "CLUSTER leaves fewer pages than VACUUM FULL": bool((table[CLUSTERED] < table[FULL_VACUUM]).all()),
        "CLUSTER gives up versions that an old snapshot needs": bool(loses_rows(rewritten)),
    }


def second_best(chapter: Chapter) -> float | None:
    """Pages of accounts and its index that VACUUM FULL leaves, over those that CLUSTER leaves (medians)."""
    pages = pages_after(chapter)
    if pages is None:
        return None
    total = pages.set_index("command").sum(axis=1)
    return float(total[FULL_VACUUM] / total[CLUSTERED])


def pages_after(chapter: Chapter) -> pd.DataFrame | None:
    """Median pages that each command leaves: command, table, index."""
    tables = {name: chapter.table("compaction", name) for name in ("table", "index")}
    if tables["table"].empty:
        return None
    return pd.DataFrame([(name, *(int(tables[what][name].median()) for what in tables)) for name in (CLUSTERED, FULL_VACUUM)], columns=["command", *tables])
