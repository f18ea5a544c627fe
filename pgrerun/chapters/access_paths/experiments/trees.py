"""GiST, SP-GiST and B-trees: what it takes to build one, and how good what was built is."""

from functools import partial

import pandas as pd
import psycopg

from pgrerun.chapter import Chapter, experiment
from pgrerun.chapters.access_paths.accounts import SQL, allow_only, allowed, build, timed
from pgrerun.chapters.access_paths.experiments.sorting import copy_without_sort_support
from pgrerun.lab.experiment import Block, Variant
from pgrerun.lab.instruments import callgrind, plans, sizes

# ---- points and text

ONE_BY_ONE, BUFFERED, SORTED, SPACE = (
    "GiST, row by row",
    "GiST, buffered",
    "GiST, sorted",
    "SP-GiST",
)
POINT_INDEXES = {
    ONE_BY_ONE: "trees.gist_row_by_row",
    BUFFERED: "trees.gist_buffered",
    SORTED: "trees.gist_sorted",
    SPACE: "trees.spgist",
}
BTREE = "B-tree"
TEXT_INDEXES = {SPACE: "trees.spgist_text", BTREE: "trees.btree_text"}
SEARCHES, AGAIN = 25, 8  # different ones, and how often all are timed
UNITS = {"build": "s", "pages": "pages", "search": "s", "accesses": "pages per search"}


@experiment(needs=["superuser"])
def points(chapter: Chapter) -> pd.DataFrame:
    """Build each index over the same random points and search it with the same boxes.

    The observations; metrics: time to build, pages, time of all searches, page accesses per
    search (a page counts as often as it is visited).
    """
    with chapter.server.connect() as connection:
        copy_without_sort_support(connection, "gist", "point_ops", "points_unsorted")
        build(connection, "points", "trees.points", objects=chapter.parameters.objects)
        queries = [SQL.text("trees.search_box", number=number) for number in range(SEARCHES)]
        variants = [
            Variant(name, partial(_built, connection, SQL.text(statement), queries))
            for name, statement in POINT_INDEXES.items()
        ]
        return chapter.compare("points", variants, UNITS)


@experiment(claims=["haas-057"])
def texts(chapter: Chapter) -> pd.DataFrame:
    """The same for addresses with long common prefixes, searched by prefix."""
    objects = {"relation": "pages", "objects": chapter.parameters.objects}
    with chapter.server.connect() as connection:
        build(connection, "pages", "trees.addresses", **objects)
        queries = [_search_prefix("pages", number) for number in range(SEARCHES)]
        variants = [
            Variant(
                name,
                partial(_built, connection, SQL.text(statement, relation="pages"), queries),
            )
            for name, statement in TEXT_INDEXES.items()
        ]
        return chapter.compare("texts", variants, UNITS)


@experiment(claims=["haas-057"])
def instructions(chapter: Chapter) -> pd.Series:
    """What all searches by prefix execute, by index: each has a relation of its own, as otherwise
    the planner would choose between them.
    """
    cluster, statements = chapter.cluster(), {}
    relations = {SPACE: "pages", BTREE: "more_pages"}
    with cluster.connect() as connection:
        for index, relation in relations.items():
            objects = {"relation": relation, "objects": chapter.parameters.objects}
            build(connection, relation, "trees.addresses", **objects)
            SQL.run(connection, "trees.drop_index")
            SQL.run(connection, TEXT_INDEXES[index], relation=relation)
            SQL.run(connection, "trees.keep_index", kept=f"searched_{relation}")
            each = [_search_prefix(relation, number).rstrip(";") for number in range(SEARCHES)]
            statements[index] = (allowed("indexonlyscan"), f"SELECT ({'), ('.join(each)})")
    return callgrind.executed(cluster, statements)


def _search_prefix(relation: str, number: int) -> str:
    place = f"{2000 + number % 12}/{1 + number % 28}/message-{number % 9 + 1}"
    prefix = f"https://www.example.org/archive/{place}%"
    return SQL.text("trees.search_prefix", relation=relation, prefix=prefix)


def _built(
    connection: psycopg.Connection, create: str, queries: list[str], block: Block
) -> dict[str, float]:
    SQL.run(connection, "trees.drop_index")
    seconds = timed(connection, create)
    allow_only(connection, "indexonlyscan")
    executed = [plans.explain(connection, query, execute=True) for query in queries]
    return {
        "build": seconds,
        "pages": sizes.pages(connection, "searched"),
        "search": sum(timed(connection, query) for query in AGAIN * queries) / AGAIN,
        "accesses": sum(plan.page_accesses for plan in executed) / len(queries),
    }


# ---- B-trees

BUILT, RANDOM, ASCENDING = "built at once", "grown in random order", "grown in ascending order"
WAYS = {
    BUILT: ("trees.insert_ascending", "trees.index_keys"),
    RANDOM: ("trees.index_keys", "trees.insert_in_random_order"),
    ASCENDING: ("trees.index_keys", "trees.insert_ascending"),
}


@experiment(claims=["haas-056"])
def btrees(chapter: Chapter) -> pd.DataFrame:
    """A B-tree over the same keys, made in three ways.

    Columns: way, pages, density (% of a leaf), fragmentation (% of leaves whose right neighbour
    lies before them), lookup and range (page accesses of a search for one key, and for a tenth of
    them).
    """
    rows, found = chapter.parameters.objects, []
    middle, last = rows // 2, rows // 2 + rows // 10
    queries = (
        SQL.text("trees.find_one", first=middle),
        SQL.text("trees.find_range", first=middle, last=last),
    )
    chapter.server.extension("pgstattuple")
    with chapter.server.connect() as connection:
        for way, steps in WAYS.items():
            build(connection, "grown", "trees.grown")
            for step in steps:
                SQL.run(connection, step, **({"rows": rows} if "insert" in step else {}))
            SQL.run(connection, "trees.vacuum_grown")
            [quality] = SQL.run(connection, "trees.quality").fetchall()
            allow_only(connection, "indexonlyscan")
            for query in queries:  # the first execution may read catalogs as well
                plans.explain(connection, query, execute=True)
            executed = [plans.explain(connection, query, execute=True) for query in queries]
            accesses = [plan.page_accesses for plan in executed]
            pages = sizes.pages(connection, "grown_k")
            found.append((way, pages, *map(float, quality), *accesses))
    columns = ["way", "pages", "density", "fragmentation", "lookup", "range"]
    return pd.DataFrame(found, columns=columns)
