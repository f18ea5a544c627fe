"""Arrays: as a list of keys, and in a column."""

from collections.abc import Iterator

import numpy as np
import psycopg

from pgrerun.chapters.access_paths.accounts import KEYED, SQL, allow_only, build, ready
from pgrerun.lab.instruments import plans
from pgrerun.lab.testbed import Row, Testbed, experiment

# ---- indexcol = ANY (array)

_KEYS = 500
ASKED = {"all of them": "arrays.all_of_list", "the first few in order": "arrays.first_of_list"}
PLAIN, BITMAP, EITHER = "index scan", "bitmap scan", "either of both"
LOOKED_UP = {
    "node": "text",
    "by_index": "yes or no",
    "sorts": "yes or no",
    "searches": "searches",
    "pages": "page accesses",
}
WAYS = {PLAIN: ("indexscan",), BITMAP: ("bitmapscan",), EITHER: ("indexscan", "bitmapscan")}


@experiment(units=LOOKED_UP)
def lists(bed: Testbed) -> Iterator[Row]:
    """Accounts by a list of keys, by a plain index scan and by a bitmap.

    By the index it is if the list is the scan's own condition, and not a filter of what it finds.
    Searches are descents of the tree, which are told from PostgreSQL 18 on.
    """
    ready(bed.server, bed.parameters.accounts, KEYED)
    with bed.server.connect() as connection:
        yield from looked_up(connection, bed.parameters.accounts)


def looked_up(connection: psycopg.Connection, accounts: int) -> Iterator[Row]:
    """Each list and question in each way, on a server that has so many accounts."""
    series = {
        "keys far apart": SQL.text("arrays.keys_far_apart", keys=_KEYS, step=accounts // _KEYS),
        "neighbouring keys": SQL.text("arrays.neighbouring_keys", keys=_KEYS),
    }
    for keys, statement in series.items():
        [(listed,)] = connection.execute(statement).fetchall()
        for asked, name in ASKED.items():
            for way, scans in WAYS.items():
                allow_only(connection, *scans)
                plan = plans.explain(connection, SQL.text(name, keys=listed), execute=True)
                searches = [node.properties.get("Index Searches") for node in plan.walk()]
                known = [number for number in searches if number is not None]
                scan = plan.scan_of(KEYED)
                yield {
                    "keys": keys,
                    "asked": asked,
                    "way": way,
                    "node": scan.node_type,
                    "by_index": "Index Cond" in scan.properties,
                    "sorts": bool(plan.find("Sort")),
                    "searches": sum(known) if known else None,
                    "pages": plan.page_accesses,
                }


# ---- selectivity

_ROWS, _TAGS = 20_000, 200  # few enough rows for ANALYZE to see all of them
_PER_ROW = 5
WITH, WITHOUT = "with the most common elements", "without"
ESTIMATES = {"estimated": "rows", "found": "rows", "q_error": "times"}
STATISTICS = {WITHOUT: "arrays.without_statistics", WITH: "arrays.with_statistics"}
ELEMENTS = {
    "overlaps": [[1], [3, 8], [20], [50, 60, 70], [120], [180, 190]],
    "is_contained_by": [list(range(1, end)) for end in (4, 9, 17, 33, 65, 129)],
}


@experiment(units=ESTIMATES)
def selectivity(bed: Testbed) -> Iterator[Row]:
    """Estimated and true rows of conditions on a column of small arrays, drawn by Zipf's law."""
    with bed.server.connect() as connection:
        fill_tags(connection, bed.parameters.seed)
        for known, command in STATISTICS.items():
            SQL.run(connection, command)
            for row in estimates(connection):
                yield {"statistics": known, **row}
        SQL.run(connection, "arrays.drop_tagged")


def fill_tags(connection: psycopg.Connection, seed: int) -> None:
    weights = 1 / np.arange(1, _TAGS + 1)
    drawn = np.random.default_rng(seed).choice(
        np.arange(1, _TAGS + 1), size=(_ROWS, _PER_ROW), p=weights / weights.sum()
    )
    build(connection, "tagged", "arrays.tagged")
    with connection.cursor().copy(SQL.text("arrays.copy_tags")) as copy:
        for row in drawn:
            copy.write_row((sorted({int(tag) for tag in row}),))


def estimates(connection: psycopg.Connection) -> Iterator[Row]:
    """Each condition by the statistics that there are."""
    for operator, conditions in ELEMENTS.items():
        for elements in conditions:
            literal = "{" + ",".join(map(str, elements)) + "}"
            query = SQL.text(f"arrays.{operator}", elements=literal)
            plan = plans.explain(connection, query, execute=True)
            yield {
                "operator": operator.replace("_", " "),
                "elements": literal,
                "estimated": float(plan.rows_estimated),
                "found": float(plan.rows_actual),
                "q_error": float(plan.q_error),
            }
