"""What a covering index is made of and what an index-only scan touches."""

from collections.abc import Iterator

import psycopg

from pgrerun.chapters.access_paths.accounts import (
    COVERED,
    ONLY,
    PLAIN,
    SCANS,
    SQL,
    allow_only,
    build,
    load,
    ready,
    repeated,
    timed,
)
from pgrerun.chapters.access_paths.experiments.ranges import unmark
from pgrerun.lab.instruments import PAGE, pages, plans, sizes
from pgrerun.lab.testbed import Block, Row, Testbed, experiment
from pgrerun.record import printed

INDEXES = ("(aid)", "(aid, abalance)", "(aid) INCLUDE (abalance)", "(aid, bid, abalance)")
_LENGTH = 16  # bytes of the entry whose index is computed


@experiment(units={"bytes": "bytes", "pages": "pages", "entry": "bytes/entry", "computed": "pages"})
def index_sizes(bed: Testbed) -> Iterator[Row]:
    """Indexes over more and more columns of accounts, and the length of an entry of a leaf.

    Computed are the pages of one whose entries take 16 bytes.
    """
    bed.server.extension("pageinspect")
    ready(bed.server, bed.parameters.accounts, COVERED)
    computed = int(printed.value("tree_pages(?)", bed.parameters.accounts))
    with bed.server.connect() as connection:
        for name, statement in zip(INDEXES, SQL.each("covering.indexes")):
            connection.execute(statement.encode())
            size = sizes.pages(connection, "sized")
            [(entry,)] = SQL.run(connection, "covering.entry_length").fetchall()
            yield {
                "columns": name,
                "bytes": size * PAGE,
                "pages": size,
                "entry": entry,
                "computed": computed if entry == _LENGTH else None,
            }
            SQL.run(connection, "covering.drop_index")


COLUMNS = (1, 2, 4, 8, 12, 16, 20, 24, 28)
BUILT, GROWN = "built at once", "grown in random order"


@experiment(units={"table_pages": "pages", "index_pages": "pages"})
def widths(bed: Testbed, rows: int = 10_000) -> Iterator[Row]:
    """Tables of so many 8-byte columns with an index over all of them, which came in two ways."""
    with bed.server.connect() as connection:
        for columns in COLUMNS:
            for way in (BUILT, GROWN):
                _widen(connection, way, columns, rows)
                table, index = sizes.pages_of(connection, ["wide_keys", "wide_index"]).values()
                yield {"way": way, "columns": columns, "table_pages": table, "index_pages": index}
        SQL.run(connection, "covering.drop_wide_keys")


def _widen(connection: psycopg.Connection, way: str, columns: int, rows: int) -> None:
    build(connection, "wide_keys", "covering.wide_keys", columns=columns)
    steps = ["wide_rows", "wide_index"]
    for step in steps if way == BUILT else reversed(steps):
        SQL.run(connection, f"covering.{step}", columns=columns, rows=rows)


SEQUENTIAL = "sequential scan"


@experiment(units={"seconds": "s", "pages": "page accesses"})
def wide_scans(bed: Testbed, rows: int = 50_000) -> Iterator[Row]:
    """Read all of the widest tables from the index, which is larger then, and from the table.

    The table is vacuumed, and both are in memory.
    """
    query = SQL.text("covering.count_last", last=f"c{COLUMNS[-1]}")
    with bed.server.connect() as connection:

        def measure(block: Block, scan: str) -> dict[str, float]:
            allow_only(connection, "seqscan" if scan == SEQUENTIAL else SCANS[scan])
            once = lambda: timed(connection, query, rows)
            return {
                "seconds": repeated(once, bed.parameters.milliseconds),
                "pages": plans.explain(connection, query, execute=True).page_accesses,
            }

        for way in (BUILT, GROWN):
            _widen(connection, way, COLUMNS[-1], rows)
            SQL.run(connection, "covering.vacuum_wide_keys")
            yield from bed.compare(
                measure,
                {"scan": [ONLY, SEQUENTIAL]},
                pairs=bed.fewer_pairs,
                warmup=0,
                way=way,
            )
        SQL.run(connection, "covering.drop_wide_keys")


HALF = "index-only scan, half of the pages marked all-visible"
STALE = "index-only scan, no page marked all-visible"
_ALLOWED = {ONLY: SCANS[ONLY], PLAIN: SCANS[PLAIN], HALF: SCANS[ONLY], STALE: SCANS[ONLY]}
_KINDS = {"index_pages": "btree", "table_pages": "heap", "map_pages": "vm"}


@experiment(
    units={
        "node": "text",
        "rows": "rows",
        "unmarked": "rows",
        "heap_fetches": "rows",
        **dict.fromkeys(_KINDS, "pages"),
    },
    needs=["superuser"],
)
def reads(bed: Testbed) -> Iterator[Row]:
    """Distinct pages that one range query touches by kind, and what EXPLAIN ANALYZE says of it.

    `unmarked` are the rows of the range that lie on pages which the map doesn't mark.
    """
    server, query = bed.server, SQL.text("covering.range")
    load(server, bed.parameters.accounts, COVERED)
    server.extension("pg_visibility")
    for scan, only in _ALLOWED.items():

        def work(worker: psycopg.Connection, only: str = only) -> None:
            allow_only(worker, only)
            worker.execute(query)

        with server.connect() as connection:
            if scan == HALF:
                unmark(connection, COVERED, 50)
            if scan == STALE:
                SQL.run(connection, "covering.empty_map")
            [(unmarked,)] = SQL.run(connection, "covering.unmarked").fetchall()
            allow_only(connection, only)
            node = plans.explain(connection, query, execute=True).scan_of(COVERED)
        touched = pages.touched(server, work)
        own = touched[touched["relation"].astype(str).str.startswith(COVERED)]
        yield {
            "scan": scan,
            "node": node.node_type,
            "rows": round(node.rows_actual),
            "unmarked": unmarked,
            "heap_fetches": node.properties.get("Heap Fetches"),
            **{name: int(own["kind"].str.startswith(kind).sum()) for name, kind in _KINDS.items()},
        }
    with server.connect() as connection:
        SQL.run(connection, "covering.vacuum")  # all-visible again, as the others expect it
