"""The report's relations and queries, in its own words and in SQL, and how a plan is forced.

Set 1 is Figure 2.4, set 2 Figure 2.5, set 3 Figure 2.6. Forcing works today as it did then, by flags that
take a method away (PostgreSQL documentation, "Planner Method Configuration").
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pandas as pd
import psycopg

from pgrerun import published
from pgrerun.chapter import Chapter
from pgrerun.instruments import plans
from pgrerun.relations import Wisconsin
from pgrerun.server import set_session

# ---- forcing

SEQUENTIAL, INDEX, BITMAP, INDEX_ONLY = "sequential scan", "index scan", "bitmap scan", "index-only scan"
NESTED, HASH, MERGE = "nested loop", "hash join", "merge join"
# Method -> the settings that allow it; all others of its family are switched off.
SCANS = {
    SEQUENTIAL: {"enable_seqscan"}, INDEX: {"enable_indexscan"}, BITMAP: {"enable_bitmapscan"},
    INDEX_ONLY: {"enable_indexonlyscan", "enable_indexscan"},
}  # fmt: skip
JOINS = {NESTED: {"enable_nestloop"}, HASH: {"enable_hashjoin"}, MERGE: {"enable_mergejoin"}}
NODES = {
    SEQUENTIAL: "Seq Scan", INDEX: "Index Scan", BITMAP: "Bitmap Heap Scan", INDEX_ONLY: "Index Only Scan",
    NESTED: "Nested Loop", HASH: "Hash Join", MERGE: "Merge Join",
}  # fmt: skip
# One process, as in 1990; a statement's first execution is like every other.
SESSION = {"max_parallel_workers_per_gather": 0, "jit": "off"}


@contextmanager
def session(server) -> Iterator[psycopg.Connection]:
    """A connection whose statements run in one process."""
    with server.connect() as connection:
        set_session(connection, SESSION)
        yield connection


@contextmanager
def forced(connection: psycopg.Connection, method: str) -> Iterator[None]:
    """Leave the planner no other scan, or no other join, than `method` for the length of a block."""
    family = SCANS if method in SCANS else JOINS
    others = set().union(*family.values()) - family[method]
    for name in others:
        connection.execute(f"SET {name} = off")
    try:
        yield
    finally:
        for name in others:
            connection.execute(f"RESET {name}")


def method_of(plan: plans.Plan) -> str:
    """The scan (of a single relation) or the join (the topmost) of a plan, in the report's words."""
    names = {node: method for method, node in NODES.items()}
    found = next((names[node.node_type] for node in plan.walk() if node.node_type in names), plan.node_type)
    return found


# ---- the relations

REPORT = "report"  # relations of the report's size
LARGE = "large"  # as many times that as the parameter says


def small_tuples() -> int:
    """Tuples of onek1 and onek2 in print."""
    return int(published.cell("optimizer_said", "small_tuples", "value"))


def large_tuples() -> int:
    """Tuples of tenk1 and tenk2 in print."""
    return int(published.cell("optimizer_said", "large_tuples", "value"))


def load_scanned(server, name: str, tuples: int, order: int = 1) -> None:
    """A relation of set 1 with B-trees on unique2, the order of its tuples, and on unique1, which has nothing to do with it."""
    Wisconsin(name, tuples, attributes="1990", order=order).load(server)
    with server.connect() as connection:
        for attribute in ("unique2", "unique1"):
            connection.execute(f"CREATE INDEX {name}_{attribute} ON {name} ({attribute})")
        connection.execute(f"VACUUM (ANALYZE) {name}")
        if server.can("checkpoint"):
            connection.execute("CHECKPOINT")  # nothing of the load is left to be written while scans are timed


def joined(size: str, indexed: bool) -> tuple[str, str]:
    """Names of the two relations of set 2: with and without B-trees they are relations of their own."""
    stem = ("onek" if size == REPORT else "manyk") + ("_indexed" if indexed else "")
    return f"{stem}1", f"{stem}2"


def load_joined(server, size: str, tuples: int) -> None:
    """The relations of set 2, twice: as they are loaded, and with a clustered B-tree on unique2."""
    for indexed in (False, True):
        for number, name in enumerate(joined(size, indexed), start=1):
            Wisconsin(name, tuples, attributes="1990", order=number).load(server)
            with server.connect() as connection:
                if indexed:
                    connection.execute(f"CREATE INDEX {name}_unique2 ON {name} (unique2)")
                connection.execute(f"VACUUM (ANALYZE) {name}")


# ---- the queries


def steps() -> list[float]:
    """The selectivities of Figure 2.4: 0.1 to 0.9."""
    return published.derived("optimizer_set1")["selectivity"].round(4).tolist()


def range_of(tuples: int, selectivity: float, attribute: str = "unique2") -> str:
    """Figure 2.4's qualification, which a share of a relation fulfils whose keys count from 0."""
    return f"{attribute} < {round(selectivity * tuples) + 2} AND {attribute} > 1"


def stored(select: str) -> str:
    """`retrieve into`: the result goes into a relation, which is a temporary one, so that no log is written."""
    return f"CREATE TEMP TABLE temp1 AS {select}"


_ATTRIBUTES = {
    "unique1": "u1", "unique2": "u2", "two": "two", "four": "four", "ten": "ten", "twenty": "twenty", "hundred": "h",
    "thousand": "t", "twothousand": "tt", "fivethousand": "ft", "tenthousand": "tent", "odd": "odd", "even": "even",
    "stringu1": "st1", "stringu2": "st2", "string4": "st4",
}  # fmt: skip
JOIN_QUERIES = (1, 2, 3, 4, 5, 6)


def join_query(query: int, size: str, tuples: int) -> str:
    """One of Figure 2.5's six queries as a SELECT of all 32 attributes.

    The bounds 10 and 100 grow with the relations of queries 3 and 4, whose selectivity stays; in queries 5 and 6 they
    stay, or the result would grow with the square.
    """
    one, two = joined(size, indexed=query % 2 == 0)
    attributes = [f"{alias}.{name} AS {short}{n}" for n, alias in ((1, "a"), (2, "b")) for name, short in _ATTRIBUTES.items()]
    scale = tuples // small_tuples()
    where = {
        1: "a.unique2 = b.unique2",
        3: f"a.unique2 = b.unique2 AND b.unique2 < {100 * scale}",
        5: "a.unique2 < b.unique2 AND a.unique2 < 10 AND b.unique2 < 100",
    }[query - 1 + query % 2]
    return f"SELECT {', '.join(attributes)} FROM {one} a, {two} b WHERE {where}"


# ---- as printed

_POSTQUEL = {
    "set 1": "retrieve into temp1 (tenk1.all) where (tenk1.unique2 < X002) and (tenk1.unique2 > 1)",
    "set 2, queries 1 and 2": "retrieve into temp1 (u11 = onek1.unique1, …) where (onek1.unique2 = onek2.unique2)",
    "set 2, queries 3 and 4": "retrieve into temp2 (u11 = onek1.unique1, …) where (onek1.unique2 = onek2.unique2) and (onek2.unique2 < 100)",
    "set 2, queries 5 and 6": "retrieve into temp3 (u11 = onek1.unique1, …) where (onek1.unique2 < onek2.unique2) and (onek1.unique2 < 10) and (onek2.unique2 < 100)",
    "set 3, query 1": "retrieve (tenk1.all) where tenk1.unique2 < 502 and tenk1.unique2 > 500",
}


def in_sql() -> pd.DataFrame:
    """The report's queries (Figures 2.4 to 2.6) beside what is run here: query, POSTQUEL, SQL; long lists of attributes cut short."""
    def short(query: int) -> str:
        head, tail = join_query(query, REPORT, small_tuples()).split(" FROM ")
        return stored(f"{head.split(', ')[0]}, … FROM {tail}")

    statements = [
        stored(f"SELECT * FROM tenk1 WHERE {range_of(large_tuples(), 0.1)}"), short(1), short(3), short(5),
        "SELECT * FROM tenk1 WHERE unique2 < 502 AND unique2 > 500",
    ]  # fmt: skip
    return pd.DataFrame({"query": _POSTQUEL.keys(), "POSTQUEL": _POSTQUEL.values(), "SQL": statements})


def apparatus(chapter: Chapter) -> pd.DataFrame:
    """What was there in 1990 and what is here: a row per thing."""
    said, given = published.table("optimizer_said")["value"], chapter.parameters
    rows = [
        ("relation whose scans are planned", f"{said['large_tuples']:,.0f} tuples of {said['tuple_bytes']:.0f} bytes", "the same"),
        ("relation whose scans are timed", "the same", f"{given.tuples:,} tuples"),
        ("relations that are joined", f"{said['small_tuples']:,.0f} tuples each", f"the same, and {given.times * said['small_tuples']:,.0f} tuples each"),
        ("alternatives", "forced by internal flags", "forced by planner settings (enable_…)"),
        ("results", "stored in a relation", "stored in a temporary relation, which writes no log"),
        ("repeats", "not said", f"{given.pairs} blocks, methods in turn"),
        ("processes at work on a statement", "one", "one (parallel plans are switched off)"),
    ]
    return pd.DataFrame(rows, columns=["what", "1990", "here"])
