"""One page, line pointer by line pointer, while its tuples are updated, read and vacuumed.

Everything happens in one session without autovacuum, so every run sees the same pages.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.hot.variants import SQL, create
from pgrerun.lab.instruments import pages
from pgrerun.lab.models.heap_growth import LINE_POINTER, PAGE, aligned

WIDTH = 1080  # characters that pad a tuple: seven tuples fill a page

COLUMNS = ("page", "line_pointer", "state", "tuple", "to", "heap_only", "old", "entries")

Steps = Sequence[tuple[str, str, int]]
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
# The same until the page is full, and an update of another row that finds it so.
UNTIL_FULL = (*STEPS[:4], ("UPDATE D", "page.update", 4))


@contextmanager
def one_page(chapter: Chapter) -> Iterator[psycopg.Connection]:
    """The table `page` in its first state, and a connection that has it to itself."""
    chapter.server.extension("pageinspect")
    with chapter.server.connect() as connection:
        create(connection, "page", "page.page", width=WIDTH)
        connection.execute("SET enable_seqscan = off")
        yield connection


@experiment(claims=["hot-019"])
def states(chapter: Chapter, steps: Steps = STEPS) -> pd.DataFrame:
    """The line pointers of the page after every step: a row each.

    Columns: page (number and title of the step), line_pointer, state, tuple ("A v2"), to,
    heap_only, old (see `pages.linked`), entries (of the primary key's index that point here).
    """
    found = []
    with one_page(chapter) as connection:
        for number, (title, statement, row) in enumerate(steps, start=1):
            if statement:
                SQL.run(connection, statement, **({"row": row} if row else {}))
            page = pages.linked(connection, "page", 0).assign(page=f"{number} {title}")
            page["tuple"] = [name for (name,) in SQL.run(connection, "page.tuples")]
            pointers = [pointer for (pointer,) in SQL.run(connection, "page.entries")]
            page["entries"] = [pointers.count(pointer) for pointer in page["line_pointer"]]
            found.append(page[list(COLUMNS)])
    return pd.concat(found, ignore_index=True)


@experiment(claims=["hot-018"])
def pruned_when(chapter: Chapter, rows: int = 40, updates: int = 60) -> pd.DataFrame:
    """One row of a page with room to spare is updated until updates have pruned twice.

    `rows` tuples fill two thirds of the page. A row per update: update (from 1), free (bytes of the
    page before it), needed (bytes of the new version and its line pointer), pruned (whether the
    update pruned first).
    """
    chapter.server.extension("pageinspect")
    found = []
    with chapter.server.connect() as connection:
        create(connection, "narrow", "page.narrow", rows=rows)
        connection.execute("SET enable_seqscan = off")
        width = pages.heap_page(connection, "narrow", 0)["length"].iloc[0]
        needed = aligned(width) + LINE_POINTER
        for number in range(1, updates + 1):
            [free] = SQL.run(connection, "page.free").fetchone()
            [before] = SQL.run(connection, "page.versions").fetchone()
            SQL.run(connection, "page.update_narrow")
            [after] = SQL.run(connection, "page.versions").fetchone()
            found.append((number, free, needed, after <= before))
    return pd.DataFrame(found, columns=["update", "free", "needed", "pruned"])


@dataclass(frozen=True)
class Defragmented:
    """What a SELECT did to a page with dead versions of different sizes between its tuples.

    `hole`: bytes between the current versions before the SELECT, `hole_left` after it; `locks`: the
    lock modes it held on the table; `pinned`: whether it pruned while another session had the page
    pinned; `waited`: whether it then had to wait (it would have been cancelled after two seconds).
    """

    hole: int
    hole_left: int
    locks: tuple[str, ...]
    pinned: bool
    waited: bool


@experiment(claims=["hot-011"])
def defragmented(chapter: Chapter) -> Defragmented:
    """Fill a page with versions of different sizes, then SELECT: beside another pin, and alone."""
    with one_page(chapter) as connection, chapter.server.connect(autocommit=False) as other:
        SQL.run(connection, "page.update_wide", row=1, width=WIDTH - 100)
        SQL.run(connection, "page.update_wide", row=2, width=WIDTH)
        # The page is pinned by a reader to whom the versions replaced so far are dead.
        SQL.run(other, "page.pin")
        SQL.run(connection, "page.update_wide", row=1, width=WIDTH - 200)
        hole = _hole(connection)
        waited = _select_waits(connection)
        pinned = _hole(connection) < hole
        other.rollback()
        # A backend looks again who may still see what when there is a new transaction ID.
        connection.execute("SELECT txid_current()")
        with connection.transaction():
            SQL.run(connection, "page.select", row=4)
            locks = tuple(sorted(mode for (mode,) in SQL.run(connection, "page.locks")))
        return Defragmented(hole, _hole(connection), locks, pinned, waited)


def _select_waits(connection: psycopg.Connection) -> bool:
    connection.execute("SET statement_timeout = '2s'")
    try:
        SQL.run(connection, "page.select", row=4)
        return False
    except psycopg.errors.QueryCanceled:
        return True
    finally:
        connection.execute("RESET statement_timeout")


def _hole(connection: psycopg.Connection) -> int:
    """Bytes from the first tuple to the end of the page that no current version fills."""
    page = pages.heap_page(connection, "page", 0)
    current = page[(page["state"] == "normal") & ~page["xmax"].fillna(0).gt(0)]
    [upper] = SQL.run(connection, "page.upper").fetchone()
    return PAGE - upper - sum(aligned(length) for length in current["length"])
