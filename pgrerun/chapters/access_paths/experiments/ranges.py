"""Where an index-only scan gains and where it loses: ranges of keys over accounts."""

import time
from collections.abc import Iterator

import numpy as np
import psycopg

from pgrerun.chapters.access_paths.accounts import (
    AMPLE,
    CHURNED,
    COVERED,
    DIRECT,
    ONLY,
    PLAIN,
    SCANS,
    SCATTERED,
    SQL,
    allow_only,
    allowed,
    filled,
    load,
    place,
    pool_pages,
    ready,
    repeated,
    table_pages,
    timed,
)
from pgrerun.errors import CannotMeasure
from pgrerun.lab.disk import Disk
from pgrerun.lab.instruments import PAGE, callgrind, counters, plans, sizes
from pgrerun.lab.models import visibility as model
from pgrerun.lab.server import seed_random, value
from pgrerun.lab.testbed import Block, Row, Testbed, experiment, shortened
from pgrerun.record import printed

PERCENT = (0, 10, 25, 50, 75, 100)  # of the pages all-visible
DECIDING = PERCENT[0]  # that whose times decide a word
UPDATES = (0, 0.1, 0.3, 1, 3)  # per page of the table, since it was vacuumed
SCALE_FACTORS = (0.2, 0.1, 0.05, 0.02, 0.01)  # autovacuum's, the first as it comes
_COUNTED = 5000  # rows whose instructions are counted


def _sum(connection: psycopg.Connection, relation: str, first: int, rows: int) -> float:
    """Seconds of reading one range of keys."""
    return timed(connection, _summed(relation, first, rows), rows)


def _summed(relation: str, first: int, rows: int) -> str:
    return SQL.text("scans.sum_range", relation=relation, first=first, last=first + rows - 1)


def unmark(connection: psycopg.Connection, relation: str, percent: int) -> None:
    """Leave about so many per cent of the pages all-visible; the table stays as it is."""
    SQL.run(connection, "scans.vacuum", relation=relation)
    pages = sizes.pages(connection, relation)
    with connection.transaction(force_rollback=True):
        SQL.run(connection, "scans.unmark", relation=relation, pages=pages, percent=percent)


@experiment(units={"seconds": "s"})
def fractions(bed: Testbed) -> Iterator[Row]:
    """Sum a column of all accounts in index order by both scans, ever more pages all-visible.

    In memory throughout, and the rows lie in the index's order: what is left is the processor's
    work. Shares that decide no word are timed a fifth as long.
    """
    rows = bed.parameters.accounts
    with filled(bed, AMPLE, rows, COVERED).connect() as connection:
        for percent in PERCENT:
            length = shortened(bed.parameters.milliseconds, told=percent != DECIDING)

            def measure(block: Block, scan: str, length: float = length) -> dict[str, float]:
                allow_only(connection, SCANS[scan])
                return {"seconds": repeated(lambda: _sum(connection, COVERED, 1, rows), length)}

            unmark(connection, COVERED, percent)
            yield from bed.compare(
                measure, {"scan": list(SCANS)}, pairs=bed.fewer_pairs, warmup=0, percent=percent
            )
        SQL.run(connection, "scans.vacuum", relation=COVERED)


@experiment(units={"instructions": "instructions"}, needs=["restart"])
def scan_instructions(bed: Testbed) -> Iterator[Row]:
    """What both scans execute over the same rows in index order, no page all-visible."""
    cluster = bed.cluster()
    ready(cluster, bed.parameters.accounts, COVERED)
    with cluster.connect() as connection:
        unmark(connection, COVERED, 0)
    query = _summed(COVERED, 1, _COUNTED)
    found = callgrind.executed(
        cluster, {scan: (allowed(only), query) for scan, only in SCANS.items()}
    )
    with cluster.connect() as connection:
        SQL.run(connection, "scans.vacuum", relation=COVERED)
    for scan, instructions in found.items():
        yield {"scan": scan, "instructions": int(instructions)}


TOGETHER, ANYWHERE = "in the index's order", "anywhere in the table"
# Where the rows of a range lie, and how much memory there is: the relation.
PLACED = [
    {"rows_lie": TOGETHER, "memory": AMPLE},
    {"rows_lie": ANYWHERE, "memory": AMPLE},
    {"rows_lie": ANYWHERE, "memory": DIRECT},
]
_RELATION = {TOGETHER: COVERED, ANYWHERE: SCATTERED}
_RANGE = 2000  # rows


@experiment(units={"seconds": "s"}, needs=["restart"])
def ranges(bed: Testbed) -> Iterator[Row]:
    """Sum a column over a few thousand neighbours in the index, which lie together or anywhere.

    Range after range at random places. Before either scan the whole index has been read, as its
    few pages belong into the pool; pages of a table that doesn't fit are read again and again.
    No word in the score rests on it, so that it is timed a fifth as long.
    """
    rows = bed.parameters.accounts
    for placed in PLACED:
        relation = _RELATION[placed["rows_lie"]]
        length = shortened(bed.parameters.milliseconds)
        with filled(bed, placed["memory"], rows, relation).connect() as connection:

            def prepare(block: Block, scan: str, relation=relation, to=connection, **_) -> None:
                allow_only(to, SCANS[ONLY])
                SQL.run(to, "scans.bring_in", relation=relation)

            def measure(
                block: Block, scan: str, relation=relation, to=connection, length=length
            ) -> dict[str, float]:
                drawn = np.random.default_rng(block.seed)
                allow_only(to, SCANS[scan])
                once = lambda: _sum(to, relation, int(drawn.integers(1, rows - _RANGE)), _RANGE)
                return {"seconds": repeated(once, length)}

            yield from bed.compare(
                measure,
                {"scan": list(SCANS)},
                pairs=bed.fewer_pairs,
                prepare=prepare,
                warmup=0,
                **placed,
            )


_SHORT_RANGE = 100  # rows


@experiment(units={"seconds": "s", "lookup": "s", "reads": "pages"}, needs=["restart"])
def ranges_on_slow_disk(bed: Testbed) -> Iterator[Row]:
    """Sum a column over few neighbours in the index, anywhere in the table, on the talk's disk.

    The pool is as small for the table as the talk's memory was, and holds the index. In print a
    lookup by the primary key reads at most a page of the index and one of the table, and the disk
    is as fast here as if each did. `lookup` is the time of a single row, the least that a query
    can ask for; `reads` are those of one range.
    """
    rows = bed.parameters.accounts
    server, disk = bed.cluster_on_slow_disk(shared_buffers=f"{pool_pages(rows) * PAGE // 1024}kB")
    ready(server, rows, SCATTERED)
    slow = Disk(1 / (2 * printed.cell("access_paths_lookups", "primary_key", "tps")), only="base/")
    with server.connect() as connection:

        def prepare(block: Block, scan: str) -> None:
            allow_only(connection, SCANS[ONLY])
            SQL.run(connection, "scans.bring_in", relation=SCATTERED)

        def measure(block: Block, scan: str) -> dict[str, float]:
            drawn = np.random.default_rng(block.seed)
            allow_only(connection, SCANS[scan])
            first = lambda: int(drawn.integers(1, rows - _SHORT_RANGE))
            once = lambda many: _sum(connection, SCATTERED, first(), many)
            milliseconds = bed.parameters.milliseconds
            with disk.serving(slow):
                seconds = repeated(lambda: once(_SHORT_RANGE), milliseconds)
                lookup = repeated(lambda: once(1), shortened(milliseconds))
            query = _summed(SCATTERED, first(), _SHORT_RANGE)
            read = plans.explain(connection, query, execute=True).buffers
            reads = read["shared_read"] if read else 0
            return {"seconds": seconds, "lookup": lookup, "reads": reads}

        yield from bed.compare(
            measure, {"scan": list(SCANS)}, pairs=bed.fewer_pairs, prepare=prepare, warmup=0
        )


@experiment(units={"fetched": "share of the rows", "computed": "share of the rows"})
def updates(bed: Testbed) -> Iterator[Row]:
    """Update rows drawn at random, and count heap fetches of an index-only scan of all accounts.

    So many updates for each page of the table, since the last vacuum. Computed is the share of
    pages that were hit at least once, at random.
    """
    rows = bed.parameters.accounts
    with place(bed, AMPLE, rows).connect() as connection:
        load(connection, rows, COVERED)
        size = sizes.pages(connection, COVERED)
        for number in UPDATES:
            for _ in range(2):  # 9.2 marks a page that it cleaned by the next vacuum only
                SQL.run(connection, "scans.vacuum", relation=COVERED)
            seed_random(connection, bed.parameters.seed)
            SQL.run(connection, "scans.update_at_random", rows=rows, updates=round(number * size))
            yield {
                "updates": float(number),
                "fetched": _fetched(connection, COVERED, rows),
                "computed": model.share_unmarked(number),
            }


def _fetched(connection: psycopg.Connection, relation: str, rows: int) -> float:
    """Share of all accounts that an index-only scan looks up in the table."""
    query = _summed(relation, 1, rows)
    allow_only(connection, SCANS[ONLY])
    plans.explain(connection, query, execute=True)  # marks the entries of dead versions
    scan = plans.explain(connection, query, execute=True).scan_of(relation)
    return scan.properties["Heap Fetches"] / rows


_LOOKS = 10  # at the table, from one visit of autovacuum to the next
_PATIENCE = 60  # seconds until autovacuum should have come
_TIMES = {ONLY: "index_only", PLAIN: "plain"}


@experiment(
    units={"fetched": "share of the rows", **dict.fromkeys(_TIMES.values(), "s")},
    needs=["restart"],
)
def updated_all_the_time(bed: Testbed) -> Iterator[Row]:
    """Both scans of all accounts while rows drawn at random are updated, from one visit of
    autovacuum to the next.

    It comes when as many rows have changed as PostgreSQL has it by itself, but looks every second
    whether it should. Updates go on until it has come. Of as many looks as there are, evenly
    spread, the mean is told: of the rows that the index-only scan looks up in the table, and of
    the time of either scan. All is in memory. There is no index but the covering one, as the
    planner would take a smaller one for the other scan and, once most pages have lost their bit,
    for this one as well.
    """
    rows = bed.parameters.accounts
    server = place(bed, AMPLE, rows)
    load(server, rows, CHURNED)
    half = round(SCALE_FACTORS[0] * rows / _LOOKS / 2)  # of what is updated from look to look

    def measure(block: Block) -> dict[str, float]:
        seed_random(connection, block.seed)
        before, looks = _visits(connection), []
        for number in range(_LOOKS):
            _churn(connection, rows, half)
            looks.append(_look(connection, rows, bed.parameters.milliseconds / _LOOKS, number))
            _churn(connection, rows, half)
        _await_visit(connection, rows, before)
        return {name: sum(look[name] for look in looks) / _LOOKS for name in looks[0]}

    with server.reloaded(autovacuum_naptime="1s", autovacuum="on"), server.connect() as connection:
        SQL.run(connection, "scans.drop_key", relation=CHURNED, key=f"{CHURNED}_pkey")
        yield from bed.compare(measure, [{}], pairs=bed.timed_pairs(bed.fewer_pairs), warmup=0)


def _churn(connection: psycopg.Connection, rows: int, many: int) -> None:
    """Update so many rows, and let autovacuum know."""
    SQL.run(connection, "scans.update_some", relation=CHURNED, rows=rows, updates=many)
    counters.force_flush(connection)


def _look(
    connection: psycopg.Connection, rows: int, milliseconds: float, number: int
) -> dict[str, float]:
    """Share of the rows that are looked up, and seconds of each scan, which take turns in going
    first.
    """
    found = {"fetched": _fetched(connection, CHURNED, rows)}
    for which in list(_TIMES)[:: -1 if number % 2 else 1]:
        allow_only(connection, SCANS[which])
        found[_TIMES[which]] = repeated(lambda: _sum(connection, CHURNED, 1, rows), milliseconds)
    return found


def _visits(connection: psycopg.Connection) -> int:
    return value(connection, int, SQL.text("scans.visits", relation=CHURNED))


def _await_visit(connection: psycopg.Connection, rows: int, before: int) -> None:
    """Update on, a hundredth of the rows in a second, until autovacuum has come."""
    deadline = time.monotonic() + _PATIENCE
    while _visits(connection) == before:
        if time.monotonic() > deadline:
            raise CannotMeasure("autovacuum", f"it didn't come within {_PATIENCE} seconds")
        _churn(connection, rows, rows // 100)
        time.sleep(1)


@experiment(
    units={"on_average": "share of the rows", "updates": "updates/page", "per_page": "rows/page"}
)
def at_stock_settings(
    bed: Testbed, scale_factors: tuple[float, ...] = SCALE_FACTORS
) -> Iterator[Row]:
    """What autovacuum leaves of an index-only scan, computed: a model, nothing is run.

    It comes when a share of the rows has changed. From one vacuum to the next the pages that were
    hit at random grow, and the rows on them have to be looked up in the table.
    """
    rows = 1_000_000
    per_page = rows / table_pages(rows)
    for scale_factor in scale_factors:
        hits = scale_factor * per_page
        yield {
            "scale_factor": scale_factor,
            "updates": hits,
            "per_page": per_page,
            "on_average": model.average_share_unmarked(hits),
        }
