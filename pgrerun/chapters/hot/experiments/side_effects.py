"""What the thread feared: long transactions, tiny tables, CREATE INDEX, CLUSTER and VACUUM FULL."""

from collections.abc import Iterator
from contextlib import suppress

import psycopg

from pgrerun.chapters.hot.experiments.builds import BEFORE, WITH, both_commits
from pgrerun.chapters.hot.experiments.wal import (
    AT_EVERY_VISIT,
    PRUNED,
    WITHOUT_ROOM,
    by_part,
)
from pgrerun.chapters.hot.variants import (
    ACCOUNTS,
    HOT,
    SQL,
    UNPRUNED,
    create,
    load,
    loaded,
    relations,
    run_in_server,
    run_pgbench,
    updates,
)
from pgrerun.lab.instruments import off_cpu, pages, pgbench, plans, sessions, sizes, wal
from pgrerun.lab.relations.pgbench import Pgbench
from pgrerun.lab.server import Cluster, Server, fetched, set_session
from pgrerun.lab.testbed import ENOUGH_PAIRS, Block, Row, Testbed, experiment

# ---- long transactions and long chains

# Updates of one tuple: its page is full after some sixty.
LOOKS = (0, 1, 2, 5, *range(10, 201, 10), 500)
LOOKUP = "SELECT abalance FROM accounts WHERE aid = 1"


@experiment(units={"chain": "versions", "pages": "pages"})
def long_transaction(bed: Testbed) -> Iterator[Row]:
    """Update the only account over and over, alone or beside another session's old snapshot.

    Versions in the chain on the page that its line pointer leads to, and pages that a lookup by
    primary key touches, the index included.
    """
    server, ours = bed.server, Pgbench(1, 1, prefix="")
    server.extension("pageinspect")
    for variant, held in ((HOT, False), (HOT, True), (UNPRUNED, True)):
        with loaded(ours, server, variant, held) as (connection, _):
            connection.execute("SET enable_seqscan = off")
            connection.execute("SET enable_bitmapscan = off")
            done = 0
            for number in LOOKS:
                run_in_server(connection, ours, "update_first", number - done, 0)
                done = number
                chain = pages.longest_chain(pages.linked(connection, "accounts", 0))
                plans.explain(connection, LOOKUP, execute=True)  # so that hint bits are set
                yield {
                    "variant": variant,
                    "old_snapshot": held,
                    "updates": number,
                    "chain": chain,
                    "pages": int(plans.explain(connection, LOOKUP, execute=True).page_accesses),
                }


# ---- a table of one page, read and updated by all

WAITS = {
    "CPU:running": "running",
    "LWLock:BufferContent": "content_lock",
    "BufferPin:BufferPin": "pin",
    "Lock:transactionid": "same_tuple",
    "Lock:tuple": "same_tuple",
}
OTHERWISE = "otherwise"  # WAL, client
BLOCKS = 36  # short ones: who waits once is soon in a queue that stays, so that runs differ a lot
# Tuples: they fill more than the tenth of the page that the least fillfactor leaves to them.
ON_THE_PAGE = 30


@experiment(
    units=dict.fromkeys([*WAITS.values(), OTHERWISE], "share of the samples")
    | {"prunings": "prunings/transaction"}
)
def page_waits(bed: Testbed, transactions: int = 20_000) -> Iterator[Row]:
    """What backends wait for while all of them update and read the tuples on one page.

    Shares of the samples: for the page's content lock, for others to unpin it, for another update
    of the same tuple. Any visit may prune, as the fillfactor is the least, or only one that finds a
    tenth of the page left, which is many updates later: so hardly anything is pruned, by the same
    work on the same page. An old snapshot would keep all versions, which fill page after page.
    Commits don't wait for the disk. `prunings` are counted in the WAL. At profile ci, where no time
    decides, there are fewer blocks, with half of the transactions.
    """
    server, ours = bed.server, Pgbench(ON_THE_PAGE, 1, prefix="")
    server.extension("pg_walinspect")
    quick = bed.parameters.profile == "ci"
    number = transactions // 2 if quick else transactions

    def prepare(block: Block, pruned: str) -> None:
        with server.connect() as connection:
            load(ours, connection)
            if pruned == AT_EVERY_VISIT:
                connection.execute("ALTER TABLE branches SET (fillfactor = 10)")

    def measure(block: Block, pruned: str) -> dict[str, float]:
        clients, sampling = bed.parameters.clients, off_cpu.sample_wait_events(server, every=0.002)
        with server.connect() as connection:
            with wal.written(connection) as log, sampling as sampled:
                run_pgbench(server, ours, "tiny_table", number, seed=block.seed, clients=clients)
            written = by_part(connection, log)
        return _shares(sampled) | {"prunings": written.at[PRUNED, "records"] / number}

    # who waits for the disk to commit isn't at work on the page, and leaves it to others
    with sessions.configured(server, synchronous_commit="off"):
        yield from bed.compare(
            measure,
            {"pruned": [AT_EVERY_VISIT, WITHOUT_ROOM]},
            prepare=prepare,
            pairs=ENOUGH_PAIRS if quick else BLOCKS,
            warmup=0,
            fixed=True,
        )


def _shares(sampled: off_cpu.WaitEvents) -> dict[str, float]:
    """The shares of the samples in which backends wait for each of `WAITS`, or otherwise."""
    seen = sampled.require_frame()
    kind = (seen["type"] + ":" + seen["event"]).map(WAITS).fillna(OTHERWISE)
    backends = seen["backends"].groupby(kind).sum()
    return {
        name: float(backends.get(name, 0.0) / backends.sum())
        for name in [*dict.fromkeys(WAITS.values()), OTHERWISE]
    }


# ---- CREATE INDEX over broken chains


LOOKED_UP = ("marked", "old_uses", "old_finds", "new_uses", "new_finds")
OVER_CHAINS = {"warnings": "text"} | dict.fromkeys(LOOKED_UP, "yes or no")
AS_MADE, TAKEN_AWAY = "as made", "taken away"


@experiment(units=OVER_CHAINS)
def broken_chains(bed: Testbed) -> Iterator[Row]:
    """Update a tenth of a table, then index the updated column: beside an old snapshot, alone.

    What the server warned of; whether the index is marked (pg_index.indcheckxmin); whether the old
    session's plan and a new session's use it, and each finds its own version by its value there.
    """
    yield {"old_snapshot": True, **_beside_a_snapshot(bed.server)}
    with bed.server.connect() as connection:
        create(connection, "versions", "snapshots.versions")
        yield {"old_snapshot": False, "marked": _marked_index(connection)}


@experiment(units=OVER_CHAINS, needs=["restart"])
def broken_chains_then(bed: Testbed) -> Iterator[Row]:
    """The same beside an old snapshot, on the commit before HOT and on the one with it.

    There once more with the mark taken away as soon as the index is made, as if CREATE INDEX knew
    nothing of it. CannotMeasure unless both commits are registered.
    """
    with both_commits({}) as servers:
        for name, server in servers.items():
            for mark in (AS_MADE, TAKEN_AWAY) if name == WITH else (AS_MADE,):
                yield {"server": name, "mark": mark, **_beside_a_snapshot(server, mark)}


def _beside_a_snapshot(server: Server, mark: str = AS_MADE) -> Row:
    """What an index that is made beside an old snapshot is to that one, and to a new session."""
    warnings: list[str] = []
    with server.connect() as connection:
        create(connection, "versions", "snapshots.versions")
        # not before: old releases tell of the index that a primary key makes
        connection.add_notice_handler(lambda notice: warnings.append(notice.message_primary))
        with sessions.snapshot(server) as old:
            marked = _marked_index(connection)
            if mark == TAKEN_AWAY:
                SQL.run(connection, "snapshots.take_mark_away")
            looked_up = (marked, *_finds(old, 7), *_finds(connection, -7))
    return {"warnings": ", ".join(warnings)} | dict(zip(LOOKED_UP, looked_up, strict=True))


def _marked_index(connection: psycopg.Connection) -> bool:
    """Whether an index made after updates is marked as not for old snapshots."""
    SQL.run(connection, "snapshots.update")
    SQL.run(connection, "snapshots.index")
    try:
        [marked] = SQL.run(connection, "snapshots.is_marked").fetchone()
    except psycopg.errors.UndefinedColumn:  # before HOT there was no such mark
        return False
    return bool(marked)


def _finds(session: psycopg.Connection, value: int) -> tuple[bool, bool]:
    """Whether a session's plan for a value of v uses the new index, and whether it finds row 7."""
    session.execute("SET enable_seqscan = off")
    query = SQL.text("snapshots.find", value=value)
    uses = any(node.index == "versions_v" for node in plans.explain(session, query).walk())
    return uses, session.execute(query).fetchall() == [(7,)]


# ---- rewriting a table beside an old snapshot

REWRITES = {
    "CLUSTER": "cluster",
    "VACUUM FULL": "vacuum_full",
    "ALTER TABLE, another type": "alter_type",
    "TRUNCATE": "truncate",
}


@experiment(units=dict.fromkeys(("committed", "old_sees", "new_sees", "heap_only"), "rows"))
def rewrites(bed: Testbed) -> Iterator[Row]:
    """Change all of a table, rewrite it, and read it by a snapshot from before all that.

    Rows before, those that the old snapshot and a new one see afterwards, and heap-only tuples left
    on the first page.
    """
    server = bed.server
    server.extension("pageinspect")
    for name, command in REWRITES.items():
        with server.connect() as connection:
            create(connection, "versions", "snapshots.versions")
            [before] = SQL.run(connection, "snapshots.count").fetchone()
            with sessions.snapshot(server) as old:
                SQL.run(connection, "snapshots.change")
                SQL.run(connection, f"snapshots.{command}")
                [old_sees] = SQL.run(old, "snapshots.count").fetchone()
                [new_sees] = SQL.run(connection, "snapshots.count").fetchone()
            heap_only = 0
            if sizes.pages(connection, "versions"):
                heap_only = int(pages.linked(connection, "versions", 0)["heap_only"].sum())
            yield {
                "command": name,
                "committed": before,
                "old_sees": old_sees,
                "new_sees": new_sees,
                "heap_only": heap_only,
            }


COMPACTING = ("CLUSTER", "VACUUM FULL")


@experiment(units=dict.fromkeys(ACCOUNTS, "pages"))
def compaction(bed: Testbed) -> Iterator[Row]:
    """Pages after CLUSTER and VACUUM FULL of accounts, grown by the thread's updates."""
    server, ours = bed.server, relations(bed)
    for name in COMPACTING:
        load(ours, server, UNPRUNED)
        with server.connect() as connection:
            with sessions.snapshot(server):
                run_in_server(
                    connection, ours, "update_account", updates(ours), bed.parameters.seed
                )
            SQL.run(connection, f"compaction.{REWRITES[name]}")
            yield {"command": name} | sizes.pages_of(connection, ACCOUNTS)


@experiment(units={"loaded": "pages", **dict.fromkeys(ACCOUNTS, "pages")}, needs=["restart"])
def compaction_before_hot(bed: Testbed) -> Iterator[Row]:
    """The same on the commit before HOT, whose two commands share no code.

    As many updates by one client of pgbench; nothing stands in for the server of then. `loaded` is
    what accounts and its index had before. CannotMeasure unless that commit is registered.
    """
    ours = relations(bed)
    with Cluster(fetched.build(BEFORE)) as server:
        for name in COMPACTING:
            load(ours, server)
            with server.connect() as connection:
                loaded = sum(sizes.pages_of(connection, ACCOUNTS).values())
                pgbench.run(
                    server,
                    SQL.script("update_account"),
                    transactions=updates(ours),
                    variables=ours.variables,
                    seed=bed.parameters.seed,
                )
                SQL.run(connection, f"compaction.{REWRITES[name]}")
                yield {"command": name, "loaded": loaded} | sizes.pages_of(connection, ACCOUNTS)


# ---- the VACUUM FULL of before, on a server with HOT

OF_BEFORE = "hot-old-vacuum-full"
BUILDS = (("hot", False), (OF_BEFORE, False), (OF_BEFORE, True))  # and whether assertions are on
CHAINS = {"updated once": 1, "updated twice": 2, "updated once beside an old snapshot": 1}


@experiment(
    units=dict.fromkeys(("committed", "scanned", "found", "missed"), "rows")
    | {"ended": "yes or no", "error": "text"},
    needs=["restart"],
)
def vacuum_full_of_before(bed: Testbed) -> Iterator[Row]:
    """VACUUM FULL over chains, as HOT's commit has it and as the commit before it had.

    Rows `committed` before, those that a scan finds afterwards (`scanned`) and an index (`found`),
    and those of the scan that the index misses; or whether the backend `ended`, or the SQLSTATE of
    the `error` that it met. The second build was compiled with assertions, which can be switched
    off; the first without. A second update finds its page full and prunes, which leaves redirects.
    A server of its own for each. CannotMeasure unless both builds are registered.
    """
    programs = {name: fetched.build(name) for name, _ in BUILDS}
    for name, assertions in BUILDS:
        for chains, updates_ in CHAINS.items():
            with Cluster(programs[name]) as server:
                found = _vacuumed_full(server, assertions, updates_, "snapshot" in chains)
            yield {"server": name, "assertions": assertions, "chains": chains, **found}


def _vacuumed_full(server: Cluster, assertions: bool, many: int, beside: bool) -> Row:
    found: Row = {"ended": False, "error": ""}
    with server.connect() as connection:
        create(connection, "chained", "vacuum_full.chained")
        SQL.run(connection, "vacuum_full.empty")
        # before the updates, as who reads a page prunes it
        found["committed"] = len(_ids(connection, by_index=False))
        # a backend that fails takes the old snapshot's along
        with suppress(psycopg.OperationalError), sessions.snapshot(server, beside):
            for _ in range(many):
                SQL.run(connection, "vacuum_full.update")
            set_session(connection, {"debug_assertions": "on" if assertions else "off"})
            try:
                SQL.run(connection, "vacuum_full.vacuum_full")
                scanned, by_index = (_ids(connection, by_index=one) for one in (False, True))
                missed = len(set(scanned) - set(by_index))
                found |= {"scanned": len(scanned), "found": len(by_index), "missed": missed}
            except psycopg.Error as error:
                found |= {"ended": connection.broken, "error": error.sqlstate or ""}
    return found


def _ids(connection: psycopg.Connection, by_index: bool) -> list[int]:
    """The ids that a scan of the table finds, or a scan of its index."""
    paths = {"seqscan": not by_index, "indexscan": by_index, "bitmapscan": False}
    set_session(connection, {f"enable_{path}": str(on) for path, on in paths.items()})
    query = SQL.text("vacuum_full.find")
    [node] = plans.explain(connection, query).walk()
    assert node.index == ("chained_pkey" if by_index else None), node
    return [id_ for [id_] in connection.execute(query).fetchall()]
