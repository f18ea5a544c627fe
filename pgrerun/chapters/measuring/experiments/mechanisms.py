"""Why something gets faster: an index that helps without being scanned."""

from dataclasses import dataclass
from functools import partial

import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.measuring.experiments.load import SQL, Load, create
from pgrerun.lab.experiment import Variant
from pgrerun.lab.instruments import counters, plans
from pgrerun.lab.server import value

TIME = {"time": "ms per query"}

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
    """Time of the query in each variant, which `index_scans` has made.

    Each runs as many times as the slowest takes for one observation.
    """
    given = chapter.parameters
    loads = {variant: Load(chapter.server, fix.query) for variant, fix in FIXES.items()}
    many = loads[BEFORE].lasting(given.milliseconds, given.seed)
    variants = [Variant(variant, partial(load.times, many)) for variant, load in loads.items()]
    chapter.compare("fixes", variants, TIME, warmup=0)
