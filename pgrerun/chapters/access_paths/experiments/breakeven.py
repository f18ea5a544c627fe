"""From which share of the rows on a sequential scan is faster than an index scan, and from which
on the planner thinks so.
"""

import math
from dataclasses import dataclass
from functools import partial

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.access_paths.accounts import (
    DIRECT,
    SCATTERED,
    SQL,
    allow_only,
    ample_kilobytes,
    filled,
    timed,
)
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import pages, plans
from pgrerun.lab.server import releases

WARM, COLD = "everything in memory", "everything on the disk"
SHARES = {
    WARM: (0.001, 0.003, 0.01, 0.03, 0.1, 0.3),
    COLD: (0.0003, 0.001, 0.003, 0.01),
}  # of the rows
SEQUENTIAL, INDEX = "sequential scan", "index scan"
ALLOWED = {SEQUENTIAL: "seqscan", INDEX: "indexscan"}


@dataclass(frozen=True)
class BreakEven:
    """What is known of index and sequential scans beside the times in the run record.

    planned  share of the rows from which on the planner, at its stock costs, takes the index scan
             for the slower one
    reads    columns scan, pages (brought into an empty pool), reads (operations), of a sequential
             scan and of an index scan for a hundredth of the rows; no rows before PostgreSQL 18,
             which doesn't count the bytes of a read
    """

    planned: float
    reads: pd.DataFrame


@experiment(claims=["haas-046"])
def breakeven(chapter: Chapter) -> BreakEven:
    """Read ever more of the rows, which lie in random order, by both scans; pool full and empty.

    The pool holds everything, and what isn't in it is read past the kernel's cache: in a small
    pool a session may hold few pages at once, and a sequential scan couldn't read several of them
    together.
    """
    rows = chapter.parameters.accounts
    server = filled(chapter, DIRECT, SCATTERED)
    server.extension("pg_buffercache")
    pool = {"shared_buffers": f"{ample_kilobytes(rows)}kB"}
    with server.restarted(pool), server.connect() as connection:
        for where, shares in SHARES.items():
            prepare = partial(_emptied, connection) if where == COLD else None
            variants = [
                Variant(f"{INDEX}, {share:g}", partial(_read, connection, INDEX, share, rows))
                for share in shares
            ]
            # it reads all pages, however few rows count
            variants.append(
                Variant(SEQUENTIAL, partial(_read, connection, SEQUENTIAL, shares[1], rows))
            )
            variants = [Variant(v.name, v.measure, prepare) for v in variants]
            warmup = 1 if where == WARM else 0
            chapter.compare(f"breakeven {where}", variants, {"seconds": "s"}, warmup=warmup)
        return BreakEven(planned_share(connection, rows), reads_together(connection, rows))


def _emptied(connection: psycopg.Connection, block: Block | None = None) -> None:
    pages.evict_all(connection)
    SQL.run(connection, "scans.refill_catalogs")


def _read(
    connection: psycopg.Connection, scan: str, share: float, all_rows: int, block: Block
) -> dict[str, float]:
    allow_only(connection, ALLOWED[scan])
    rows = round(share * all_rows)
    first = 1 + block.seed % (all_rows - rows + 1)
    query = SQL.text("scans.share", first=first, last=first + rows - 1)
    return {"seconds": timed(connection, query, rows)}


def reads_together(connection: psycopg.Connection, rows: int) -> pd.DataFrame:
    """Pages and read operations of both scans from an empty pool, as `BreakEven` has them."""
    found = []
    counts_bytes = releases.has(connection.info.server_version, "pg_stat_get_backend_io")
    for scan, share in ((SEQUENTIAL, 1), (INDEX, 0.01)) if counts_bytes else ():
        _emptied(connection)
        before = _io(connection)
        _read(connection, scan, share, rows, Block(0, 0, 0))
        after = _io(connection)
        found.append((scan, int(after[1] - before[1]), int(after[0] - before[0])))
    return pd.DataFrame(found, columns=["scan", "pages", "reads"])


def _io(connection: psycopg.Connection) -> tuple[int, int]:
    """Read operations and pages so far; what was done before is reported when a statement ends."""
    SQL.run(connection, "scans.relation_reads")
    return SQL.run(connection, "scans.relation_reads").fetchone()[1:]


def planned_share(connection: psycopg.Connection, rows: int) -> float:
    """The share of rows from which on the planner takes the index scan for the dearer one."""
    low, high = 1e-5, 1.0
    while high / low > 1.01:
        middle = math.sqrt(low * high)
        query, costs = SQL.text("scans.share", first=1, last=round(middle * rows)), {}
        for scan, allowed in ALLOWED.items():
            allow_only(connection, allowed)
            costs[scan] = plans.explain(connection, query).total_cost
        if costs[INDEX] > costs[SEQUENTIAL]:
            high = middle
        else:
            low = middle
    return high
