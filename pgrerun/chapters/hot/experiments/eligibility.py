"""What lets an update be heap-only and what doesn't: indexes, room on the page, width of tuples.

Everything here is counted in one session with throwaway tables, so every run finds the same
numbers. The counters are PostgreSQL's own; a test holds them against the pages.
"""

from dataclasses import dataclass

import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.hot.variants import (
    FILLFACTOR,
    SQL,
    create,
    relations,
)
from pgrerun.lab.instruments import counters, server_load, sizes
from pgrerun.lab.instruments.sessions import snapshot
from pgrerun.lab.models.heap_growth import LINE_POINTER, PAGE, PAGE_HEADER, aligned
from pgrerun.lab.relations.pgbench import Pgbench
from pgrerun.lab.server import releases

ROWS = 100  # of the table of each case; every row is updated once, in a transaction of its own
PRIME = 1_000_000_007  # more than accounts can be
NEWPAGE = "pg_stat_get_tuples_newpage_updated"


@dataclass(frozen=True)
class Case:
    """A kind of update: statements of sql/eligibility.sql, and how wide and how full pages are.

    index         what is indexed beside the primary key ("" for nothing)
    width         characters that pad a tuple; from 2,000 on they lie in TOAST
    fillfactor    50 leaves room for a second version of every tuple
    """

    name: str
    index: str = ""
    update: str = "update"
    width: int = 84
    fillfactor: int = 50
    old_snapshot: bool = False
    partitioned: bool = False


PLAIN, BTREE, BRIN_INDEX = (
    "a column without index",
    "a column in a B-tree",
    "a column in a BRIN index",
)
LONGER, OUTGROWS, FULL_PAGE = (
    "a tuple that grows a little",
    "a tuple that outgrows its page",
    "a full page, an old snapshot open",
)
NEW_TOAST, MOVED = "a value in TOAST is replaced", "the partition key, to another partition"
CASES = (
    Case(PLAIN),
    Case(BRIN_INDEX, "brin"),
    Case("a column in a BRIN index of Bloom filters", "brin_bloom"),
    Case("a column in a B-tree, to the value it has", "btree", "update_same"),
    Case(BTREE, "btree"),
    Case("a column in a hash index", "hash"),
    Case("a column in an index's INCLUDE", "include"),
    Case("a column in an index's WHERE", "where"),
    Case("an index expression whose value stays", "expression"),
    Case(LONGER, update="update_longer"),
    Case(OUTGROWS, update="update_wide", fillfactor=100),
    Case(FULL_PAGE, fillfactor=100, old_snapshot=True),
    Case("beside a value in TOAST", width=3000),
    Case(NEW_TOAST, update="update_toast", width=3000),
    Case(MOVED, update="update_partition", partitioned=True),
)


@experiment(claims=["hot-007", "hot-025"])
def cases(chapter: Chapter) -> pd.DataFrame:
    """Where the new versions of `ROWS` updates went: a row per kind of update.

    Columns: case; heap_only, same_page, other_page, other_partition (counts).
    """
    rows = []
    for case in CASES:
        table = "eligibility.partitioned" if case.partitioned else "eligibility.table"
        parts = ("cases_low", "cases_high") if case.partitioned else ("cases",)
        values = {"rows": ROWS, "width": case.width, "fillfactor": case.fillfactor}
        with chapter.server.connect() as connection, snapshot(chapter.server, case.old_snapshot):
            releases.require(connection.info.server_version, NEWPAGE)
            create(connection, "cases", table, **values)
            if case.index:
                SQL.run(connection, f"eligibility.{case.index}")
            for row in range(1, ROWS + 1):
                SQL.run(connection, f"eligibility.{case.update}", row=row)
            counted = counters.counts(connection, *parts)
        updated, hot, newpage = map(counted.get, ("updated", "hot_updated", "newpage_updated"))
        placed = (hot, updated - hot - newpage, newpage, ROWS - updated)
        rows.append((case.name, *placed))
    places = ["heap_only", "same_page", "other_page", "other_partition"]
    return pd.DataFrame(rows, columns=["case", *places])


# ---- room: the fillfactor, and tuples that change their width

FILLFACTORS = (100, 98, 95, 90, 80, 50)


@experiment(claims=["hot-006"])
def fillfactors(chapter: Chapter) -> pd.DataFrame:
    """Share of HOT updates when every account is updated once, by fillfactor: a row each.

    Columns: fillfactor; tuples (on a full page), room (for so many further versions on it);
    one_by_one (share of HOT updates, each in a transaction of its own, in an order without a
    pattern); at_once (all in one statement), at_once_expected (room over tuples).
    """
    ours = Pgbench(1, relations(chapter).accounts, prefix="")
    variables, rows = ours.variables | {"step": PRIME}, []
    with chapter.server.connect() as connection:
        connection.execute("SET synchronous_commit = off")
        for fillfactor in FILLFACTORS:
            single, whole = f"accounts_{fillfactor}", f"accounts_{fillfactor}_at_once"
            for name in (single, whole):
                ours.load_accounts(connection, name, fillfactor=fillfactor)
            tuples, width = SQL.run(connection, "eligibility.layout", table=single).fetchone()
            room = (PAGE - PAGE_HEADER) // (aligned(width) + LINE_POINTER) - tuples
            script = SQL.script("update_shuffled").replace("UPDATE accounts", f"UPDATE {single}")
            server_load.run(connection, script, ours.accounts, variables=variables, seed=0)
            connection.execute(f"UPDATE {whole} SET abalance = abalance + 1")
            rows.append((fillfactor, tuples, room, single, whole, min(1.0, room / tuples)))
        names = [name for row in rows for name in row[3:5]]
        counted = counters.counts_each(connection, *names)
    share = {name: one["hot_updated"] / one["updated"] for name, one in counted.items()}
    columns = ["fillfactor", "tuples", "room", "one_by_one", "at_once", "at_once_expected"]
    found = pd.DataFrame(rows, columns=columns)
    return found.assign(**{way: found[way].map(share) for way in columns[3:5]})


WIDTHS = {
    "same": "as wide as before",
    "little": "a little wider or narrower",
    "much": "anything from narrow to twice as wide",
}


@experiment()
def widths(chapter: Chapter, rows: int = 1000, rounds: int = 3) -> pd.DataFrame:
    """Share of HOT updates while tuples keep their width or don't, and the pages afterwards.

    Every row is updated three times, at the thread's fillfactor. Columns: new_width, hot (share of
    the updates), other_page (share), pages_before, pages_after.
    """
    found = []
    with chapter.server.connect() as connection:
        releases.require(connection.info.server_version, NEWPAGE)
        for name, title in WIDTHS.items():
            SQL.run(connection, f"widths.{name}")
            create(connection, "wide", "widths.wide", rows=rows, fillfactor=FILLFACTOR)
            before = sizes.pages(connection, "wide")
            script = SQL.script("widths")
            server_load.run(connection, script, rounds * rows, variables={"rows": rows})
            counted = counters.counts(connection, "wide")
            hot, other_page = (
                counted[column] / counted["updated"]
                for column in ("hot_updated", "newpage_updated")
            )
            found.append((title, hot, other_page, before, sizes.pages(connection, "wide")))
    columns = ["new_width", "hot", "other_page", "pages_before", "pages_after"]
    return pd.DataFrame(found, columns=columns)
