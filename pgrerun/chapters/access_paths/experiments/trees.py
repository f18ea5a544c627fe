"""GiST, SP-GiST and B-trees: what it takes to build one, and how good what was built is."""

from collections.abc import Iterator, Mapping

import psycopg

from pgrerun.chapters.access_paths.accounts import (
    SQL,
    allow_only,
    allowed,
    build,
    repeated,
    timed,
)
from pgrerun.chapters.access_paths.experiments.sorting import copy_without_sort_support
from pgrerun.lab.instruments import callgrind, plans, sizes
from pgrerun.lab.server import Server
from pgrerun.lab.testbed import Block, Row, Testbed, experiment, shortened

ONE_BY_ONE, SORTED, SPACE = "GiST, row by row", "GiST, sorted", "SP-GiST"
POINT_INDEXES = {
    ONE_BY_ONE: "trees.gist_row_by_row",
    "GiST, buffered": "trees.gist_buffered",
    SORTED: "trees.gist_sorted",
    SPACE: "trees.spgist",
}
BTREE = "B-tree"
TEXT_INDEXES = {SPACE: "trees.spgist_text", BTREE: "trees.btree_text"}
SEARCHES = 25  # different ones, all of which are timed together
UNITS = {"build": "s", "pages": "pages", "execution": "s/search", "accesses": "pages/search"}


@experiment(units=UNITS, needs=["superuser"])
def points(bed: Testbed) -> Iterator[Row]:
    """Build each index over the same random points and search it with the same boxes.

    A page counts as often as a search visits it.
    """
    with bed.server.connect() as connection:
        copy_without_sort_support(connection, "gist", "point_ops", "points_unsorted")
        build(connection, "points", "trees.points", objects=bed.parameters.objects)
        yield from _built(
            bed,
            connection,
            POINT_INDEXES,
            [SQL.text("trees.search_box", number=number) for number in range(SEARCHES)],
            shortened(bed.parameters.milliseconds),
        )


@experiment(units=UNITS)
def texts(bed: Testbed) -> Iterator[Row]:
    """The same for addresses with long common prefixes, searched by prefix."""
    yield from texts_of(bed, bed.server, shortened(bed.parameters.milliseconds))


def texts_of(bed: Testbed, server: Server, milliseconds: float) -> Iterator[Row]:
    """The same on any server, searches timed for so long."""
    with server.connect() as connection:
        build(
            connection, "pages", "trees.addresses", relation="pages", objects=bed.parameters.objects
        )
        queries = [_search_prefix("pages", number) for number in range(SEARCHES)]
        yield from _built(bed, connection, TEXT_INDEXES, queries, milliseconds)


@experiment(units={"instructions": "instructions"}, needs=["restart"])
def search_instructions(bed: Testbed) -> Iterator[Row]:
    """What all searches by prefix execute, by index: each has a relation of its own, as otherwise
    the planner would choose between them.
    """
    cluster, statements = bed.cluster(), {}
    with cluster.connect() as connection:
        for index, relation in {SPACE: "pages", BTREE: "more_pages"}.items():
            build(
                connection,
                relation,
                "trees.addresses",
                relation=relation,
                objects=bed.parameters.objects,
            )
            SQL.run(connection, "trees.drop_index")
            SQL.run(connection, TEXT_INDEXES[index], relation=relation)
            SQL.run(connection, "trees.keep_index", kept=f"searched_{relation}")
            each = [_search_prefix(relation, number) for number in range(SEARCHES)]
            statements[index] = (allowed("indexonlyscan"), _together(each))
    for index, instructions in callgrind.executed(cluster, statements).items():
        yield {"index": index, "instructions": int(instructions)}


def _search_prefix(relation: str, number: int) -> str:
    place = f"{2000 + number % 12}/{1 + number % 28}/message-{number % 9 + 1}"
    prefix = f"https://www.example.org/archive/{place}%"
    return SQL.text("trees.search_prefix", relation=relation, prefix=prefix)


def _together(queries: list[str]) -> str:
    return f"SELECT ({'), ('.join(query.rstrip(';') for query in queries)})"


def _built(
    bed: Testbed,
    connection: psycopg.Connection,
    indexes: Mapping[str, str],
    queries: list[str],
    milliseconds: float,
) -> Iterator[Row]:
    """Build each index, count the pages of all searches, and repeat them for so long, all by one
    statement.

    Their time is EXPLAIN's, of their execution alone: planning and messages take longer, and are
    the same for all, as is what EXPLAIN costs.
    """
    together = _together(queries)

    def measure(block: Block, index: str) -> dict[str, float]:
        SQL.run(connection, "trees.drop_index")
        seconds = timed(connection, SQL.text(indexes[index], relation="pages"))
        allow_only(connection, "indexonlyscan")
        search = lambda buffers: plans.explain(connection, together, execute=True, buffers=buffers)
        once = lambda: search(False).execution_ms / 1000 / len(queries)
        return {
            "build": seconds,
            "pages": sizes.pages(connection, "searched"),
            "execution": repeated(once, milliseconds),
            "accesses": search(True).page_accesses / len(queries),
        }

    yield from bed.compare(measure, {"index": list(indexes)}, pairs=bed.fewer_pairs, warmup=0)


# ---- B-trees

BUILT, RANDOM, ASCENDING = "built at once", "grown in random order", "grown in ascending order"
WAYS = {
    BUILT: ("trees.insert_ascending", "trees.index_keys"),
    RANDOM: ("trees.index_keys", "trees.insert_in_random_order"),
    ASCENDING: ("trees.index_keys", "trees.insert_ascending"),
}


@experiment(
    units={
        "pages": "pages",
        "density": "% of a leaf",
        "fragmentation": "% of the leaves",
        "lookup": "page accesses",
        "range": "page accesses",
    }
)
def btrees(bed: Testbed) -> Iterator[Row]:
    """A B-tree over the same keys, made in three ways.

    Fragmented is a leaf whose right neighbour lies before it. A search asks for one key, and for a
    tenth of them.
    """
    rows = bed.parameters.objects
    middle, last = rows // 2, rows // 2 + rows // 10
    queries = (
        SQL.text("trees.find_one", first=middle),
        SQL.text("trees.find_range", first=middle, last=last),
    )
    bed.server.extension("pgstattuple")
    with bed.server.connect() as connection:
        for way, steps in WAYS.items():
            build(connection, "grown", "trees.grown")
            for step in steps:
                SQL.run(connection, step, rows=rows)
            SQL.run(connection, "trees.vacuum_grown")
            [(density, fragmentation)] = SQL.run(connection, "trees.quality").fetchall()
            allow_only(connection, "indexonlyscan")
            for query in queries:  # the first execution may read catalogs as well
                plans.explain(connection, query, execute=True)
            lookup, range_ = (
                plans.explain(connection, query, execute=True).page_accesses for query in queries
            )
            yield {
                "way": way,
                "pages": sizes.pages(connection, "grown_k"),
                "density": float(density),
                "fragmentation": float(fragmentation),
                "lookup": lookup,
                "range": range_,
            }
