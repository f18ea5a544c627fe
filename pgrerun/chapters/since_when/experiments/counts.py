"""What is counted on each release: what its notes say has changed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import psycopg

from pgrerun.chapters.since_when.here import compared, version
from pgrerun.errors import CannotMeasure
from pgrerun.lab import statements
from pgrerun.lab.instruments import counters, pgbench, plans, sizes, wal
from pgrerun.lab.server import Cluster, fetched, releases
from pgrerun.lab.testbed import Row, Testbed, experiment

SQL = statements.sql_folder(__file__)


@dataclass(frozen=True)
class Count:
    """Something that is counted on each release.

    what     the metric's name
    unit     of the number
    count    counts it on a connection, in relations of so many tuples; None where the release has
             nothing of the kind
    since    the release whose notes tell of a change, "" if none that we know does
    claim    the ledger's claim about that
    shows    whether a number is one from after that change; None where no number tells by itself
    """

    what: str
    unit: str
    count: Callable[[psycopg.Connection, int], float | None]
    since: str
    claim: str
    shows: Callable[[float], bool] | None


def updated(server: Cluster, tuples: int, seed: int) -> dict[str, float]:
    """Pages that a primary key gains, and WAL, when no update is heap-only and nobody vacuums."""
    with server.connect() as connection:
        SQL.run(connection, "counts.updated", tuples=tuples)
        before = sizes.pages(connection, "updated_pkey")
        times = tuples * 3 // 2
        with wal.written(connection) as written:
            pgbench.run(
                server,
                SQL.script("updated"),
                transactions=times,
                variables={"tuples": tuples},
                seed=seed,
                protocol="prepared",
            )
        after = sizes.pages(connection, "updated_pkey")
    return {GAINED: after - before, LOG: written.bytes / times}


KEYS = 200  # of a list that is looked up, at most
APART = 500  # of such keys as have a leaf each, which holds fewer entries
GAINED, LOG = "pages that the primary key gains", "WAL per update"


def hot_share(connection: psycopg.Connection, tuples: int) -> float | None:
    """Share of heap-only updates of a column that only a BRIN index is on."""
    if not releases.writes(connection.info.server_version, "access method brin"):
        return None
    SQL.run(connection, "counts.summarized")
    found = counters.counts(connection, "summarized")
    return (found["hot_updated"] or 0) / (found["updated"] or 1)


def duplicates(connection: psycopg.Connection, tuples: int) -> float:
    """Bytes that an entry of an index with twenty different keys takes."""
    SQL.run(connection, "counts.duplicates", tuples=tuples)
    return sizes.pages(connection, "duplicates_kind") * 8192 / tuples


def estimate(connection: psycopg.Connection, tuples: int) -> float:
    """Actual rows over estimated ones, of a condition on two columns that say the same."""
    SQL.run(connection, "counts.correlated", tuples=tuples)
    if releases.writes(connection.info.server_version, "CREATE STATISTICS"):
        SQL.run(connection, "counts.with_statistics")
    connection.execute("ANALYZE correlated")
    plan = plans.explain(connection, SQL.text("counts.by_correlated").rstrip(";\n"), execute=True)
    return (plan.rows_actual or 0) / plan.rows_estimated


def planned(
    connection: psycopg.Connection,
    statement: str,
    settings: str = "",
    execute: bool = False,
    **values: str,
) -> plans.Plan:
    """The plan of a statement of sql/counts.sql under the settings of another."""
    with connection.transaction(force_rollback=True):
        if settings:
            SQL.run(connection, f"counts.{settings}")
        text = SQL.text(f"counts.{statement}", **values).rstrip(";\n")
        return plans.explain(connection, text, execute=execute)


def spilled(connection: psycopg.Connection, tuples: int) -> float:
    """Pages that a hash aggregate writes which is larger than work_mem; 0 if there is none."""
    plan = planned(connection, "grouped", "little_memory", execute=True)
    hashed = [node for node in plan.find("Aggregate") if node.properties["Strategy"] == "Hashed"]
    return sum(node.properties.get("Temp Written Blocks", 0) for node in hashed)


def processes(statement: str, settings: str, connection: psycopg.Connection, tuples: int) -> float:
    """Processes that execute the scan at the bottom of a statement's plan."""
    *_, scan = planned(connection, statement, settings, execute=True).walk()
    return scan.loops or 0


def scanned(statement: str, connection: psycopg.Connection, tuples: int) -> float:
    """Rows that the scan at the bottom of a statement's plan gives until it is served."""
    *_, scan = planned(connection, statement, execute=True).walk()
    return (scan.rows_actual or 0) * (scan.loops or 0)


def listed(apart: int, connection: psycopg.Connection, tuples: int) -> float | None:
    """Accesses to pages for a list of keys that are so far apart."""
    keys = ",".join(map(str, range(1, tuples, apart)[:KEYS]))
    return planned(connection, "listed", "by_index", execute=True, keys=f"{{{keys}}}").page_accesses


def fast_path(connection: psycopg.Connection, tuples: int) -> float:
    """Locks that a transaction over forty tables holds on the fast path."""
    SQL.run(connection, "counts.locked")
    with connection.transaction():
        [[held]] = SQL.run(connection, "counts.lock").fetchall()
    return float(held)


COUNTS = (
    Count(GAINED, "pages", lambda c, n: None, "14", "since-001", lambda n: n == 0),
    Count(LOG, "bytes", lambda c, n: None, "9.4", "", None),
    Count(
        "processes of one query",
        "processes",
        partial(processes, "summed", "parallel"),
        "9.6",
        "since-002",
        lambda n: n > 1,
    ),
    Count(
        "estimate of correlated columns",
        "actual / estimated",
        estimate,
        "10",
        "since-003",
        lambda n: 0.5 < n < 2,
    ),
    Count(
        "rows read for one of a common table expression",
        "rows",
        partial(scanned, "named"),
        "12",
        "since-004",
        lambda n: n < 100,
    ),
    Count(
        "pages that a hash aggregate writes", "pages", spilled, "13", "since-005", lambda n: n > 0
    ),
    Count(
        "partitions planned for groups",
        "partitions",
        lambda c, n: planned(c, "grouped", "tight_memory").properties.get("Planned Partitions"),
        "18",
        "",
        lambda n: n == 0,
    ),
    Count(
        "rows read for the first ten in order",
        "rows",
        partial(scanned, "ordered"),
        "13",
        "since-006",
        lambda n: n < 100,
    ),
    Count(
        "bytes of a duplicate in an index", "bytes", duplicates, "13", "since-007", lambda n: n < 12
    ),
    Count(
        "heap-only updates beside a BRIN index",
        "share",
        hot_share,
        "16",
        "since-008",
        lambda n: n == 1,
    ),
    Count(
        "page accesses for a list of keys",
        "accesses",
        partial(listed, 1),
        "17",
        "since-009",
        lambda n: n < 100,
    ),
    Count(
        "page accesses for keys a leaf apart", "accesses", partial(listed, APART), "17", "", None
    ),
    Count(
        "page accesses for a second column",
        "accesses",
        lambda c, n: planned(c, "skipped", "by_index", execute=True).page_accesses,
        "18",
        "since-010",
        lambda n: n < 20,
    ),
    Count("locks on the fast path", "locks", fast_path, "18", "since-011", lambda n: n >= 40),
)


@experiment(units={"number": "", "shown": "yes or no"})
def counts(bed: Testbed) -> Iterator[Row]:
    """Count on each release what the release notes say has changed, once: nothing of it varies.

    A row per release and count that the release can show: `shown` is whether the number is one from
    after the change, `from_then_on` whether the release is.
    """
    for release, spec in compared(bed).items():
        server = bed.release(fetched.chosen(spec), synchronous_commit="off")
        for one, number in counted(server, bed.parameters.tuples, bed.parameters.seed):
            yield {
                "counted": one.what,
                "unit": one.unit,
                "claim": one.claim,
                "notes": one.since,
                "release": release,
                "version": version(release),
                "from_then_on": version(release) >= version(one.since),
                "number": float(number),
                "shown": one.shows(number) if one.shows else None,
            }


def counted(server: Cluster, tuples: int, seed: int) -> Iterator[tuple[Count, float]]:
    """Each count and its number on one server, but for those that its release can't show."""
    gained = updated(server, tuples, seed)
    with server.connect() as connection:
        SQL.run(connection, "counts.numbers", tuples=tuples)
        for one in COUNTS:
            try:
                found = gained.get(one.what)
                number = one.count(connection, tuples) if found is None else found
            except (psycopg.Error, CannotMeasure) as error:
                if not isinstance(error, CannotMeasure) and not releases.lacking(
                    server.version, error
                ):
                    raise
                continue
            if number is not None:
                yield one, number
