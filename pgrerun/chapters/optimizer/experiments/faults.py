"""The faults of 1990, put back into a running server for the length of a transaction."""

import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.optimizer import queries, variants
from pgrerun.chapters.optimizer.experiments import scans
from pgrerun.chapters.optimizer.variants import (
    CLUSTERED,
    CONSTANT,
    EXCHANGED,
    NONE,
    REPORT,
    SQL,
)
from pgrerun.lab.instruments import plans


@experiment(claims=["lai-064"])
def registered(chapter: Chapter) -> pd.DataFrame:
    """The estimator of every comparison of two integers: operator, estimator."""
    with chapter.server.connect() as connection:
        rows = SQL.run(connection, "faults.registered").fetchall()
    return pd.DataFrame(rows, columns=["operator", "estimator"])


@experiment()
def greater_than(chapter: Chapter) -> pd.DataFrame:
    """Rows estimated for key > constant with the right function and with that of 1990.

    Columns: selectivity, rows, and the rows estimated without and with the fault.
    """
    tuples, found = queries.large_tuples(), []
    with variants.session(chapter.cluster()) as connection:
        for name in (NONE, EXCHANGED):
            with variants.fault(connection, name):
                for tenth in range(1, 10):
                    bound = tuples * (10 - tenth) // 10 - 1
                    query = f"SELECT * FROM {REPORT} WHERE unique2 > {bound}"
                    estimated = plans.explain(connection, query).rows_estimated
                    found.append((name, tenth / 10, tuples - 1 - bound, estimated))
    frame = pd.DataFrame(found, columns=["fault", "selectivity", "rows", "estimated"])
    wide = frame.pivot(index=["selectivity", "rows"], columns="fault", values="estimated")
    return wide[[NONE, EXCHANGED]].reset_index()


@experiment(claims=["lai-063"])
def first_set(chapter: Chapter) -> pd.DataFrame:
    """The first set's choices by the clustered attribute as the server is, and with CONSTANT.

    Columns: fault, selectivity, planned, cost, rows.
    """
    found = []
    with variants.session(chapter.cluster()) as connection:
        for name in (NONE, CONSTANT):
            with variants.fault(connection, name):
                sweep = scans.planned_with(chapter, connection, REPORT, [CLUSTERED])
            found.append(sweep[sweep["chosen"]].assign(fault=name))
    frame = pd.concat(found, ignore_index=True).rename(columns={"method": "planned"})
    return frame[["fault", "selectivity", "planned", "cost", "rows"]]
