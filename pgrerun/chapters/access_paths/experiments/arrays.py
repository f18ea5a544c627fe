"""Arrays: as a list of keys, and in a column."""

import numpy as np
import pandas as pd

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.access_paths.accounts import (
    KEYED,
    SQL,
    allow_only,
    build,
    ready,
)
from pgrerun.lab.instruments import plans

# ---- indexcol = ANY (array)

_KEYS = 500
ALL, FEW = "all of them", "the first few in order"
ASKED = {ALL: "arrays.all_of_list", FEW: "arrays.first_of_list"}
PLAIN, BITMAP, EITHER = "index scan", "bitmap scan", "either of both"
WAYS = {
    PLAIN: ("indexscan",),
    BITMAP: ("bitmapscan",),
    EITHER: ("indexscan", "bitmapscan"),
}


@experiment(claims=["haas-053"])
def lists(chapter: Chapter) -> pd.DataFrame:
    """Accounts by a list of keys, by a plain index scan and by a bitmap.

    A row per list, question and way. Columns: keys, asked, way (what was allowed), node (what the
    plan has), sorts (whether it sorts), searches (descents of the tree; None before PostgreSQL
    18), pages (accesses).
    """
    rows = []
    ready(chapter.server, chapter.parameters.accounts, KEYED)
    step = chapter.parameters.accounts // _KEYS
    series = {
        "keys far apart": SQL.text("arrays.keys_far_apart", keys=_KEYS, step=step),
        "neighbouring keys": SQL.text("arrays.neighbouring_keys", keys=_KEYS),
    }
    with chapter.server.connect() as connection:
        for keys, statement in series.items():
            [(listed,)] = connection.execute(statement).fetchall()
            for asked, name in ASKED.items():
                for way, scans in WAYS.items():
                    allow_only(connection, *scans)
                    query = SQL.text(name, keys=listed)
                    plan = plans.explain(connection, query, execute=True)
                    rows.append((keys, asked, way, *_summary(plan)))
    columns = ["keys", "asked", "way", "node", "sorts", "searches", "pages"]
    return pd.DataFrame(rows, columns=columns)


def _summary(plan: plans.Plan) -> tuple:
    searches = [node.properties.get("Index Searches") for node in plan.walk()]
    known = [number for number in searches if number is not None]
    node = plan.scan_of(KEYED)
    return (
        node.node_type,
        bool(plan.find("Sort")),
        sum(known) if known else None,
        plan.page_accesses,
    )


# ---- selectivity

_ROWS, _TAGS = 20_000, 200  # few enough rows for ANALYZE to see all of them
_PER_ROW = 5
WITH, WITHOUT = "with the most common elements", "without"
STATISTICS = {WITHOUT: "arrays.without_statistics", WITH: "arrays.with_statistics"}
OPERATORS = {"overlaps": "arrays.overlaps", "is contained by": "arrays.is_contained_by"}
ELEMENTS = {
    "overlaps": [[1], [3, 8], [20], [50, 60, 70], [120], [180, 190]],
    "is contained by": [list(range(1, end)) for end in (4, 9, 17, 33, 65, 129)],
}


@experiment(claims=["haas-054"])
def selectivity(chapter: Chapter) -> pd.DataFrame:
    """Estimated and true rows of conditions on a column of small arrays, drawn by Zipf's law.

    Columns: operator, condition (number), elements (of its constant), statistics (WITH or
    WITHOUT), estimated, true, q_error.
    """
    rows = []
    generator = np.random.default_rng(chapter.parameters.seed)
    weights = 1 / np.arange(1, _TAGS + 1)
    drawn = generator.choice(
        np.arange(1, _TAGS + 1), size=(_ROWS, _PER_ROW), p=weights / weights.sum()
    )
    with chapter.server.connect() as connection:
        build(connection, "tagged", "arrays.tagged")
        with connection.cursor().copy(SQL.text("arrays.copy_tags")) as copy:
            for row in drawn:
                copy.write_row((sorted({int(tag) for tag in row}),))
        for known, command in STATISTICS.items():
            SQL.run(connection, command)
            for operator, name in OPERATORS.items():
                for number, elements in enumerate(ELEMENTS[operator]):
                    literal = "{" + ",".join(map(str, elements)) + "}"
                    query = SQL.text(name, elements=literal)
                    plan = plans.explain(connection, query, execute=True)
                    estimate = (plan.rows_estimated, plan.rows_actual, plan.q_error)
                    rows.append((operator, number, len(elements), known, *estimate))
        SQL.run(connection, "arrays.drop_tagged")
    columns = ["operator", "condition", "elements", "statistics", "estimated", "true", "q_error"]
    return pd.DataFrame(rows, columns=columns)
