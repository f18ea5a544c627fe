"""The faults of 1990, put back into a running server for the length of a transaction."""

import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.optimizer import queries, variants
from pgrerun.chapters.optimizer.experiments import scans
from pgrerun.chapters.optimizer.variants import (
    CLUSTERED,
    CONSTANT,
    EXCHANGED,
    HASH,
    NESTED,
    NONE,
    REPORT,
    SQL,
)
from pgrerun.lab.instruments import plans
from pgrerun.lab.server import value


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


UNSIZED = "result size never set"
BOTH = "both"
# Of the wrong join: what is put back, and whether the relations' sizes are forgotten.
_JOIN_FAULTS = {
    NONE: (NONE, False),
    CONSTANT: (CONSTANT, False),
    UNSIZED: (NONE, True),
    BOTH: (CONSTANT, True),
}


@experiment(claims=["lai-076"])
def third_join(chapter: Chapter) -> pd.DataFrame:
    """The join planned for query 3 at both sizes with the report's two faults, alone and together.

    Columns: tuples (of either relation), fault, planned, rows expected, rows, cost of nested loop,
    cost of hash join.
    """
    rows = []
    with variants.session(chapter.cluster()) as connection:
        for size, tuples in queries.sizes(chapter).items():
            statement = queries.selected(queries.join(chapter, 3, size))
            actual = value(connection, int, queries.counted(statement))
            for name, (selectivity, unsized) in _JOIN_FAULTS.items():
                with variants.fault(connection, selectivity):
                    for relation in queries.joined(size, indexed=False) if unsized else ():
                        variants.tell(connection, "unsized", relation=relation)
                    plan = plans.explain(connection, statement)
                    forced = variants.alternatives(connection, statement, (NESTED, HASH))
                planned, costs = variants.method_of(plan), [row["cost"] for row in forced]
                rows.append((tuples, name, planned, plan.rows_estimated, actual, *costs))
    columns = ["tuples", "fault", "planned", "rows expected", "rows"]
    return pd.DataFrame(rows, columns=[*columns, "cost of nested loop", "cost of hash join"])
