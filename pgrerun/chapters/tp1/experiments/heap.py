"""Heap pages: room for another tuple, how densely versions are appended, versions of one tuple."""

from collections.abc import Iterator

import pandas as pd
import psycopg

from pgrerun.chapters.tp1.variants import REPORT_BATCH, SQL, relations, run
from pgrerun.lab.instruments import pages, sizes
from pgrerun.lab.testbed import Row, Testbed, experiment

LINE_POINTER = 4  # bytes


@experiment(units={"pages": "pages", "with_room": "pages", "once_pruned": "pages"})
def pages_with_room(bed: Testbed) -> Iterator[Row]:
    """Pages of each relation, and how many have room for one more tuple, as transactions go on.

    After no transactions, the report's batch and ten such: as they lie there, and as whoever looks
    finds them, who prunes.
    """
    server, bank, done = bed.server, relations(bed), 0
    for extension in ("pageinspect", "pg_freespacemap"):
        server.extension(extension)
    bank.load(server)
    with server.connect() as connection:
        for transactions in (0, REPORT_BATCH, 10 * REPORT_BATCH):
            if transactions:
                run(server, bank, transactions - done, seed=transactions)
            for relation in ("branch", "teller", "account"):
                needed = pages.heap_page(connection, relation, 0)["length"].max() + LINE_POINTER
                found = []
                for look in ("", "heap.look_at_every_page"):
                    if look:
                        SQL.run(connection, look, relation=relation)
                    free = pages.free_space(connection, relation)["actual"]
                    found.append(int((free >= needed).sum()))
                yield {
                    "transactions": transactions,
                    "relation": relation,
                    "pages": len(free),
                    "with_room": found[0],
                    "once_pruned": found[1],
                }
            done = transactions


@experiment(units={"tuples": "rows"})
def appended_versions(bed: Testbed) -> Iterator[Row]:
    """Replace a tuple of each full page: how many new versions share an appended page."""
    bank = relations(bed)
    bank.load(bed.server)
    with bed.server.connect() as connection:
        full = sizes.pages(connection, "account")
        for [chosen] in SQL.run(connection, "heap.one_of_each_page").fetchall():
            SQL.run(connection, "heap.replace_one", aid=chosen)
        for page, tuples in SQL.run(connection, "heap.appended", full=full).fetchall():
            yield {"page": page, "tuples": tuples}


@experiment(units={"next": "", "made_by": "yes or no", "ended_by": "yes or no", "flags": "text"})
def versions_of_one_tuple(bed: Testbed) -> Iterator[Row]:
    """The line pointers of one branch tuple before and after a replace, as they lie on its page.

    `next` is the line pointer of the next version; made_by and ended_by say whether the replacing
    transaction did.
    """
    server = bed.server
    server.extension("pageinspect")
    relations(bed).load(server)
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
    for row in page.assign(next=following, made_by=made, ended_by=ended).to_dict("records"):
        yield {
            "moment": row["when"],
            "line_pointer": row["line_pointer"],
            "next": row["next"],
            "made_by": bool(row["made_by"]),
            "ended_by": bool(row["ended_by"]),
            "flags": str(row["flags"]),
        }


def _place(found: psycopg.Cursor) -> tuple[int, int]:
    """Block and line pointer of the one tuple in the answer."""
    [place] = found.fetchone()
    block, _, line_pointer = place.strip("()").partition(",")
    return int(block), int(line_pointer)
