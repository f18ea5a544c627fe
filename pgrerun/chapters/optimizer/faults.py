"""The faults of 1990, put back into a running server for the length of a transaction.

An operator's entry in pg_operator names the function that estimates its selectivity. In 1990 a wrong entry
there was the first fault that the tests found; today a superuser can still make one. All of it is rolled back.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter
from pgrerun.chapters.optimizer.joins import sizes
from pgrerun.chapters.optimizer.queries import HASH, NESTED, counted, forced, join_query, joined, large_tuples, method_of, selected, session
from pgrerun.chapters.optimizer.scans import CLUSTERED, REPORT as TENK, planned_with
from pgrerun.errors import CannotMeasure
from pgrerun.instruments import plans

NONE = "as it is"
CONSTANT = "constant selectivity"
EXCHANGED = "wrong function for >"
MULTIPLIED = "selectivities multiplied"
UNSIZED = "result size never set"

_OPERATOR = "ALTER OPERATOR pg_catalog.{} (int4, int4) SET (RESTRICT = {})"
# A second name for an estimator: the planner pairs the bounds of a range by the estimators' own identities.
_ALIAS = "CREATE FUNCTION pg_temp.{0}_alias(internal, oid, internal, int4) RETURNS float8 LANGUAGE internal STABLE STRICT AS '{0}'"
_FAULTS = {
    NONE: [],
    # eqsel gives one over the number of distinct values, whatever the constant; 1990 took three over it
    CONSTANT: [_OPERATOR.format("<", "eqsel"), _OPERATOR.format(">", "eqsel")],
    EXCHANGED: [_OPERATOR.format(">", "scalarltsel")],
    MULTIPLIED: [
        _ALIAS.format("scalarltsel"), _ALIAS.format("scalargtsel"),
        _OPERATOR.format("<", "pg_temp.scalarltsel_alias"), _OPERATOR.format(">", "pg_temp.scalargtsel_alias"),
    ],
}  # fmt: skip


@contextmanager
def fault(connection: psycopg.Connection, name: str) -> Iterator[None]:
    """Work in a transaction in which the server has this fault; everything done in it is rolled back.

    CannotMeasure without a superuser's rights.
    """
    with connection.transaction(force_rollback=True):
        try:
            for statement in _FAULTS[name]:
                connection.execute(statement)
        except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedFunction) as error:
            raise CannotMeasure("superuser", f"a fault can't be put into this server: {error.diag.message_primary}") from None
        yield


def _own(chapter: Chapter):
    """The throwaway server: an operator's entry is seen by everybody, so nobody else's is touched even for a moment."""
    return chapter.cluster()


def first_set(chapter: Chapter) -> pd.DataFrame:
    """The first set's choices, costs and rows by the clustered attribute under each fault: columns fault, selectivity, planned, cost, rows."""
    found = []
    with session(_own(chapter)) as connection:
        for name in (NONE, CONSTANT):
            with fault(connection, name):
                plans_found = planned_with(chapter, connection, TENK, [CLUSTERED])
            chosen = plans_found[plans_found["chosen"]]
            found.append(chosen.assign(fault=name)[["fault", "selectivity", "method", "cost", "rows"]])
    return pd.concat(found, ignore_index=True).rename(columns={"method": "planned"})


def greater_than(chapter: Chapter) -> pd.DataFrame:
    """Rows estimated for key > constant with the right function and with the one registered in 1990: selectivity, rows, and the rows of each."""
    found = []
    with session(_own(chapter)) as connection:
        for name in (NONE, EXCHANGED):
            with fault(connection, name):
                for tenth in range(1, 10):
                    bound = large_tuples() * (10 - tenth) // 10 - 1
                    plan = plans.explain(connection, f"SELECT * FROM {TENK} WHERE unique2 > {bound}")
                    found.append((name, tenth / 10, large_tuples() - 1 - bound, plan.rows_estimated))
    frame = pd.DataFrame(found, columns=["fault", "selectivity", "rows", "estimated"])
    return frame.pivot(index=["selectivity", "rows"], columns="fault", values="estimated")[[NONE, EXCHANGED]].reset_index()


def registered(chapter: Chapter) -> pd.DataFrame:
    """The estimator of every comparison of two integers: operator, estimator."""
    query = """SELECT oprname AS operator, oprrest::text AS estimator FROM pg_operator
               WHERE oprleft = 'int4'::regtype AND oprright = 'int4'::regtype AND oprname IN ('<', '<=', '>', '>=') ORDER BY oprname"""
    with chapter.server.connect() as connection:
        return pd.DataFrame(connection.execute(query).fetchall(), columns=["operator", "estimator"])


_RIGHT = {"<": "scalarltsel", "<=": "scalarlesel", ">": "scalargtsel", ">=": "scalargesel"}


def wrongly_registered(found: pd.DataFrame) -> bool:
    """Whether any operator has another's estimator. Before PostgreSQL 11, <= and >= shared those of < and >."""
    shared = _RIGHT | {"<=": "scalarltsel", ">=": "scalargtsel"}
    return any(row.estimator not in (_RIGHT[row.operator], shared[row.operator]) for row in found.itertuples())


def always_by_index(found: pd.DataFrame, name: str = NONE) -> bool:
    """Whether every plan of the sweep is the same one at the same cost."""
    rows = found[found["fault"] == name]
    return bool(rows["planned"].nunique() == 1 and rows["cost"].nunique() == 1)


# ---- the wrong join

BOTH = "both"


def third_join(chapter: Chapter) -> pd.DataFrame:
    """The join planned for query 3 at both sizes with the two faults that the report names, alone and together.

    Columns: tuples (of either relation), fault, planned, rows expected, rows, and the costs of nested loop and hash join.
    """
    found = []
    with session(_own(chapter)) as connection:
        for size, tuples in sizes(chapter).items():
            statement = selected(join_query(3, size, tuples))
            actual = connection.execute(counted(statement)).fetchone()[0]
            for name in (NONE, CONSTANT, UNSIZED, BOTH):
                with fault(connection, CONSTANT if name in (CONSTANT, BOTH) else NONE):
                    if name in (UNSIZED, BOTH):
                        _forget_sizes(connection, joined(size, indexed=False))
                    plan, costs = plans.explain(connection, statement), []
                    for method in (NESTED, HASH):
                        with forced(connection, method):
                            costs.append(plans.explain(connection, statement).total_cost)
                found.append((sizes(chapter)[size], name, method_of(plan), plan.rows_estimated, actual, *costs))
    return pd.DataFrame(found, columns=["tuples", "fault", "planned", "rows expected", "rows", "cost of nested loop", "cost of hash join"])


def _forget_sizes(connection: psycopg.Connection, relations: tuple[str, ...]) -> None:
    """Make the planner believe that relations are empty (PostgreSQL 18; CannotMeasure before)."""
    for name in relations:
        set_statistics(connection, "relation", name, reltuples="0::real")


def set_statistics(connection: psycopg.Connection, kind: str, relation: str, **values: str) -> None:
    """Write a relation's statistics by hand: `kind` is "relation", or "attribute" with attname among the `values`, which are SQL.

    CannotMeasure before PostgreSQL 18, which made a function of it.
    """
    arguments = {"schemaname": "current_schema()::text", "relname": f"'{relation}'", **values}
    pairs = ", ".join(f"'{name}', {value}" for name, value in arguments.items())
    try:
        connection.execute(f"SELECT pg_restore_{kind}_stats({pairs})")
    except psycopg.errors.UndefinedFunction:
        raise CannotMeasure("PostgreSQL 18", "statistics can be written by hand since PostgreSQL 18 only") from None


def join_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether each fault alone turns query 3's hash join into a nested loop, at the report's size."""
    if found is None:
        return None
    planned = found[found["tuples"] == found["tuples"].min()].set_index("fault")["planned"]
    return {
        "the constant selectivity alone leads to a nested loop": bool(planned[CONSTANT] == NESTED != planned[NONE]),
        "the missing size alone leads to a nested loop": bool(planned[UNSIZED] == NESTED != planned[NONE]),
    }
