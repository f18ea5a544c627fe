"""The talk's join of a small relation with two large ones, in the order of 9.1 and of 9.2."""

from dataclasses import dataclass
from functools import partial

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.access_paths.accounts import DIRECT, KEYED, SQL, filled, ready, timed
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import pages, plans
from pgrerun.lab.server import Server, set_session
from pgrerun.record import printed

_SELF = "enable_self_join_elimination"  # since PostgreSQL 18
_MERGE = ("enable_nestloop", "enable_hashjoin", "enable_seqscan", "enable_bitmapscan")


@dataclass(frozen=True)
class Join:
    """What is switched off for the talk's query, and whether its keys are the first ones.

    Otherwise the keys are spread over the whole table.
    """

    off: tuple[str, ...] = (_SELF,)
    first_keys: bool = False


PARAMETERIZED, DEFAULT, BEFORE = (
    "index probes, as in 9.2",
    "today's own plan",
    "merge joins, as in 9.1",
)
EARLY = "merge joins, all keys at the table's beginning"
# A table joined to itself stays two tables except in today's own plan.
VARIANTS = {
    PARAMETERIZED: Join(),
    DEFAULT: Join(off=()),
    BEFORE: Join(off=(*_MERGE, _SELF)),
    EARLY: Join(off=(*_MERGE, _SELF), first_keys=True),
}


def large_relations(chapter: Chapter) -> dict[int, str]:
    """The large relation in every size at which the join is measured: rows to name, rising."""
    return {
        rows: f"joined_{rows}" for rows in (chapter.parameters.accounts // n for n in (10, 3, 1))
    }


def query(name: str, a: str, b: str, step: int = 1) -> str:
    """A query of joins.sql with its relations and as many keys as in print: every `step`th."""
    keys = int(printed.cell("access_paths_join", "rows", "value"))
    return SQL.text(f"joins.{name}", a=a, b=b, first=step, last=step * keys, step=step)


def query_of(variant: str, name: str, rows: int) -> str:
    """A variant's query on a relation of so many rows."""
    keys = int(printed.cell("access_paths_join", "rows", "value"))
    join = VARIANTS[variant]
    return query("free", name, name, 1 if join.first_keys else rows // keys)


def _switch(connection: psycopg.Connection, variant: str) -> None:
    off = VARIANTS[variant].off
    settings = {name: "off" if name in off else "on" for name in (*_MERGE, _SELF)}
    if connection.execute("SELECT current_setting(%s, true)", [_SELF]).fetchone() == (None,):
        del settings[_SELF]
    set_session(connection, settings | {"max_parallel_workers_per_gather": 0})


@experiment()
def times(chapter: Chapter) -> None:
    """9.1's plan and 9.2's at every size."""
    with chapter.server.connect() as connection:
        for rows, relation in large_relations(chapter).items():
            ready(chapter.server, rows, relation)
            variants = [
                Variant(variant, partial(_joined, connection, variant, relation, rows))
                for variant in (BEFORE, PARAMETERIZED)
            ]
            chapter.compare(f"join_{rows}", variants, {"seconds": "s"})


def _joined(
    connection: psycopg.Connection, variant: str, name: str, rows: int, block: Block
) -> dict[str, float]:
    _switch(connection, variant)
    return {"seconds": timed(connection, query_of(variant, name, rows))}


SHORT = "join_short_of_memory"  # experiment
WAITED = "join_waiting", "share", BEFORE  # experiment, metric and variant
FIRST = "index probes, first execution"


@experiment(claims=["haas-049"])
def short_of_memory(chapter: Chapter) -> None:
    """The same where the table doesn't fit into memory, as in print.

    9.1's plan, and 9.2's for the first time and again. Before the first execution the pool is
    emptied and the session is a new one. Before 9.2's plan is timed again its probes have been
    made; the merge join leaves nothing useful behind in a pool that is too small.
    """
    server, rows = filled(chapter, DIRECT, KEYED), chapter.parameters.accounts
    server.extension("pg_buffercache")
    with server.connect() as connection:
        before = partial(_joined, connection, BEFORE, KEYED, rows)
        probes = partial(_joined, connection, PARAMETERIZED, KEYED, rows)
        variants = [
            Variant(BEFORE, before),
            Variant(PARAMETERIZED, probes, prepare=probes),
            Variant(FIRST, partial(_first, server, rows)),
        ]
        chapter.compare(SHORT, variants, {"seconds": "s"}, warmup=0)
        waited = [Variant(BEFORE, partial(_waited, connection, rows))]
        chapter.compare(WAITED[0], waited, {"share": "of the time"}, warmup=0)


def _waited(connection: psycopg.Connection, rows: int, block: Block) -> dict[str, float]:
    """The share of its time that 9.1's plan waits for reads."""
    _switch(connection, BEFORE)
    plan = plans.explain(connection, query_of(BEFORE, KEYED, rows), execute=True)
    return {"share": plan.read_ms / plan.execution_ms}


def _first(server: Server, rows: int, block: Block) -> dict[str, float]:
    with server.connect() as connection:
        pages.evict_all(connection)
    with server.connect() as connection:
        return _joined(connection, PARAMETERIZED, KEYED, rows, block)


# ---- plans


@experiment(claims=["haas-051"])
def shapes(chapter: Chapter) -> pd.DataFrame:
    """The plan of every variant at the largest size.

    Columns: variant, rows_read (of the large tables, all loops), plan (in one line), joins (types,
    from the top).
    """
    (size, relation), rows = max(large_relations(chapter).items()), []
    ready(chapter.server, size, relation)
    with chapter.server.connect() as connection:
        for variant in VARIANTS:
            _switch(connection, variant)
            statement = query_of(variant, relation, size)
            plan = plans.explain(connection, statement, execute=True)
            words = plan.shape().replace(" using ", " by ")
            rows.append((variant, _rows_read(plan), words, plan.joins))
    return pd.DataFrame(rows, columns=["variant", "rows_read", "plan", "joins"])


def _rows_read(plan: plans.Plan) -> int:
    return round(sum(node.rows_actual * node.loops for node in plan.walk() if node.relation))


# ---- who needs it

TALKS, INNER, IN_A_ROW = "left join over an inner join", "inner joins only", "left joins in a row"
OTHERS = ("NOT EXISTS over an inner join", "LATERAL over an inner join")
FORMS = {
    TALKS: "free",
    INNER: "inner_joins",
    IN_A_ROW: "left_joins",
    OTHERS[0]: "not_exists",
    OTHERS[1]: "lateral",
}


@experiment(claims=["haas-052"])
def forms(chapter: Chapter) -> pd.DataFrame:
    """Queries of several forms over the same tables.

    Columns: form, rows_read, through (whether a key is handed through a join: a nested loop has a
    join on its inner side).
    """
    large, rows = sorted(large_relations(chapter).items())[-2:], []
    for size, relation in large:
        ready(chapter.server, size, relation)
    with chapter.server.connect() as connection:
        for form, name in FORMS.items():
            statement = query(name, *(relation for _, relation in large))
            plan = plans.explain(connection, statement, execute=True)
            through = any(loop.children[1].joins for loop in plan.find("Nested Loop"))
            rows.append((form, _rows_read(plan), through))
    return pd.DataFrame(rows, columns=["form", "rows_read", "through"])
