"""pgbench's accounts in three forms, servers with short and ample memory that hold them, and what
a statement on them is held to.

The forms have the same tuples, so that variants can be interleaved without creating and dropping
indexes. Memory is made short with a small buffer pool and direct I/O, so that a page which isn't
in the pool comes from the disk. With a small pool alone it comes from the kernel's cache.
"""

import psycopg

from pgrerun.chapter import Chapter
from pgrerun.errors import CannotMeasure, RerunError, ServerError
from pgrerun.lab import statements
from pgrerun.lab.experiment import Block
from pgrerun.lab.instruments import PAGE, clock
from pgrerun.lab.relations import loading, pgbench
from pgrerun.lab.server import Server, set_session
from pgrerun.record import printed
from pgrerun.record.printed import access_paths as in_print

SQL = statements.beside(__file__)

KEYED, COVERED, SCATTERED = "accounts", "covered", "scattered"
_COVERING = pgbench.Index(pgbench.ACCOUNTS, "covering", "(aid, abalance)")
# What each form has beside the primary key: the covering index, tuples in random order.
FORMS = {
    KEYED: {},
    COVERED: {"indexes": [_COVERING]},
    SCATTERED: {"indexes": [_COVERING], "order": pgbench.SCATTERED},
}

DIRECT, KERNEL, AMPLE = "small pool, direct I/O", "small pool, kernel's cache", "ample pool"
PLACES = (DIRECT, KERNEL, AMPLE)
_SCANS = ("seqscan", "indexscan", "indexonlyscan", "bitmapscan")
_STOCK = 128 * 1024  # kB of shared_buffers that initdb sets


def load(server_or_connection: Server | psycopg.Connection, tuples: int, *names: str) -> None:
    """Create the named relations of so many accounts; a name that is none of FORMS is like KEYED.

    Vacuumed and analyzed; autovacuum leaves them alone.
    """
    accounts = pgbench.Pgbench(accounts_per_branch=tuples)
    for name in names:
        accounts.load_accounts(server_or_connection, name, **FORMS.get(name, {}))


def missing(server: Server, tuples: int, *names: str) -> list[str]:
    """Those of the relations that the server hasn't got, or has in another size."""
    accounts = pgbench.Pgbench(accounts_per_branch=tuples)
    return [name for name in names if not accounts.has_accounts(server, name)]


def ready(server: Server, tuples: int, *names: str) -> None:
    """Create those of the relations that are missing."""
    load(server, tuples, *missing(server, tuples, *names))


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
    share = memory / in_print.table_pages(in_print.accounts())
    return max(64, round(share * in_print.table_pages(tuples)))


def ample_kilobytes(tuples: int) -> int:
    """Kilobytes of a buffer pool that holds accounts in all its forms, twice over."""
    return 8 * 1024 + 8 * 128 * tuples // 1024


def place(chapter: Chapter, name: str) -> Server:
    """A server with as much memory as the name says; somebody's server has ample memory.

    CannotMeasure where memory is to be short and the server is somebody's, or files can't be read
    past the kernel's cache.
    """
    small = f"{pool_pages(chapter.parameters.accounts) * PAGE // 1024}kB"
    if name == KERNEL:
        return chapter.cluster(shared_buffers=small)
    if name == AMPLE:
        ample = ample_kilobytes(chapter.parameters.accounts)
        if chapter.borrowed or ample <= _STOCK:
            return chapter.server
        return chapter.cluster(shared_buffers=f"{ample}kB")
    try:
        return chapter.cluster(shared_buffers=small, debug_io_direct="data", track_io_timing="on")
    except ServerError:  # whose words would publish temporary paths
        raise CannotMeasure(
            "direct I/O",
            "memory can't be made short without cgroups unless files are read past the kernel's"
            f" cache, and PostgreSQL {chapter.programs.version} does not start with"
            " debug_io_direct = data here, which takes PostgreSQL 16 and a file system that allows"
            " direct I/O",
        ) from None


def filled(chapter: Chapter, where: str, *names: str) -> Server:
    """The server of that name, with these relations of accounts.

    Past the kernel's cache and through a small pool, every page would be written on its own: they
    are loaded before that.
    """
    server, tuples = place(chapter, where), chapter.parameters.accounts
    if where == DIRECT and missing(server, tuples, *names):
        ample = {"debug_io_direct": "", "shared_buffers": f"{ample_kilobytes(tuples)}kB"}
        with server.restarted(ample):
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


def measured(connection: psycopg.Connection, statement: str, block: Block) -> dict[str, float]:
    """The metric "seconds" of a statement, as a variant's measure."""
    return {"seconds": timed(connection, statement)}


def allowed(*scans: str) -> dict[str, str | int]:
    """Settings that leave the planner only these scans: "seqscan", "indexscan", "indexonlyscan",
    "bitmapscan".

    A plain index scan is possible only while index-only scans are off; "indexonlyscan" needs
    "indexscan" on as well. Nothing is done in parallel.
    """
    wanted = {*scans, *({"indexscan"} if "indexonlyscan" in scans else ())}
    settings = {f"enable_{scan}": "on" if scan in wanted else "off" for scan in _SCANS}
    return settings | {"max_parallel_workers_per_gather": 0}


def allow_only(connection: psycopg.Connection, *scans: str) -> None:
    """Leave the planner only these scans (see `allowed`)."""
    set_session(connection, allowed(*scans))
