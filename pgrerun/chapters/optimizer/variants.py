"""The variants: a method forced by settings, a fault of 1990 put back, statistics told by hand.

Forcing works today as it did then, by flags that take a method away (PostgreSQL documentation,
"Planner Method Configuration").
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pandas as pd
import psycopg

from pgrerun.errors import CannotMeasure
from pgrerun.lab import statements
from pgrerun.lab.instruments import plans
from pgrerun.lab.server import Server, set_session

SQL = statements.beside(__file__)

# ---- methods

SEQUENTIAL, INDEX, BITMAP = "sequential scan", "index scan", "bitmap scan"
NESTED, HASH, MERGE = "nested loop", "hash join", "merge join"
# Method -> the settings that allow it; all others of its family are switched off.
SCANS = {
    SEQUENTIAL: {"enable_seqscan"},
    INDEX: {"enable_indexscan"},
    BITMAP: {"enable_bitmapscan"},
}
JOINS = {NESTED: {"enable_nestloop"}, HASH: {"enable_hashjoin"}, MERGE: {"enable_mergejoin"}}
_METHODS = {
    "Seq Scan": SEQUENTIAL,
    "Index Scan": INDEX,
    "Bitmap Heap Scan": BITMAP,
    "Nested Loop": NESTED,
    "Hash Join": HASH,
    "Merge Join": MERGE,
}
# One process, as in 1990; a statement's first execution is like every other.
SESSION = {"max_parallel_workers_per_gather": 0, "jit": "off"}


def switched_off(method: str) -> list[str]:
    """The settings that leave the planner no other scan, or no other join, than `method`."""
    family = SCANS if method in SCANS else JOINS
    return sorted(set().union(*family.values()) - family[method])


def methods_table() -> pd.DataFrame:
    """What is switched off to force each method: a row each."""
    rows = [(method, ", ".join(switched_off(method))) for method in [*SCANS, *JOINS]]
    return pd.DataFrame(rows, columns=["forced", "switched off"])


@contextmanager
def session(server: Server) -> Iterator[psycopg.Connection]:
    """A connection whose statements run in one process."""
    with server.connect() as connection:
        set_session(connection, SESSION)
        yield connection


@contextmanager
def forced(connection: psycopg.Connection, method: str) -> Iterator[None]:
    """Leave the planner no other scan, or join, than `method` for the length of a block."""
    for setting in switched_off(method):
        connection.execute(f"SET {setting} = off")
    try:
        yield
    finally:
        for setting in switched_off(method):
            connection.execute(f"RESET {setting}")


def method_of(plan: plans.Plan) -> str:
    """The scan (of a single relation) or the join (the topmost) of a plan."""
    known = [_METHODS[node.node_type] for node in plan.walk() if node.node_type in _METHODS]
    return known[0] if known else plan.node_type


def alternatives(
    connection: psycopg.Connection, statement: str, methods: Sequence[str]
) -> list[dict[str, Any]]:
    """What the planner makes of a statement under each forced method: a row each.

    Keys: method, cost, rows (estimated), chosen (when the planner is free), obeyed (whether the
    method could be forced).
    """
    free = method_of(plans.explain(connection, statement))
    rows = []
    for method in methods:
        with forced(connection, method):
            plan = plans.explain(connection, statement)
        row = {"method": method, "cost": plan.total_cost, "rows": plan.rows_estimated}
        rows.append(row | {"chosen": method == free, "obeyed": method_of(plan) == method})
    return rows


# ---- faults

NONE = "as it is"
CONSTANT = "constant selectivity"
EXCHANGED = "wrong function for >"
MULTIPLIED = "selectivities multiplied"
FAULTS = {
    CONSTANT: "faults.constant",
    EXCHANGED: "faults.exchanged",
    MULTIPLIED: "faults.multiplied",
}


@contextmanager
def fault(connection: psycopg.Connection, name: str) -> Iterator[None]:
    """Work in a transaction in which the server has this fault (or NONE); all is rolled back.

    An operator's entry is seen by everybody: only for servers of our own. CannotMeasure without a
    superuser's rights.
    """
    with connection.transaction(force_rollback=True):
        try:
            if name != NONE:
                SQL.run(connection, FAULTS[name])
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


# ---- relations of the first set

REPORT, TIMED = "tenk1", "scanned"  # of the report's size, of the size that the parameter says
CLUSTERED, SHUFFLED = "clustered", "not clustered"
ATTRIBUTES = {CLUSTERED: "unique2", SHUFFLED: "unique1"}
WARM, COLD = "warm", "cold"
