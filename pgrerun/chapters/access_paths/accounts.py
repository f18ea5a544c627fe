"""pgbench's accounts in four forms, servers with short and ample memory that hold them, and what
a statement on them is held to.

The forms have the same tuples, so that variants can be interleaved without creating and dropping
indexes. Memory is made short with a small buffer pool and direct I/O, so that a page which isn't
in the pool comes from the disk. With a small pool alone it comes from the kernel's cache.
"""

import time
from collections.abc import Callable

import psycopg

from pgrerun.errors import CannotMeasure, RerunError, ServerError
from pgrerun.lab import statements
from pgrerun.lab.instruments import PAGE, clock
from pgrerun.lab.relations import loading, pgbench
from pgrerun.lab.server import Server, set_session
from pgrerun.lab.testbed import Testbed
from pgrerun.record import printed

SQL = statements.sql_folder(__file__)

KEYED, COVERED, SCATTERED, CHURNED = "accounts", "covered", "scattered", "churned"
_COVERING = pgbench.Index(pgbench.ACCOUNTS, "covering", "(aid, abalance)")
# What each form has beside the primary key: the covering index, tuples in random order, and
# autovacuum, which leaves the others alone.
FORMS = {
    COVERED: {"indexes": [_COVERING]},
    SCATTERED: {"indexes": [_COVERING], "order": pgbench.SCATTERED},
    CHURNED: {"indexes": [_COVERING], "autovacuum": True},
}

DIRECT, KERNEL, AMPLE = "small pool, direct I/O", "small pool, kernel's cache", "ample pool"
PLACES = (DIRECT, KERNEL, AMPLE)
ONLY, PLAIN = "index-only scan", "plain index scan"
SCANS = {ONLY: "indexonlyscan", PLAIN: "indexscan"}
_ALL_SCANS = ("seqscan", "indexscan", "indexonlyscan", "bitmapscan")
_STOCK = 128 * 1024  # kB of shared_buffers that initdb sets
_TO_LOAD = 1024 * 1024  # kB of it at most where nothing but loading is to be quick


def in_print() -> int:
    """Rows of the talk's accounts."""
    return int(printed.cell("access_paths_setup", "scale", "value") * 100_000)


def table_pages(tuples: int) -> int:
    """Pages of accounts after loading."""
    return int(printed.value("accounts_pages(?)", tuples))


def load(server: Server | psycopg.Connection, tuples: int, *names: str) -> None:
    """Create the named relations of so many accounts; a name that is none of FORMS is like KEYED.

    Vacuumed and analyzed; autovacuum leaves them alone, but for CHURNED.
    """
    accounts = pgbench.Pgbench(accounts_per_branch=tuples)
    for name in names:
        accounts.load_accounts(server, name, **FORMS.get(name, {}))


def ready(server: Server, tuples: int, *names: str) -> None:
    """Create those of the relations that the server hasn't got, or has in another size."""
    load(server, tuples, *_missing(server, tuples, *names))


def _missing(server: Server, tuples: int, *names: str) -> list[str]:
    with server.connect() as connection:
        return [name for name in names if not loading.holds(connection, name, tuples)]


def build(connection: psycopg.Connection, relation: str, name: str, /, **values: object) -> None:
    """Make a relation by the statements called `name`: the first creates it, the others fill it."""
    create, *filling = SQL.each(name, **values)
    with connection.transaction():
        loading.replace(connection, relation, create)
    for statement in filling:
        connection.execute(statement.encode())


# ---- servers


def pool_pages(tuples: int) -> int:
    """Pages of a buffer pool that is to accounts what the talk's memory was to its own."""
    memory = printed.cell("access_paths_setup", "memory", "value") * 2**30 / PAGE
    return max(64, round(memory * table_pages(tuples) / table_pages(in_print())))


def ample_kilobytes(tuples: int) -> int:
    """Kilobytes of a buffer pool that holds accounts in all its forms, twice over."""
    return 8 * 1024 + 8 * 128 * tuples // 1024


def place(bed: Testbed, where: str, tuples: int) -> Server:
    """A server with as much memory as `where` says for so many accounts; a guest's is ample.

    CannotMeasure where memory is to be short and the server is somebody's, or files can't be read
    past the kernel's cache.
    """
    small = f"{pool_pages(tuples) * PAGE // 1024}kB"
    if where == KERNEL:
        return bed.cluster(shared_buffers=small)
    if where == AMPLE:
        ample = ample_kilobytes(tuples)
        alone = bed.borrowed or ample <= _STOCK
        return bed.server if alone else bed.cluster(shared_buffers=f"{ample}kB")
    try:
        return bed.cluster(shared_buffers=small, debug_io_direct="data", track_io_timing="on")
    except ServerError:  # whose words would publish temporary paths
        raise CannotMeasure(
            "direct I/O",
            "memory can't be made short without cgroups unless files are read past the kernel's"
            f" cache, and PostgreSQL {bed.programs.version} does not start with"
            " debug_io_direct = data here, which takes PostgreSQL 16 and a file system that allows"
            " direct I/O",
        ) from None


def filled(bed: Testbed, where: str, tuples: int, *names: str) -> Server:
    """The server of that name, with these relations of so many accounts.

    Past the kernel's cache and through a small pool, every page would be written on its own: they
    are loaded before that.
    """
    server = place(bed, where, tuples)
    if where == DIRECT and _missing(server, tuples, *names):
        pool = f"{min(_TO_LOAD, ample_kilobytes(tuples))}kB"
        with server.restarted({"debug_io_direct": "", "shared_buffers": pool}):
            ready(server, tuples, *names)
    else:
        ready(server, tuples, *names)
    return server


# ---- statements


def timed(connection: psycopg.Connection, statement: str, expected: object = None) -> float:
    """Seconds that a statement takes; it is planned anew, also when settings have changed.

    RerunError if its first value isn't `expected`, where that is given.
    """
    with clock.stopwatch() as watch:
        cursor = connection.execute(statement, prepare=False)
        rows = cursor.fetchall() if cursor.description else []
    if expected is not None and rows[0][0] != expected:
        raise RerunError(
            f"“{statement}” gave {rows[0][0]} instead of {expected}, so its time says nothing."
        )
    return watch.seconds


def noted(connection: psycopg.Connection) -> list[str]:
    """What the server says to a session from now on beside its answers, also to developers."""
    said: list[str] = []
    connection.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
    set_session(connection, {"client_min_messages": "debug1"})
    return said


def repeated(once: Callable[[], float], milliseconds: float) -> float:
    """The mean of what `once` gives, called until so much time is over, at least once."""
    found, end = [], time.perf_counter() + milliseconds / 1000
    while not found or time.perf_counter() < end:
        found.append(once())
    return sum(found) / len(found)


def allowed(*scans: str) -> dict[str, str | int]:
    """Settings that leave the planner only these scans: "seqscan", "indexscan", "indexonlyscan",
    "bitmapscan".

    A plain index scan is possible only while index-only scans are off; "indexonlyscan" needs
    "indexscan" on as well. Nothing is done in parallel.
    """
    wanted = {*scans, *({"indexscan"} if "indexonlyscan" in scans else ())}
    settings = {f"enable_{scan}": "on" if scan in wanted else "off" for scan in _ALL_SCANS}
    return settings | {"max_parallel_workers_per_gather": 0}


def allow_only(connection: psycopg.Connection, *scans: str) -> None:
    """Leave the planner only these scans (see `allowed`)."""
    set_session(connection, allowed(*scans))
