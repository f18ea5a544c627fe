"""Heap pages: room for another tuple, how densely tuples are appended, versions of one tuple."""

import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.tp1.variants import SQL, relations
from pgrerun.lab.instruments import pages

LINE_POINTER = 4  # bytes


@experiment(claims=["lai-053"])
def pages_with_room(chapter: Chapter) -> pd.DataFrame:
    """Pages of each relation as loaded, and how many have room for one more tuple.

    Columns: relation, pages, with_room.
    """
    server = chapter.server
    for extension in ("pageinspect", "pg_freespacemap"):
        server.extension(extension)
    relations(chapter).load(server)
    rows = []
    with server.connect() as connection:
        for relation in ("branch", "teller", "account"):
            free = pages.free_space(connection, relation)["actual"]
            needed = pages.heap_page(connection, relation, 0)["length"].iloc[0] + LINE_POINTER
            rows.append((relation, len(free), int((free >= needed).sum())))
    return pd.DataFrame(rows, columns=["relation", "pages", "with_room"])


def tuples_per_page(chapter: Chapter, inserts: int = 500) -> pd.DataFrame:
    """Append single tuples, each in a transaction of its own: how many share a page of `history`.

    Columns: page, tuples.
    """
    relations(chapter).load(chapter.server)
    with chapter.server.connect() as connection:
        for number in range(inserts):
            SQL.run(connection, "heap.append", number=number)
        found = SQL.run(connection, "heap.appended").fetchall()
    return pd.DataFrame(found, columns=["page", "tuples"])


@experiment(claims=["lai-061"])
def versions_of_one_tuple(chapter: Chapter) -> pd.DataFrame:
    """What lies on the page of one branch tuple after a replace: the replaced version, the new one.

    Columns: version, line_pointer, next (line pointer of the next version), ended (whether a
    transaction has marked it invalid), flags.
    """
    server = chapter.server
    server.extension("pageinspect")
    relations(chapter).load(server)
    with server.connect() as connection:
        [place] = SQL.run(connection, "heap.replace").fetchone()
        block, _, new = place.strip("()").partition(",")
        page = pages.heap_page(connection, "branch", int(block))
    following = page["ctid"].str.extract(r",(\d+)\)", expand=False).astype(int)
    page = page.assign(next=following, ended=page["xmax"] > 0)
    chain = page[page["next"] == int(new)]
    version = chain["ended"].map({True: "replaced", False: "new"})
    columns = ["version", "line_pointer", "next", "ended", "flags"]
    return chain.assign(version=version)[columns].reset_index(drop=True)
