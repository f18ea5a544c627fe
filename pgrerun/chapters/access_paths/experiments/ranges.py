"""Where an index-only scan gains and where it loses: ranges of keys over accounts."""

from functools import partial

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.access_paths.accounts import (
    AMPLE,
    COVERED,
    DIRECT,
    SCATTERED,
    SQL,
    allow_only,
    allowed,
    filled,
    load,
    place,
    ready,
    timed,
)
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import callgrind, plans, sizes
from pgrerun.lab.models import visibility as model
from pgrerun.lab.server import seed_random

ONLY, PLAIN = "index-only scan", "plain index scan"
ALLOWED = {ONLY: "indexonlyscan", PLAIN: "indexscan"}
_UNITS = {"seconds": "s"}


def _summed(
    connection: psycopg.Connection, relation: str, scan: str, first: int, rows: int, block: Block
) -> dict[str, float]:
    """One range of keys, read by the given scan."""
    allow_only(connection, ALLOWED[scan])
    values = {"relation": relation, "first": first, "last": first + rows - 1}
    return {"seconds": timed(connection, SQL.text("scans.sum_range", **values), rows)}


# ---- a share of the pages all-visible

FRACTIONS = (0, 25, 50, 75, 90, 100)  # per cent of the pages all-visible


def marked(percent: int, scan: str) -> str:
    """The variant's name in the run record."""
    return f"{scan}, {percent} % all-visible"


@experiment()
def fractions(chapter: Chapter) -> None:
    """Sum a column of all accounts in index order by both scans, ever more pages all-visible.

    In memory throughout, and the rows lie in the index's order: what is left is the processor's
    work. At both ends there are twice as many blocks.
    """
    rows = chapter.parameters.accounts
    with filled(chapter, AMPLE, COVERED).connect() as connection:
        for percent in FRACTIONS:
            SQL.run(connection, "scans.vacuum", relation=COVERED)
            unmark(connection, COVERED, percent)
            variants = [
                Variant(marked(percent, scan), partial(_summed, connection, COVERED, scan, 1, rows))
                for scan in ALLOWED
            ]
            pairs = (2 if percent in (0, 100) else 1) * chapter.parameters.pairs
            chapter.compare(f"fractions_{percent}", variants, _UNITS, pairs=pairs)
        SQL.run(connection, "scans.vacuum", relation=COVERED)


_COUNTED = 5000  # rows


@experiment(claims=["haas-038", "haas-039"])
def instructions(chapter: Chapter) -> pd.Series:
    """What both scans execute over the same rows in index order, no page all-visible: scan to
    instructions.
    """
    cluster = chapter.cluster()
    ready(cluster, chapter.parameters.accounts, COVERED)
    with cluster.connect() as connection:
        unmark(connection, COVERED, 0)
    query = SQL.text("scans.sum_range", relation=COVERED, first=1, last=_COUNTED)
    found = callgrind.executed(
        cluster, {scan: (allowed(only), query) for scan, only in ALLOWED.items()}
    )
    with cluster.connect() as connection:
        SQL.run(connection, "scans.vacuum", relation=COVERED)
    return found


def unmark(connection: psycopg.Connection, relation: str, percent: int) -> None:
    """Leave about so many per cent of the pages all-visible; the table stays as it is."""
    pages = sizes.pages(connection, relation)
    with connection.transaction(force_rollback=True):
        SQL.run(connection, "scans.unmark", relation=relation, pages=pages, percent=percent)


# ---- neighbours in the index

TOGETHER, ANYWHERE = "in index order, ample pool", "in random order, ample pool"
FAR = "in random order, direct I/O"
# Where neighbours in the index lie: the server, and the relation.
RANGES = {
    TOGETHER: (AMPLE, COVERED),
    ANYWHERE: (AMPLE, SCATTERED),
    FAR: (DIRECT, SCATTERED),
}
_RANGE = 2000  # rows


@experiment(claims=["haas-038", "haas-042", "haas-046"])
def ranges(chapter: Chapter) -> None:
    """Sum a column over a few thousand neighbours in the index, which lie together or anywhere."""
    rows = chapter.parameters.accounts
    for name, (where, relation) in RANGES.items():
        with filled(chapter, where, relation).connect() as connection:
            variants = [
                Variant(f"{scan}, {name}", partial(_neighbours, connection, relation, scan, rows))
                for scan in ALLOWED
            ]
            chapter.compare(f"ranges {name}", variants, _UNITS)


def _neighbours(
    connection: psycopg.Connection, relation: str, scan: str, rows: int, block: Block
) -> dict[str, float]:
    """A range that no earlier block has read.

    The index-only scan's is read once before: its few leaves belong into the pool.
    """
    first = 1 + block.seed % (rows - _RANGE)
    if scan == ONLY:
        _summed(connection, relation, scan, first, _RANGE, block)
    return _summed(connection, relation, scan, first, _RANGE, block)


# ---- updates

UPDATES = (0, 0.1, 0.3, 1, 3)  # per page of the table, since it was vacuumed


def updated(number: float, scan: str) -> str:
    """The variant's name in the run record."""
    return f"{scan} after {number:g} updates per page"


@experiment(claims=["haas-034"])
def updates(chapter: Chapter) -> pd.DataFrame:
    """Update rows drawn at random, count heap fetches, and sum all accounts by both scans.

    Columns: updates (per page, since the last vacuum), fetched (rows looked up in the table, as a
    share of all), computed (the share of pages that were hit at least once, at random).
    """
    server, found, rows = place(chapter, AMPLE), [], chapter.parameters.accounts
    query = SQL.text("scans.sum_range", relation=COVERED, first=1, last=rows)
    with server.connect() as connection:
        load(connection, rows, COVERED)
        size = sizes.pages(connection, COVERED)
        for number in UPDATES:
            SQL.run(connection, "scans.vacuum", relation=COVERED)
            seed_random(connection, chapter.parameters.seed)
            drawn = round(number * size)
            SQL.run(connection, "scans.update_at_random", rows=rows, updates=drawn)
            allow_only(connection, "indexonlyscan")
            plans.explain(connection, query, execute=True)  # marks the entries of dead versions
            scan = plans.explain(connection, query, execute=True).scan_of(COVERED)
            fetched = scan.properties["Heap Fetches"] / rows
            found.append((number, fetched, model.share_unmarked(number)))
            variants = [
                Variant(updated(number, scan), partial(_summed, connection, COVERED, scan, 1, rows))
                for scan in ALLOWED
            ]
            chapter.compare(f"updates_{number}", variants, _UNITS)
    return pd.DataFrame(found, columns=["updates", "fetched", "computed"])
