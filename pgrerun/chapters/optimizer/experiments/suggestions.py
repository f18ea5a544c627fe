"""Section 4: what the report asked for, and what of it is there today."""

import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from typing import Any

import pandas as pd
import psycopg

from pgrerun.chapters.optimizer import queries, variants
from pgrerun.chapters.optimizer.experiments.ranges import actual, estimated
from pgrerun.chapters.optimizer.experiments.scans import (
    FORCED,
    asked,
    cold_seconds,
    forgetful,
    measured,
    planned_with,
    warm_seconds,
)
from pgrerun.chapters.optimizer.variants import INDEX, SEQUENTIAL, SQL
from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab.instruments import plans
from pgrerun.lab.relations import Wisconsin, loading
from pgrerun.lab.testbed import Block, Row, Testbed, experiment

# ---- statistics: at index creation, by the daemon, by hand


@experiment(units={"with_statistics": "columns", "rows": "rows", "expected": "rows"})
def index_creation(bed: Testbed) -> Iterator[Row]:
    """What CREATE INDEX tells the optimizer of a relation that nobody has analyzed, and of rows
    above the greatest value that was there when somebody had.
    """
    tuples = queries.LARGE_TUPLES
    index = {"index": "fresh_key", "relation": "fresh", "attribute": "key"}
    with variants.session(bed.server) as connection:
        keys = SQL.each("relations.keys", first=0, last=tuples - 1)
        loading.make(connection, "fresh", *SQL.each("relations.fresh"), *keys)
        connection.execute("VACUUM fresh")  # its size is known, its values aren't

        def look(step: str, least: int) -> Row:
            where = f"key >= {least}"
            return {
                "step": step,
                "with_statistics": SQL.run(
                    connection, "statistics.known", relation="fresh"
                ).fetchone()[0],
                "rows": actual(connection, "fresh", where),
                "expected": estimated(connection, "fresh", where),
            }

        yield look("loaded", tuples // 2)
        SQL.run(connection, "relations.index", **index)
        yield look("CREATE INDEX", tuples // 2)
        connection.execute("DROP INDEX fresh_key")
        connection.execute("ANALYZE fresh")
        yield look("ANALYZE", tuples // 2)
        # Half as many rows again above the greatest value known, so that they can't be missed.
        SQL.run(connection, "relations.keys", first=tuples, last=3 * tuples // 2 - 1)
        yield look("rows added above, no index", tuples + tuples // 4)
        SQL.run(connection, "relations.index", **index)
        yield look("rows added above, CREATE INDEX", tuples + tuples // 4)


@experiment(units={"greatest": "", "known": "", "seconds": "s"})
def daemon(bed: Testbed, patience: float = 30) -> Iterator[Row]:
    """Statistics after loading and after a change, gathered by nobody but the daemon.

    An own server whose daemon wakes up every second. ServerError if the daemon never comes.
    """
    server = bed.cluster(autovacuum="on", autovacuum_naptime=1)
    tuples = queries.LARGE_TUPLES
    with variants.session(server) as connection:
        loading.make(connection, "fresh", *SQL.each("relations.watched"))
        for event, first in (("loaded", 0), ("as many rows added", tuples)):
            most = first + tuples - 1
            SQL.run(connection, "relations.keys", first=first, last=most)
            started, known = time.monotonic(), None
            while known != most:
                if time.monotonic() - started > patience:
                    raise ServerError(
                        f"The autovacuum daemon of {server.name} gathered no statistics in"
                        f" {patience:g} s."
                    )
                time.sleep(0.05)
                row = SQL.run(connection, "statistics.greatest", relation="fresh").fetchone()
                known = row[0] if row else None
            waited = time.monotonic() - started
            yield {"event": event, "greatest": most, "known": known, "seconds": waited}


# ---- clustering


NEVER, DECLARED, ANALYZED = "never analyzed", "declared to be in order", "analyzed"


@experiment(units={"correlation": "", "rows": "rows", "cost": ""})
def clustering(bed: Testbed) -> Iterator[Row]:
    """What the optimizer thinks of the order of tuples: unknown, declared by hand (where that can
    be done), and analyzed.

    The range and its tuples are the same; only their order in the relation differs. Rows and cost
    are those of an index scan of a tenth.
    """
    tuples = queries.LARGE_TUPLES
    loads = {
        queries.CLUSTERED: "relations.clustered_rows",
        queries.SHUFFLED: "relations.shuffled_rows",
    }
    query = f"SELECT * FROM laid_out WHERE key < {tuples // 10}"
    with variants.session(bed.server) as connection:

        def look(state: str, layout: str) -> Row:
            known = _correlation(connection, "laid_out", "key")
            with variants.forced(connection, INDEX):
                plan = plans.explain(connection, query)
            return {
                "relation": state,
                "layout": layout,
                "correlation": known,
                "rows": plan.rows_estimated,
                "cost": plan.total_cost,
            }

        for layout, rows in loads.items():
            made = [*SQL.each("relations.laid_out"), *SQL.each(rows, tuples=tuples)]
            index = {"index": "laid_out_key", "relation": "laid_out", "attribute": "key"}
            loading.make(connection, "laid_out", *made, *SQL.each("relations.index", **index))
            connection.execute("VACUUM laid_out")
            yield look(NEVER, layout)
            with suppress(CannotMeasure), connection.transaction():
                order = {"relation": "laid_out", "attribute": "key", "correlation": 1}
                variants.tell(connection, "ordered", **order)
                yield look(DECLARED, layout)
            connection.execute("ANALYZE laid_out")
            yield look(ANALYZED, layout)


def _correlation(connection: psycopg.Connection, relation: str, attribute: str) -> float | None:
    """What pg_stats says of an attribute's order, to a hundredth; None if never analyzed."""
    known = {"relation": relation, "attribute": attribute}
    row = SQL.run(connection, "statistics.correlation", **known).fetchone()
    return round(row[0], 2) if row else None


@experiment(units={"correlation": "", "jumps": "pages"})
def clusterable(bed: Testbed) -> Iterator[Row]:
    """The order by every attribute in turn, before CLUSTER and after: the correlation that the
    optimizer knows, and how often a walk in the attribute's order goes to another page.
    """
    relation = Wisconsin("reordered", queries.SMALL_TUPLES, attributes="1990")
    with variants.session(bed.server) as connection:
        for attribute in relation.integers + relation.texts:
            relation.load(connection)
            index = {"index": "reordered_key", "relation": "reordered", "attribute": attribute}
            SQL.run(connection, "relations.index", **index)
            for clustered in (False, True):
                if clustered:
                    SQL.run(connection, "relations.cluster")
                jumps = SQL.run(connection, "relations.jumps", attribute=attribute)
                yield {
                    "attribute": attribute,
                    "clustered": clustered,
                    "correlation": _correlation(connection, "reordered", attribute),
                    "jumps": jumps.fetchone()[0],
                }
        connection.execute("DROP TABLE reordered")


# ---- what knowing the order is worth

NARROWER = (0.01, 0.02, 0.05)  # than the report's first range: where an index is worth most
# The report's system had no bitmap scan: the first choice is between its own two.
CHOICES = {"without bitmaps": (SEQUENTIAL, INDEX), "with bitmaps": FORCED}
RIGHT, WRONG = "right", "wrong"
TOLD_AGAIN = f"{RIGHT}, again"


@experiment(units=variants.ALTERNATIVE)
def told_order(bed: Testbed) -> Iterator[Row]:
    """The plans of the timed relation when the planner is told the wrong order, and as it is.

    The correlation of the relation's two attributes is exchanged by hand, and that rolled back.
    """
    with variants.session(queries.load_scanned(bed, queries.TIMED)) as connection:
        for wrong in (False, True):
            with connection.transaction(force_rollback=True):
                for layout, correlation in (
                    ((queries.CLUSTERED, 0), (queries.SHUFFLED, 1)) if wrong else ()
                ):
                    order = {"attribute": queries.ATTRIBUTES[layout], "correlation": correlation}
                    variants.tell(connection, "ordered", relation=queries.TIMED, **order)
                for row in planned_with(bed, connection, queries.TIMED, more=NARROWER):
                    yield {"wrong": wrong} | row


def misled(bed: Testbed) -> list[Row]:
    """In either layout the range that a wrong order harms most, and the scans that the planner
    takes for it: a row for each order that it is told, with bitmap scans and without.

    Which range that is the planner's costs under the right order say: of times, the worst would be
    too bad by their noise. CannotMeasure where nobody can tell the planner an order.
    """
    told = measured(bed, told_order)
    if told.empty or not told["wrong"].any():
        raise CannotMeasure("PostgreSQL 18", "an order can be told since PostgreSQL 18 only")
    told = told.astype({"selectivity": float, "cost": float, "wrong": bool})
    found: list[Row] = []
    for layout, (choice, methods) in product(queries.ATTRIBUTES, CHOICES.items()):
        costs = told[told["layout"] == layout].pivot(
            index="selectivity", columns=["wrong", "method"], values="cost"
        )
        right, wrong = (costs.xs(order, axis=1)[[*methods]] for order in (False, True))
        taken = pd.DataFrame({RIGHT: right.idxmin(axis=1), WRONG: wrong.idxmin(axis=1)})
        harm = {
            at: right.at[at, scans[WRONG]] / right.at[at, scans[RIGHT]]
            for at, scans in taken.iterrows()
        }
        worst = max(harm, key=harm.__getitem__)
        found += [
            {"layout": layout, "choice": choice, "selectivity": worst, "told": order, "method": one}
            for order, one in taken.loc[worst].items()
        ]
    return found


@experiment(units={"seconds": "s"}, after=["told_order"])
def price_of_order(bed: Testbed) -> Iterator[Row]:
    """Time the ranges that a wrong order harms most with the scans of the right order and of the
    wrong one, with the relation in memory; one of them twice.
    """
    compared = misled(bed)
    compared.append(compared[0] | {"told": TOLD_AGAIN})
    least = bed.parameters.milliseconds / 1000
    with variants.session(queries.load_scanned(bed, queries.TIMED)) as connection:

        def scan(block: Block, **of: Any) -> dict[str, float]:
            return warm_seconds(connection, of["method"], _range(bed, of), least)

        yield from bed.compare(
            scan, compared, warmup=0, positive=["seconds"], fixed=True, **asked(bed)
        )


@experiment(units={"seconds": "s"}, after=["told_order"])
def cold_price_of_order(bed: Testbed) -> Iterator[Row]:
    """The same with the relation in no cache."""
    with forgetful(bed) as (connection, forget):

        def scan(block: Block, **of: Any) -> dict[str, float]:
            return cold_seconds(connection, of["method"], _range(bed, of), forget)

        yield from bed.compare(
            scan, misled(bed), pairs=bed.fewer_pairs, warmup=0, positive=["seconds"], fixed=True
        )


def _range(bed: Testbed, of: Row) -> str:
    query = queries.scan_of(bed, queries.TIMED, of["layout"], of["selectivity"])
    return queries.discarded(query)
