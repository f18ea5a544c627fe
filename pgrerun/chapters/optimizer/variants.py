"""The variants: a method forced by settings, a fault of 1990 put back, statistics told by hand.

Forcing works today as it did then, by flags that take a method away (PostgreSQL documentation,
"Planner Method Configuration").
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from pgrerun.errors import CannotMeasure
from pgrerun.lab import statements
from pgrerun.lab.instruments import plans
from pgrerun.lab.server import Server, set_session

SQL = statements.sql_folder(__file__)

# ---- methods

SEQUENTIAL, INDEX, BITMAP = "sequential scan", "index scan", "bitmap scan"
NESTED, HASH, MERGE = "nested loop", "hash join", "merge join"
# by options of Postgres95's backend
FORBIDDEN = {NESTED: "-fn", HASH: "-fh", MERGE: "-fm", SEQUENTIAL: "-fs"}
# Method -> the setting that allows it; those of the others of its family are switched off.
SCANS = {
    SEQUENTIAL: "enable_seqscan",
    INDEX: "enable_indexscan",
    BITMAP: "enable_bitmapscan",
}
JOINS = {NESTED: "enable_nestloop", HASH: "enable_hashjoin", MERGE: "enable_mergejoin"}
METHODS = {
    "Seq Scan": SEQUENTIAL,
    "Index Scan": INDEX,
    "Bitmap Heap Scan": BITMAP,
    "Nested Loop": NESTED,
    "Hash Join": HASH,
    "Merge Join": MERGE,
}
# One process, as in 1990; a statement's first execution is like every other.
SESSION = {"max_parallel_workers_per_gather": 0, "jit": "off"}


@contextmanager
def session(server: Server) -> Iterator[psycopg.Connection]:
    """A connection whose statements run in one process, each planned as it comes.

    psycopg prepares what is sent for the sixth time, and what is prepared keeps its plan whatever
    `forced` sets afterwards: in the run of 2026-11-26 three forced scans were one and the same.
    """
    with server.connect() as connection:
        connection.prepare_threshold = None
        set_session(connection, SESSION)
        yield connection


@contextmanager
def forced(connection: psycopg.Connection, method: str) -> Iterator[None]:
    """Leave the planner no other scan, or join, than `method` for the length of a block."""
    family = SCANS if method in SCANS else JOINS
    switched_off = sorted(setting for other, setting in family.items() if other != method)
    for setting in switched_off:
        connection.execute(f"SET {setting} = off")
    try:
        yield
    finally:
        for setting in switched_off:
            connection.execute(f"RESET {setting}")


def method_of(plan: plans.Plan) -> str:
    """The scan (of a single relation) or the join (the topmost) of a plan."""
    known = [METHODS[node.node_type] for node in plan.walk() if node.node_type in METHODS]
    return known[0] if known else plan.node_type


def alternatives(
    connection: psycopg.Connection, statement: str, methods: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """What the planner makes of a statement under each forced method: a row each.

    Keys: method, chosen (when the planner is free), obeyed (whether the method could be forced),
    rows (estimated) and cost, which is None where it couldn't.
    """
    free = method_of(plans.explain(connection, statement))
    for method in methods:
        with forced(connection, method):
            plan = plans.explain(connection, statement)
        obeyed = method_of(plan) == method
        yield {
            "method": method,
            "chosen": method == free,
            "obeyed": obeyed,
            "rows": plan.rows_estimated,
            "cost": plan.total_cost if obeyed else None,
        }


# Units of what `alternatives` tells of a method.
ALTERNATIVE = {"chosen": "yes or no", "obeyed": "yes or no", "rows": "rows", "cost": ""}

# ---- faults

NONE = "as it is"
CONSTANT = "constant selectivity"
EXCHANGED = "wrong function for >"
MULTIPLIED = "selectivities multiplied"
UNSET = "result size never set"
BOTH = "both"
FAULTS = {
    NONE: (),
    CONSTANT: ("faults.constant",),
    EXCHANGED: ("faults.exchanged",),
    MULTIPLIED: ("faults.multiplied",),
    UNSET: ("faults.unset",),
    BOTH: ("faults.constant", "faults.unset"),
}
# The report's faults as builds of Postgres95, which stands for the system that had them.
MENDED = "mended"
BUILDS = {
    MENDED: "postgres95-planner",
    CONSTANT: "postgres95-constant-selectivity",
    "no size set": "postgres95-unset-size",
    "no size of a join set": "postgres95-unset-join-size",
    BOTH: "postgres95-both-faults",
}


@contextmanager
def fault(connection: psycopg.Connection, name: str) -> Iterator[None]:
    """Work in a transaction in which the server has this fault (or NONE); all is rolled back.

    An operator's entry is seen by everybody: only for servers of our own. CannotMeasure without a
    superuser's rights.
    """
    with connection.transaction(force_rollback=True):
        try:
            for statement in FAULTS[name]:
                SQL.run(connection, statement)
        except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedFunction) as error:
            raise CannotMeasure(
                "superuser", f"a fault can't be put into this server: {error.diag.message_primary}"
            ) from None
        yield


def tell(connection: psycopg.Connection, statistics: str, **values: str | float) -> None:
    """Write a relation's statistics by hand with one of the statements of `statistics.sql`.

    CannotMeasure before PostgreSQL 18, which made a function of it.
    """
    try:
        SQL.run(connection, f"statistics.{statistics}", **values)
    except psycopg.errors.UndefinedFunction:
        raise CannotMeasure(
            "PostgreSQL 18", "statistics can be written by hand since PostgreSQL 18 only"
        ) from None
