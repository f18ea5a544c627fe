"""What a covering index is made of and what an index-only scan touches: sizes, padding, pages, heap fetches."""

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter
from pgrerun.chapters.access_paths.accounts import COVERED, PAGE, accounts, blocks, only
from pgrerun.instruments import pages, plans
from pgrerun.published import access_paths as printed
from pgrerun.relations import loading

# ---- padding

SINGLE, PAIR = "aid", "aid, abalance"
INDEXES = {SINGLE: "(aid)", PAIR: "(aid, abalance)", "aid, abalance included": "(aid) INCLUDE (abalance)", "aid, bid, abalance": "(aid, bid, abalance)"}


def sizes(chapter: Chapter) -> pd.DataFrame:
    """Indexes over more and more columns of accounts. Columns: index, bytes (whole), pages, tuple_bytes (of an entry of a leaf), computed (pages, for 16 bytes)."""
    server, rows = chapter.server, []
    server.extension("pageinspect")
    here = accounts(chapter)
    here.ready(server, COVERED)
    with server.connect() as connection:
        for name, columns in INDEXES.items():
            connection.execute(f"CREATE INDEX sized ON {COVERED} {columns}")
            [(size, entry)] = connection.execute(
                "SELECT pg_relation_size('sized'), max(itemlen) FROM bt_page_items('sized', 1) WHERE itemoffset > 1"
            ).fetchall()
            rows.append((name, size, size // PAGE, entry, printed.tree_pages(here.rows)[0] if entry == 16 else None))
            connection.execute("DROP INDEX sized")
    return pd.DataFrame(rows, columns=["index", "bytes", "pages", "tuple_bytes", "computed"])


def size_ratio(found: pd.DataFrame | None) -> float | None:
    """Bytes of the index over two columns, over those of the index over one."""
    if found is None:
        return None
    size = found.set_index("index")["bytes"]
    return size[PAIR] / size[SINGLE]


def padding_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether alignment explains the equal size: 8 bytes of header and 4 or 8 of data end at the same multiple of 8."""
    if found is None:
        return None
    entry = found.set_index("index")["tuple_bytes"]
    return {
        "entries of one and of two integers have the same length": bool(entry[SINGLE] == entry[PAIR]),
        "that length is the data's, aligned": bool(entry[SINGLE] == _aligned(8 + 4) and entry[PAIR] == _aligned(8 + 8)),
        "a third integer makes them longer": bool(entry["aid, bid, abalance"] == _aligned(8 + 12) > entry[PAIR]),
    }


def _aligned(length: int) -> int:
    return -(-length // 8) * 8


# ---- an index larger than its table

COLUMNS = (1, 2, 4, 8, 12, 16, 20, 24, 28)
_WIDTH = max(COLUMNS)
BUILT, GROWN = "built at once", "grown in random order"


def widths(chapter: Chapter, rows: int = 10_000) -> pd.DataFrame:
    """Tables of so many 8-byte columns with an index over all of them.

    A row per table and way the index came about: way, columns, table and index (pages), scans (pages touched by the cheapest
    aggregate over all columns, by an index-only scan of that index).
    """
    server, found = chapter.server, []
    with server.connect() as connection:
        for columns in COLUMNS:
            names = [f"c{n}" for n in range(1, columns + 1)]
            values = ", ".join(["hashint8(n)::bigint * 65536 + n", *["n"] * (columns - 1)])
            for way in (BUILT, GROWN):
                with connection.transaction():
                    definition = ", ".join(f"{name} bigint" for name in names)
                    loading.replace(connection, "wide_keys", f"CREATE UNLOGGED TABLE wide_keys ({definition}) WITH (autovacuum_enabled = off)")
                    create, fill = f"CREATE INDEX wide_index ON wide_keys ({', '.join(names)})", f"INSERT INTO wide_keys SELECT {values} FROM generate_series(1, {rows}) AS n"
                    for statement in (fill, create) if way == BUILT else (create, fill):
                        connection.execute(statement)
                found.append((way, columns, blocks(connection, "wide_keys"), blocks(connection, "wide_index")))
        connection.execute("DROP TABLE wide_keys")
    return pd.DataFrame(found, columns=["way", "columns", "table", "index"])


def width_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether every column more enlarges the index, and whether it can outgrow its table."""
    if found is None:
        return None
    growing = found.groupby("way")["index"].apply(lambda pages: pages.is_monotonic_increasing and pages.is_unique)
    larger = (found["index"] > found["table"]).groupby(found["way"]).any()
    return {
        "every column more makes the index larger": bool(growing.all()),
        "an index built at once can be larger than its table": bool(larger[BUILT]),
        "an index grown by inserts can be larger than its table": bool(larger[GROWN]),
    }


# ---- what a scan touches

QUERY = f"SELECT sum(abalance) FROM {COVERED} WHERE aid BETWEEN 15001 AND 16000"
_EXPLAINED = 1000  # rows of it; at an end of the histogram the planner would look into the index itself
ONLY, PLAIN, STALE = "index-only scan", "plain index scan", "index-only scan, no page marked all-visible"


def reads(chapter: Chapter) -> pd.DataFrame:
    """Pages that one range query touches, and what EXPLAIN ANALYZE says. Needs a pool that can be emptied.

    A row per scan: scan, node (of the plan), heap_fetches (None where EXPLAIN doesn't say), and distinct pages touched by kind
    (index, table, map).
    """
    server, rows = chapter.server, []
    accounts(chapter).load(server, COVERED)
    server.extension("pg_visibility")
    for scan in (ONLY, PLAIN, STALE):
        with server.connect() as connection:
            if scan == STALE:
                connection.execute("SELECT pg_truncate_visibility_map(%s::text::regclass)", [COVERED])
            _ready(connection, scan)
            plan = plans.explain(connection, QUERY, execute=True)
            node = plan.children[0]
        touched = pages.touched(server, lambda worker, scan=scan: (_ready(worker, scan), worker.execute(QUERY)))
        own = touched[touched["relation"].astype(str).str.startswith(COVERED)]
        kinds = [int(own["kind"].str.startswith(kind).sum()) for kind in ("btree", "heap", "vm")]
        rows.append((scan, node.node_type, node.properties.get("Heap Fetches"), *kinds))
    with server.connect() as connection:
        connection.execute(f"VACUUM {COVERED}")  # all-visible again, as the others expect it
    return pd.DataFrame(rows, columns=["scan", "node", "heap_fetches", "index", "table", "map"])


def _ready(connection: psycopg.Connection, scan: str) -> None:
    only(connection, "indexscan" if scan == PLAIN else "indexonlyscan")


def reading_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether an index-only scan leaves the table alone exactly as long as its pages are all-visible."""
    if found is None:
        return None
    at = found.set_index("scan")
    return {
        "on a vacuumed table an index-only scan touches no page of it": bool(at.at[ONLY, "table"] == 0),
        "a plain index scan does": bool(at.at[PLAIN, "table"] > 0),
        "without all-visible pages an index-only scan touches as many": bool(at.at[STALE, "table"] == at.at[PLAIN, "table"]),
    }


def buffer_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether an index-only scan brings the same index pages into the pool as a plain one."""
    if found is None:
        return None
    at = found.set_index("scan")["index"]
    return {
        "after an index-only scan the index's pages are in the buffer pool": bool(at[ONLY] > 0),
        "they are as many as after a plain index scan": bool(at[ONLY] == at[PLAIN]),
    }


def explain_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether EXPLAIN ANALYZE names the scan and counts the rows that had to be looked up in the table."""
    if found is None:
        return None
    at = found.set_index("scan")
    return {
        "EXPLAIN names an index-only scan": bool((at["node"] == ["Index Only Scan", "Index Scan", "Index Only Scan"]).all()),
        "it counts no heap fetches where all pages are all-visible": bool(at.at[ONLY, "heap_fetches"] == 0),
        "it counts one for every row where none is": bool(at.at[STALE, "heap_fetches"] == _EXPLAINED),
    }
