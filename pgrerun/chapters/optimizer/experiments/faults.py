"""The faults of 1990: put back into a running server for the length of a transaction, and compiled
into Postgres95.
"""

from collections.abc import Iterator

from pgrerun.chapters.optimizer import queries, variants
from pgrerun.chapters.optimizer.experiments.ranges import estimated
from pgrerun.chapters.optimizer.experiments.scans import planned_with
from pgrerun.chapters.optimizer.variants import (
    BOTH,
    BUILDS,
    CONSTANT,
    EXCHANGED,
    FORBIDDEN,
    JOINS,
    METHODS,
    NONE,
    SQL,
    UNSET,
)
from pgrerun.lab.postgres95 import Backend, in_all_releases
from pgrerun.lab.testbed import Row, Testbed, experiment


@experiment(units={"estimator": "text"})
def registered(bed: Testbed) -> Iterator[Row]:
    """The estimator of every comparison of two integers."""
    with bed.server.connect() as connection:
        for operator, estimator in SQL.run(connection, "faults.registered").fetchall():
            yield {"operator": operator, "estimator": estimator}


@experiment(units={"rows": "rows", "expected": "rows"})
def greater_than(bed: Testbed) -> Iterator[Row]:
    """Rows expected of key > constant with the right function and with that of 1990."""
    tuples = queries.LARGE_TUPLES
    with variants.session(bed.cluster()) as connection:
        queries.load_scanned(bed, queries.REPORT)
        for fault in (NONE, EXCHANGED):
            with variants.fault(connection, fault):
                for tenth in range(1, 10):
                    bound = tuples * (10 - tenth) // 10 - 1
                    yield {
                        "fault": fault,
                        "selectivity": tenth / 10,
                        "rows": tuples - 1 - bound,
                        "expected": estimated(connection, queries.REPORT, f"unique2 > {bound}"),
                    }


@experiment(units=variants.ALTERNATIVE)
def first_set(bed: Testbed) -> Iterator[Row]:
    """The first set's plans by the clustered attribute as the server is, and with CONSTANT."""
    with variants.session(bed.cluster()) as connection:
        queries.load_scanned(bed, queries.REPORT)
        for fault in (NONE, CONSTANT):
            with variants.fault(connection, fault):
                for row in planned_with(bed, connection, queries.REPORT, [queries.CLUSTERED]):
                    yield {"fault": fault} | row


@experiment(units=variants.ALTERNATIVE)
def third_query(bed: Testbed) -> Iterator[Row]:
    """The second set's third query, whose loop of 1990 the report explains by two faults: its plans
    without them, with each, and with both.
    """
    with variants.session(bed.cluster()) as connection:
        queries.load_joined(bed, queries.SMALL)
        query = queries.selected(queries.join(bed, 3, queries.SMALL))
        for fault in (NONE, CONSTANT, UNSET, BOTH):
            with variants.fault(connection, fault):
                for row in variants.alternatives(connection, query, tuple(JOINS)):
                    yield {"fault": fault} | row


@experiment(units={"chosen": "yes or no", "cost": ""})
def joins_of_postgres95(bed: Testbed) -> Iterator[Row]:
    """How Postgres95 joins the second set's queries by equality, and what each method would cost,
    with the faults compiled into it.

    A build that isn't there sets all aside: what a fault does is told by a difference.
    """
    for fault, build in BUILDS.items():
        with Backend.of(build) as backend:
            queries.load_joined_postgres95(backend)
            stored = {query: queries.join(bed, query, queries.SMALL) for query in queries.EQUAL}
            joins = {query: in_all_releases(sql) for query, sql in stored.items()}
            free = {query: backend.plan(join).partition(",")[0] for query, join in joins.items()}
            for method in JOINS:
                others = (FORBIDDEN[other] for other in JOINS if other != method)
                with backend.copied(" ".join([*backend.options, *others])) as forced:
                    for query, join in joins.items():
                        yield {
                            "fault": fault,
                            "query": query,
                            "method": method,
                            "chosen": METHODS[free[query]] == method,
                            "cost": forced.cost(join),
                        }
