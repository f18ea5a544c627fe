"""What a covering index is made of and what an index-only scan touches."""

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.access_paths.accounts import COVERED, SQL, allow_only, build, load, ready
from pgrerun.lab.instruments import PAGE, pages, plans
from pgrerun.lab.instruments import sizes as relation_sizes
from pgrerun.record.printed import access_paths as in_print

# ---- padding

SINGLE, PAIR, THREE = "aid", "aid, abalance", "aid, bid, abalance"
INDEXES = {
    SINGLE: "covering.index_aid",
    PAIR: "covering.index_aid_abalance",
    "aid, abalance included": "covering.index_aid_including_abalance",
    THREE: "covering.index_aid_bid_abalance",
}


@experiment(claims=["haas-036", "haas-037"])
def sizes(chapter: Chapter) -> pd.DataFrame:
    """Indexes over more and more columns of accounts.

    Columns: index, bytes (whole), pages, tuple_bytes (of an entry of a leaf), computed (pages, for
    entries of 16 bytes).
    """
    server, rows = chapter.server, []
    server.extension("pageinspect")
    ready(server, chapter.parameters.accounts, COVERED)
    computed, _ = in_print.tree_pages(chapter.parameters.accounts)
    with server.connect() as connection:
        for name, statement in INDEXES.items():
            SQL.run(connection, statement)
            size = relation_sizes.pages(connection, "sized")
            [(entry,)] = SQL.run(connection, "covering.entry_length").fetchall()
            rows.append((name, size * PAGE, size, entry, computed if entry == 16 else None))
            SQL.run(connection, "covering.drop_index")
    return pd.DataFrame(rows, columns=["index", "bytes", "pages", "tuple_bytes", "computed"])


# ---- an index larger than its table

COLUMNS = (1, 2, 4, 8, 12, 16, 20, 24, 28)
BUILT, GROWN = "built at once", "grown in random order"


@experiment(claims=["haas-041"])
def widths(chapter: Chapter, rows: int = 10_000) -> pd.DataFrame:
    """Tables of so many 8-byte columns with an index over all of them.

    A row per table and way the index came about: way, columns, table and index (pages).
    """
    found = []
    with chapter.server.connect() as connection:
        for columns in COLUMNS:
            for way in (BUILT, GROWN):
                build(connection, "wide_keys", "covering.wide_keys", columns=columns)
                if way == GROWN:
                    SQL.run(connection, "covering.wide_index", columns=columns)
                SQL.run(connection, "covering.wide_rows", columns=columns, rows=rows)
                if way == BUILT:
                    SQL.run(connection, "covering.wide_index", columns=columns)
                size = relation_sizes.pages_of(connection, ["wide_keys", "wide_index"])
                found.append((way, columns, *size.values()))
        SQL.run(connection, "covering.drop_wide_keys")
    return pd.DataFrame(found, columns=["way", "columns", "table", "index"])


# ---- what a scan touches

ONLY, PLAIN, STALE = (
    "index-only scan",
    "plain index scan",
    "index-only scan, no page marked all-visible",
)
ALLOWED = {ONLY: "indexonlyscan", PLAIN: "indexscan", STALE: "indexonlyscan"}
# Of `covering.range`, whose keys lie inside the histogram: at its ends the planner would look into
# the index itself.
RANGE = 1000


@experiment(claims=["haas-033", "haas-043", "haas-045"])
def reads(chapter: Chapter) -> pd.DataFrame:
    """Pages that one range query touches, and what EXPLAIN ANALYZE says.

    Needs a pool that can be emptied. A row per scan: scan, node (of the plan), heap_fetches (None
    where EXPLAIN doesn't say), and distinct pages touched by kind (index, table, map).
    """
    server, rows, query = chapter.server, [], SQL.text("covering.range")
    load(server, chapter.parameters.accounts, COVERED)
    server.extension("pg_visibility")
    for scan, allowed in ALLOWED.items():

        def work(worker: psycopg.Connection, allowed: str = allowed) -> None:
            allow_only(worker, allowed)
            worker.execute(query)

        with server.connect() as connection:
            if scan == STALE:
                SQL.run(connection, "covering.empty_map")
            allow_only(connection, allowed)
            node = plans.explain(connection, query, execute=True).scan_of(COVERED)
        touched = pages.touched(server, work)
        own = touched[touched["relation"].astype(str).str.startswith(COVERED)]
        kinds = [int(own["kind"].str.startswith(kind).sum()) for kind in ("btree", "heap", "vm")]
        rows.append((scan, node.node_type, node.properties.get("Heap Fetches"), *kinds))
    with server.connect() as connection:
        SQL.run(connection, "covering.vacuum")  # all-visible again, as the others expect it
    return pd.DataFrame(rows, columns=["scan", "node", "heap_fetches", "index", "table", "map"])
