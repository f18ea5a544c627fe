"""Heap pages: room for another tuple, how densely versions are appended, versions of one tuple."""

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.tp1.variants import REPORT_BATCH, SQL, TRANSACTION, relations
from pgrerun.lab.instruments import pages, pgbench, sizes

LINE_POINTER = 4  # bytes


@experiment(claims=["lai-053"])
def pages_with_room(chapter: Chapter) -> pd.DataFrame:
    """Pages of each relation, and how many have room for one more tuple, as transactions go on.

    Columns: transactions (that have run: none, the report's batch, ten such), relation, pages,
    with_room (as they lie there) and once_pruned (as whoever looks finds them).
    """
    server, bank, rows, done = chapter.server, relations(chapter), [], 0
    for extension in ("pageinspect", "pg_freespacemap"):
        server.extension(extension)
    bank.load(server)
    with server.connect() as connection:
        for transactions in (0, REPORT_BATCH, 10 * REPORT_BATCH):
            if transactions:
                given = {"variables": bank.variables(server), "seed": transactions}
                pgbench.run(
                    server, SQL.script(TRANSACTION), transactions=transactions - done, **given
                )
            for relation in ("branch", "teller", "account"):
                needed = pages.heap_page(connection, relation, 0)["length"].max() + LINE_POINTER
                found = []
                for look in ("", "heap.look_at_every_page"):
                    if look:
                        SQL.run(connection, look, relation=relation)
                    free = pages.free_space(connection, relation)["actual"]
                    found.append(int((free >= needed).sum()))
                rows.append((transactions, relation, len(free), *found))
            done = transactions
    columns = ["transactions", "relation", "pages", "with_room", "once_pruned"]
    return pd.DataFrame(rows, columns=columns)


def appended_versions(chapter: Chapter) -> pd.DataFrame:
    """Replace tuples of full pages, one of each page: how many new versions share an appended page.

    Columns: page, tuples.
    """
    bank = relations(chapter)
    bank.load(chapter.server)
    with chapter.server.connect() as connection:
        full = sizes.pages(connection, "account")
        for [chosen] in SQL.run(connection, "heap.one_of_each_page").fetchall():
            SQL.run(connection, "heap.replace_one", aid=chosen)
        found = SQL.run(connection, "heap.appended", full=full).fetchall()
    return pd.DataFrame(found, columns=["page", "tuples"])


@experiment(claims=["lai-061"])
def versions_of_one_tuple(chapter: Chapter) -> pd.DataFrame:
    """The line pointers of one branch tuple before and after a replace, as they lie on its page.

    Columns: when, line_pointer, next (line pointer of the next version), made_by and ended_by
    (whether by the replacing transaction), flags.
    """
    server = chapter.server
    server.extension("pageinspect")
    relations(chapter).load(server)
    with server.connect() as connection:
        block, old = _place(SQL.run(connection, "heap.place"))
        found = {"before": pages.heap_page(connection, "branch", block)}
        moved, new = _place(SQL.run(connection, "heap.replace"))
        [replacing] = SQL.run(connection, "heap.replacing").fetchone()
        found["after"] = pages.heap_page(connection, "branch", block)
    page = pd.concat(found, names=["when", None]).reset_index("when")
    page = page[page["line_pointer"].isin([old, new] if moved == block else [old])]
    following = page["ctid"].str.extract(r",(\d+)\)", expand=False).astype(int)
    made, ended = page["xmin"] == replacing, page["xmax"] == replacing
    columns = ["when", "line_pointer", "next", "made_by", "ended_by", "flags"]
    return page.assign(next=following, made_by=made, ended_by=ended)[columns]


def _place(found: psycopg.Cursor) -> tuple[int, int]:
    """Block and line pointer of the one tuple in the answer."""
    [place] = found.fetchone()
    block, _, line_pointer = place.strip("()").partition(",")
    return int(block), int(line_pointer)
