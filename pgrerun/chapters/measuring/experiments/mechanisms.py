"""Why something gets faster: an index that helps without being scanned."""

from collections.abc import Iterator

from pgrerun.chapters.measuring.loads import SQL, TIME, Load, create
from pgrerun.lab.instruments import counters, plans
from pgrerun.lab.relations import loading
from pgrerun.lab.server import Server, value
from pgrerun.lab.testbed import ENOUGH_PAIRS, Block, Row, Testbed, experiment

ORDERS, CUSTOMERS = 8_000, 60
BEFORE, INDEXED, STATISTICS = (
    "as it was",
    "an index on the expressions",
    "statistics on them, no index",
)
INDEX = "orders_fix"


# Orders, in a relation of their own, and the DDL in sql/ that is to make the query faster.
FIXES = {
    BEFORE: ("orders_before", ""),
    INDEXED: ("orders_indexed", "orders.index"),
    STATISTICS: ("orders_statistics", "orders.statistics"),
}


def make(server: Server) -> None:
    """Make the customers, and orders with each of `FIXES`."""
    sizes = {"customers": CUSTOMERS, "tuples": ORDERS}
    create(server, "customers", "relations.customers", **sizes)
    for relation, ddl in FIXES.values():
        create(server, relation, "relations.orders", ddl, orders=relation, **sizes)


@experiment(
    units={
        "answer": "",
        "plan": "text",
        "expected": "orders",
        "found": "orders",
        "scans": "scans of the new index",
    }
)
def index_scans(bed: Testbed) -> Iterator[Row]:
    """What the query does to equal orders in each of `FIXES`, and how often it scans the new index.

    `plan` is its joins and the scan of orders; `expected` and `found` are the orders that this scan
    gives. The registered prediction is `scans`: who builds an index expects it to be scanned.
    """
    server = bed.server
    make(server)
    with server.connect() as connection:
        before = counters.counts(connection, INDEX)["scans"] or 0
        for variant, (relation, _) in FIXES.items():
            query = SQL.text("orders.query", orders=relation)
            answer = value(connection, int, query)
            plan = plans.explain(connection, query, execute=True)
            scan = plan.scan_of(relation)
            yield {
                "variant": variant,
                "answer": answer,
                "plan": ", ".join([*plan.joins, scan.node_type]),
                "expected": scan.rows_estimated,
                "found": round(scan.rows_actual or 0),
                "scans": (counters.counts(connection, INDEX)["scans"] or 0) - before,
            }


@experiment(units=TIME)
def fixes(bed: Testbed) -> Iterator[Row]:
    """Time of the query in each variant.

    Each runs so many times that it lasts for one observation.
    """
    given = bed.parameters
    with bed.server.connect() as connection:
        there = all(loading.is_ours(connection, relation) for relation, _ in FIXES.values())
    if not there:  # `index_scans` was taken from a record
        make(bed.server)
    loads = {
        variant: Load(bed.server, SQL.text("orders.query", orders=relation))
        for variant, (relation, _) in FIXES.items()
    }
    many = {name: load.lasting(given.milliseconds, given.seed) for name, load in loads.items()}

    def measure(block: Block, variant: str) -> dict[str, float]:
        return loads[variant].times(many[variant], block)

    yield from bed.compare(
        measure,
        {"variant": [*FIXES]},
        pairs=ENOUGH_PAIRS,
        warmup=0,
        against=BEFORE,
        milliseconds=given.milliseconds,
    )
