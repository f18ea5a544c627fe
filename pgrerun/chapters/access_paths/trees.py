"""GiST, SP-GiST and B-trees: what it takes to build one, and how good what was built is."""

from functools import partial

import pandas as pd
import psycopg

from pgrerun import statistics
from pgrerun.chapter import Chapter
from pgrerun.chapters.access_paths.accounts import blocks, only, timed
from pgrerun.chapters.access_paths.opclass import without_sort_support
from pgrerun.experiment import Arm, Block
from pgrerun.instruments import clock, plans
from pgrerun.relations import loading

# ---- points

ONE_BY_ONE, BUFFERED, SORTED, SPACE = "GiST, row by row", "GiST, buffered", "GiST, sorted", "SP-GiST"
_MADE = {
    ONE_BY_ONE: "USING gist (p points_unsorted) WITH (buffering = off)",
    BUFFERED: "USING gist (p points_unsorted) WITH (buffering = on)",
    SORTED: "USING gist (p)",
    SPACE: "USING spgist (p)",
}
_UNITS = {"build": "s", "pages": "pages", "search": "s", "accesses": "pages per search"}
SEARCHES = 25
_SIDE = 0.02  # of a search box, in the unit square


def _search(number: int) -> str:
    """Boxes along the diagonal and beside it, the same in every run."""
    x, y = (0.98 * number / SEARCHES), (0.98 * (number * 7 % SEARCHES) / SEARCHES)
    return f"SELECT count(*) FROM points WHERE p <@ box(point({x:g}, {y:g}), point({x + _SIDE:g}, {y + _SIDE:g}))"


def points(chapter: Chapter) -> None:
    """Build each index over the same random points and search it: time to build, pages, time and page accesses per search."""
    server = chapter.server
    with server.connect() as connection:
        without_sort_support(connection, "gist", "point_ops", "points_unsorted")
        with connection.transaction():
            loading.replace(connection, "points", "CREATE TABLE points (p point) WITH (autovacuum_enabled = off)")
            connection.execute("SELECT setseed(0.5)")
            connection.execute(f"INSERT INTO points SELECT point(random(), random()) FROM generate_series(1, {chapter.parameters.objects})")
        connection.execute("VACUUM (FREEZE, ANALYZE) points")
        arms = [Arm(name, partial(_built, connection, how)) for name, how in _MADE.items()]
        chapter.compare("points", arms, _UNITS)


def _built(connection: psycopg.Connection, how: str, block: Block) -> dict[str, float]:
    connection.execute("DROP INDEX IF EXISTS points_index")
    with clock.stopwatch() as build:
        connection.execute(f"CREATE INDEX points_index ON points {how}")
    only(connection, "indexonlyscan")
    accesses = sum(_accesses(connection, _search(number)) for number in range(SEARCHES)) / SEARCHES
    search = sum(timed(connection, _search(number)) for number in range(SEARCHES))
    return {"build": build.seconds, "pages": blocks(connection, "points_index"), "search": search, "accesses": accesses}


def _accesses(connection: psycopg.Connection, query: str) -> int:
    """Page accesses of a query; a page counts as often as it is visited."""
    found = plans.explain(connection, query, execute=True).buffers
    return found["shared_hit"] + found["shared_read"]


def over_row_by_row(chapter: Chapter, metric: str, arm: str) -> statistics.Interval | None:
    """A metric of one way to build, over that of inserting row by row."""
    return chapter.ratio("points", metric, arm, ONE_BY_ONE)


def gist_ratios(chapter: Chapter) -> dict[str, statistics.Interval] | None:
    """Time to build and pages visited by a search, of the index that CREATE INDEX makes today, over those of one made row by row."""
    ratios = {words: over_row_by_row(chapter, metric, SORTED) for metric, words in (("build", "time to build"), ("accesses", "pages visited by a search"))}
    return None if None in ratios.values() else ratios


# ---- text

PREFIXES = 25
_TEXT = {"SP-GiST": "USING spgist (url)", "B-tree": "USING btree (url text_pattern_ops)"}


def texts(chapter: Chapter) -> None:
    """Addresses with long common prefixes, searched by prefix: time to build, pages, time and page accesses per search."""
    server = chapter.server
    with server.connect() as connection:
        with connection.transaction():
            loading.replace(connection, "pages", "CREATE TABLE pages (url text) WITH (autovacuum_enabled = off)")
            connection.execute(
                "INSERT INTO pages SELECT format('https://www.example.org/archive/%%s/%%s/message-%%s.html', 2000 + mod(n, 12), 1 + mod(abs(hashint4(n)::bigint), 28), n)"
                f" FROM generate_series(1, {chapter.parameters.objects}) AS n", []
            )  # fmt: skip
        connection.execute("VACUUM (FREEZE, ANALYZE) pages")
        arms = [Arm(name, partial(_text_built, connection, how)) for name, how in _TEXT.items()]
        chapter.compare("texts", arms, _UNITS)


def _prefix(number: int) -> str:
    return f"SELECT count(*) FROM pages WHERE url LIKE 'https://www.example.org/archive/{2000 + number % 12}/{1 + number % 28}/message-{number % 9 + 1}%'"


def _text_built(connection: psycopg.Connection, how: str, block: Block) -> dict[str, float]:
    connection.execute("DROP INDEX IF EXISTS pages_index")
    with clock.stopwatch() as build:
        connection.execute(f"CREATE INDEX pages_index ON pages {how}")
    only(connection, "indexonlyscan")
    accesses = sum(_accesses(connection, _prefix(number)) for number in range(PREFIXES)) / PREFIXES
    search = sum(timed(connection, _prefix(number)) for number in range(PREFIXES))
    return {"build": build.seconds, "pages": blocks(connection, "pages_index"), "search": search, "accesses": accesses}


def space_ratios(chapter: Chapter) -> dict[str, statistics.Interval] | None:
    """Time of a search with the index that the talk prefers, over that with the other."""
    ratios = {
        "points, SP-GiST over GiST": chapter.ratio("points", "search", SPACE, SORTED),
        "prefixes, B-tree over SP-GiST": chapter.ratio("texts", "search", "B-tree", "SP-GiST"),
    }
    return None if None in ratios.values() else ratios


def medians(chapter: Chapter, experiment: str) -> pd.DataFrame | None:
    """Medians over the blocks. Columns: index, build (ms), pages, search (ms, of all searches), accesses (per search)."""
    tables = {metric: chapter.table(experiment, metric) for metric in ("build", "pages", "search", "accesses")}
    if tables["build"].empty:
        return None
    factor = {"build": 1000, "search": 1000}
    columns = {metric: table.median() * factor.get(metric, 1) for metric, table in tables.items()}
    names = {"build": "build (ms)", "pages": "pages", "search": "searches (ms)", "accesses": "page accesses per search"}
    order = [name for name in (*_MADE, *_TEXT) if name in tables["build"]]
    return pd.DataFrame(columns).rename(columns=names).loc[list(dict.fromkeys(order))].rename_axis("index").reset_index()


# ---- B-trees

BUILT, RANDOM, ASCENDING = "built at once", "grown in random order", "grown in ascending order"


def btrees(chapter: Chapter) -> pd.DataFrame:
    """A B-tree over the same keys, made in three ways.

    Columns: way, pages, density (% of a leaf), fragmentation (% of leaves whose right neighbour lies before them), lookup and range
    (page accesses of a search for one key, and for a tenth of them).
    """
    server, rows, found = chapter.server, chapter.parameters.objects, []
    server.extension("pgstattuple")
    with server.connect() as connection:
        for way in (BUILT, RANDOM, ASCENDING):
            with connection.transaction():
                loading.replace(connection, "grown", "CREATE TABLE grown (k int) WITH (autovacuum_enabled = off)")
                fill = f"INSERT INTO grown SELECT n FROM generate_series(1, {rows}) AS n" + (" ORDER BY hashint4(n), n" if way == RANDOM else "")
                create = "CREATE INDEX grown_k ON grown (k)"
                for statement in (fill, create) if way == BUILT else (create, fill):
                    connection.execute(statement)
            connection.execute("VACUUM (FREEZE, ANALYZE) grown")
            only(connection, "indexonlyscan")
            density, fragmentation = connection.execute("SELECT avg_leaf_density, leaf_fragmentation FROM pgstatindex('grown_k')").fetchone()
            queries = (f"SELECT k FROM grown WHERE k = {rows // 2}", f"SELECT count(k) FROM grown WHERE k BETWEEN {rows // 2} AND {rows // 2 + rows // 10}")
            lookup, wide = (min(_accesses(connection, query) for _ in range(2)) for query in queries)
            found.append((way, blocks(connection, "grown_k"), float(density), float(fragmentation), lookup, wide))
    return pd.DataFrame(found, columns=["way", "pages", "density", "fragmentation", "lookup", "range"])


def btree_facts(found: pd.DataFrame | None) -> dict[str, bool] | None:
    """Whether a B-tree is as good however it came about."""
    if found is None:
        return None
    at = found.set_index("way")
    return {
        "a lookup visits as many pages however the tree was made": bool(at["lookup"].nunique() == 1),
        "a tree grown in random order is as full as one built at once": bool(at.at[RANDOM, "density"] > at.at[BUILT, "density"] - 5),
        "a range visits as few pages in it": bool(at.at[RANDOM, "range"] <= 1.1 * at.at[BUILT, "range"]),
        "its leaves lie in the order of the keys": bool(at.at[RANDOM, "fragmentation"] < 5),
    }
