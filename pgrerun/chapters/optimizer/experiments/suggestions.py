"""Section 4: what the report asked for, and what of it is there today."""

import time
from contextlib import suppress

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.optimizer import queries, variants
from pgrerun.chapters.optimizer.experiments import scans
from pgrerun.chapters.optimizer.experiments.ranges import actual, estimated
from pgrerun.chapters.optimizer.variants import (
    ATTRIBUTES,
    CLUSTERED,
    INDEX,
    SHUFFLED,
    SQL,
    TIMED,
)
from pgrerun.errors import CannotMeasure, ServerError
from pgrerun.lab.instruments import plans
from pgrerun.lab.relations import Wisconsin, loading

# ---- statistics: at index creation, by the daemon, by hand


def _load_fresh(connection: psycopg.Connection, tuples: int) -> None:
    """The relation `fresh`, never analyzed: its size is known, its values aren't."""
    with connection.transaction():
        loading.replace(connection, "fresh", SQL.text("relations.fresh"))
        SQL.run(connection, "relations.keys", first=0, last=tuples - 1)
    connection.execute("VACUUM fresh")


@experiment(claims=["lai-088"])
def index_creation(chapter: Chapter) -> pd.DataFrame:
    """What CREATE INDEX tells the optimizer.

    Columns: step, statistics (attributes that have them), rows, estimated. The last rows are those
    above the greatest value that was there when the relation was analyzed.
    """
    tuples, found = queries.large_tuples(), []
    index = {"index": "fresh_key", "relation": "fresh", "attribute": "key"}
    with variants.session(chapter.server) as connection:
        _load_fresh(connection, tuples)

        def look(step: str, least: int) -> None:
            known = SQL.run(connection, "statistics.known", relation="fresh").fetchone()[0]
            where = f"key >= {least}"
            rows = actual(connection, "fresh", where), estimated(connection, "fresh", where)
            found.append((step, known, *rows))

        look("loaded", tuples // 2)
        SQL.run(connection, "relations.index", **index)
        look("CREATE INDEX", tuples // 2)
        connection.execute("DROP INDEX fresh_key")
        connection.execute("ANALYZE fresh")
        look("ANALYZE", tuples // 2)
        # Half as many rows again above the greatest value known, so that they can't be missed.
        SQL.run(connection, "relations.keys", first=tuples, last=3 * tuples // 2 - 1)
        look("rows added above, no index", tuples + tuples // 4)
        SQL.run(connection, "relations.index", **index)
        look("rows added above, CREATE INDEX", tuples + tuples // 4)
    return pd.DataFrame(found, columns=["step", "statistics", "rows", "estimated"])


@experiment(claims=["lai-089", "lai-090"])
def daemon(chapter: Chapter, patience: float = 30) -> pd.DataFrame:
    """Statistics after loading and after a change, gathered by nobody but the daemon.

    An own server whose daemon wakes up every second. Columns: event, greatest value, known to the
    optimizer, seconds. ServerError if the daemon never comes.
    """
    server = chapter.cluster(autovacuum="on", autovacuum_naptime=1)
    tuples, found = queries.large_tuples(), []
    with variants.session(server) as connection:
        with connection.transaction():
            loading.replace(connection, "fresh", SQL.text("relations.watched"))
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
            found.append((event, most, known, time.monotonic() - started))
    columns = ["event", "greatest value", "known to the optimizer", "seconds"]
    return pd.DataFrame(found, columns=columns)


# ---- clustering


NEVER, DECLARED, ANALYZED = "never analyzed", "declared to be in order", "analyzed"


@experiment(claims=["lai-091", "lai-093"])
def clustering(chapter: Chapter) -> pd.DataFrame:
    """What the optimizer thinks of the order of tuples: unknown, declared by hand, and analyzed.

    The range and its tuples are the same; only their order in the relation differs. Columns:
    relation (NEVER, DECLARED where that can be done, or ANALYZED), layout, correlation (None if
    unknown), rows (estimated), cost (of an index scan of a tenth).
    """
    found, tuples = [], queries.large_tuples()
    loads = {CLUSTERED: "relations.clustered_rows", SHUFFLED: "relations.shuffled_rows"}
    query = f"SELECT * FROM laid_out WHERE key < {tuples // 10}"
    with variants.session(chapter.server) as connection:

        def look(state: str, layout: str) -> None:
            known = _correlation(connection, "laid_out", "key")
            with variants.forced(connection, INDEX):
                plan = plans.explain(connection, query)
            found.append((state, layout, known, plan.rows_estimated, plan.total_cost))

        for layout, rows in loads.items():
            with connection.transaction():
                loading.replace(connection, "laid_out", SQL.text("relations.laid_out"))
                SQL.run(connection, rows, tuples=tuples)
                index = {"index": "laid_out_key", "relation": "laid_out", "attribute": "key"}
                SQL.run(connection, "relations.index", **index)
            connection.execute("VACUUM laid_out")
            look(NEVER, layout)
            with suppress(CannotMeasure), connection.transaction():
                order = {"relation": "laid_out", "attribute": "key", "correlation": 1}
                variants.tell(connection, "ordered", **order)
                look(DECLARED, layout)
            connection.execute("ANALYZE laid_out")
            look(ANALYZED, layout)
    return pd.DataFrame(found, columns=["relation", "layout", "correlation", "rows", "cost"])


def _correlation(connection: psycopg.Connection, relation: str, attribute: str) -> float | None:
    """What pg_stats says of an attribute's order, to a hundredth; None if never analyzed."""
    known = {"relation": relation, "attribute": attribute}
    row = SQL.run(connection, "statistics.correlation", **known).fetchone()
    return round(row[0], 2) if row else None


@experiment(claims=["lai-092"])
def clusterable(chapter: Chapter) -> pd.DataFrame:
    """CLUSTER on every attribute in turn.

    Columns: attribute, correlation and jumps (how often a walk in the attribute's order goes to
    another page) before, and the same after.
    """
    found = []
    relation = Wisconsin("reordered", queries.small_tuples(), attributes="1990")
    with variants.session(chapter.server) as connection:
        for attribute in relation.integers + relation.texts:
            relation.load(connection)
            index = {"index": "reordered_key", "relation": "reordered", "attribute": attribute}
            SQL.run(connection, "relations.index", **index)
            row = {"attribute": attribute}
            for when in ("before", "after"):
                if when == "after":
                    SQL.run(connection, "relations.cluster")
                jumps = SQL.run(connection, "relations.jumps", attribute=attribute)
                row[f"correlation {when}"] = _correlation(connection, "reordered", attribute)
                row[f"jumps {when}"] = jumps.fetchone()[0]
            found.append(row)
        connection.execute("DROP TABLE reordered")
    return pd.DataFrame(found)


@experiment(claims=["lai-094"])
def assumed(chapter: Chapter) -> pd.DataFrame:
    """The scans that the planner takes when it is told the wrong order.

    The correlation of the timed relation's two attributes is exchanged by hand, and that rolled
    back. Columns: layout, selectivity, right, wrong (methods).
    """
    chosen = {}
    with variants.session(chapter.server) as connection:
        chosen["right"] = scans.planned_with(chapter, connection, TIMED)
        with connection.transaction(force_rollback=True):
            for layout, correlation in ((CLUSTERED, 0), (SHUFFLED, 1)):
                order = {"attribute": ATTRIBUTES[layout], "correlation": correlation}
                variants.tell(connection, "ordered", relation=TIMED, **order)
            chosen["wrong"] = scans.planned_with(chapter, connection, TIMED)
    methods = {}
    for which, found in chosen.items():
        kept = found[found["chosen"]].set_index(["layout", "selectivity"])
        methods[which] = kept["method"]
    return pd.DataFrame(methods).reset_index()
