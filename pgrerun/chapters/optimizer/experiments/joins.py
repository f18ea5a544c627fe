"""The second set of tests: nested loop, hash join or merge join, planned, counted and timed."""

from collections.abc import Iterator, Sequence

from pgrerun.chapters.optimizer import queries, variants
from pgrerun.chapters.optimizer.experiments.scans import warm_seconds
from pgrerun.chapters.optimizer.variants import (
    BOTH,
    BUILDS,
    FORBIDDEN,
    HASH,
    JOINS,
    MENDED,
    METHODS,
    NESTED,
    SESSION,
    SQL,
)
from pgrerun.lab.instruments import callgrind, plans
from pgrerun.lab.postgres95 import Backend, in_all_releases
from pgrerun.lab.relations import Wisconsin, duck
from pgrerun.lab.server import value
from pgrerun.lab.testbed import Block, Row, Testbed, experiment

AGAIN = ", again"

# ---- what is planned


@experiment(units={"actual": "rows"} | variants.ALTERNATIVE)
def planned_joins(
    bed: Testbed, sizes: Sequence[str] = (queries.SMALL, queries.LARGE)
) -> Iterator[Row]:
    """Plans of the six queries by forced method, with the rows that they find (actual)."""
    with variants.session(queries.load_joined(bed)) as connection:
        for size in sizes:
            for query in queries.JOIN_QUERIES:
                statement = queries.selected(queries.join(bed, query, size))
                actual = value(connection, int, queries.counted(statement))
                for row in variants.alternatives(connection, statement, tuple(JOINS)):
                    yield {"size": size, "query": query, "actual": actual} | row


# ---- what is executed


def methods_of(query: int) -> tuple[str, ...]:
    """The methods that can join a query."""
    return tuple(JOINS) if query in queries.EQUAL else (NESTED,)


@experiment(units={"instructions": "instructions"})
def join_instructions(bed: Testbed) -> Iterator[Row]:
    """What the queries execute at the report's size, by every method that can be forced.

    Nothing is stored, and nested loops without an index are left out: a hundred times as much.
    """
    queries.load_joined(bed, queries.SMALL)
    statements = {}
    for query in queries.JOIN_QUERIES:
        statement = queries.discarded(queries.join(bed, query, queries.SMALL))
        for method in methods_of(query):
            if method == NESTED and query in queries.UNINDEXED:
                continue
            settings = dict.fromkeys(JOINS.values(), "off") | {JOINS[method]: "on"}
            statements[query, method] = (SESSION | settings, statement)
    for (query, method), count in callgrind.executed(bed.cluster(), statements).items():
        yield {"query": query, "method": method, "instructions": int(count)}


@experiment(units={"seconds": "s"})
def timed_joins(bed: Testbed) -> Iterator[Row]:
    """Time the queries under every method that can be forced: at both sizes with nothing stored,
    and at the report's as in print, which decides and is timed longer and in more blocks, one hash
    join twice.

    Between larger relations nested loops without an index are left out, which take too long.
    """
    compared = [
        {"size": size, "stored": stored, "query": query, "method": method}
        for size, stored in ((queries.SMALL, False), (queries.SMALL, True), (queries.LARGE, False))
        for query in queries.JOIN_QUERIES
        for method in methods_of(query)
        if not (size == queries.LARGE and method == NESTED and query in queries.UNINDEXED)
    ]
    compared.append({"size": queries.SMALL, "stored": True, "query": 1, "method": HASH + AGAIN})
    with variants.session(queries.load_joined(bed)) as connection:
        queries.store_in_memory(connection)

        def join(
            block: Block, size: str, stored: bool, query: int, method: str
        ) -> dict[str, float]:
            statement = queries.join(bed, query, size)
            statement = statement if stored else queries.discarded(statement)
            least = bed.parameters.milliseconds / (1000 if stored else 4000)
            return warm_seconds(connection, method.removesuffix(AGAIN), statement, least)

        for stored, pairs in ((True, 2 * int(bed.parameters.pairs)), (False, bed.fewer_pairs)):
            alike = [one for one in compared if one["stored"] == stored]
            yield from bed.compare(
                join, alike, pairs=pairs, warmup=0, positive=["seconds"], fixed=True
            )


# ---- pages


@experiment(units={"pages": "pages", "scans": "scans"})
def pages_of_loops(bed: Testbed) -> Iterator[Row]:
    """Pages that queries 5 and 6 touch at the report's size, heap and index, and scans of the inner
    side.

    Where it isn't `kept` in memory between its scans (enable_material), it is as in 1990.
    """
    with variants.session(queries.load_joined(bed, queries.SMALL)) as connection:
        for query, indexed, kept in ((5, False, True), (5, False, False), (6, True, True)):
            connection.execute(f"SET enable_material = {'on' if kept else 'off'}")
            statement = queries.selected(queries.join(bed, query, queries.SMALL))
            plan = plans.explain(connection, statement, execute=True)
            _, inner = plan.find("Nested Loop")[0].children
            yield {
                "query": query,
                "indexed": indexed,
                "kept": kept,
                "pages": plan.page_accesses,
                "scans": int(inner.loops),
            }


# ---- by something else than equality


@experiment(units={"join_by": "text", "pairs_found": "pairs"})
def non_equal_joins(bed: Testbed) -> Iterator[Row]:
    """The operator that joins by `<` on PostgreSQL and on DuckDB, and the pairs that it finds."""
    one, two = queries.joined(queries.SMALL, indexed=False)
    statement = SQL.text("queries.non_equal", one=one, two=two)
    with variants.session(queries.load_joined(bed, queries.SMALL)) as connection:
        yield {
            "engine": "PostgreSQL",
            "join_by": variants.method_of(plans.explain(connection, statement)),
            "pairs_found": value(connection, int, statement),
        }
    with duck.in_memory() as other:
        for order, relation in enumerate((one, two), start=1):
            wisconsin = Wisconsin(relation, queries.SMALL_TUPLES, attributes="1990", order=order)
            wisconsin.load_duckdb(other)
        yield {
            "engine": "DuckDB",
            "join_by": duck.joins_of(other, statement)[0].replace("_", " ").lower(),
            "pairs_found": other.execute(statement).fetchone()[0],
        }


NOTHING = "nothing"


@experiment(units={"join_by": "text"})
def non_equal_joins_of_postgres95(bed: Testbed) -> Iterator[Row]:
    """The join that Postgres95 plans for queries 5 and 6, left free and with its nested loop
    forbidden, mended and with both faults of 1990.

    Query 3, for which the report's optimizer chose wrongly, shows that forbidding works. A build
    that isn't there sets all aside.
    """
    asked = (3, *queries.UNEQUAL)
    joins = {query: in_all_releases(queries.join(bed, query, queries.SMALL)) for query in asked}
    for fault in (MENDED, BOTH):
        with Backend.of(BUILDS[fault]) as backend:
            queries.load_joined_postgres95(backend)
            for forbidden, option in ((NOTHING, ""), (NESTED, FORBIDDEN[NESTED])):
                with backend.copied(" ".join([*backend.options, option])) as planner:
                    for query, join in joins.items():
                        yield {
                            "fault": fault,
                            "query": query,
                            "forbidden": forbidden,
                            "join_by": METHODS[planner.plan(join).partition(",")[0]],
                        }
