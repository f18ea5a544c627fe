"""Why something gets faster: an index that helps without a scan, and a specific mechanism."""

from dataclasses import dataclass
from functools import partial

import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.measuring.experiments.load import SQL, Load, create
from pgrerun.lab.experiment import Variant
from pgrerun.lab.instruments import counters, plans
from pgrerun.lab.relations import loading
from pgrerun.lab.server import value

TIME = {"time": "ms per query"}

# ---- a fix that works for another reason

ORDERS, CUSTOMERS = 8_000, 60
BEFORE, INDEXED, STATISTICS = (
    "as it was",
    "an index on the expressions",
    "statistics on them, no index",
)
INDEX = "orders_fix"
SCANS = "scans of the new index"


@dataclass(frozen=True)
class Fix:
    """Orders, in a relation of their own, and the DDL in sql/ that is to make the query faster."""

    relation: str
    ddl: str

    @property
    def query(self) -> str:
        return SQL.text("orders.query", orders=self.relation)


FIXES = {
    BEFORE: Fix("orders_before", ""),
    INDEXED: Fix("orders_indexed", "orders.index"),
    STATISTICS: Fix("orders_statistics", "orders.statistics"),
}


@experiment(claims=["haas-078"])
def index_scans(chapter: Chapter) -> pd.DataFrame:
    """What the query does to equal orders in each of `FIXES`, and how often it scans the new index.

    Columns: variant, answer, plan (its joins, and the scan of orders), orders expected, orders
    found, `SCANS`. The registered prediction is the last: who builds an index expects it to be
    scanned.
    """
    server, sizes, rows = chapter.server, {"customers": CUSTOMERS, "tuples": ORDERS}, []
    create(server, "customers", "relations.customers", **sizes)
    for fix in FIXES.values():
        create(server, fix.relation, "relations.orders", fix.ddl, orders=fix.relation, **sizes)
    with server.connect() as connection:
        before = counters.counts(connection, INDEX)["scans"]
        for variant, fix in FIXES.items():
            answer = value(connection, int, fix.query)
            plan = plans.explain(connection, fix.query, execute=True)
            scan = plan.scan_of(fix.relation)
            after = counters.counts(connection, INDEX)["scans"]
            shape = ", ".join([*plan.joins, scan.node_type])
            found = round(scan.rows_actual)
            rows.append((variant, answer, shape, scan.rows_estimated, found, after - before))
    columns = ["variant", "answer", "plan", "orders expected", "orders found", SCANS]
    return pd.DataFrame(rows, columns=columns)


@experiment(claims=["haas-078"])
def fixes(chapter: Chapter, _scans: pd.DataFrame) -> None:
    """Time of the query in each variant, which `index_scans` has made."""
    _compare_queries(chapter, "fixes", {name: fix.query for name, fix in FIXES.items()})


def _compare_queries(chapter: Chapter, name: str, queries: dict[str, str]) -> None:
    """Time of each query, as many times as the first takes for one observation."""
    given = chapter.parameters
    loads = {variant: Load(chapter.server, query) for variant, query in queries.items()}
    many = next(iter(loads.values())).lasting(given.milliseconds, given.seed)
    variants = [Variant(variant, partial(load.times, many)) for variant, load in loads.items()]
    chapter.compare(name, variants, TIME, warmup=0)


# ---- a general mechanism beside a specific one

NUMBERS = 30_000
SPECIFIC, GENERAL = "sort support", "the general comparison"
SORTS = {SPECIFIC: "sorts.specific", GENERAL: "sorts.general"}


def sort_of(chapter: Chapter, variant: str) -> str:
    """The query that sorts `numbers` in one of the orders and returns the last."""
    given = {"schema": chapter.server.schema, "all_but_one": NUMBERS - 1}
    return SQL.text(SORTS[variant], **given)


@experiment(claims=["haas-059"], needs=["superuser"])
def comparisons(chapter: Chapter) -> pd.DataFrame:
    """Make an order of integers that lacks sort support, and show what the catalog says of both.

    The same function compares, called the way that any data type's function is called. Columns:
    operator class, operator, compares by, sort support.
    """
    create(chapter.server, "numbers", "relations.numbers", tuples=NUMBERS)
    with loading.session(chapter.server) as connection, connection.transaction():
        if not value(connection, bool, SQL.text("sorts.exists")):
            SQL.run(connection, "sorts.operators")
        found = SQL.run(connection, "sorts.catalog").fetchall()
    columns = ["operator class", "operator", "compares by", "sort support"]
    return pd.DataFrame(found, columns=columns)


@experiment(claims=["haas-059"], needs=["superuser"])
def sorts(chapter: Chapter, _catalog: pd.DataFrame) -> None:
    """Time to sort the same integers by either order, which `comparisons` has made."""
    _compare_queries(chapter, "sorts", {variant: sort_of(chapter, variant) for variant in SORTS})
