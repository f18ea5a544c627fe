"""The talk's join of a small relation with two large ones, in the order of 9.1 and of 9.2."""

from collections.abc import Iterator

import psycopg

from pgrerun.chapters.access_paths.accounts import (
    AMPLE,
    DIRECT,
    KEYED,
    SQL,
    filled,
    place,
    ready,
    repeated,
    timed,
)
from pgrerun.lab.instruments import pages, plans
from pgrerun.lab.server import releases, set_session
from pgrerun.lab.testbed import Block, Row, Testbed, experiment, shortened
from pgrerun.record import printed

_KEYS = int(printed.cell("access_paths_join", "rows", "value"))
_SELF = "enable_self_join_elimination"  # since PostgreSQL 18
_MERGE = ("enable_nestloop", "enable_hashjoin", "enable_seqscan", "enable_bitmapscan")


PROBES, DEFAULT, MERGE = "index probes, as in 9.2", "today's own plan", "merge joins, as in 9.1"
EARLY = "merge joins, all keys at the table's beginning"
FIRST = "index probes, first execution"
# What is switched off for the talk's query. A table joined to itself stays two tables except in
# today's own plan.
JOINS: dict[str, tuple[str, ...]] = {
    PROBES: (_SELF,),
    DEFAULT: (),
    MERGE: (*_MERGE, _SELF),
    EARLY: (*_MERGE, _SELF),
}


def query(form: str, a: str, b: str, step: int = 1) -> str:
    """A query of joins.sql with its relations and as many keys as in print: every `step`th."""
    return SQL.text(f"joins.{form}", a=a, b=b, first=step, last=step * _KEYS, step=step)


def spread(name: str, rows: int, form: str = "free") -> str:
    """A query on a relation of so many rows and itself, its keys spread over all of it."""
    return query(form, name, name, rows // _KEYS)


def switch(connection: psycopg.Connection, plan: str) -> None:
    """Leave the planner only what makes it take one of the plans, and nothing in parallel."""
    settings = {name: "off" if name in JOINS[plan] else "on" for name in (*_MERGE, _SELF)}
    if not releases.knows(connection.info.server_version, _SELF):
        del settings[_SELF]
    set_session(connection, settings | {"max_parallel_workers_per_gather": 0})


def described(plan: plans.Plan) -> Row:
    """What a plan reads of large tables, its shape and joins, and whether it hands a key through a
    join: a nested loop has a join on its inner side.
    """
    read = sum(node.rows_actual * node.loops for node in plan.walk() if node.relation)
    return {
        "rows_read": round(read),
        "shape": plan.shape().replace(" using ", " by "),
        "joins": ", ".join(plan.joins),
        "through": any(bool(loop.children[1].joins) for loop in plan.find("Nested Loop")),
    }


SHAPE = {"rows_read": "rows", "shape": "text", "joins": "text", "through": "yes or no"}


@experiment(units=SHAPE)
def join_plans(bed: Testbed) -> Iterator[Row]:
    """The plan of the talk's join, left alone and brought to that of 9.1."""
    rows = bed.parameters.accounts
    ready(bed.server, rows, KEYED)
    with bed.server.connect() as connection:
        for plan in JOINS:
            switch(connection, plan)
            statement = query("free", KEYED, KEYED) if plan == EARLY else spread(KEYED, rows)
            yield {"plan": plan, **described(plans.explain(connection, statement, execute=True))}


@experiment(units={"seconds": "s", "pages": "page accesses"})
def join_growth(bed: Testbed) -> Iterator[Row]:
    """9.1's plan and 9.2's where memory isn't short, on the large table, a third and a tenth."""
    sizes = {parts: bed.parameters.accounts // parts for parts in (10, 3, 1)}
    server = place(bed, AMPLE, bed.parameters.accounts)
    for rows in sizes.values():
        ready(server, rows, f"joined_{rows}")
    with server.connect() as connection:

        def measure(block: Block, plan: str, parts: int, rows: int) -> dict[str, float]:
            switch(connection, plan)
            statement = spread(f"joined_{rows}", rows)
            milliseconds = shortened(bed.parameters.milliseconds)
            return {
                "seconds": repeated(lambda: timed(connection, statement), milliseconds),
                "pages": plans.explain(connection, statement, execute=True).page_accesses,
            }

        variants = [
            {"plan": plan, "parts": parts, "rows": rows}
            for parts, rows in sizes.items()
            for plan in (MERGE, PROBES)
        ]
        yield from bed.compare(measure, variants, pairs=bed.fewer_pairs, warmup=0)


@experiment(units={"seconds": "s", "millions": "million rows"}, needs=["restart"])
def short_of_memory(bed: Testbed) -> Iterator[Row]:
    """The same where the table doesn't fit into memory, past the kernel's cache.

    9.1's plan, and 9.2's for the first time and again. Before each first execution the pool is
    emptied and the session is a new one. Before 9.2's plan is timed again its probes have been
    made; the merge join leaves nothing useful behind in a pool that is too small.
    """
    rows = bed.parameters.joined
    server = filled(bed, DIRECT, rows, KEYED)
    server.extension("pg_buffercache")
    statement = spread(KEYED, rows)
    with server.connect() as connection:

        def once(plan: str) -> float:
            if plan != FIRST:
                switch(connection, plan)
                return timed(connection, statement)
            pages.evict_all(connection)
            with server.connect() as newcomer:
                switch(newcomer, PROBES)
                return timed(newcomer, statement)

        def prepare(block: Block, plan: str) -> None:
            if plan == PROBES:
                once(plan)

        def measure(block: Block, plan: str) -> dict[str, float]:
            milliseconds = shortened(bed.parameters.milliseconds)
            return {"seconds": repeated(lambda: once(plan), milliseconds), "millions": rows / 1e6}

        yield from bed.compare(
            measure,
            {"plan": [MERGE, PROBES, FIRST]},
            pairs=bed.fewer_pairs,
            prepare=prepare,
            warmup=0,
            against=MERGE,
        )


TALKS, INNER, IN_A_ROW = "left join over an inner join", "inner joins only", "left joins in a row"
OLD_FORMS = {
    TALKS: "free",
    INNER: "inner_joins",
    IN_A_ROW: "left_joins",
    "NOT EXISTS over an inner join": "not_exists",
}
FORMS = OLD_FORMS | {"LATERAL over an inner join": "lateral"}  # since PostgreSQL 9.3


@experiment(units=SHAPE)
def forms(bed: Testbed) -> Iterator[Row]:
    """Queries of several forms over the same two tables."""
    tables = {f"joined_{rows}": rows for rows in (bed.parameters.accounts // n for n in (3, 1))}
    for name, rows in tables.items():
        ready(bed.server, rows, name)
    with bed.server.connect() as connection:
        for form, name in FORMS.items():
            plan = plans.explain(connection, query(name, *tables), execute=True)
            yield {"form": form, **described(plan)}
