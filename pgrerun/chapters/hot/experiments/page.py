"""One page, line pointer by line pointer, and which updates are heap-only.

Everything happens in one session without autovacuum, so every run sees the same pages.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pandas as pd
import psycopg

from pgrerun.chapters.hot.experiments.builds import WITH
from pgrerun.chapters.hot.variants import FILLFACTOR, SQL, create, relations
from pgrerun.lab.instruments import counters, pages, server_load, sessions, sizes
from pgrerun.lab.models.heap_growth import LINE_POINTER, PAGE, PAGE_HEADER, aligned
from pgrerun.lab.relations.pgbench import Pgbench
from pgrerun.lab.server import Cluster, Server, fetched, releases
from pgrerun.lab.testbed import Row, Testbed, experiment

WIDTH = 1080  # characters that pad a tuple: seven tuples fill a page

# What happens between one picture of the page and the next: its title, a statement, a row.
STEPS = (
    ("loaded", "", 0),
    ("UPDATE A", "page.update", 1),
    ("UPDATE A", "page.update", 1),
    ("UPDATE B", "page.update", 2),
    ("SELECT D", "page.select", 4),
    ("UPDATE A", "page.update", 1),
    ("UPDATE C (indexed)", "page.update_indexed", 3),
    ("UPDATE B", "page.update", 2),
    ("SELECT D", "page.select", 4),
    ("VACUUM", "page.vacuum", 0),
)
SEQUENCES = {
    "read in between": STEPS,
    # the same until the page is full, and an update of another row that finds it so
    "updated until full": (*STEPS[:4], ("UPDATE D", "page.update", 4)),
}


@contextmanager
def one_page(bed: Testbed) -> Iterator[psycopg.Connection]:
    """The table `page` in its first state, and a connection that has it to itself."""
    bed.server.extension("pageinspect")
    with bed.server.connect() as connection:
        create(connection, "page", "page.page", width=WIDTH)
        connection.execute("SET enable_seqscan = off")
        yield connection


@experiment(
    units={
        "state": "text",
        "tuple": "text",
        "leads_to": "",
        "heap_only": "yes or no",
        "old": "yes or no",
        "entries": "index entries",
    }
)
def page_steps(bed: Testbed) -> Iterator[Row]:
    """Update, read and vacuum four rows on one page; its line pointers after every step.

    A line pointer's tuple ("A v2"), the line pointer that it goes on to, whether a later version
    was committed (old), and the entries of the primary key's index that point to it.
    """
    for sequence in SEQUENCES:
        with one_page(bed) as connection:
            for place, found in _steps(connection, sequence):
                pointers = [pointer for (pointer,) in SQL.run(connection, "page.entries")]
                tuples = [name for (name,) in SQL.run(connection, "page.tuples")]
                for one, name in zip(found, tuples, strict=True):
                    yield place | {
                        "line_pointer": one["line_pointer"],
                        "state": one["state"],
                        "tuple": name,
                        "leads_to": None if pd.isna(one["to"]) else int(one["to"]),
                        "heap_only": bool(one["heap_only"]),
                        "old": bool(one["old"]),
                        "entries": pointers.count(one["line_pointer"]),
                    }


def _steps(connection: psycopg.Connection, sequence: str) -> Iterator[tuple[Row, list[Row]]]:
    """Each step of a sequence once it is made, and the page's line pointers then."""
    for number, (title, statement, row) in enumerate(SEQUENCES[sequence], start=1):
        if statement:
            SQL.run(connection, statement, **({"row": row} if row else {}))
        place = {"sequence": sequence, "step": number, "title": title}
        yield place, pages.linked(connection, "page", 0).to_dict("records")


@experiment(
    units={
        "state": "text",
        "made": "step",
        "heap_only": "yes or no",
        "old": "yes or no",
    },
    needs=["restart"],
)
def page_steps_then(bed: Testbed) -> Iterator[Row]:
    """The sequences of page_steps on HOT's own commit; the page's line pointers after every step.

    What a tuple holds pageinspect doesn't show there, so `made` tells which one it is: the step
    that wrote it, none where there is no tuple. CannotMeasure unless the commit is registered.
    """
    with Cluster(fetched.build(WITH), {"fsync": "off"}) as server:
        server.extension("pageinspect")
        for sequence in SEQUENCES:
            with server.connect() as connection:
                create(connection, "page", "page.page_then", frozen=False, width=WIDTH)
                connection.execute("SET enable_seqscan = off")
                made: dict[int, int] = {}  # by transaction
                for place, found in _steps(connection, sequence):
                    for one in found:
                        written = None if pd.isna(one["xmin"]) else int(one["xmin"])
                        step = None if written is None else made.setdefault(written, place["step"])
                        yield place | {
                            "line_pointer": one["line_pointer"],
                            "state": one["state"],
                            "made": step,
                            "heap_only": bool(one["heap_only"]),
                            "old": bool(one["old"]),
                        }


PRUNED = {"free": "bytes", "needed": "bytes", "pruned": "yes or no"}


@experiment(units=PRUNED)
def update_prunes(bed: Testbed, rows: int = 40, updates: int = 60) -> Iterator[Row]:
    """Update one row of a page with room to spare until updates have pruned twice.

    `rows` tuples fill two thirds of the page. Free bytes of the page before each update, those that
    its new version with a line pointer needs, and whether the update pruned first.
    """
    yield from _updated(bed.server, "page.narrow", rows, updates)


@experiment(units=PRUNED, needs=["restart"])
def update_prunes_then(bed: Testbed, rows: int = 40, updates: int = 60) -> Iterator[Row]:
    """The same on HOT's own commit. CannotMeasure unless it is registered."""
    with Cluster(fetched.build(WITH), {"fsync": "off"}) as server:
        yield from _updated(server, "page.narrow_then", rows, updates)


def _updated(server: Server, narrow: str, rows: int, updates: int) -> Iterator[Row]:
    """`PRUNED` of each update of one row of the table that the statements `narrow` make."""
    server.extension("pageinspect")
    with server.connect() as connection:
        create(connection, "narrow", narrow, frozen=not narrow.endswith("_then"), rows=rows)
        connection.execute("SET enable_seqscan = off")
        width = pages.heap_page(connection, "narrow", 0)["length"].iloc[0]
        needed = int(aligned(width) + LINE_POINTER)
        for number in range(1, updates + 1):
            [free] = SQL.run(connection, "page.free").fetchone()
            [before] = SQL.run(connection, "page.versions").fetchone()
            SQL.run(connection, "page.update_narrow")
            [after] = SQL.run(connection, "page.versions").fetchone()
            yield {"update": number, "free": free, "needed": needed, "pruned": after <= before}


@experiment(units={"hole": "bytes", "hole_left": "bytes", "waited": "yes or no", "locks": "text"})
def select_prunes(bed: Testbed) -> Iterator[Row]:
    """SELECT from a page with dead versions of other sizes between its tuples: pinned, then alone.

    Bytes between the current versions before and after, whether the SELECT had to wait (it would
    be cancelled after two seconds), and the locks on the table that it held.
    """
    with one_page(bed) as connection, bed.server.connect(autocommit=False) as other:
        SQL.run(connection, "page.update_wide", row=1, width=WIDTH - 100)
        SQL.run(connection, "page.update_wide", row=2, width=WIDTH)
        # the page is pinned by a reader to whom the versions replaced so far are dead
        SQL.run(other, "page.pin")
        SQL.run(connection, "page.update_wide", row=1, width=WIDTH - 200)
        for pinned in (True, False):
            hole = _hole(connection)
            waited, locks = _select(connection)
            yield {
                "pinned_by_another": pinned,
                "hole": hole,
                "hole_left": _hole(connection),
                "waited": waited,
                "locks": locks,
            }
            other.rollback()
            # a backend looks again who may still see what when there is a new transaction ID
            connection.execute("SELECT txid_current()")


def _select(connection: psycopg.Connection) -> tuple[bool, str]:
    """Whether a SELECT on the page waits, and the modes of its locks on the table."""
    connection.execute("SET statement_timeout = '2s'")
    try:
        with connection.transaction():
            SQL.run(connection, "page.select", row=4)
            return False, ", ".join(sorted(mode for (mode,) in SQL.run(connection, "page.locks")))
    except psycopg.errors.QueryCanceled:
        return True, ""
    finally:
        connection.execute("RESET statement_timeout")


def _hole(connection: psycopg.Connection) -> int:
    """Bytes from the first tuple to the end of the page that no current version fills."""
    page = pages.heap_page(connection, "page", 0)
    current = page[(page["state"] == "normal") & ~page["xmax"].fillna(0).gt(0)]
    [upper] = SQL.run(connection, "page.upper").fetchone()
    return int(PAGE - upper - sum(aligned(length) for length in current["length"]))


# ---- which updates are heap-only: indexes, room on the page, width of tuples

ROWS = 100  # of the table of each case; every row is updated once, in a transaction of its own
PRIME = 1_000_000_007  # more than accounts can be
NEWPAGE = "pg_stat_get_tuples_newpage_updated"
PLAIN, BTREE, BRIN_INDEX = (
    "a column without index",
    "a column in a B-tree",
    "a column in a BRIN index",
)
# By what is updated: what is indexed beside the primary key, the update, and what else is special.
# A width from 2,000 on lies in TOAST; a fillfactor of 50 leaves room for a second version of all.
CASES: dict[str, dict[str, str | int]] = {
    PLAIN: {},
    BRIN_INDEX: {"index": "brin"},
    "a column in a BRIN index of Bloom filters": {"index": "brin_bloom"},
    "a column in a B-tree, to the value it has": {"index": "btree", "update": "update_same"},
    BTREE: {"index": "btree"},
    "a column in a hash index": {"index": "hash"},
    "a column in an index's INCLUDE": {"index": "include"},
    "a column in an index's WHERE": {"index": "where"},
    "an index expression whose value stays": {"index": "expression"},
    "a tuple that grows a little": {"update": "update_longer"},
    "a tuple that outgrows its page": {"update": "update_wide", "fillfactor": 100},
    "a full page, an old snapshot open": {"fillfactor": 100, "snapshot": True},
    "beside a value in TOAST": {"width": 3000},
    "a value in TOAST is replaced": {"update": "update_toast", "width": 3000},
    "the partition key, to another partition": {
        "made": "partitioned",
        "update": "update_partition",
    },
}


@experiment(
    units=dict.fromkeys(("heap_only", "same_page", "other_page", "other_partition"), "updates")
)
def cases(bed: Testbed) -> Iterator[Row]:
    """Update each of a hundred rows once, in fifteen ways: where the new versions went."""
    for name, case in CASES.items():
        made = case.get("made", "table")
        parts = ("cases_low", "cases_high") if made == "partitioned" else ("cases",)
        with (
            bed.server.connect() as connection,
            sessions.snapshot(bed.server, bool(case.get("snapshot"))),
        ):
            releases.require(connection.info.server_version, NEWPAGE)
            create(
                connection,
                "cases",
                f"eligibility.{made}",
                rows=ROWS,
                width=case.get("width", 84),
                fillfactor=case.get("fillfactor", 50),
            )
            if index := case.get("index"):
                SQL.run(connection, f"eligibility.{index}")
            for row in range(1, ROWS + 1):
                SQL.run(connection, f"eligibility.{case.get('update', 'update')}", row=row)
            counted = counters.counts(connection, *parts)
        updated, hot, newpage = map(counted.get, ("updated", "hot_updated", "newpage_updated"))
        yield {
            "what": name,
            "heap_only": hot,
            "same_page": updated - hot - newpage,
            "other_page": newpage,
            "other_partition": ROWS - updated,
        }


@experiment(
    units={
        "tuples": "tuples/page",
        "room": "tuples/page",
        "one_by_one": "share of HOT updates",
        "at_once": "share of HOT updates",
        "at_once_expected": "share of HOT updates",
    }
)
def fillfactors(bed: Testbed) -> Iterator[Row]:
    """Update every account once: each in a transaction of its own, and all in one statement.

    By fillfactor the tuples of a full page, for how many further versions it has room, and the
    share of HOT updates. Of those at once, room over tuples is expected.
    """
    ours = Pgbench(1, relations(bed).accounts, prefix="")
    rows: list[Row] = []
    with bed.server.connect() as connection:
        connection.execute("SET synchronous_commit = off")
        for fillfactor in (100, 98, 95, 90, 80, 50):
            single, whole = f"accounts_{fillfactor}", f"accounts_{fillfactor}_at_once"
            for name in (single, whole):
                ours.load_accounts(connection, name, fillfactor=fillfactor)
            tuples, width = SQL.run(connection, "eligibility.layout", table=single).fetchone()
            room = (PAGE - PAGE_HEADER) // (aligned(width) + LINE_POINTER) - tuples
            script = SQL.script("update_shuffled").replace("UPDATE accounts", f"UPDATE {single}")
            server_load.run(
                connection,
                script,
                ours.accounts,
                variables=ours.variables | {"step": PRIME},
                seed=0,
            )
            connection.execute(f"UPDATE {whole} SET abalance = abalance + 1")
            rows.append(
                {
                    "fillfactor": fillfactor,
                    "tuples": tuples,
                    "room": room,
                    "one_by_one": single,
                    "at_once": whole,
                    "at_once_expected": min(1.0, room / tuples),
                }
            )
        names = [row[way] for row in rows for way in ("one_by_one", "at_once")]
        counted = counters.counts_each(connection, *names)
    share = {name: one["hot_updated"] / one["updated"] for name, one in counted.items()}
    for row in rows:
        yield row | {way: share[row[way]] for way in ("one_by_one", "at_once")}


WIDTHS = {
    "same": "as wide as before",
    "little": "a little wider or narrower",
    "much": "anything from narrow to twice as wide",
}


@experiment(
    units={
        "hot": "share of the updates",
        "other_page": "share of the updates",
        "pages_before": "pages",
        "pages_after": "pages",
    }
)
def widths(bed: Testbed, rows: int = 1000, rounds: int = 3) -> Iterator[Row]:
    """Update every row three times while tuples keep their width or don't, at the thread's
    fillfactor: the share of HOT updates, that of new versions on another page, and the sizes.
    """
    with bed.server.connect() as connection:
        releases.require(connection.info.server_version, NEWPAGE)
        for name, title in WIDTHS.items():
            SQL.run(connection, f"widths.{name}")
            create(connection, "wide", "widths.wide", rows=rows, fillfactor=FILLFACTOR)
            before = sizes.pages(connection, "wide")
            server_load.run(
                connection, SQL.script("widths"), rounds * rows, variables={"rows": rows}
            )
            counted = counters.counts(connection, "wide")
            yield {
                "new_width": title,
                "hot": counted["hot_updated"] / counted["updated"],
                "other_page": counted["newpage_updated"] / counted["updated"],
                "pages_before": before,
                "pages_after": sizes.pages(connection, "wide"),
            }
